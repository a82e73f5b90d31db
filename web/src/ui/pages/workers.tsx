// Every node of the market: what it asks, how it stands, who owns it.

import { counted } from "../../core/counted";
import { bpsPercent } from "../../core/numbers";
import { reputation } from "../../core/reputation";
import { askInForce, quarantinedUntil } from "../../core/status";
import { slugOf, vendorOf } from "../../core/tiers";
import type { Node } from "../../core/types";
import { STATUS, STATUS_LABELS } from "../../generated/states";
import { ZONES } from "../../generated/zones";
import { useFleet } from "../fleet";
import type { Context } from "../context";
import { Failure } from "../parts/failure";
import { NoMarket } from "../parts/no-market";
import { statusWordOf } from "../parts/node-facts";
import { Notes } from "../parts/notes";
import { Rate } from "../parts/rate";
import { Amount, Moment, Whole } from "../parts/values";
import { Synced } from "../parts/synced";
import { type Column, Table } from "../parts/table";
import { hrefOf } from "../router";
import { TEXTS } from "../texts";

export function Workers({ context }: { readonly context: Context }) {
  const { live, network } = context;
  const { value, error } = useFleet(context);
  if (network === undefined) return <NoMarket context={context} />;
  const now = value?.at.time ?? 0;
  const columns: Column<Node>[] = [
    { head: "node", cell: ({ id }) => <a href={hrefOf(["node", String(id)])}>{id}</a>, number: true },
    {
      head: "status",
      cell: (node) => {
        const until = quarantinedUntil(node, now);
        const word = statusWordOf(node, now, network);
        if (until === null) return word;
        const held = STATUS_LABELS[STATUS.SLASHED];
        return <>{word === held || word === STATUS_LABELS[STATUS.ACTIVE] ? "" : `${word}, `}{held} until <Moment at={until} now={now} /></>;
      },
    },
    {
      head: "asks",
      cell: (node) => <Rate rate={askInForce(node, now)} asset={network.asset} />,
      number: true,
    },
    { head: "busy", cell: (node) => `${node.state.busy}/${node.offer.slots}`, number: true },
    { head: "GPU", cell: (node) => (node.offer.gpuCount === 0 ? "none" : `${node.offer.gpuCount} x ${slugOf(vendorOf(node.offer.runtimes), node.offer.tier)}`) },
    { head: "zone", cell: (node) => ZONES[node.offer.zone]?.slug ?? "?" },
    { head: "stake", cell: (node) => <Amount value={node.stake} asset={network.asset} />, number: true },
    { head: "reputation", cell: (node) => bpsPercent(reputation(node.state.r, node.state.s)), number: true },
    { head: "owner", cell: (node) => <Whole hex={node.owner} /> },
  ];
  return (
    <>
      <h1>Workers</h1>
      <Synced live={live} />
      {error !== undefined && <Failure error={error} />}
      {value === undefined ? (
        <p>{TEXTS.nothingYet}</p>
      ) : (
        <>
          <Table
            caption={`${counted(value.nodes.length, "node")} at block ${value.at.number}`}
            columns={columns}
            rows={value.nodes}
            keyOf={(node) => String(node.id)}
            none="No node has registered yet."
          />
          <Notes reputation />
        </>
      )}
    </>
  );
}
