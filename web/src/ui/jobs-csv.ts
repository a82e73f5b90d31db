// The list of jobs as a file.

import { progressOf, type Standing, stateOfStanding as stateOf, verdictOfStanding as verdictOf } from "../chain/jobs";
import { escrowAtPost } from "../core/money";
import { type Asset, formatAmount } from "../core/units";
import { save } from "../data/save";
import type { Facts } from "./jobs-facts";
import type { Names } from "./use-names";

export const saveJobs = (...asked: Parameters<typeof csvOf>): void => save([csvOf(...asked)], "jobs.csv", "text/csv");

// What was not read is left empty.
function csvOf(rows: readonly Standing[], asset: Asset, names: Names, facts: Facts | undefined): string {
  const head = ["job", "name", "state", "verdict", "ended", "units", "at_most", "deadline", "block", "submitter", "posted_at", "cost"];
  const lines = rows.map((one) => {
    const { ended, of } = progressOf(one);
    const { jobId: job, terms, log } = one.posted;
    const most = formatAmount(escrowAtPost(terms), asset);
    const cost = facts?.costs.get(job);
    const read = [facts?.posted.get(job) ?? "", cost === undefined ? "" : formatAmount(cost, asset)];
    return [job, names?.get(terms.spec) ?? "", stateOf(one), verdictOf(one), ended, of, most, terms.deadline, log.blockNumber, terms.submitter, ...read];
  });
  return [head, ...lines].map((line) => line.map((cell) => `"${String(cell).replace(/"/g, '""')}"`).join(",")).join("\r\n");
}
