// One node as its page and its owner look at it: its record, the key that it is offered to, the manifest that it named last.

import { NODE_REGISTRY_READS } from "../generated/reads/node-registry";
import { ZERO_ADDRESS } from "../generated/bounds";
import { type Hex, hexWord } from "../core/bytes";
import { HearthError } from "../core/errors";
import { topicOf } from "../core/events";
import { type Log, Strays } from "../core/logs";
import { carried } from "../core/manifest";
import type { Ground } from "../core/owning";
import { eventsIn } from "../core/posted";
import type { Node } from "../core/types";
import { type Block, hexOf, lies, receipt } from "./answers";
import { Span } from "./logs";
import type { Overview } from "./lens";
import type { Market } from "./market";
import { type View, viewOf } from "./view";
import { readFleet } from "./nodes";

export interface NodeView {
  readonly at: Block;
  readonly overview: Overview;
  readonly node: Node;
  // The key whose first beat takes the node over, zero for none.
  readonly offered: Hex;
}

// Read a node at a block. Throws NOT_FOUND for an id that was never given.
export async function readNode(market: Market, at: Block, id: number): Promise<NodeView> {
  const [overview, nodes, offered] = await market.read(at, market.overview(), market.nodes(id, 1), offeredView(market, id));
  const [node] = nodes;
  if (node === undefined) {
    throw new HearthError("NOT_FOUND", `there is no node ${id} on ${market.network.name}`, "look at the list of workers");
  }
  return { at, overview, node, offered };
}

// Say whether a node has left the market: its record is empty.
export const hasLeft = ({ owner }: Node): boolean => owner === ZERO_ADDRESS;

// Read what a registration by an owner goes by, at the newest block.
export async function readOwned(market: Market, owner: Hex): Promise<Ground> {
  const at = await market.head();
  const { overview, nodes } = await readFleet(market, at);
  const mine = nodes.filter((node) => node.owner === owner);
  const offered = await market.read(at, ...mine.map(({ id }) => offeredView(market, id)));
  const owned = mine.map((node, place) => ({ node, offered: offered[place] ?? ZERO_ADDRESS }));
  return { minimumStake: overview.minimumStake, pausedUntil: overview.registrationsPausedUntil, now: at.time, owned };
}

// The last manifest that a node named, as the call that named it carries it; undefined where the call carries none. The log may
// be a file's: it counts where its transaction is in the log's block and has that log. Throws RPC_LIES where it has not.
export async function readManifest(market: Market, node: number, head: Block): Promise<Hex | undefined> {
  const { network, past, rpc } = market;
  const topics = [NAMING, hexWord(node)];
  const filter = { addresses: [network.contracts.NodeRegistry], topics };
  const range = { from: network.deployBlock, to: head.number, backwards: true };
  for await (const { logs } of past.logs(filter, range, new Span())) {
    const last = [...eventsIn(logs, network, new Strays())].at(-1);
    if (last?.name !== "NodeRegistered" && last?.name !== "OfferChanged") continue;
    const hash = last.log.txHash;
    const ask = async (method: string) => (await rpc.one(method, [hash])) as Record<string, unknown> | null;
    const [call, mined] = await Promise.all([ask("eth_getTransactionByHash"), ask("eth_getTransactionReceipt")]);
    const receipted = receipt(mined, hash);
    if (call === null || receipted === undefined) return undefined;
    const [found, block] = [hexOf(call["hash"], "a transaction", 32), hexOf(call["blockHash"], "a block", 32)];
    if (found !== hash || block !== last.log.blockHash) throw madeUp(node, "by the transaction of another block");
    if (!receipted.logs.some((log) => isSame(log, last.log))) throw madeUp(node, "that its transaction did not write");
    return carried(hexOf(call["input"], "a call's data"), last.manifest);
  }
  throw lies(`no log registers node ${node}`);
}

const madeUp = (node: number, how: string): HearthError =>
  new HearthError("RPC_LIES", `an RPC or a file of the past has a log of node ${node} ${how}`, "name another RPC; where a file was taken, forget it");

const isSame = (one: Log, other: Log): boolean =>
  one.blockHash === other.blockHash && one.address === other.address && one.data === other.data && one.topics.join() === other.topics.join();

const NAMING = [topicOf("NodeRegistered"), topicOf("OfferChanged")];

function offeredView({ network }: Market, id: number): View<Hex> {
  const to = network.contracts.NodeRegistry;
  return viewOf(to, NODE_REGISTRY_READS, "nodes", "offered_operator", [BigInt(id)], (raw) => hexOf(raw, "an operator", 20));
}
