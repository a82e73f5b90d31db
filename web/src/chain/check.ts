// Whether a provider serves the chain and the contracts that a network file names.

import { keccak256 } from "viem/utils";

import { fromHex, type Hex } from "../core/bytes";
import { codeOf, HearthError } from "../core/errors";
import type { Contract, Network } from "../core/network";
import { jobIdOfWords, NO_TERMS } from "../core/terms";
import { CODES, CONTRACTS, NODE_PARAMETERS } from "../generated/contracts";
import { JOB_REGISTRY_READS } from "../generated/reads/job-registry";
import { NODE_REGISTRY_READS } from "../generated/reads/node-registry";
import { TOKEN_READS } from "../generated/reads/token";
import { amount, type Block, block, hexOf } from "./answers";
import { resultOf, type Rpc } from "./rpc";
import { answerOf, askOf, type View, viewOf } from "./view";

// Refuse a wrong chain, other code than the network file names, contracts that make ids otherwise than it says, and another
// asset, number of its decimals or parameter of nodes than the chain has; and contracts of code that is not ours.
// One round trip, which brings the newest block along. Throws WRONG_CHAIN, WRONG_CONTRACTS, UNKNOWN_CODE, RPC_UNAVAILABLE.
export async function checkMarket(network: Network, rpc: Rpc): Promise<Block> {
  const ids = jobIdView(network);
  const rules = rulesView(network);
  const facts = factsOf(network);
  const said = await rpc.ask([
    { method: "eth_chainId", params: [] },
    { method: "eth_getBlockByNumber", params: ["0x0", false] },
    askOf(ids, "latest"),
    askOf(rules, "latest"),
    { method: "eth_getBlockByNumber", params: ["latest", false] },
    ...CONTRACTS.map((name) => ({ method: "eth_getCode", params: [network.contracts[name], "latest"] })),
    ...facts.map(({ view }) => askOf(view, "latest")),
  ]);
  const served = amount(resultOf(said[0], "eth_chainId"), "a chain id");
  if (served !== network.chainId || block(resultOf(said[1], "block 0")).hash !== network.genesisHash) {
    throw new HearthError(
      "WRONG_CHAIN",
      `the RPC serves chain ${served} with another genesis or id than network ${network.name} (${network.chainId})`,
      "name another RPC",
    );
  }
  const unknown: string[] = [];
  CONTRACTS.forEach((name, at) => {
    const code = hexOf(resultOf(said[5 + at], "eth_getCode"), "code");
    const wanted = network.codeHashes.get(name);
    if (code === "0x" || (wanted !== undefined && keccak256(fromHex(code)) !== wanted)) {
      throw wrong(`${name} at ${network.contracts[name]} holds other code than network ${network.name} names`);
    }
    if (!isOurs(name, code)) unknown.push(name);
  });
  if ((await answerOf(ids, said[2])) !== jobIdOfWords(network.jobChainId, network.contracts.JobRegistry, NO_TERMS)) {
    throw wrong(`JobRegistry of network ${network.name} makes ids with another chain id than ${network.jobChainId}`);
  }
  if ((await answerOf(rules, said[3])) !== network.contracts.Rules) {
    throw wrong(`JobRegistry of network ${network.name} goes by other Rules than the network file names`);
  }
  for (const [at, { what, view, wanted }] of facts.entries()) {
    const found = await answerOf(view, said[5 + CONTRACTS.length + at]).catch(unanswered);
    if (found !== wanted) throw wrong(`${what}: ${found} on the chain, ${wanted} in the file of network ${network.name}`);
  }
  if (unknown.length > 0) {
    throw new HearthError(
      "UNKNOWN_CODE",
      `network ${network.name} has contracts of code that this page does not know, and what is paid to them may be lost: ${unknown.join(", ")}`,
      "open the page that was released with these contracts, or use the command line with --code",
    );
  }
  return block(resultOf(said[4], "the newest block"));
}

// Whether the runtime code of a contract is the one that this page was made for; its immutables stand behind it.
function isOurs(name: Contract, code: Hex): boolean {
  const { bytes, hash } = CODES[name];
  const own = code.slice(0, 2 + 2 * bytes) as Hex;
  return own.length === 2 + 2 * bytes && keccak256(fromHex(own)) === hash;
}

function jobIdView(network: Network): View<Hex> {
  const [submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash] = NO_TERMS;
  const terms = { submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash };
  const to = network.contracts.JobRegistry;
  return viewOf(to, JOB_REGISTRY_READS, "jobs", "job_id_of", [terms], (raw) => hexOf(raw, "a job's id", 32));
}

function rulesView(network: Network): View<Hex> {
  const to = network.contracts.JobRegistry;
  return viewOf(to, JOB_REGISTRY_READS, "jobs", "RULES", [], (raw) => hexOf(raw, "an address", 20));
}

// What the file tells of contracts and token beside their addresses, as the chain has it: in text, as people read it.
interface Fact {
  readonly what: string;
  readonly view: View<string>;
  readonly wanted: string;
}

function factsOf(network: Network): Fact[] {
  const { Escrow, JobRegistry, NodeRegistry } = network.contracts;
  const { address, decimals } = network.asset;
  const asset = viewOf(JobRegistry, JOB_REGISTRY_READS, "jobs", "ASSET", [], (raw) => hexOf(raw, "an address", 20));
  const facts: Fact[] = [{ what: "JobRegistry.ASSET", view: asset, wanted: address ?? `0x${"0".repeat(40)}` }];
  // The same code can stand over an Escrow, or beside a registry, of other code.
  for (const [getter, wanted] of [["ESCROW", Escrow], ["NODES", NodeRegistry]] as const) {
    const view = viewOf(JobRegistry, JOB_REGISTRY_READS, "jobs", getter, [], (raw) => hexOf(raw, "an address", 20));
    facts.push({ what: `JobRegistry.${getter}`, view, wanted });
  }
  for (const [getter, wanted] of [["ESCROW", Escrow], ["JOBS", JobRegistry]] as const) {
    const view = viewOf(NodeRegistry, NODE_REGISTRY_READS, "nodes", getter, [], (raw) => hexOf(raw, "an address", 20));
    facts.push({ what: `NodeRegistry.${getter}`, view, wanted });
  }
  for (const name of NODE_PARAMETERS) {
    const getter = name.toUpperCase();
    const view = viewOf(NodeRegistry, NODE_REGISTRY_READS, "nodes", getter, [], String);
    facts.push({ what: `NodeRegistry.${getter}`, view, wanted: String(network.nodeParameters[name]) });
  }
  if (address !== null) {
    const view = viewOf(address, TOKEN_READS, "token", "decimals", [], String);
    facts.push({ what: `decimals of the token ${address}`, view, wanted: String(decimals) });
  }
  return facts;
}

// What does not answer such a view, or with nonsense, is no contract of a market and no token that could pay in one.
function unanswered(error: unknown): string {
  if (["REFUSED", "RPC_LIES"].includes(codeOf(error))) return "not answered";
  throw error;
}

function wrong(what: string): HearthError {
  return new HearthError("WRONG_CONTRACTS", what, "use another network file, or name another RPC");
}
