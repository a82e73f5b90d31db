import { expect, it } from "vitest";

import { inWords, type Unit } from "../src/core/parameters";
import { NODE_PARAMETERS } from "../src/generated/contracts";
import { NODE_UNITS, POLICY_UNITS } from "../src/generated/parameters";
import { WORDS } from "../src/generated/words";
import { vectors } from "./vectors";

const DATA = vectors<readonly { readonly unit: Unit; readonly value: string; readonly out: string }[]>("parameters");
const TOKEN = { symbol: "USD", decimals: 6, address: `0x${"0a".repeat(20)}` } as const;

it.each(DATA)("$value of unit $unit is said as the library says it", ({ unit, value, out }) => {
  expect(inWords(unit, BigInt(value), TOKEN)).toBe(out);
});

it("every parameter has its unit", () => {
  expect(Object.keys(NODE_UNITS)).toEqual([...NODE_PARAMETERS]);
  expect(Object.keys(POLICY_UNITS).sort()).toEqual(WORDS.policy.lanes.map(({ name }) => name).sort());
});
