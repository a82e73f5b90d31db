// A page that is loaded when it is first opened, so that the first one is small.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { HearthError } from "../../core/errors";
import type { Context } from "../main";
import { WORDS } from "../words";
import { Failure } from "./failure";

export const offline = (): HearthError =>
  new HearthError("OFFLINE", "this part of the page cannot be loaded: its server does not answer", "load the page again");

type Page = ComponentType<{ readonly context: Context }>;

export function lazy(load: () => Promise<Page>): Page {
  let known: Page | undefined;
  return function Lazy({ context }) {
    const [loaded, setLoaded] = useState<{ readonly page?: Page; readonly fault?: unknown }>({});
    useEffect(() => {
      if (known !== undefined) return;
      load().then(
        (page) => {
          known = page;
          setLoaded({ page });
        },
        () => setLoaded({ fault: offline() }),
      );
    }, []);
    const Found = known ?? loaded.page;
    if (loaded.fault !== undefined) return <Failure error={loaded.fault} />;
    return Found === undefined ? <p>{WORDS.nothingYet}</p> : <Found context={context} />;
  };
}
