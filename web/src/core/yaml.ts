// Read the text of a job file, JSON or YAML, into plain values that know their lines. Mirrors hearth/spec/text.py.
//
// The library reads YAML with ruamel.yaml, this page with the package `yaml`. Where the two could read a text
// differently, or the page cannot be sure, the text is refused as YAML_SUBSET: the page reads less YAML than the
// library and never another value. What it leaves out: directives, keys marked with "?", tabs outside of quotes, block
// text and comments, line ends other than LF and CRLF, block text with blank lines that are not empty or with a number
// for its indentation, pairs in a list without braces, and unquoted texts that begin with "?" or ":" (each stands in
// `checkToken`).

import type { Alias, CST, Document, ParsedNode, Scalar, YAMLError, YAMLMap, YAMLSeq } from "yaml";

import { SPEC_TEXT } from "../generated/spec";
import { utf8 } from "./bytes";
import type { HearthError } from "./errors";
import { type Location, placeKey, problem, Source } from "./problems";
import { substitute } from "./variables";

// What a job file holds. Whole numbers are bigints, since the text may hold more than 53 bits; mappings keep their
// order.
export type Value = null | boolean | bigint | string | readonly Value[] | ValueMap;
export type ValueMap = ReadonlyMap<string, Value>;

type Yaml = typeof import("./yaml-library");
type Node = ParsedNode | Scalar | YAMLMap | YAMLSeq | Alias;

const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map(SPEC_TEXT.constants);
const INTEGER = new RegExp(`^(?:${SPEC_TEXT.integer})$`);
const NUMBER = new RegExp(`^(?:${SPEC_TEXT.number})$`);
const WHOLE = new Set(SPEC_TEXT.wholeKeys.map((where) => placeKey(where)));
// The characters that ruamel.yaml reads: its Reader.NON_PRINTABLE, the other way round.
const UNREADABLE = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;
const ODD_BREAK = /[\x85\u2028\u2029\ufeff]|\r(?!\n)/u;
const UNPRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;
const SURROGATE = /[\ud800-\udfff]/u;
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]/;
// A key and its colon stand on one line, this far apart at most: both YAML versions say so, and ruamel.yaml holds to
// it.
const MAX_KEY_SPAN = 1024;
// Nesting of the raw syntax, counted before anything recurses into it; the limit on values is far lower.
const MAX_SYNTAX_DEPTH = 64;

