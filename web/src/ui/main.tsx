// The page: its frame, its routes, and what it was opened with.

import "./style.css";

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { HearthError } from "../core/errors";
import { marketId, networkOf } from "../core/network";
import { shownLine } from "../core/text";
import { isKept, takeToken, whoServes } from "../data/opened-with";
import type { Named } from "../data/market";
import { sharedOrigin } from "../data/origin";
import { Jobs } from "./pages/jobs";
import { Failure } from "./parts/failure";
import { lazy } from "./parts/lazy";
import { Theme } from "./parts/theme";
import type { Context } from "./context";
import { useLive } from "./live";
import { OtherMarket } from "./load";
import { isOther } from "./unreachable";
import { hrefOf, useRoute } from "./router";
import { TEXTS } from "./texts";

const PAGES = {
  jobs: Jobs,
  submit: lazy(async () => (await import("./pages/submit")).Submit),
  provide: lazy(async () => (await import("./pages/provide")).Provide),
  market: lazy(async () => (await import("./pages/market")).MarketPage),
  workers: lazy(async () => (await import("./pages/workers")).Workers),
  keepers: lazy(async () => (await import("./pages/keepers")).Keepers),
  network: lazy(async () => (await import("./pages/network")).NetworkPage),
  gov: lazy(async () => (await import("./pages/gov")).GovPage),
  sign: lazy(async () => (await import("./pages/sign")).SignPage),
  check: lazy(async () => (await import("./pages/check")).Check),
  files: lazy(async () => (await import("./pages/files")).Files),
  wallet: lazy(async () => (await import("./pages/wallet")).WalletPage),
  about: lazy(async () => (await import("./pages/about")).About),
} as const;
const JobPage = lazy(async () => (await import("./pages/job")).JobPage);
const NodePage = lazy(async () => (await import("./pages/node")).NodePage);
const NoPage = lazy(async () => (await import("./pages/no-page")).NoPage);
type Name = keyof typeof PAGES;
// Pages of one job, one node, and the page of the menu that each belongs to.
const ONES: ReadonlyMap<string, { readonly of: Name; readonly page: typeof JobPage; readonly title: (id: string) => string }> = new Map([
  ["job", { of: "jobs", page: JobPage, title: TEXTS.job }],
  ["node", { of: "workers", page: NodePage, title: TEXTS.node }],
] as const);
const NAMES = Object.keys(PAGES) as Name[];
// Pages whose addresses may name something behind the page.
const DEEPER: ReadonlySet<string> = new Set(["submit", "provide", ...ONES.keys()]);

type Source = Omit<Context, "live" | "choose">;

async function open(): Promise<Source> {
  const opened = isKept(location, navigator) ? ({ by: "kept" } as const) : await whoServes();
  try {
    const found = opened.by === "hearth web" ? { network: networkOf(opened.network) } : opened.by === "stranger" ? undefined : await elsewhere();
    return { opened, network: undefined, by: undefined, refused: undefined, ...found };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    return { opened, network: undefined, by: undefined, refused: error };
  }
}

const elsewhere = async (): Promise<Named | undefined> => (await import("../data/market")).namedMarket(location);

function App() {
  const { parts } = useRoute();
  const [source, setSource] = useState<Source>();
  const [fault, setFault] = useState<unknown>();
  const [other, setOther] = useState(false);
  useEffect(() => {
    open().then((found) => {
      setSource(found);
      void import("../data/offline").then(({ keepPage }) => keepPage(window as never, found.opened, () => setOther(true)), () => undefined);
    }, setFault);
  }, []);
  const live = useLive(source?.network);
  const choose = (named: Named | undefined): void => setSource((before) => before && { ...before, network: undefined, by: undefined, raw: undefined, refused: undefined, ...named });
  const context = source === undefined ? undefined : { ...source, live, choose };
  const [first = "jobs", id = ""] = parts;
  const one = ONES.get(first);
  const name = parts.length > (DEEPER.has(first) ? 2 : 1) ? undefined : (one?.of ?? NAMES.find((page) => page === first));
  const Page = name === undefined ? NoPage : (one?.page ?? PAGES[name]);
  useArrival(parts.join("/"), name === undefined ? TEXTS.noPage : one === undefined ? TEXTS.nav[name] : one.title(shownLine(id, 14)));
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <header>
        <p class="brand">
          <a href="#/">{TEXTS.name}</a>
        </p>
        <nav aria-label="Pages">
          <ul>
            {NAMES.map((one) => (
              <li key={one}>
                <a href={hrefOf([one])} aria-current={one === name ? "page" : undefined}>
                  {TEXTS.nav[one]}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Theme />
      </header>
      <p class="bar" role="note">
        {TEXTS.unaudited} <span class="served">{context === undefined ? TEXTS.nothingYet : servedBy(context)}</span>
        {other && <strong>{TEXTS.otherBuild}</strong>}
      </p>
      <main id="main" tabIndex={-1}>
        {fault !== undefined && <Failure error={fault} />}
        {context?.refused !== undefined && <Failure error={context.refused} />}
        {context !== undefined && (
          <OtherMarket.Provider value={isOther(live)}>
            <Page key={context.network && marketId(context.network)} context={context} />
          </OtherMarket.Provider>
        )}
      </main>
    </>
  );
}

// Name the page that was gone to, and put the keyboard at its beginning: whoever does not see it change must learn of it.
function useArrival(path: string, name: string): void {
  const before = useRef<string | undefined>(undefined);
  useEffect(() => {
    document.title = `${name} - ${TEXTS.name}`;
    if (before.current !== undefined && before.current !== path) {
      document.getElementById("main")?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    before.current = path;
  }, [path]);
}

// The hash is the route's, so that a plain link to #main would leave the page.
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function servedBy({ opened, network, by }: Source): string {
  const market = network === undefined || by === undefined ? "" : TEXTS.market(network.name, by);
  if (sharedOrigin(location)) return market + TEXTS.served.shared;
  if (opened.by === "hearth web") return TEXTS.served.web(shownLine(opened.local.network, 64));
  if (opened.by === "kept") return market + TEXTS.served.kept;
  return opened.by === "stranger" ? TEXTS.served.stranger(opened.why) : market + TEXTS.served.host;
}

takeToken(location, history);
const root = document.getElementById("app");
if (root !== null) {
  root.textContent = "";
  render(<App />, root);
}
