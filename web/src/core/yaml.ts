// Read the text of a job file, JSON or YAML, into plain values that know their lines.
//
// The library reads YAML with ruamel.yaml, this page with the package `yaml` in its core schema. What the two could read
// differently is refused as YAML_SUBSET: the page reads less YAML than the library and never another value.

import type { Alias, CST, ParsedNode, Scalar, YAMLMap, YAMLSeq } from "yaml";

import { SPEC_TEXT } from "../generated/spec";
import { utf8 } from "./bytes";
import type { HearthError } from "./errors";
import { type Location, placeKey, problem, Source } from "./problems";
import type { Value, ValueMap } from "./values";
import { substitute } from "./variables";

type Yaml = typeof import("./yaml-library");
type Pair = { readonly key: Node; readonly srcToken?: CST.CollectionItem };
type Node = ParsedNode | Scalar | YAMLMap | YAMLSeq | Alias;

const CHECK = "hearth check FILE says more";
const INTEGER = new RegExp(`^(?:${SPEC_TEXT.integer})$`);
// What one of the two YAMLs makes a number of.
const NUMBER = new RegExp(`^(?:${SPEC_TEXT.number})$`);
// A tab, a control character, a line end other than LF and CRLF, a mark of byte order.
const ODD = /[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]|\r(?!\n)/u;
const BLANK_LINE = /^ +\r?$/m;
const DIRECTIVE = /^%/m;
// What JSON holds as it is, and YAML by its number.
const UNPRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;
const SURROGATE = /[\ud800-\udfff]/u;
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]/;
// A key and its colon stand on one line, this far apart at most: ruamel.yaml holds to it.
const MAX_KEY_SPAN = 1024;
const OPTIONS = { version: "1.2", schema: "core", intAsBigInt: true, uniqueKeys: false, keepSourceTokens: true, prettyErrors: false, logLevel: "silent" } as const;

// What a job file holds, with `${NAME}` replaced by the variables' values, and where each part of it stands.
// `raw` is the file's bytes or its text; `name` is shown in errors. Throws BAD_SPEC, DUPLICATE_KEY, UNQUOTED,
// MISSING_VAR, UNUSED_VAR where the library refuses too, and YAML_SUBSET for YAML that only the library reads.
export async function readText(
  raw: Uint8Array | string,
  name: string,
  variables: ReadonlyMap<string, string> = new Map(),
): Promise<{ value: ValueMap; source: Source }> {
  const yaml: Yaml = await import("./yaml-library");
  const text = decode(raw, name);
  const { value, source } = new Builder(yaml, name, text).build();
  return { value: substitute(value, source, variables) as ValueMap, source };
}

function decode(raw: Uint8Array | string, name: string): string {
  const bytes = typeof raw === "string" ? utf8(raw) : raw;
  if (bytes.length > SPEC_TEXT.maxBytes) {
    throw refuse(name, null, `has ${bytes.length} bytes; a spec has at most ${SPEC_TEXT.maxBytes}`);
  }
  if (typeof raw === "string" && SURROGATE.test(raw)) throw refuse(name, null, "is not UTF-8 text");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse(name, null, "is not UTF-8 text");
  }
}

// Text that begins with a brace is JSON, which is read as YAML for its lines: what no YAML has as it is stands by its number.
function jsonAsYaml(text: string, name: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    throw refuse(name, null, `is not JSON: ${(error as Error).message}`);
  }
  const numbered = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(/\r\n?/g, "\n").replaceAll("\t", " ").replace(UNPRINTABLE, numbered);
}

// Builds plain values from the nodes of the package.
class Builder {
  private readonly text: string;
  private readonly isJson: boolean;
  private readonly lines = new Map<string, number>();
  private readonly starts;
  private values = 0;

