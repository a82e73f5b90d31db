// A WebAssembly module read far enough to say whether a worker could start it: imports, exports, memory, start. Mirrors
// hearth/jobfile/wasm_module.py: what it refuses no worker could run. The work is bounded, whatever the bytes are.

import {
  COMPILE_HINT,
  IMPORT_HINTS,
  KINDS,
  MAX_ENTRIES,
  MAX_FUNCTIONS,
  MAX_MEMORY_BYTES,
  MAX_MODULE_BYTES,
  MAX_PARAMETERS,
  MEMORY_FLAGS,
  NO_RESULT,
  OTHER_FILES,
  PAGE_BYTES,
  SECTION_PLACES,
  VALUE_LETTERS,
  WASI_CALLS,
  WASI_MODULE,
  WITHOUT,
} from "../generated/wasm";
import { toHex } from "./bytes";
import { HearthError } from "./errors";
import { formatSize, mibCeil } from "./units";
import { first } from "./unicode";
import { proposalIn } from "./wasm-code";

// The parameters and results of a function, a letter each: i and I integers of 32 and 64 bits, f and F floats.
interface Signature {
  readonly parameters: string;
  readonly results: string;
}

interface Import {
  readonly module: string;
  readonly name: string;
  readonly kind: string;
  readonly signature: Signature | null;
}

interface Export {
  readonly kind: string;
  readonly signature: Signature | null;
}

// What a module declares: the pages of 64 KiB that it starts with, and whether its start function is a call of the host.
interface Module {
  readonly imports: readonly Import[];
  readonly exports: ReadonlyMap<string, Export>;
  readonly memoryPages: bigint;
  readonly callsHostAtStart: boolean;
}

const CUSTOM = 0;
const CODE = 10;
const TAGS = 13;
const COMPONENT = "0x0d000100";
const VERSION_1 = "0x01000000";
const MAGIC = "0x0061736d";
const CALLS: ReadonlyMap<string, string> = new Map(Object.entries(WASI_CALLS));
const HINTS: ReadonlyMap<string, string> = new Map(Object.entries(IMPORT_HINTS));
const PLACES: ReadonlyMap<number, number> = new Map(Object.entries(SECTION_PLACES).map(([section, place]) => [Number(section), place]));

// Refuse a module that no worker could start with so much memory. Throws NO_WASM, BAD_MODULE, MODULE_TOO_LARGE, UNKNOWN_IMPORT,
// NO_ENTRY, NO_MEMORY, UNSUPPORTED_MODULE of the field `module`, and MEMORY_SHORT of `resources.memory`.
export function checkModule(raw: Uint8Array, memoryBytes: bigint): void {
  checkDeclared(raw, memoryBytes);
  checkCode(raw);
}

// The same by its declarations alone, as the library's check of that name.
export function checkDeclared(raw: Uint8Array, memoryBytes: bigint): void {
  const module = readModule(raw);
  for (const wanted of module.imports) checkImport(wanted);
  checkEntry(module);
  if (module.exports.get("memory")?.kind !== "memory") refuse("exports no memory under the name memory", COMPILE_HINT, "NO_MEMORY");
  const needed = module.memoryPages * PAGE_BYTES;
  const had = memoryBytes < MAX_MEMORY_BYTES ? memoryBytes : MAX_MEMORY_BYTES;
  if (needed <= had) return;
  throw new HearthError(
    "MEMORY_SHORT",
    `resources.memory: the module starts with ${formatSize(needed)} of memory, and the job asks for ${formatSize(had)}`,
    `write resources: {memory: "${formatSize(mibCeil(needed) << 20n)}"}, or more`,
    { field: "resources.memory" },
  );
}

// Refuse a module, whose declarations pass, for what is in its code. Throws UNSUPPORTED_MODULE, BAD_MODULE.
function checkCode(raw: Uint8Array): void {
  const file = new Part(raw, 8, raw.length);
  while (file.at < file.end) {
    const section = file.byte();
    const body = file.part(file.number());
    const found = section === CODE ? proposalIn(body) : undefined;
    if (found !== undefined) unsupported(found);
  }
}

// Refuse a module of more bytes than a worker takes. Throws MODULE_TOO_LARGE.
export function checkModuleSize(size: number): void {
  if (size <= MAX_MODULE_BYTES) return;
  const most = formatSize(BigInt(MAX_MODULE_BYTES));
  const hint = "strip it (-s), and pass data as inputs";
  refuse(`has ${formatSize(BigInt(size))}; a worker takes at most ${most}`, hint, "MODULE_TOO_LARGE");
}

function readModule(raw: Uint8Array): Module {
  checkModuleSize(raw.length);
  if (toHex(raw.subarray(0, 4)) !== MAGIC) refuseFile(raw);
  const version = toHex(raw.subarray(4, 8));
  if (version === COMPONENT) {
    const hint = "compile it for wasm32-wasip1 (preview 1), not wasip2";
    refuse("is a WebAssembly component, and workers run core modules", hint, "UNSUPPORTED_MODULE");
  }
  if (version !== VERSION_1) refuse("is no WebAssembly of version 1", COMPILE_HINT, "NO_WASM");
  return new Reader().read(raw);
}

