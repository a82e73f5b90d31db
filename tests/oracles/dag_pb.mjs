// Read dag-pb blocks with @ipld/dag-pb, as an oracle that shares no code with hearth.storage.unixfs.
//
// stdin: a JSON list of blocks in base64; stdout: a JSON list of [[[digest, name, size], ...], data], bytes in hex,
// or of the error's text where it takes none.

import { decode } from '@ipld/dag-pb'

const hex = (bytes) => Buffer.from(bytes ?? []).toString('hex')

let input = ''
for await (const chunk of process.stdin) input += chunk
const found = JSON.parse(input).map((text) => {
  try {
    const node = decode(new Uint8Array(Buffer.from(text, 'base64')))
    const links = node.Links.map((link) => [
      hex(link.Hash.multihash.digest), hex(Buffer.from(link.Name ?? '')), link.Tsize ?? 0
    ])
    return [links, hex(node.Data)]
  } catch (error) {
    return String(error)
  }
})
console.log(JSON.stringify(found))
