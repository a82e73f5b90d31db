// Which files of a picked folder are left out: those that the library leaves out of a job.

import { HearthError } from "../core/errors";
import { type Ignore, noJobTakes, workdirRules } from "../core/ignore";
import { RULE_FILES } from "../generated/ignore";
import { bytesOf, type Picked } from "./picked-files";

// Return the rules of a picked folder, and the paths that they left out once it was walked: of a working directory its own
// too, of any what no job takes. Throws SECRET_FILE where that is what was picked.
export async function rulesOf(picked: Picked, isWorkdir: boolean): Promise<{ readonly ignore: Ignore; readonly left: string[] }> {
  const { name, node } = picked;
  if (noJobTakes(name, node.kind === "directory")) {
    throw new HearthError(
      "SECRET_FILE",
      `${name} looks like a secret; all that a job brings is public`,
      "where it may be public, copy it to another name, and pick that",
    );
  }
  const left: string[] = [];
  const rules = isWorkdir ? workdirRules(await ruleFilesOf(picked)) : noJobTakes;
  const ignore: Ignore = (path, isDirectory) => {
    const out = rules(path, isDirectory);
    if (out) left.push(isDirectory ? `${path}/` : path);
    return out;
  };
  return { ignore, left };
}

async function ruleFilesOf(picked: Picked): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const name of RULE_FILES) {
    const bytes = await bytesOf(picked, name);
    if (bytes !== undefined) files.set(name, bytes);
  }
  return files;
}
