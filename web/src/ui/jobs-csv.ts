// The list of jobs as a file. Loaded once somebody saves it.

import { progressOf, type Standing, stateOfStanding as stateOf, verdictOfStanding as verdictOf } from "../chain/jobs";
import { escrowAtPost } from "../core/money";
import { type Asset, formatAmount } from "../core/units";
import { save } from "../data/save";
import type { Names } from "./use-names";

export const saveJobs = (rows: readonly Standing[], asset: Asset, names: Names): void =>
  save([csvOf(rows, asset, names)], "jobs.csv", "text/csv");

function csvOf(rows: readonly Standing[], asset: Asset, names: Names): string {
  const head = ["job", "name", "state", "verdict", "ended", "units", "at_most", "deadline", "block", "submitter"];
  const lines = rows.map((one) => {
    const { ended, of } = progressOf(one);
    const { jobId: job, terms, log } = one.posted;
    const most = formatAmount(escrowAtPost(terms), asset);
    return [job, names?.get(terms.spec) ?? "", stateOf(one), verdictOf(one), ended, of, most, terms.deadline, log.blockNumber, terms.submitter];
  });
  return [head, ...lines].map((line) => line.map((cell) => `"${String(cell).replace(/"/g, '""')}"`).join(",")).join("\r\n");
}
