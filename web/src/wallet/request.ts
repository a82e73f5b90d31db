// One wallet that the reader picked, by EIP-1193: its account, its chain, and what it is asked to send. A wallet may lie, hang
// and change at any moment: what was shown is compared with what it says right before each request to sign, and what it
// announces meanwhile drops what was prepared.

import { type Hex, hexNumber } from "../core/bytes";
import { HearthError } from "../core/errors";
import { askable, isSameMarket, type Network } from "../core/network";
import { shownLine } from "../core/text";
import type { Call } from "./calls";
import type { Announced } from "./discover";

// What a reader was shown of a wallet when a call was prepared; `epoch` moves with each change that it announces.
export interface Shown {
  readonly account: Hex;
  readonly chainId: bigint;
  readonly epoch: number;
}

// Milliseconds in which a wallet must answer what asks no person.
const PATIENCE = 20_000;
const EVENTS = ["accountsChanged", "chainChanged", "disconnect"] as const;
const REFUSED = 4001;
const DENIED = 4100;
const UNSUPPORTED = new Set([4200, -32601, -32004]);
const GONE = new Set([4900, 4901]);
const UNKNOWN_CHAIN = 4902;
const BUSY = -32002;

const NOTHING_SENT = "nothing was sent";
const ACTIVITY = "open the wallet and look at its activity";

// Refuse to ask a wallet for more once its reader waits no longer. Throws STOPPED.
export function requireGoing(signal: AbortSignal): void {
  if (signal.aborted) throw new HearthError("STOPPED", "this page was told to wait no longer: your wallet is asked for nothing more", "begin again");
}

// A connection to one wallet. `tell` hears whenever its account or chain may have changed.
export class Session {
  account: Hex | undefined;
  chainId: bigint | undefined;
  // What the wallet was given to sign and has not answered yet.
  asked: readonly Pick<Call, "to" | "data">[] = [];
  #epoch = 0;
  readonly #heard: (() => void)[] = [];

  constructor(
    readonly wallet: Announced,
    readonly network: Network,
    private readonly tell: () => void,
    // Refuses where the page may not sign at all.
    private readonly requirePlace: () => void,
    private readonly patience = PATIENCE,
  ) {}

  // Ask for an account, which the wallet asks its owner for. Throws SHARED_ORIGIN, IN_A_FRAME, USER_REFUSED, WALLET_GONE and
  // others of `walletError`, NO_ACCOUNT.
  async connect(): Promise<void> {
    this.requirePlace();
    const accounts = await this.#ask("eth_requestAccounts", [], NOTHING_SENT);
    this.account = firstAccount(accounts);
    if (this.account === undefined) {
      throw new HearthError("NO_ACCOUNT", `${this.wallet.name} gives this page no account`, "unlock it, and connect again");
    }
    this.chainId = await this.#chain();
    this.#listen();
    this.tell();
  }

