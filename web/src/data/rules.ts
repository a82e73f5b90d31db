// Which files of a picked folder are left out: those that the library leaves out of a working directory.

import { type Ignore, workdirRules } from "../core/ignore";
import { RULE_FILES } from "../generated/ignore";
import { bytesOf, type Picked } from "./pick";

// Return the rules of a picked folder, and the paths that they left out once it was walked. A lone file has none.
export async function rulesOf(picked: Picked): Promise<{ readonly ignore: Ignore; readonly left: string[] }> {
  const left: string[] = [];
  if (picked.node.kind === "file") return { ignore: () => false, left };
  const files = new Map<string, Uint8Array>();
  for (const name of RULE_FILES) {
    const bytes = await bytesOf(picked, name);
    if (bytes !== undefined) files.set(name, bytes);
  }
  const rules = workdirRules(files);
  const ignore: Ignore = (path, isDirectory) => {
    const out = rules(path, isDirectory);
    if (out) left.push(isDirectory ? `${path}/` : path);
    return out;
  };
  return { ignore, left };
}
