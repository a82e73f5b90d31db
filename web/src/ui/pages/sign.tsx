// A file that --print-tx wrote on another machine: what it does in words, then signed by the reader's own wallet, call by call.

import { useEffect, useState } from "preact/hooks";

import { HearthError } from "../../core/errors";
import type { Network } from "../../core/network";
import { MOST_TEXT, type Prepared, preparedOf } from "../../core/prepared";
import { type CallSummary, summaryOf } from "../../core/call-summary";
import type { Policy } from "../../core/types";
import { unpackPolicy } from "../../core/words";
import { requireSender } from "../../wallet/prepared";
import { useLoad } from "../load";
import type { Context } from "../context";
import { CallCard } from "../parts/call-card";
import { Failure } from "../parts/failure";
import { KnownCalls } from "../parts/known-calls";
import { NoMarket } from "../parts/no-market";
import { Ask } from "../parts/prepared";
import { Synced } from "../parts/synced";
import { Wallet } from "../parts/wallet";
import { Withdrawal } from "../parts/withdrawal";
import { useWallets } from "../wallet";

export function SignPage({ context }: { readonly context: Context }) {
  const { network, live } = context;
  const wallets = useWallets(network);
  const [text, setText] = useState("");
  const [unread, setUnread] = useState<unknown>();
  const ready = live.state === "ready" ? live : undefined;
  const policy = useLoad(
    ready === undefined ? undefined : async () => unpackPolicy((await ready.market.read(ready.head, ready.market.overview()))[0].policy),
    network?.name ?? "",
    [ready?.changed.hash],
  ).value;
  const read = useRead(text, network, policy);
  if (network === undefined) return <NoMarket context={context} />;
  const pick = (file: File | undefined): void => {
    setUnread(undefined);
    setText("");
    readText(file).then(setText, setUnread);
  };
  const refused = unread ?? read.error;
  return (
    <>
      <h1>Sign a file</h1>
      <Synced live={live} />
      <p>
        A file that a command wrote with <code>--print-tx</code>, or that this page saved: it is read here, and what it does is told by
        its data, not by its words. Nothing is sent before your wallet has asked you.
      </p>
      <p>
        <label>
          The file{" "}
          <input
            type="file"
            id="tx-file"
            accept=".json,application/json"
            // The same file may be another one by now, and picking it is no change to a browser.
            onClick={(event) => {
              event.currentTarget.value = "";
            }}
            onChange={(event) => pick(event.currentTarget.files?.[0])}
          />
        </label>
      </p>
      <p>
        <label for="tx-text">Or its text</label>
        <textarea
          id="tx-text"
          rows={6}
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setUnread(undefined);
            setText(event.currentTarget.value);
          }}
        />
      </p>
      {refused !== undefined && <Failure error={refused} />}
      {read.calls !== undefined && (
        <section aria-labelledby="asked">
          <h2 id="asked">What it asks for</h2>
          <ol id="calls">
            {read.calls.map(({ call, told }, place) => (
              <li key={place}>
                <CallCard call={call} told={told} network={network} />
              </li>
            ))}
          </ol>
        </section>
      )}
      <h2>Wallet</h2>
      <Wallet network={network} wallets={wallets} />
      {read.calls !== undefined && <Sender calls={read.calls} account={wallets.session?.account} />}
      {read.calls !== undefined && ready !== undefined && (
        <KnownCalls key={`known ${text}`} market={ready.market} calls={read.calls} head={ready.head} changed={ready.changed.hash} seen={ready.seen} />
      )}
      {read.calls !== undefined && ready !== undefined && (
        <Ask key={text} market={ready.market} session={wallets.session} calls={read.calls} />
      )}
      {ready !== undefined && <Withdrawal market={ready.market} head={ready.head} />}
    </>
  );
}

export interface Read {
  readonly call: Prepared;
  readonly told: CallSummary;
}

// Say beforehand that another account is connected than the file was made for; the wallet is not asked then.
function Sender({ calls, account }: { readonly calls: readonly Read[]; readonly account: Prepared["from"] | undefined }) {
  if (account === undefined) return null;
  try {
    requireSender(calls.map(({ call }) => call), account);
    return null;
  } catch (error) {
    return <Failure error={error} />;
  }
}

// Read a text as it is typed; what was read last is gone as soon as another text stands there.
function useRead(text: string, network: Network | undefined, policy: Policy | undefined): { readonly calls?: readonly Read[]; readonly error?: unknown } {
  const [held, setHeld] = useState<{ readonly text: string; readonly calls?: readonly Prepared[]; readonly error?: unknown }>();
  useEffect(() => {
    if (network === undefined || text.trim() === "") return undefined;
    let ended = false;
    preparedOf(text, network).then(
      (calls) => !ended && setHeld({ text, calls }),
      (error: unknown) => !ended && setHeld({ text, error }),
    );
    return () => {
      ended = true;
    };
  }, [text, network]);
  if (held?.text !== text || text.trim() === "" || network === undefined) return {};
  if (held.calls === undefined) return { error: held.error };
  try {
    return { calls: held.calls.map((call) => ({ call, told: summaryOf(call, network, policy ?? null) })) };
  } catch (error) {
    return { error };
  }
}

async function readText(file: File | undefined): Promise<string> {
  if (file === undefined) return "";
  if (file.size > MOST_TEXT) throw new HearthError("BAD_TX", `the file has ${file.size} bytes, and ${MOST_TEXT} are read`, "pick what --print-tx wrote");
  const text = await file.text();
  if (text.trim() === "") throw new HearthError("BAD_TX", "the file is empty: nothing is in it to sign", "write it once more, with --print-tx");
  return text;
}
