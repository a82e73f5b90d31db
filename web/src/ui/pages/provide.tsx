// What an owner of nodes signs: registering one, and all that changes one.

import { readPurse } from "../../chain/calling";
import { ZERO_ADDRESS } from "../../generated/bounds";
import { askInForce } from "../../core/status";
import { withdrawing } from "../../wallet/acting";
import { useFleet } from "../fleet";
import { useLoad } from "../load";
import type { Context, Ready } from "../context";
import { nodeIdOf, useNode } from "../node";
import { Acts } from "../parts/acting";
import { Failure } from "../parts/failure";
import { Manage } from "../parts/manage";
import { NoMarket } from "../parts/no-market";
import { NodeFacts, NoNode, statusWordOf, Waits } from "../parts/node-facts";
import { Rate } from "../parts/rate";
import { Register } from "../parts/register";
import { Amount, Moment, State } from "../parts/values";
import { Synced } from "../parts/synced";
import { Table } from "../parts/table";
import { Wallet } from "../parts/wallet";
import { hrefOf, useRoute } from "../router";
import { useWallets, type Wallets } from "../wallet";
import { TEXTS } from "../texts";

export function Provide({ context }: { readonly context: Context }) {
  const { parts } = useRoute();
  const wallets = useWallets(context.network);
  if (context.network === undefined) return <NoMarket context={context} />;
  return parts[1] === undefined ? <Nodes context={context} wallets={wallets} /> : <One context={context} wallets={wallets} part={parts[1]} />;
}

interface Props {
  readonly context: Context;
  readonly wallets: Wallets;
}

function Nodes({ context, wallets }: Props) {
  const { live, network } = context;
  const fleet = useFleet(context);
  const ready = live.state === "ready" ? live : undefined;
  if (network === undefined) return null;
  const account = wallets.session?.account;
  const overview = fleet.value?.overview;
  const now = ready?.head.time ?? 0;
  return (
    <>
      <h1>Provide</h1>
      <Synced live={live} />
      <Wallet network={network} wallets={wallets} />
      {account === undefined && (
        <p class="soft">
          Without a wallet in this browser the machine prepares it: <code>hearth worker init</code>, then <code>hearth worker register --print-tx --json</code>,
          whose file is read and signed at <a href={hrefOf(["sign"])}>Sign</a>, or sent with a key by <code>hearth wallet send FILE</code>.
        </p>
      )}
      {fleet.error !== undefined && <Failure error={fleet.error} />}
      {account !== undefined && ready !== undefined && (
        <>
          <h2>Your nodes</h2>
          {fleet.value === undefined ? (
            fleet.error === undefined && <p>{TEXTS.nothingYet}</p>
          ) : (
            <Table
              caption={`Nodes that this account owns, at block ${fleet.value.at.number}`}
              columns={[
                { head: "node", cell: ({ id }) => <a href={hrefOf(["provide", String(id)])}>{`Node ${id}`}</a> },
                { head: "status", cell: (node) => <State word={statusWordOf(node, now, network)} /> },
                { head: "asks", cell: (node) => <Rate rate={askInForce(node, now)} asset={network.asset} />, number: true },
                { head: "busy", cell: ({ state, offer }) => `${state.busy}/${offer.slots}`, number: true },
                { head: "stake", cell: ({ stake }) => <Amount value={stake} asset={network.asset} />, number: true },
                { head: "leaves", cell: ({ exitAt }) => (exitAt === 0 ? "" : <Moment at={exitAt} now={now} />) },
              ]}
              rows={fleet.value.nodes.filter(({ owner }) => owner === account)}
              keyOf={({ id }) => String(id)}
              none="This account owns no node yet."
            />
          )}
          <Credit ready={ready} wallets={wallets} />
        </>
      )}
      {overview !== undefined && ready !== undefined && (
        <Register ready={ready} session={wallets.session} minimum={overview.minimumStake} pausedUntil={overview.registrationsPausedUntil} />
      )}
    </>
  );
}

// What the account's nodes have earned, and stake that came back.
function Credit({ ready, wallets }: { readonly ready: Ready; readonly wallets: Wallets }) {
  const { market, head, changed } = ready;
  const { network } = market;
  const account = wallets.session?.account;
  const purse = useLoad(account === undefined ? undefined : () => readPurse(market, head, account), account ?? "", [changed.hash]);
  const credit = purse.value?.credit;
  const held = credit === undefined ? TEXTS.nothingYet : credit === 0n ? "There is no credit to withdraw." : "";
  const act = account === undefined || credit === undefined ? undefined : withdrawing(network, account, credit);
  return (
    <>
      <h2>Credit</h2>
      <p>
        What your nodes earn, and stake that an exit frees, is your credit in Escrow: <span id="credit"><Amount value={credit} asset={network.asset} /></span>
      </p>
      <Acts market={market} session={wallets.session} offers={[{ label: "Withdraw it all to this account", held, act }]} />
    </>
  );
}

function One({ context, wallets, part }: Props & { readonly part: string }) {
  const { live, network } = context;
  const id = nodeIdOf(part);
  const view = useNode(context, id);
  const ready = live.state === "ready" ? live : undefined;
  if (network === undefined) return null;
  if (id === undefined) return <NoNode />;
  const now = ready?.head.time ?? 0;
  const left = view.value?.node.owner === ZERO_ADDRESS;
  return (
    <>
      <h1>Manage node {id}</h1>
      <p>
        <a href={hrefOf(["node", String(id)])}>What it did and earned</a>, <a href={hrefOf(["provide"])}>all your nodes</a>
      </p>
      <Synced live={live} />
      {view.error !== undefined && <Failure error={view.error} />}
      <Wallet network={network} wallets={wallets} />
      {view.value === undefined ? (
        view.error === undefined && <p>{TEXTS.nothingYet}</p>
      ) : left ? (
        <p id="left">It has left the market; its stake is its owner's credit in Escrow.</p>
      ) : (
        <>
          <NodeFacts view={view.value} network={network} now={now} />
          <Waits node={view.value.node} network={network} now={now} />
          {ready !== undefined && <Manage key={id} ready={ready} session={wallets.session} view={view.value} />}
        </>
      )}
    </>
  );
}
