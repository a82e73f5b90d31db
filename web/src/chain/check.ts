// Whether a provider serves the chain and the contracts that a network file names.

import { keccak256 } from "viem/utils";

import { fromHex, type Hex } from "../core/bytes";
import { HearthError } from "../core/errors";
import type { Network } from "../core/network";
import { jobIdOfWords, NO_TERMS } from "../core/terms";
import { CONTRACTS } from "../generated/contracts";
import { JOB_REGISTRY_READS } from "../generated/reads/job-registry";
import { amount, type Block, block, hexOf } from "./answers";
import { resultOf, type Rpc } from "./rpc";
import { answerOf, askOf, type View, viewOf } from "./view";

// Refuse a wrong chain, other code than the network file names, and contracts that make ids otherwise than it says.
// One round trip, which brings the newest block along. Throws WRONG_CHAIN, WRONG_CONTRACTS, RPC_UNAVAILABLE.
export async function checkMarket(network: Network, rpc: Rpc): Promise<Block> {
  const ids = jobIdView(network);
  const rules = rulesView(network);
  const said = await rpc.ask([
    { method: "eth_chainId", params: [] },
    { method: "eth_getBlockByNumber", params: ["0x0", false] },
    askOf(ids, "latest"),
    askOf(rules, "latest"),
    { method: "eth_getBlockByNumber", params: ["latest", false] },
    ...CONTRACTS.map((name) => ({ method: "eth_getCode", params: [network.contracts[name], "latest"] })),
  ]);
  const served = amount(resultOf(said[0], "eth_chainId"), "a chain id");
  if (served !== network.chainId || block(resultOf(said[1], "block 0")).hash !== network.genesisHash) {
    throw new HearthError(
      "WRONG_CHAIN",
      `the RPC serves chain ${served} with another genesis or id than network ${network.name} (${network.chainId})`,
      "name another RPC",
    );
  }
  CONTRACTS.forEach((name, at) => {
    const code = hexOf(resultOf(said[5 + at], "eth_getCode"), "code");
    const wanted = network.codeHashes.get(name);
    if (code === "0x" || (wanted !== undefined && keccak256(fromHex(code)) !== wanted)) {
      throw wrong(`${name} at ${network.contracts[name]} holds other code than network ${network.name} names`);
    }
  });
  if ((await answerOf(ids, said[2])) !== jobIdOfWords(network.jobChainId, network.contracts.JobRegistry, NO_TERMS)) {
    throw wrong(`JobRegistry of network ${network.name} makes ids with another chain id than ${network.jobChainId}`);
  }
  if ((await answerOf(rules, said[3])) !== network.contracts.Rules) {
    throw wrong(`JobRegistry of network ${network.name} goes by other Rules than the network file names`);
  }
  return block(resultOf(said[4], "the newest block"));
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

function wrong(what: string): HearthError {
  return new HearthError("WRONG_CONTRACTS", what, "use another network file, or name another RPC");
}
