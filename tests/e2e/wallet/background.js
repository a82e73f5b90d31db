// The wallet itself: which site may see the account, which chain it is on, and what waits for its owner. It has no key: a signer
// outside signs, as a wallet's hardware would, and only what was approved in the wallet's own window.

const USER_REFUSED = { code: 4001, message: "User rejected the request." };
const UNAUTHORIZED = { code: 4100, message: "The requested account has not been authorized by the user." };
const UNSUPPORTED = { code: -32601, message: "The method does not exist / is not available." };
const UNKNOWN_CHAIN = { code: 4902, message: "Unrecognized chain ID. Try adding the chain first." };
const GONE = { code: 4901, message: "The wallet has no connection to this chain." };
const READS = new Set(["eth_blockNumber", "eth_call", "eth_getBalance", "eth_getBlockByNumber", "eth_getTransactionReceipt"]);
const FIRST = { chainId: "0x1", chains: {}, sites: [] };

const pages = new Set();
const waiting = new Map();

chrome.runtime.onConnect.addListener((port) => (port.name === "page" ? servePage(port) : serveWindow(port)));

function servePage(port) {
  pages.add(port);
  port.onDisconnect.addListener(() => pages.delete(port));
  port.onMessage.addListener(async ({ id, method, params }) => {
    const answer = { jsonrpc: "2.0", id };
    try {
      // Who asks is what Chromium says, not what the page says of itself.
      answer.result = await handle(port.sender.origin, method, params ?? []);
    } catch (error) {
      answer.error = typeof error?.code === "number" ? error : { code: -32603, message: String(error) };
    }
    if (id !== undefined && pages.has(port)) port.postMessage(answer);
  });
}

async function handle(origin, method, params) {
  const { chainId, chains, sites } = await state();
  const account = (await settings()).account;
  const accounts = sites.includes(origin) ? [account] : [];
  switch (method) {
    case "metamask_getProviderState":
      return { accounts, chainId, isUnlocked: true, networkVersion: String(Number(chainId)) };
    case "metamask_sendDomainMetadata":
      return true;
    case "eth_accounts":
      return accounts;
    case "eth_chainId":
      return chainId;
    case "eth_requestAccounts":
      if (accounts.length > 0) return accounts;
      await approved(origin, "Connect", { account });
      await change({ sites: [...sites, origin] });
      tell("metamask_accountsChanged", [account], origin);
      return [account];
    case "wallet_switchEthereumChain":
      if (params[0].chainId === chainId) return null;
      if (chains[params[0].chainId] === undefined) throw UNKNOWN_CHAIN;
      await approved(origin, "Switch the chain", { from: chainId, to: params[0].chainId });
      return moveTo(params[0].chainId);
    case "wallet_addEthereumChain": {
      const { chainId: added, chainName, rpcUrls } = params[0];
      await approved(origin, "Add a chain", { chain: added, name: chainName, rpc: rpcUrls.join(" ") });
      await change({ chains: { ...chains, [added]: rpcUrls[0] } });
      return moveTo(added);
    }
    case "eth_sendTransaction":
      return send(origin, params[0], accounts);
    default:
      if (!READS.has(method)) throw UNSUPPORTED;
      return ask(await rpcOf(), method, params);
  }
}

async function send(origin, transaction, accounts) {
  if (!accounts.some((account) => account.toLowerCase() === transaction.from.toLowerCase())) throw UNAUTHORIZED;
  const { chainId } = await state();
  if (transaction.chainId !== chainId) throw { code: -32602, message: "The transaction is for another chain." };
  const { to, value, data } = transaction;
  await approved(origin, "Send a transaction", { to, value: String(BigInt(value)), data });
  const url = await rpcOf();
  const nonce = await ask(url, "eth_getTransactionCount", [transaction.from, "pending"]);
  const gas = await ask(url, "eth_estimateGas", [transaction]);
  const { signer } = await settings();
  const raw = await ask(signer, "account_signTransaction", [{ ...transaction, nonce, gas }]);
  return ask(url, "eth_sendRawTransaction", [raw]);
}

// ---- what is asked of the owner ----

// Open the wallet's window and wait for its owner. Throws USER_REFUSED where it is refused, or the window is shut.
async function approved(origin, what, details) {
  const id = crypto.randomUUID();
  const answer = new Promise((done) => waiting.set(id, { shown: { origin, what, details }, done }));
  await chrome.windows.create({ url: `approve.html#${id}`, type: "popup", width: 480, height: 640 });
  if (!(await answer)) throw USER_REFUSED;
}

function serveWindow(port) {
  const asked = waiting.get(port.name);
  if (asked === undefined || port.sender.origin !== location.origin) return port.disconnect();
  port.postMessage(asked.shown);
  const end = (yes) => {
    waiting.delete(port.name);
    asked.done(yes);
  };
  port.onMessage.addListener((said) => end(said === "approve"));
  port.onDisconnect.addListener(() => end(false));
}

// ---- what is kept, and who is told ----

const settings = async () => (await fetch(chrome.runtime.getURL("settings.json"))).json();
const state = async () => ({ ...FIRST, ...(await chrome.storage.session.get()) });
const change = (to) => chrome.storage.session.set(to);

async function moveTo(chainId) {
  await change({ chainId });
  tell("metamask_chainChanged", { chainId, networkVersion: String(Number(chainId)), isConnected: true });
  return null;
}

function tell(method, params, origin) {
  for (const port of pages) {
    if (origin === undefined || port.sender.origin === origin) port.postMessage({ jsonrpc: "2.0", method, params });
  }
}

async function rpcOf() {
  const { chainId, chains } = await state();
  if (chains[chainId] === undefined) throw GONE;
  return chains[chainId];
}

async function ask(url, method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const { result, error } = await answer.json();
  if (error !== undefined) throw error;
  return result;
}