// Collects what the sections declare, in their order.
class Reader {
  readonly #types: Signature[] = [];
  readonly #imports: Import[] = [];
  // The type of each function, imported ones first.
  readonly #functions: number[] = [];
  // The pages that each memory starts with.
  readonly #memories: bigint[] = [];
  readonly #exports = new Map<string, Export>();
  #start: number | undefined;

  // Read every section's frame, and what is in those that matter here.
  read(raw: Uint8Array): Module {
    const readers: Readonly<Record<number, (body: Part) => void>> = {
      1: (body) => this.#readTypes(body),
      2: (body) => this.#readImports(body),
      3: (body) => this.#readFunctions(body),
      4: (body) => this.#readTables(body),
      5: (body) => this.#readMemories(body),
      7: (body) => this.#readExports(body),
      8: (body) => this.#readStart(body),
    };
    const file = new Part(raw, 8, raw.length);
    let [last, sections] = [-1, 0];
    while (file.at < file.end) {
      sections += 1;
      if (sections > MAX_ENTRIES) unsupported(`more than ${MAX_ENTRIES} sections`);
      const section = file.byte();
      const body = file.part(file.number());
      if (section === CUSTOM) continue;
      const place = PLACES.get(section) ?? -1;
      if (place <= last) bad(`section ${section} is unknown, doubled or out of order`);
      last = place;
      if (section === TAGS) unsupported("exceptions");
      const read = readers[section];
      if (read === undefined) continue;
      read(body);
      if (body.at !== body.end) bad(`section ${section} holds more than it declares`);
    }
    const called = this.#imports.filter((wanted) => wanted.kind === "function").length;
    return {
      imports: [...this.#imports],
      exports: new Map(this.#exports),
      memoryPages: this.#memories[0] ?? 0n,
      callsHostAtStart: this.#start !== undefined && this.#start < called,
    };
  }

  #readTypes(body: Part): void {
    for (let left = body.count(MAX_ENTRIES); left > 0; left -= 1) {
      if (body.byte() !== 0x60) unsupported("types of a proposal (garbage collection, function references)");
      const parameters = letters(body);
      this.#types.push({ parameters, results: letters(body) });
    }
  }

  #readImports(body: Part): void {
    for (let left = body.count(MAX_ENTRIES); left > 0; left -= 1) {
      const [module, name, kind] = [body.text(), body.text(), body.byte()];
      let signature: Signature | null = null;
      if (kind === 0) {
        this.#functions.push(body.number());
        signature = this.#signature(this.#functions.length - 1);
      } else if (kind === 1) {
        body.byte();
        limits(body);
      } else if (kind === 2) {
        this.#memories.push(limits(body));
      } else if (kind === 3) {
        body.byte();
        body.byte();
      } else if (kind === 4) {
        body.byte();
        body.number();
      } else {
        bad(`an import is of the unknown kind ${kind}`);
      }
      this.#imports.push({ module, name, kind: KINDS[kind] as string, signature });
    }
  }

  #readFunctions(body: Part): void {
    for (let left = body.count(MAX_FUNCTIONS); left > 0; left -= 1) this.#functions.push(body.number());
  }

  #readTables(body: Part): void {
    for (let left = body.count(MAX_ENTRIES); left > 0; left -= 1) {
      if (VALUE_LETTERS[body.byte()] !== "r") unsupported("tables of a proposal");
      limits(body);
    }
  }

  #readMemories(body: Part): void {
    for (let left = body.count(MAX_ENTRIES); left > 0; left -= 1) this.#memories.push(limits(body));
    if (this.#memories.length > 1) unsupported("more than one memory");
  }

  #readExports(body: Part): void {
    for (let left = body.count(MAX_ENTRIES); left > 0; left -= 1) {
      const [name, kind, index] = [body.text(), body.byte(), body.number()];
      if (kind >= KINDS.length) bad(`an export is of the unknown kind ${kind}`);
      if (this.#exports.has(name)) bad(`"${brief(name)}" is exported twice`);
      if (kind === 2 && index >= this.#memories.length) bad(`memory ${index} is exported and not declared`);
      this.#exports.set(name, { kind: KINDS[kind] as string, signature: kind === 0 ? this.#signature(index) : null });
    }
  }

  #readStart(body: Part): void {
    this.#start = body.number();
    const { parameters, results } = this.#signature(this.#start);
    if (parameters !== "" || results !== "") bad("its start function takes parameters or returns results");
  }

  // The signature of a function by its index.
  #signature(at: number): Signature {
    const index = this.#functions[at];
    if (index === undefined) bad(`function ${at} is named and not declared`);
    const found = this.#types[index];
    if (found === undefined) bad(`type ${index} is named and not declared`);
    return found;
  }
}

// Reads forward through a part of a module, and never past its end.
class Part {
  constructor(
    private readonly raw: Uint8Array,
    public at: number,
    readonly end: number,
  ) {}

