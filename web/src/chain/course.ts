// The course of a market, read once and then as it grows: every event of its jobs, its money and its nodes up to a block. The
// logs are those that the books are made of, so that what one has read the other finds.

import { Course, needsSecond, type CourseTold } from "../core/course";
import type { MarketEvent } from "../core/events";
import { inOrder, type Log, Strays } from "../core/logs";
import { eventsIn } from "../core/posted";
import type { Block } from "./answers";
import { Span } from "./logs";
import type { Market } from "./market";

// Logs that are decoded before whatever waits in the browser has its turn.
const AT_ONCE = 100;

export class CourseReader {
  readonly strays = new Strays();
  readonly #course: Course;
  readonly #span = new Span();
  #upTo: number;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(
    readonly market: Market,
    private readonly pause: () => Promise<void>,
  ) {
    this.#course = new Course(market.network, this.strays);
    this.#upTo = market.network.deployBlock - 1;
  }

  // Blocks that are still to be read up to one.
  ahead(at: Block): number {
    return Math.max(0, at.number - this.#upTo);
  }

  // Read on up to a block, and return all that was told so far; one reading at a time. `tell` hears up to which block it has
  // read. Throws what reading throws: what was read until then stays.
  read(at: Block, tell: (block: number) => void): Promise<CourseTold> {
    const turn = this.#turn.then(() => this.#read(at, tell));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #read(at: Block, tell: (block: number) => void): Promise<CourseTold> {
    const { network, past } = this.market;
    const { Escrow, JobRegistry, NodeRegistry } = network.contracts;
    const range = { from: this.#upTo + 1, to: at.number, backwards: false };
    const nodes: Log[] = [];
    for await (const piece of past.logs({ addresses: [NodeRegistry], topics: [] }, range, this.#span)) {
      for (const log of piece.logs) nodes.push(log);
    }
    let next = 0;
    for await (const piece of past.logs({ addresses: [Escrow, JobRegistry], topics: [] }, range, this.#span)) {
      const logs = [...piece.logs];
      for (let log = nodes[next]; log !== undefined && log.blockNumber <= piece.to; log = nodes[next]) {
        logs.push(log);
        next += 1;
      }
      await this.#add(inOrder(logs));
      this.#upTo = piece.to;
      tell(piece.to);
    }
    return this.#course.told();
  }

  // Add the logs of some whole blocks: either all of them or, where a second cannot be had, none.
  async #add(logs: readonly Log[]): Promise<void> {
    const events: MarketEvent[] = [];
    for (let start = 0; start < logs.length; start += AT_ONCE) {
      for (const event of eventsIn(logs.slice(start, start + AT_ONCE), this.market.network, this.strays)) events.push(event);
      if (start + AT_ONCE < logs.length) await this.pause();
    }
    const blocks = events.filter(needsSecond).map(({ log }) => log.blockHash);
    const { times } = await this.market.about(blocks, []);
    for (const [place, event] of events.entries()) {
      this.#course.add(event, times.get(event.log.blockHash) ?? 0);
      if (place % AT_ONCE === AT_ONCE - 1) await this.pause();
    }
  }
}
