// What stands where a market's figures would, while the page knows of none.

import type { Context } from "../context";
import { lazy } from "./lazy";

const PickMarket = lazy(async () => (await import("./pick-market")).PickMarket);

export function NoMarket({ context }: { readonly context: Context }) {
  return (
    <>
      <h1>No market yet</h1>
      <p>
        This copy of the page was opened without a network file. Run <code>hearth web</code> and open the address that it
        prints{context.opened.by === "host" ? ", or pick the file of a market here." : "."}
      </p>
      {context.opened.by === "host" && <PickMarket context={context} />}
    </>
  );
}
