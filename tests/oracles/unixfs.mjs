// Import files and directories with the npm UnixFS importer, as an oracle that shares no code with hearth.storage.unixfs.
//
// stdin: a JSON list of {"path", "chunk", "links"}; stdout: a JSON list of {"cid", "tsize"} in the same order.
// Blocks are hashed and dropped, so that 100 MiB need no memory.

import { createReadStream } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { BlackHoleBlockstore } from 'blockstore-core'
import { importer } from 'ipfs-unixfs-importer'
import { fixedSize } from 'ipfs-unixfs-importer/chunker'
import { balanced } from 'ipfs-unixfs-importer/layout'

async function * candidates (root, relative) {
  const entries = await readdir(join(root, relative), { withFileTypes: true })
  if (entries.length === 0 && relative !== '') {
    yield { path: relative }
  }
  for (const entry of entries) {
    const path = relative === '' ? entry.name : `${relative}/${entry.name}`
    if (entry.isDirectory()) {
      yield * candidates(root, path)
    } else {
      yield { path, content: createReadStream(join(root, path)) }
    }
  }
}

async function run ({ path, chunk, links }) {
  const isDirectory = (await lstat(path)).isDirectory()
  const source = isDirectory ? candidates(path, '') : [{ content: createReadStream(path) }]
  let last
  for await (const entry of importer(source, new BlackHoleBlockstore(), {
    cidVersion: 1,
    rawLeaves: true,
    reduceSingleLeafToSelf: true,
    wrapWithDirectory: isDirectory,
    shardSplitStrategy: 'block-bytes',
    chunker: fixedSize({ chunkSize: chunk }),
    layout: balanced({ maxChildrenPerNode: links })
  })) {
    last = entry
  }
  return { cid: last.cid.toString(), tsize: Number(last.size) }
}

let input = ''
for await (const piece of process.stdin) {
  input += piece
}
const answers = []
for (const request of JSON.parse(input)) {
  answers.push(await run(request))
}
process.stdout.write(JSON.stringify(answers))
