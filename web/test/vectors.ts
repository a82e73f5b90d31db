// The vectors of tests/data/web, which `python -m tests.web.vectors` writes from the library, or of another folder.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const given = process.env["HEARTH_VECTORS"];
const FOLDER = given === undefined ? new URL("../../tests/data/web/", import.meta.url) : pathToFileURL(`${given}/`);

export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8")) as T;
}
