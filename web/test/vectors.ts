// The vectors of tests/data/web, which `python -m tests.web.vectors` writes from the library.

import { readFileSync } from "node:fs";

export function vectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../../tests/data/web/${name}.json`, import.meta.url), "utf8")) as T;
}
