// The file of a set of attesters, which the job file names. Mirrors load_set of hearth/client/job/attesters.py.

import { MAX_KEYS, MAX_SET_BYTES, SET_HINT } from "../generated/attesters";
import { ZERO_ADDRESS } from "../generated/bounds";
import { type AttesterSet, FIELD } from "./attesters";
import { HearthError } from "./errors";
import { addressOf } from "./recipient";
import type { Value, ValueMap } from "./values";
import { readText } from "./yaml";

// Read a set, YAML or JSON: `keys` in any order, and `quorum`; `name` is how the job file calls it. Throws BAD_ATTESTERS.
export async function readSet(raw: Uint8Array, name: string): Promise<AttesterSet> {
  if (raw.length > MAX_SET_BYTES) throw refuse(`${name} has more than ${MAX_SET_BYTES} bytes`);
  const data = isBlank(raw) ? null : await textOf(raw, name);
  try {
    return setOf(data);
  } catch (error) {
    throw error instanceof HearthError ? refuse(`${name}: ${error.message}`) : error;
  }
}

async function textOf(raw: Uint8Array, name: string): Promise<Value> {
  try {
    return (await readText(raw, name)).value;
  } catch (error) {
    throw error instanceof HearthError ? refuse(error.message, error.hint) : error;
  }
}

function setOf(data: Value): AttesterSet {
  if (!isMap(data) || data.size !== 2 || !data.has("keys") || !data.has("quorum")) {
    throw fault("a set of attesters holds keys and quorum, and nothing else");
  }
  const [written, quorum] = [data.get("keys"), data.get("quorum")];
  if (!isTexts(written)) throw fault("keys is no list of addresses in quotes");
  if (typeof quorum !== "bigint") throw fault("quorum is no whole number");
  const count = written.length;
  if (count > MAX_KEYS) throw fault(`${count} keys: a set has 1 to ${MAX_KEYS}`);
  const keys = written.map(addressOf).sort();
  if (count === 0) throw fault(`0 keys: a set has 1 to ${MAX_KEYS}`);
  if (keys.includes(ZERO_ADDRESS)) throw fault("the zero address signs nothing");
  if (new Set(keys).size !== count) throw fault("a key stands twice, and counts once");
  if (quorum < 1n || quorum > BigInt(count)) throw fault(`quorum ${quorum} of ${count} keys: 1 to ${count} can be asked for`);
  return { keys, quorum: Number(quorum) };
}

const isMap = (value: Value): value is ValueMap => value instanceof Map;

const isTexts = (value: Value | undefined): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

// Nothing but white space, as Python's bytes.strip has it.
const isBlank = (raw: Uint8Array): boolean => raw.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d));

const fault = (message: string): HearthError => new HearthError("BAD_ATTESTERS", message);

const refuse = (message: string, hint = ""): HearthError =>
  new HearthError("BAD_ATTESTERS", `${FIELD}: ${message}`, hint || SET_HINT, { field: FIELD });
