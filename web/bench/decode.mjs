// How long the page's thread is held by reading logs: node bench/decode.mjs [LOGS]
//
// Real logs of a market (tests/data/web/books.json) in pieces as a provider sends them, and in parts as the cache keeps
// them, are parsed, checked, decoded and booked. What is printed is the processor's time for one log, and for the longest
// piece, which is how long the page cannot answer a click.

import { readFileSync } from "node:fs";

import { createServer } from "vite";

const COUNT = Number(process.argv[2] ?? 6_000);
const vite = await createServer({ root: new URL("..", import.meta.url).pathname, logLevel: "error", server: { middlewareMode: true } });
const load = (name) => vite.ssrLoadModule(`/src/${name}.ts`);
const [{ logsOf, Strays }, { eventsIn }, { Books }, { checked }] = await Promise.all(
  ["core/logs", "core/posted", "core/books", "chain/logs"].map(load),
);

const { native } = JSON.parse(readFileSync(new URL("../../tests/data/web/books.json", import.meta.url), "utf8"));
const addresses = Object.values(native.contracts);
const market = { contracts: native.contracts, jobChainId: BigInt(native.jobChainId) };
const hex = (value) => `0x${value.toString(16)}`;
const hash = (value) => `0x${value.toString(16).padStart(64, "0")}`;
const raw = Array.from({ length: COUNT }, (_, at) => {
  const [contract, topics, data] = native.logs[at % native.logs.length];
  const place = { blockNumber: hex(at), blockHash: hash(at), transactionHash: hash(at), logIndex: "0x0" };
  return { address: addresses[contract], topics, data, ...place };
});

// Milliseconds of the processor so far; whoever else runs on this machine is not in them.
function spent() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function read(text) {
  const began = spent();
  const logs = checked(logsOf(JSON.parse(text)), { addresses, topics: [] }, { from: 0, to: COUNT });
  const [books, strays] = [new Books(), new Strays()];
  let events = 0;
  for (const event of eventsIn(logs, market, strays)) {
    books.apply(event);
    events += 1;
  }
  if (events === 0 || strays.count > 0) throw new Error(`${events} events, ${strays.inWords()}`);
  return spent() - began;
}

const texts = (size) => Array.from({ length: Math.ceil(COUNT / size) }, (_, at) => JSON.stringify(raw.slice(at * size, (at + 1) * size)));
const characters = JSON.stringify(raw).length;
const part = Math.floor((2 ** 18 / characters) * COUNT);
read(texts(part)[0]);
console.log(`${COUNT} logs, ${(characters / 2 ** 20).toFixed(1)} MiB of JSON, Node ${process.version}`);
for (const [name, size] of [["as the cache keeps them", part], ["2,000 at once", 2_000], ["all at once", COUNT]]) {
  const times = texts(size).map(read);
  const total = times.reduce((sum, time) => sum + time, 0);
  const longest = Math.max(...times).toFixed(0);
  console.log(`${name}: ${size} logs a piece, ${(total / COUNT).toFixed(3)} ms a log, ${total.toFixed(0)} ms in all, ${longest} ms the longest`);
}

// The same logs as the pages Market and Keepers read them: some at a time, between which others have their turn.
const TURN = 100;
const [{ Course }, { bucketsOf }] = await Promise.all(["core/course", "core/spread"].map(load));
const course = new Course(market, new Strays());
const turns = Array.from({ length: Math.ceil(COUNT / TURN) }, (_, at) => {
  const began = spent();
  const found = eventsIn(logsOf(raw.slice(at * TURN, (at + 1) * TURN)), market, course.strays);
  for (const event of found) course.add(event, 1_760_000_000 + at);
  return spent() - began;
});
const began = spent();
const told = course.told();
bucketsOf(told.steps, 1_760_000_000 + COUNT, 60);
const last = spent() - began;
const all = turns.reduce((sum, time) => sum + time, 0);
console.log(`the course of a market: ${TURN} logs a turn, ${all.toFixed(0)} ms in all, ${Math.max(...turns.slice(1)).toFixed(0)} ms the longest turn, ${last.toFixed(0)} ms to sum it up`);
await vite.close();
