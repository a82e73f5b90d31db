// The value of a market's parameter for people. Mirrors `in_words` of hearth/client/governance/parameters.py.

import type { NODE_UNITS, POLICY_UNITS } from "../generated/parameters";
import { type Asset, formatAmount, formatDuration } from "./units";

export type Unit = (typeof POLICY_UNITS)[keyof typeof POLICY_UNITS] | (typeof NODE_UNITS)[keyof typeof NODE_UNITS];

// Exact: "0.6 USD", "2h30m", "250 (2.5 %)".
export function inWords(unit: Unit, value: bigint, asset: Asset): string {
  if (unit === "amount") return formatAmount(value, asset);
  if (unit === "span") return formatDuration(Number(value));
  if (unit !== "share") return String(value);
  const digits = String(value).padStart(3, "0");
  const rest = digits.slice(-2).replace(/0+$/, "");
  return `${value} (${digits.slice(0, -2)}${rest === "" ? "" : `.${rest}`} %)`;
}
