// The text of a job file that was not posted yet, kept in this browser over a reload: one for each market.

import type { Network } from "../core/network";
import { recallOwn, rememberOwn } from "./own-storage";

// More characters than this are not kept: a browser gives an origin a few million in all.
export const MOST_DRAFT = 65_536;

export interface Draft {
  // What was kept, "" for nothing.
  read(): string;
  // Keep a text in place of the one before, and say whether it is kept over a reload.
  keep(text: string): boolean;
  // Forget a text that was posted, unless another one is kept by now.
  posted(text: string): void;
}

export function draftOf(network: Pick<Network, "jobChainId" | "contracts"> | undefined, place: Pick<Location, "pathname"> = location): Draft {
  // What belongs to no market is not kept.
  if (network === undefined) return { read: () => "", keep: () => false, posted: () => undefined };
  const name = `draft.${network.jobChainId}.${network.contracts.JobRegistry}`;
  const read = (): string => recallOwn(name, place)?.slice(0, MOST_DRAFT) ?? "";
  const keep = (text: string): boolean => {
    const fits = text !== "" && text.length <= MOST_DRAFT;
    return rememberOwn(name, fits ? text : null, place) && fits;
  };
  const posted = (text: string): void => {
    if (read() === text) rememberOwn(name, null, place);
  };
  return { read, keep, posted };
}
