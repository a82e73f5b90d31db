// A page, or a part of one, that is loaded when it is first shown, so that the first page is small.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

import { HearthError } from "../../core/errors";
import { TEXTS } from "../texts";
import { Failure } from "./failure";

export const offline = (): HearthError =>
  new HearthError("OFFLINE", "this part of the page cannot be loaded: its server does not answer", "load the page again");

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let known: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [loaded, setLoaded] = useState<{ readonly page?: ComponentType<Props>; readonly fault?: unknown }>({});
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
    return Found === undefined ? <p>{TEXTS.nothingYet}</p> : <Found {...props} />;
  };
}