// What a job file holds, with `${NAME}` replaced by the variables' values, and where each part of it stands.
// `raw` is the file's bytes or its text; `name` is shown in errors. Throws BAD_SPEC, DUPLICATE_KEY, UNQUOTED,
// MISSING_VAR, UNUSED_VAR as the library does, and YAML_SUBSET for YAML that only the library reads.
export async function readText(
  raw: Uint8Array | string,
  name: string,
  variables: ReadonlyMap<string, string> = new Map(),
): Promise<{ value: ValueMap; source: Source }> {
  const yaml: Yaml = await import("./yaml-library");
  let text = decode(raw, name);
  const isJson = /^[ \t\r\n]*\{/.test(text);
  if (isJson) {
    checkJson(text, name);
    // A line may end in CR alone in JSON; the rest YAML has in this form alone.
    text = text.replace(/\r\n?/g, "\n").replace(UNPRINTABLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }
  const { value, source } = new Builder(yaml, name, text, isJson).build();
  return { value: substitute(value, source, variables) as ValueMap, source };
}

function decode(raw: Uint8Array | string, name: string): string {
  const bytes = typeof raw === "string" ? utf8(raw) : raw;
  if (bytes.length > SPEC_TEXT.maxBytes) {
    throw refuse(name, null, `has ${bytes.length} bytes; a spec has at most ${SPEC_TEXT.maxBytes}`);
  }
  if (typeof raw === "string") {
    if (SURROGATE.test(raw)) throw refuse(name, null, "is not UTF-8 text");
    return raw.startsWith("\ufeff") ? raw.slice(1) : raw;
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse(name, null, "is not UTF-8 text");
  }
}

function checkJson(text: string, name: string): void {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const one = text.charAt(at);
    if (one === '"') quoted = !quoted;
    else if (quoted) at += one === "\\" ? 1 : 0;
    else if (one === "[" || one === "{") depth += 1;
    else if (one === "]" || one === "}") depth -= 1;
    if (depth > SPEC_TEXT.maxDepth) throw refuse(name, null, `is nested deeper than ${SPEC_TEXT.maxDepth}`);
  }
  try {
    JSON.parse(text);
  } catch (error) {
    throw refuse(name, null, `is not JSON: ${(error as Error).message}`);
  }
}

// Builds plain values from the syntax tree. Recursion is as deep as the syntax, which is bounded before.
class Builder {
  private readonly lines = new Map<string, number>();
  private readonly starts: number[] = [];
  private values = 0;
  // The first thing that the syntax is refused for, and where: what is wrong before it is told first, as the library
  // does, which reads from top to bottom.
  private fault: { at: number; tell: () => HearthError } | undefined;

  constructor(
    private readonly yaml: Yaml,
    private readonly name: string,
    private readonly text: string,
    private readonly isJson: boolean,
  ) {}

  build(): { value: ValueMap; source: Source } {
    this.checkText();
    const contents = this.compose();
    let value: Value = null;
    if (contents !== null) value = this.take(contents, []);
    if (this.fault !== undefined) throw this.fault.tell();
    if (!(value instanceof Map)) {
      throw refuse(
        this.name,
        null,
        "holds no job spec: its top level is not a mapping",
        "hearth init writes a job file to start from",
      );
    }
    return { value, source: new Source(this.name, this.lines) };
  }

  private checkText(): void {
    const found = UNREADABLE.exec(this.text);
    if (found !== null) {
      const shown = (found[0].codePointAt(0) as number).toString(16).padStart(4, "0");
      const why = `unacceptable character #x${shown}: special characters are not allowed`;
      throw refuse(this.name, null, `is not YAML: ${why}`);
    }
    this.starts.push(0);
    for (let at = this.text.indexOf("\n"); at >= 0; at = this.text.indexOf("\n", at + 1)) this.starts.push(at + 1);
    const odd = ODD_BREAK.exec(this.text);
    // The package reads such text as one line: nothing that it says of it is of use.
    if (odd !== null && !this.isJson) {
      throw this.narrowed(odd.index, "a line end other than LF and CRLF, or a mark of byte order");
    }
  }

  private compose(): Node | null {
    const tokens: CST.Token[] = [];
    for (const token of new this.yaml.Parser().parse(this.text)) {
      this.checkSyntax(token);
      tokens.push(token);
    }
    const composer = new this.yaml.Composer({
      version: "1.2",
      schema: "failsafe",
      uniqueKeys: false,
      keepSourceTokens: true,
      prettyErrors: false,
      logLevel: "silent",
    });
    let first: Document.Parsed | undefined;
    for (const document of composer.compose(tokens)) {
      if (first !== undefined) {
        const at = document.range[0];
        this.note(at, () => this.refuse(at, "holds more than one document", "keep one job per file"));
        break;
      }
      first = document as Document.Parsed;
      for (const error of [...document.errors, ...document.warnings]) {
        // A tag is refused where it stands, whether the package knows it or not.
        if (error.code !== "TAG_RESOLVE_FAILED") this.note(error.pos[0], () => this.syntax(error));
      }
    }
    return (first?.contents ?? null) as Node | null;
  }

  // Walks the raw syntax without recursion: bounds its depth, and refuses what only the library reads.
  private checkSyntax(root: CST.Token): void {
    const stack: { token: CST.Token; depth: number }[] = [{ token: root, depth: 0 }];
    for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
      const { token, depth } = top;
      if (depth > MAX_SYNTAX_DEPTH) {
        throw refuse(this.name, this.line(token.offset), `is nested deeper than ${SPEC_TEXT.maxDepth}`);
      }
      this.checkToken(token);
      const inner: (CST.Token | null | undefined)[] = [];
      if ("props" in token) inner.push(...token.props);
      if ("start" in token) inner.push(...(Array.isArray(token.start) ? token.start : [token.start]));
      if ("value" in token) inner.push(token.value);
      if ("end" in token && token.end !== undefined) for (const one of token.end) inner.push(one);
      if ("items" in token) {
        for (const item of token.items) {
          for (const one of item.start) inner.push(one);
          inner.push(item.key);
          for (const one of item.sep ?? []) inner.push(one);
          inner.push(item.value);
        }
      }
      for (const one of inner) if (one) stack.push({ token: one, depth: depth + 1 });
    }
  }

  // Notes what only the library reads, or what it and the package read differently.
  private checkToken(token: CST.Token): void {
    if (token.type === "directive" || token.type === "directive-line") this.narrow(token.offset, "a directive");
    if (token.type === "explicit-key-ind") this.narrow(token.offset, 'a key marked with "?"');
    if ("source" in token && token.source.includes("\t") && !this.mayHoldTab(token)) {
      this.narrow(token.offset, "a tab outside of quotes, block text and comments");
    }
    // "?" and ":" at its beginning make a word here, and a key or nothing there.
    if (token.type === "scalar" && /^[?:]/.test(token.source)) {
      this.narrow(token.offset, 'an unquoted text that begins with "?" or ":"');
    }
    if ((token.type === "single-quoted-scalar" || token.type === "double-quoted-scalar") && isOpen(token.source)) {
      const end = token.offset + token.source.length;
      this.note(end, () => this.refuse(end, "is not YAML: a quoted text does not end"));
    }
    if (token.type === "block-scalar") this.checkBlock(token);
    if (token.type !== "flow-collection") return;
    for (const { key, sep } of token.items) {
      const colon = sep?.find((one) => one.type === "map-value-ind");
      if (colon === undefined) continue;
      if (token.start.type === "flow-seq-start") this.narrow(colon.offset, 'a "key: value" inside [ ] without { }');
      // YAML lets a word end there, and ruamel.yaml takes the colon into the word.
      if (key?.type === "scalar" && /[,[\]{}]/.test(this.text.charAt(colon.offset + 1))) {
        this.narrow(colon.offset, "a colon without a space behind it");
      }
    }
  }

  private checkBlock(token: CST.BlockScalar): void {
    const header = token.props.find((one) => one.type === "block-scalar-header");
    if (header !== undefined && "source" in header && /[0-9]/.test(header.source)) {
      this.narrow(token.offset, "block text with a number for its indentation");
    }
    // Also behind the text, where the package stops reading it.
    const start = token.offset + token.props.reduce((sum, one) => sum + ("source" in one ? one.source.length : 0), 0);
    const blank = /[ \t]+(?:\r?\n|$)/y;
    blank.lastIndex = start + token.source.length;
    if (/^[ \t]+\r?$/m.test(token.source) || blank.test(this.text)) {
      this.narrow(token.offset, "block text with a line of white space alone");
    }
  }

  private note(at: number, tell: () => HearthError): void {
    if (this.fault === undefined || at < this.fault.at) this.fault = { at, tell };
  }

  private mayHoldTab(token: CST.Token & { source: string }): boolean {
    if (token.type === "comment" || token.type === "block-scalar") return true;
    return (
      (token.type === "double-quoted-scalar" || token.type === "single-quoted-scalar") && !token.source.includes("\n")
    );
  }

  private take(node: Node, where: Location): Value {
    const { isMap, isSeq, isScalar } = this.yaml;
    const at = node.range?.[0] ?? 0;
    if (this.fault !== undefined && at >= this.fault.at) throw this.fault.tell();
    this.values += 1;
    if (this.values > SPEC_TEXT.maxValues) throw this.refuse(at, `holds more than ${SPEC_TEXT.maxValues} values`);
    this.checkMarks(node, at);
    const key = placeKey(where);
    if (!this.lines.has(key)) this.lines.set(key, this.line(at));
    if (isScalar(node)) return this.scalar(node, where);
    if (where.length >= SPEC_TEXT.maxDepth) {
      throw this.refuse(at, `is nested deeper than ${SPEC_TEXT.maxDepth}`, "", where);
    }
    if (isSeq(node)) return node.items.map((item, index) => this.take(item as Node, [...where, index]));
    if (!isMap(node)) throw new TypeError("a node of an unknown kind");
    const values = new Map<string, Value>();
    for (const pair of node.items) {
      const word = this.key(pair.key as Node, where, pair.srcToken);
      const value = pair.value as Node | null;
      // Only in a flow mapping may a key stand alone; its value is empty.
      values.set(word, value === null ? null : this.take(value, [...where, word]));
    }
    return values;
  }

  private key(node: Node, parent: Location, token: CST.CollectionItem | undefined): string {
    const at = node.range?.[0] ?? 0;
    if (this.fault !== undefined && at >= this.fault.at) throw this.fault.tell();
    this.checkMarks(node, at);
    if (!this.yaml.isScalar(node)) throw this.refuse(at, "has a key that is not text", "keys are words");
    const colon = token?.sep?.find((one) => one.type === "map-value-ind")?.offset ?? node.range?.[1] ?? at;
    if (colon - at > MAX_KEY_SPAN || this.line(colon) !== this.line(at)) {
      throw this.refuse(at, "is not YAML: a key and its colon stand on one line, close together");
    }
    const word = this.words(node, parent);
    const where = [...parent, word];
    if (node.type === "PLAIN" && (NUMBER.test(word) || CONSTANTS.has(word))) {
      throw this.refuse(at, `has the unquoted key ${word}`, `quote it: "${word}"`);
    }
    const first = this.lines.get(placeKey(where));
    if (first !== undefined) {
      throw this.refuse(at, `stands twice, first on line ${first}`, "remove one", where, "DUPLICATE_KEY");
    }
    this.lines.set(placeKey(where), this.line(at));
    return word;
  }

  private checkMarks(node: Node, at: number): void {
    if (this.yaml.isAlias(node) || node.anchor !== undefined) {
      throw this.refuse(at, "uses an anchor or alias, which a spec may not", "write the value out");
    }
    if (node.tag === undefined) return;
    throw this.refuse(at, `uses the tag ${node.tag}, which a spec may not`, "remove the tag");
  }

  private scalar(node: Scalar, where: Location): Value {
    const text = this.words(node, where);
    if (node.type !== "PLAIN") return text;
    const constant = CONSTANTS.get(text);
    if (constant !== undefined) return constant;
    if (INTEGER.test(text)) return BigInt(text);
    if (NUMBER.test(text)) {
      throw this.refuse(
        node.range?.[0] ?? 0,
        `${text} is unquoted, and YAML makes a number of it`,
        WHOLE.has(placeKey(where)) ? "write a whole number" : `quote it: "${text}"`,
        where,
        "UNQUOTED",
      );
    }
    return text;
  }

  // The text of a scalar as the library reads it.
  private words(node: Scalar, where: Location): string {
    const [start, end] = node.range ?? [0, 0];
    let text = node.value as string;
    const written = this.text.slice(start, end);
    if (!this.isJson && node.type === "QUOTE_DOUBLE" && SURROGATE_ESCAPE.test(written)) {
      throw this.refuse(start, "holds half a surrogate pair, which is no text", "", where);
    }
    if (SURROGATE.test(text)) throw this.refuse(start, "holds half a surrogate pair, which is no text", "", where);
    if (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED") {
      // A last line that has no line end has none in its text either.
      if (end >= this.text.length && !this.text.endsWith("\n") && text.endsWith("\n")) text = text.slice(0, -1);
    }
    return text;
  }

  private line(at: number): number {
    let low = 0;
    let high = this.starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.starts[middle] as number) <= at) low = middle;
      else high = middle;
    }
    return low + 1;
  }

  private narrow(at: number, what: string): void {
    // In JSON nothing of it can stand where it would mean something else.
    if (!this.isJson) this.note(at, () => this.narrowed(at, what));
  }

  private narrowed(at: number, what: string): HearthError {
    const hint = "write it another way, or use hearth submit, which reads it";
    return this.refuse(at, `holds ${what}, which this page does not read`, hint, [], "YAML_SUBSET");
  }

  private syntax(error: YAMLError): HearthError {
    const line = this.line(error.pos[0]);
    const there = this.text.slice(this.starts[line - 1], this.starts[line]);
    const hint = there.includes("${") ? 'quote "${NAME}" inside [] and {}' : "";
    return refuse(this.name, line, `is not YAML: ${error.message}`, hint);
  }

  private refuse(at: number, message: string, hint = "", where: Location = [], code = "BAD_SPEC"): HearthError {
    return new Source(this.name, new Map([[placeKey(where), this.line(at)]])).refuse([
      problem(where, message, hint, code),
    ]);
  }
}

// Say whether the last quote of a quoted text is part of the text, which the package does not see.
function isOpen(source: string): boolean {
  const before = source.startsWith("'") ? "'" : "\\";
  let at = source.length - 2;
  while (at > 0 && source.charAt(at) === before) at -= 1;
  return source.length < 2 || (source.length - 2 - at) % 2 === 1;
}

function refuse(name: string, line: number | null, message: string, hint = ""): HearthError {
  const lines = line === null ? new Map<string, number>() : new Map([[placeKey([]), line]]);
  return new Source(name, lines).refuse([problem([], message, hint)]);
}