  // What stands beside a call that is about to be signed; undefined before an account is known.
  shown(): Shown | undefined {
    if (this.account === undefined || this.chainId === undefined) return undefined;
    return { account: this.account, chainId: this.chainId, epoch: this.#epoch };
  }

  // Bring the wallet to the market's chain: switch, add the chain where the wallet does not know it, and then ask it where it
  // is. Throws WRONG_CHAIN where that is another chain still, USER_REFUSED and what `walletError` gives.
  async switchChain(): Promise<void> {
    const { network } = this;
    const wanted = [{ chainId: hexNumber(network.chainId) }];
    try {
      await this.#move("wallet_switchEthereumChain", wanted);
    } catch (error) {
      if (!(error instanceof HearthError) || error.code !== "UNKNOWN_CHAIN") throw error;
      await this.#move("wallet_addEthereumChain", [chainOf(network)]);
      // Some add without a switch, some switch as they add.
      if ((await this.#chain()) !== network.chainId) await this.#move("wallet_switchEthereumChain", wanted);
    }
    this.chainId = await this.#chain();
    this.tell();
    await this.#requireChain();
  }

  // Ask a wallet to move. Some fail after they have: where it is on the chain by then, it did what it was asked.
  async #move(method: string, params: readonly unknown[]): Promise<void> {
    try {
      await this.#ask(method, params, NOTHING_SENT);
    } catch (error) {
      const failed = error instanceof HearthError && error.code === "WALLET_FAILED";
      if (!failed || (await this.#chain()) !== this.network.chainId) throw error;
    }
  }

  // Refuse to sign for another market than the one that the wallet was connected for: its chain alone is what it is held to.
  // Throws CHANGED.
  requireMarket(network: Network): void {
    if (isSameMarket(this.network, network)) return;
    throw new HearthError("CHANGED", `${this.wallet.name} was connected for market ${this.network.name}: ${NOTHING_SENT}`, "connect it again");
  }

  // Have a call signed and sent, and return the hash that the wallet says. Right before, the wallet must be on the market's
  // chain, by its id and its first block, and have the account that was shown. Throws CHANGED, WRONG_CHAIN, USER_REFUSED and
  // what `walletError` gives, STOPPED where `signal` says so before the wallet is asked; `money` says where the money is where
  // it is not known whether the call was sent.
  async send(call: Call, shown: Shown, money: string, signal: AbortSignal): Promise<Hex> {
    this.requirePlace();
    await this.#requireChain();
    const account = firstAccount(await this.#quick("eth_accounts", []));
    if (shown.epoch !== this.#epoch || account !== shown.account || shown.chainId !== this.network.chainId) {
      this.account = account;
      this.tell();
      throw new HearthError(
        "CHANGED",
        `the account or chain of ${this.wallet.name} changed after this was shown: ${NOTHING_SENT}`,
        "look at what is shown now, and sign that",
      );
    }
    requireGoing(signal);
    const { to, data, value } = call;
    const transaction = { from: shown.account, to, data, value: hexNumber(value), chainId: hexNumber(shown.chainId) };
    const hash = await this.#shown(transaction, () => this.#ask("eth_sendTransaction", [transaction], money));
    if (typeof hash !== "string" || !/^0x[0-9a-fA-F]{64}$/.test(hash)) {
      throw new HearthError("WALLET_FAILED", `${this.wallet.name} names no transaction; ${money}`, ACTIVITY);
    }
    return hash.toLowerCase() as Hex;
  }

  // Let the page show what the wallet is asked about while it is.
  async #shown<T>(asked: Pick<Call, "to" | "data">, ask: () => Promise<T>): Promise<T> {
    this.asked = [...this.asked, asked];
    this.tell();
    try {
      return await ask();
    } finally {
      this.asked = this.asked.filter((one) => one !== asked);
      this.tell();
    }
  }

  // Listen no more.
  close(): void {
    for (const end of this.#heard.splice(0)) end();
  }

  #listen(): void {
    const { provider } = this.wallet;
    for (const event of EVENTS) {
      const heard = (value: unknown): void => this.#changed(event, value);
      try {
        provider.on?.(event, heard);
        this.#heard.push(() => void provider.removeListener?.(event, heard));
      } catch {
        // It announces nothing: what was shown is compared before each request all the same.
      }
    }
  }

  #changed(event: (typeof EVENTS)[number], value: unknown): void {
    this.#epoch += 1;
    if (event === "accountsChanged") this.account = firstAccount(value);
    else if (event === "chainChanged") this.chainId = chainIn(value);
    else this.chainId = undefined;
    this.tell();
  }

  async #chain(): Promise<bigint> {
    const found = chainIn(await this.#quick("eth_chainId", []));
    if (found === undefined) throw new HearthError("WALLET_FAILED", `${this.wallet.name} names no chain; ${NOTHING_SENT}`, "use another wallet");
    return found;
  }

  // An id is soon said, and every devnet has the same: the chain's first block tells chains apart. A wallet that does not pass
  // the question on is taken at its word.
  async #requireChain(): Promise<void> {
    const { network, wallet } = this;
    this.chainId = await this.#chain();
    if (this.chainId !== network.chainId) {
      throw new HearthError(
        "WRONG_CHAIN",
        `${wallet.name} is on chain ${this.chainId}, and the market is on chain ${network.chainId}: ${NOTHING_SENT}`,
        "switch its network",
      );
    }
    let first: unknown;
    try {
      first = await this.#quick("eth_getBlockByNumber", ["0x0", false]);
    } catch (error) {
      if (error instanceof HearthError && error.code === "UNSUPPORTED") return;
      throw error;
    }
    const hash = typeof first === "object" && first !== null ? (first as Record<string, unknown>)["hash"] : undefined;
    if (typeof hash !== "string" || hash.toLowerCase() !== network.genesisHash) {
      throw new HearthError(
        "WRONG_CHAIN",
        `${wallet.name} says chain ${network.chainId}, and asks another chain of that id than the market's: ${NOTHING_SENT}`,
        `name the market's RPC for this chain in ${wallet.name}`,
      );
    }
  }

  // Ask what needs no person, for a while.
  async #quick(method: string, params: readonly unknown[]): Promise<unknown> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, fail) => {
      const silent = new HearthError("WALLET_GONE", `${this.wallet.name} does not answer: ${NOTHING_SENT}`, "open it, or connect again");
      timer = setTimeout(() => fail(silent), this.patience);
    });
    try {
      return await Promise.race([this.#ask(method, params, NOTHING_SENT), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #ask(method: string, params: readonly unknown[], money: string): Promise<unknown> {
    try {
      return await this.wallet.provider.request({ method, params });
    } catch (error) {
      throw walletError(error, this.wallet.name, money);
    }
  }
}

// What a wallet's error means for people. Throws nothing; the codes are EIP-1193's and EIP-1474's, and MetaMask's nested ones:
// USER_REFUSED, WALLET_DENIED, WALLET_BUSY, WALLET_GONE, UNKNOWN_CHAIN, UNSUPPORTED, WALLET_FAILED with `money`.
export function walletError(error: unknown, name: string, money: string): HearthError {
  const { codes, message } = readError(error);
  const has = (all: ReadonlySet<number>): boolean => codes.some((code) => all.has(code));
  if (codes.includes(REFUSED)) return new HearthError("USER_REFUSED", `you refused it; ${NOTHING_SENT}`, "the same button asks your wallet again, for the same thing");
  if (codes.includes(UNKNOWN_CHAIN)) return new HearthError("UNKNOWN_CHAIN", `${name} does not know the market's chain; ${NOTHING_SENT}`, "add the chain in your wallet, with the RPC that the page Network names");
  if (codes.includes(DENIED)) {
    const why = `${name} has not let this page use that account; ${NOTHING_SENT}`;
    return new HearthError("WALLET_DENIED", why, "connect again");
  }
  if (codes.includes(BUSY)) {
    return new HearthError("WALLET_BUSY", `${name} waits for your answer to an earlier request; ${NOTHING_SENT} now`, "open the wallet");
  }
  if (has(GONE)) return new HearthError("WALLET_GONE", `${name} has no connection to its chain; ${money}`, "open it, or connect again");
  if (has(UNSUPPORTED)) return new HearthError("UNSUPPORTED", `${name} does not offer this; ${money}`, "use another wallet");
  const code = codes[0] === undefined ? "" : ` (${codes[0]})`;
  return new HearthError("WALLET_FAILED", `${name} says: ${message}${code}; ${money}`, ACTIVITY);
}

// Read a stranger's error: its code and those that it wraps, and its message. Reading may run the stranger's code.
function readError(error: unknown): { readonly codes: readonly number[]; readonly message: string } {
  const codes: number[] = [];
  let message = "";
  try {
    let one = error;
    for (let depth = 0; depth < 4 && typeof one === "object" && one !== null; depth += 1) {
      const { code, message: said, data, originalError, cause } = one as Record<string, unknown>;
      if (typeof code === "number") codes.push(code);
      if (message === "" && typeof said === "string") message = said;
      one = [originalError, data, cause].find((inner) => typeof inner === "object" && inner !== null);
    }
  } catch {
    // What was read stands.
  }
  return { codes, message: message === "" ? "nothing of what went wrong" : shownLine(message, 200) };
}

// The chain as EIP-3085 has it: the RPCs of the network file, which the page shows in full beside the button.
function chainOf(network: Network): Record<string, unknown> {
  const explorer = network.explorer === null ? undefined : askable(network.explorer);
  return {
    chainId: hexNumber(network.chainId),
    chainName: shownLine(`Hearth ${network.name}`, 60),
    nativeCurrency: { name: "Ether", symbol: network.asset.address === null ? network.asset.symbol : "ETH", decimals: 18 },
    rpcUrls: [...network.rpc],
    ...(explorer === undefined ? {} : { blockExplorerUrls: [explorer.href] }),
  };
}

function firstAccount(value: unknown): Hex | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : undefined;
  return typeof first === "string" && /^0x[0-9a-fA-F]{40}$/.test(first) ? (first.toLowerCase() as Hex) : undefined;
}

// A chain's id: hex by EIP-695, and decimal or a number from wallets that go their own way.
function chainIn(value: unknown): bigint | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
  return typeof value === "string" && /^(?:0x[0-9a-fA-F]{1,64}|[0-9]{1,78})$/.test(value) ? BigInt(value) : undefined;
}

