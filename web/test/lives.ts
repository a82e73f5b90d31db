// The lives of markets as the vectors "books" have them: every log of a market's contracts, with the facts that they must give.

import type { Hex } from "../src/core/bytes";
import type { Log } from "../src/core/logs";
import type { Contract } from "../src/core/network";
import type { Market } from "../src/core/posted";
import { vectors } from "./vectors";

// A log: its contract's place among the contracts, topics, data, block and index.
export type Brief = readonly [number, readonly Hex[], Hex, number, number];

export interface Life {
  readonly contracts: Readonly<Record<Contract, Hex>>;
  readonly jobChainId: number;
  readonly logs: readonly Brief[];
  readonly times: readonly (readonly [number, number])[];
  readonly now: number;
}

// The lives by the names of their markets, with as much of each as a test reads.
export const livesOf = <More>(): Readonly<Record<string, Life & More>> => vectors("books");

export const marketOf = ({ contracts, jobChainId }: Life): Market => ({ contracts, jobChainId: BigInt(jobChainId) });

export const hashOf = (block: number): Hex => `0x00${block.toString(16).padStart(62, "0")}`;
export const txOf = (block: number): Hex => `0x7c${block.toString(16).padStart(62, "0")}`;

export function logOf([contract, topics, data, blockNumber, logIndex]: Brief, { contracts }: Life): Log {
  const address = Object.values(contracts)[contract] as Hex;
  return { address, topics, data, blockNumber, logIndex, blockHash: hashOf(blockNumber), txHash: txOf(blockNumber) };
}
