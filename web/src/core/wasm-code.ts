// Which proposals the code of a WebAssembly module uses that workers do not run. A command validates a module by the workers' own
// engine; a page has none, and its browser runs more than they do. So each instruction is stepped over here: what is named
// below is refused, and what code is otherwise worth is the workers' to say. `tests/web/vectors/modules.py` compares both.
// Source: https://webassembly.github.io/spec/core/binary/instructions.html.

import { VALUE_LETTERS } from "../generated/wasm";

// What a reader of a part of a module does here; it throws where that ends in the middle.
export interface Code {
  readonly end: number;
  at: number;
  byte(): number;
  number(): number;
  skip(size: number): void;
}

const EXCEPTIONS = "exceptions";
const STACK = "stack switching";
const REFERENCES = "references to functions or objects";
const PROPOSALS: ReadonlyMap<number, string> = new Map([
  ...[0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f].map((code) => [code, EXCEPTIONS] as const),
  [0x12, "tail calls"],
  [0x13, "tail calls"],
  ...[0x14, 0x15, 0xd3, 0xd4, 0xd5, 0xd6].map((code) => [code, REFERENCES] as const),
  ...[0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6].map((code) => [code, STACK] as const),
  [0xfb, "garbage collection"],
  [0xfe, "threads"],
]);

// The name of the first proposal in a code section, undefined where there is none.
export function proposalIn(body: Code): string | undefined {
  for (let functions = body.number(); functions > 0; functions -= 1) {
    const size = body.number();
    const end = body.at + size;
    const found = inFunction(body, end);
    if (found !== undefined) return found;
    if (body.at !== end) return undefined; // damaged: no compiler writes that
  }
  return undefined;
}

function inFunction(body: Code, end: number): string | undefined {
  for (let groups = body.number(); groups > 0; groups -= 1) {
    body.number();
    if (VALUE_LETTERS[body.byte()] === "?") return "value types of a proposal";
  }
  while (body.at < end) {
    const found = step(body, body.byte());
    if (found !== undefined) return found;
  }
  return undefined;
}

// Step over what follows an instruction's first byte; the name of its proposal where it is one's.
function step(body: Code, code: number): string | undefined {
  const proposal = PROPOSALS.get(code);
  if (proposal !== undefined) return proposal;
  switch (code) {
    case 0x02:
    case 0x03:
    case 0x04:
      return block(body);
    case 0x0e:
      for (let left = body.number() + 1; left > 0; left -= 1) body.number();
      return undefined;
    case 0x1c:
      for (let left = body.number(); left > 0; left -= 1) {
        if (VALUE_LETTERS[body.byte()] === "?") return "value types of a proposal";
      }
      return undefined;
    case 0x11:
      body.number();
      body.number();
      return undefined;
    case 0x41:
    case 0x42:
      long(body);
      return undefined;
    case 0x43:
      body.skip(4);
      return undefined;
    case 0x44:
      body.skip(8);
      return undefined;
    case 0x3f:
    case 0x40:
      return body.byte() === 0 ? undefined : "more than one memory";
    case 0xd0:
      return VALUE_LETTERS[body.byte()] === "?" ? REFERENCES : undefined;
    case 0xfc:
      return bulk(body, body.number());
    case 0xfd:
      return vector(body, body.number());
    default:
      if (code >= 0x28 && code <= 0x3e) return memory(body);
      if (code === 0x0c || code === 0x0d || code === 0x10 || (code >= 0x20 && code <= 0x26) || code === 0xd2) body.number();
      return undefined;
  }
}

// The type of a block: none, one value's, or a function's by its index.
function block(body: Code): string | undefined {
  const first = body.byte();
  if (first >= 0x80) {
    long(body);
    return undefined;
  }
  return first >= 0x40 && first !== 0x40 && VALUE_LETTERS[first] === "?" ? "value types of a proposal" : undefined;
}

function memory(body: Code): string | undefined {
  const flags = body.number();
  long(body);
  return (flags & 0x40) !== 0 ? "more than one memory" : undefined;
}

function bulk(body: Code, code: number): string | undefined {
  if (code <= 7) return undefined;
  if (code > 17) return code <= 22 ? "wide arithmetic" : "instructions of a proposal";
  const immediates = code === 9 || code === 11 || code === 13 || code >= 15 ? 1 : 2;
  for (let left = immediates; left > 0; left -= 1) body.number();
  return undefined;
}

function vector(body: Code, code: number): string | undefined {
  if (code >= 256) return "relaxed SIMD";
  if (code <= 11 || code === 92 || code === 93) return memory(body);
  if (code === 12 || code === 13) body.skip(16);
  else if (code >= 21 && code <= 34) body.skip(1);
  else if (code >= 84 && code <= 91) {
    const found = memory(body);
    body.skip(1);
    return found;
  }
  return undefined;
}

// Step over a number of any length.
function long(body: Code): void {
  while (body.byte() >= 0x80);
}
