// What the logs tell of one node: its leases and what became of its stake. Newest first and no further back than is asked for, since a
// chain may be old; new blocks are added to what is known.

import { type Hex, hexWord } from "../core/bytes";
import { stakeIn } from "../core/earnings";
import type { HearthError } from "../core/errors";
import { type MarketEvent, topicOf } from "../core/events";
import { inOrder, type Log } from "../core/logs";
import { eventsIn } from "../core/posted";
import type { Node, Terms } from "../core/types";
import { type Block, lies } from "./answers";
import type { Jobs } from "./jobs";
import { type Filter, Span } from "./logs";

// Events after which no more blocks are read unless they are asked for, and pieces of blocks likewise.
const ENOUGH = 200;
const PIECES = 12;

// What is known: every event of the node in the blocks from..to, oldest first. `whole` says that the node's registration is among
// them, so that nothing is older. `terms` are those of jobs whose posts were found.
export interface NodePast {
  readonly from: number;
  readonly to: number;
  readonly events: readonly MarketEvent[];
  readonly whole: boolean;
  readonly terms: ReadonlyMap<Hex, Terms>;
  readonly times: ReadonlyMap<Hex, number>;
}

// A node's stake in storage at a block.
export interface StakeView {
  readonly at: Block;
  readonly node: Pick<Node, "id" | "stake">;
}

// How logs and storage of one block differ in a node's stake: what is missing among the logs is missing in its books. Undefined where
// they agree, and where they are not of one block or not known back to the registration.
export function stakeFault(past: NodePast, { at, node }: StakeView): HearthError | undefined {
  if (!past.whole || past.to !== at.number) return undefined;
  const told = stakeIn(past.events, node.id);
  return told === node.stake ? undefined : lies(`logs that leave a stake of ${told} to node ${node.id}, which has ${node.stake}`);
}

export class NodeReader {
  readonly #span = new Span();
  readonly #topic: Hex;
  #known: NodePast | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly jobs: Jobs,
    readonly node: number,
  ) {
    this.#topic = hexWord(node);
  }

  // Read up to a block; the first time so far back as `ENOUGH` says. Throws as `Market.past.logs` does, and RPC_LIES where no log
  // registers the node.
  upTo(head: Block): Promise<NodePast> {
    return this.#alone(() => this.jobs.market.sure(() => this.#upTo(head)));
  }

  // Read further back than what is known.
  older(): Promise<NodePast | undefined> {
    return this.#alone(() => this.jobs.market.sure(async () => (this.#known === undefined ? undefined : this.#back(this.#known))));
  }

  // What is known, where it agrees with the stake in storage at the same block, or tells of another block; read anew where it does
  // not, so that nobody is accused over what an earlier visit kept.
  against(view: StakeView): Promise<NodePast | undefined> {
    return this.#alone(async () => {
      const known = this.#known;
      if (known === undefined || stakeFault(known, view) === undefined) return known;
      return this.jobs.market.sure(
        () => this.#anew(view.at),
        (found) => stakeFault(found, view) !== undefined,
      );
    });
  }

  async #anew(at: Block): Promise<NodePast> {
    this.#known = undefined;
    let past = await this.#upTo(at);
    while (!past.whole) past = await this.#back(past);
    return past;
  }

  async #upTo(head: Block): Promise<NodePast> {
    const known = this.#known;
    if (known === undefined) {
      const nothing = { events: [], whole: false, terms: new Map(), times: new Map() };
      return this.#back({ ...nothing, from: head.number + 1, to: head.number });
    }
    if (head.number <= known.to) return known;
    const found = await this.#read(known.to + 1, head.number);
    return this.#keep({ ...known, to: head.number, events: [...known.events, ...found] }, head.number);
  }

  // One reading after the other: each goes on from what the last one knew.
  #alone<T>(read: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(read);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  async #back(known: NodePast): Promise<NodePast> {
    const { market } = this.jobs;
    const first = market.network.deployBlock;
    const logs = market.past.logs(this.#leases, { from: first, to: known.from - 1, backwards: true }, this.#span);
    const found: MarketEvent[] = [];
    let { from } = known;
    let whole = known.whole;
    let pieces = 0;
    for await (const piece of logs) {
      const others = await this.#logs(this.#stake, piece.from, piece.to);
      const here = this.#events([...piece.logs, ...others]);
      found.unshift(...here);
      from = piece.from;
      pieces += 1;
      whole = here.some((event) => event.name === "NodeRegistered");
      if (whole || found.length >= ENOUGH || pieces >= PIECES) break;
    }
    if (!whole && from <= first) throw lies(`no log registers node ${this.node}`);
    return this.#keep({ ...known, from, whole, events: [...found, ...known.events] }, known.from - 1);
  }

  // Keep what is known with the terms of its jobs, whose posts are at most as new as a block, and the seconds of its blocks.
  async #keep(known: NodePast, newest: number): Promise<NodePast> {
    const ids = new Set(known.events.flatMap((event) => ("jobId" in event && !known.terms.has(event.jobId) ? [event.jobId] : [])));
    const told = await this.jobs.terms([...ids], newest);
    const terms = new Map([...known.terms, ...told]);
    const { times } = await this.jobs.market.about(known.events.map(({ log }) => log.blockHash), []);
    this.#known = { ...known, terms, times };
    return this.#known;
  }

  async #read(from: number, to: number): Promise<MarketEvent[]> {
    return this.#events([...(await this.#logs(this.#leases, from, to)), ...(await this.#logs(this.#stake, from, to))]);
  }

  async #logs(filter: Filter, from: number, to: number): Promise<Log[]> {
    const found: Log[] = [];
    for await (const piece of this.jobs.market.past.logs(filter, { from, to, backwards: false }, this.#span)) found.push(...piece.logs);
    return found;
  }

  #events(logs: readonly Log[]): MarketEvent[] {
    const sorted = inOrder(logs);
    return [...eventsIn(sorted, this.jobs.market.network, this.jobs.strays)];
  }

  // Every event of a unit that names a node has it as its last topic, every event of a node as its first.
  get #leases(): Filter {
    return { addresses: [this.jobs.market.network.contracts.JobRegistry], topics: [UNIT_TOPICS, null, null, this.#topic] };
  }

  get #stake(): Filter {
    return { addresses: [this.jobs.market.network.contracts.NodeRegistry], topics: [null, this.#topic] };
  }
}

const UNIT_TOPICS = (
  [
    ...(["Proposed", "Started", "Submitted", "Declined", "GaveUp", "Settled", "Finished", "Closed", "Reclaimed"] as const),
    ...(["Disputed", "Ruled", "Unproven", "CheckpointPaid"] as const),
  ] as const
).map(topicOf);