  constructor(
    private readonly yaml: Yaml,
    private readonly name: string,
    text: string,
  ) {
    this.isJson = /^[ \t\r\n]*\{/.test(text);
    this.text = this.isJson ? jsonAsYaml(text, name) : text;
    this.starts = new yaml.LineCounter();
  }

  build(): { value: ValueMap; source: Source } {
    if (!this.isJson) {
      const odd = ODD.exec(this.text);
      if (odd !== null) {
        const line = this.text.slice(0, odd.index).split("\n").length;
        throw refuse(this.name, line, "holds a tab, or another character that this page does not read", `write spaces; ${CHECK}`, "YAML_SUBSET");
      }
      if (DIRECTIVE.test(this.text)) throw this.narrowed(0, "a directive");
    }
    const contents = this.compose();
    const value = contents === null ? null : this.take(contents, []);
    if (value instanceof Map) return { value: value as ValueMap, source: new Source(this.name, this.lines) };
    throw refuse(this.name, null, "holds no job spec: its top level is not a mapping", "hearth init writes a job file to start from");
  }

  private compose(): Node | null {
    const [first, second] = this.yaml.parseAllDocuments(this.text, { ...OPTIONS, lineCounter: this.starts });
    if (first === undefined) return null;
    const [fault] = [...first.errors, ...first.warnings];
    if (fault !== undefined) {
      const line = this.line(fault.pos[0]);
      const hint = (this.text.split("\n")[line - 1] ?? "").includes("${") ? 'quote "${NAME}" inside [] and {}' : CHECK;
      throw refuse(this.name, line, `is not YAML: ${fault.message}`, hint);
    }
    if (second !== undefined) throw this.refuse(second.range[0], "holds more than one document", "keep one job per file");
    return first.contents;
  }

  private take(node: Node, where: Location): Value {
    const { isMap, isSeq, isScalar } = this.yaml;
    const at = startOf(node);
    this.values += 1;
    if (this.values > SPEC_TEXT.maxValues) throw this.refuse(at, `holds more than ${SPEC_TEXT.maxValues} values`);
    this.checkMarks(node, at);
    const place = placeKey(where);
    if (!this.lines.has(place)) this.lines.set(place, this.line(at));
    if (isScalar(node)) return this.scalar(node, where);
    if (where.length >= SPEC_TEXT.maxDepth) throw this.refuse(at, `is nested deeper than ${SPEC_TEXT.maxDepth}`, "", where);
    if (isSeq(node)) return node.items.map((item, index) => this.take(item as Node, [...where, index]));
    if (!isMap(node)) throw new TypeError("a node of an unknown kind");
    if (node.flow === true && this.text.charAt(at) !== "{") throw this.narrowed(at, 'a "key: value" inside [ ] without { }');
    const values = new Map<string, Value>();
    for (const pair of node.items) {
      const word = this.key(pair as Pair, where, node.flow === true);
      // Only in a flow mapping may a key stand alone; its value is empty.
      values.set(word, pair.value === null ? null : this.take(pair.value as Node, [...where, word]));
    }
    return values;
  }

  private key({ key, srcToken }: Pair, parent: Location, inFlow: boolean): string {
    const at = startOf(key);
    this.checkMarks(key, at);
    if (srcToken?.start.some(({ type }) => type === "explicit-key-ind")) throw this.narrowed(at, 'a key marked with "?"');
    const word = this.yaml.isScalar(key) ? key.value : undefined;
    if (!this.yaml.isScalar(key) || typeof word !== "string" || (key.type === "PLAIN" && NUMBER.test(word))) {
      throw this.refuse(at, "has a key that is not text", 'write it in quotes: "1"');
    }
    this.checkText(key, word, parent);
    const colon = srcToken?.sep?.find(({ type }) => type === "map-value-ind")?.offset ?? key.range?.[1] ?? at;
    if (colon - at > MAX_KEY_SPAN || this.line(colon) !== this.line(at)) {
      throw this.refuse(at, "is not YAML: a key and its colon stand on one line, close together");
    }
    // YAML lets a word end there, and ruamel.yaml takes the colon into the word.
    if (inFlow && key.type === "PLAIN" && /[,[\]{}]/.test(this.text.charAt(colon + 1))) throw this.narrowed(colon, "a colon without a space behind it");
    const where = [...parent, word];
    const first = this.lines.get(placeKey(where));
    if (first !== undefined) throw this.refuse(at, `is given twice, first on line ${first}`, "remove one", where, "DUPLICATE_KEY");
    this.lines.set(placeKey(where), this.line(at));
    return word;
  }

  private checkMarks(node: Node, at: number): void {
    if (this.yaml.isAlias(node) || node.anchor !== undefined) {
      throw this.refuse(at, "uses an anchor or alias, which a spec may not", "write the value out");
    }
    if (node.tag !== undefined) throw this.refuse(at, `uses the tag ${node.tag}, which a spec may not`, "remove the tag");
  }

  private scalar(node: Scalar, where: Location): Value {
    const { value, type, source = "" } = node;
    if (type === "PLAIN" && NUMBER.test(source) && !INTEGER.test(source)) {
      const hint = `a text stands in quotes: "${source}"; a whole number has digits alone`;
      throw this.refuse(startOf(node), `${source} is a number without quotes`, hint, where, "UNQUOTED");
    }
    if (value === null || typeof value === "boolean" || typeof value === "bigint") return value;
    if (typeof value !== "string") throw this.narrowed(startOf(node), "a value of another kind");
    this.checkText(node, value, where);
    return value;
  }

  // Refuses text of which the library could read another value, or none.
  private checkText({ type, range }: Scalar, text: string, where: Location): void {
    const [start, end] = range ?? [0, 0];
    const written = this.text.slice(start, end);
    if (SURROGATE.test(text) || (!this.isJson && type === "QUOTE_DOUBLE" && SURROGATE_ESCAPE.test(written))) {
      throw this.refuse(start, "holds half a surrogate pair, which is no text", "", where);
    }
    if (type?.startsWith("QUOTE") && isOpen(written)) throw this.refuse(start, "is not YAML: a quoted text does not end", CHECK);
    if (type === "PLAIN" && /^[?:]/.test(text)) throw this.narrowed(start, 'an unquoted text that begins with "?" or ":"');
    if (type !== "BLOCK_LITERAL" && type !== "BLOCK_FOLDED") return;
    if (/^[|>][-+]?[0-9]/.test(written)) throw this.narrowed(start, "block text with a number for its indentation");
    if (BLANK_LINE.test(this.text)) throw this.narrowed(start, "block text, and a line of spaces alone");
    if (end >= this.text.length && !this.text.endsWith("\n")) throw this.narrowed(start, "block text whose last line does not end");
  }

  private line(at: number): number {
    return this.starts.linePos(at).line || 1;
  }

  private narrowed(at: number, what: string): HearthError {
    return this.refuse(at, `holds ${what}, which this page does not read`, `write it another way; ${CHECK}`, [], "YAML_SUBSET");
  }

  private refuse(at: number, message: string, hint = "", where: Location = [], code = "BAD_SPEC"): HearthError {
    return new Source(this.name, new Map([[placeKey(where), this.line(at)]])).refuse([problem(where, message, hint, code)]);
  }
}

const startOf = (node: Node): number => node.range?.[0] ?? 0;

// Say whether the last quote of a quoted text is part of the text, which the package does not see.
function isOpen(source: string): boolean {
  const before = source.startsWith("'") ? "'" : "\\";
  let at = source.length - 2;
  while (at > 0 && source.charAt(at) === before) at -= 1;
  return source.length < 2 || (source.length - 2 - at) % 2 === 1;
}

function refuse(name: string, line: number | null, message: string, hint = "", code = "BAD_SPEC"): HearthError {
  const lines = line === null ? new Map<string, number>() : new Map([[placeKey([]), line]]);
  return new Source(name, lines).refuse([problem([], message, hint, code)]);
}