  byte(): number {
    if (this.at >= this.end) cutOff();
    this.at += 1;
    return this.raw[this.at - 1] as number;
  }

  // An unsigned integer of up to 32 bits (LEB128).
  number(): number {
    let value = 0;
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte >= 0x80) continue;
      if (value >= 2 ** 32) break;
      return value;
    }
    bad("a number has more than 32 bits");
  }

  // An unsigned integer of up to 64 bits: a bound that may belong to a 64-bit memory.
  long(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad("a number has more than 64 bits");
  }

  // How many entries follow.
  count(most: number): number {
    const value = this.number();
    if (value > most) refuse(`declares ${value} entries where this check reads at most ${most}`, "split it", "UNSUPPORTED_MODULE");
    return value;
  }

  // A name.
  text(): string {
    const bytes = this.take(this.number());
    try {
      return utf8.decode(bytes);
    } catch {
      bad("a name is no UTF-8 text");
    }
  }

  take(size: number): Uint8Array {
    const part = this.part(size);
    return this.raw.subarray(part.at, part.end);
  }

  skip(size: number): void {
    this.part(size);
  }

  // A reader of the next `size` bytes, which are stepped over.
  part(size: number): Part {
    const begin = this.at;
    if (size > this.end - begin) cutOff();
    this.at += size;
    return new Part(this.raw, begin, begin + size);
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function letters(body: Part): string {
  const found = Array.from(body.take(body.count(MAX_PARAMETERS)), (value) => VALUE_LETTERS[value] as string).join("");
  if (found.includes("?")) unsupported("value types of a proposal");
  return found;
}

// The least size of a memory or table; flags that workers do not know are refused by name.
function limits(body: Part): bigint {
  const flags = body.byte();
  const least = body.long();
  if ((flags & 1) !== 0) body.long();
  for (const [flag, name] of MEMORY_FLAGS) if ((flags & flag) !== 0) unsupported(name);
  if (flags > 1) bad("a memory or table has unknown flags");
  return least;
}

function checkImport(wanted: Import): void {
  const name = `${brief(wanted.module)}.${brief(wanted.name)}`;
  const expected = CALLS.get(wanted.name);
  if (wanted.module !== WASI_MODULE || expected === undefined || wanted.signature === null) {
    const what = `imports the ${wanted.kind} ${name}, which no worker offers: only the functions of ${WASI_MODULE}`;
    refuse(what, HINTS.get(wanted.module) ?? COMPILE_HINT, "UNKNOWN_IMPORT");
  }
  const results = (NO_RESULT as readonly string[]).includes(wanted.name) ? "" : "i";
  if (wanted.signature.parameters !== expected || wanted.signature.results !== results) {
    refuse(`imports ${name} with other parameters than it has`, COMPILE_HINT, "UNKNOWN_IMPORT");
  }
}

function checkEntry(module: Module): void {
  const signature = module.exports.get("_start")?.signature;
  if (signature === undefined || signature === null) {
    if (module.exports.has("_initialize")) {
      const hint = "link it as a program with main, without -mexec-model=reactor or crate-type cdylib";
      refuse("is a library: it exports _initialize and no function _start", hint, "NO_ENTRY");
    }
    refuse("exports no function _start: a job is a program with main", COMPILE_HINT, "NO_ENTRY");
  }
  if (signature.parameters !== "") refuse("has a _start that takes parameters, and a worker calls it without", COMPILE_HINT, "NO_ENTRY");
  if (module.callsHostAtStart) {
    const what = "calls its host before its memory can be seen: its start function is an import";
    refuse(what, "call it in main", "UNSUPPORTED_MODULE");
  }
}

function refuseFile(raw: Uint8Array): never {
  let from = 0;
  const head = raw.subarray(0, 64);
  while (from < head.length && (head[from] === 0x20 || ((head[from] as number) >= 9 && (head[from] as number) <= 13))) from += 1;
  const hex = toHex(head.subarray(from)).slice(2);
  const like = OTHER_FILES.find(([magic]) => hex.startsWith(magic))?.[1];
  const what = raw.length === 0 ? ": it is empty" : like === undefined ? "" : `: it looks like ${like}`;
  refuse(`is no WebAssembly module${what}`, COMPILE_HINT, "NO_WASM");
}

// A name of at most 80 characters, with three dots where its end is left out.
function brief(text: string): string {
  return Array.from(text).length <= 80 ? text : `${first(text, 77)}...`;
}

function cutOff(): never {
  bad("it ends in the middle: a part of the file is missing");
}

function unsupported(what: string): never {
  const [, hint] = WITHOUT.find(([word]) => what.toLowerCase().includes(word)) ?? [];
  refuse(`uses ${what}, which workers do not run`, hint ?? "compile it without", "UNSUPPORTED_MODULE");
}

function bad(what: string): never {
  refuse(`is damaged: ${what}`, "compile or copy it again", "BAD_MODULE");
}

function refuse(what: string, hint: string, code: string): never {
  throw new HearthError(code, `module: ${what}`, hint, { field: "module" });
}
