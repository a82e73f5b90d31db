// What one slot of a node offers, in the units of worker.toml.

import type { RuntimeName, Wish } from "../../core/offer";
import { gpuName } from "../../core/tiers";
import { RUNTIME_NAMES } from "../../generated/owners";
import { MODELS, OTHER_TIER, VENDORS } from "../../generated/tiers";
import { Field } from "./fields";

interface Props {
  readonly wish: Wish;
  readonly change: (wish: Wish) => void;
  // Whether the price is among what is offered: of a node that is registered it changes by itself.
  readonly priced: boolean;
}

export function OfferForm({ wish, change, priced }: Props) {
  const text = (name: keyof Wish, label: string, hint = "") => (
    <Field id={`offer-${name}`} label={label} hint={hint} value={String(wish[name])} change={(value) => change({ ...wish, [name]: value })} />
  );
  const tick = (name: RuntimeName, on: boolean): void => {
    const others = wish.runtimes.filter((one) => one !== name);
    change({ ...wish, runtimes: on ? [...others, name] : others });
  };
  const pick = (slug: string): void => {
    const vram = MODELS.find((model) => model.slug === slug)?.vramGib;
    change({ ...wish, model: slug, vram: vram === undefined ? "" : String(vram) });
  };
  // An offer of a release with more models keeps its own.
  const unlisted = wish.model === "" || MODELS.some(({ slug }) => slug === wish.model) ? [] : [wish.model];
  const withGpus = wish.gpus.trim() !== "" && wish.gpus.trim() !== "0";
  return (
    <fieldset>
      <legend>What one slot offers</legend>
      <div class="fields">
        {priced && text("price", "Price of a slot", 'such as "0.60/h"')}
        {text("country", "Country", "two letters, such as de: its zone is what the chain keeps")}
        {text("slots", "Slots", "jobs at once, 1 to 63")}
        {text("cores", "Cores of a slot")}
        {text("memory", "Memory of a slot", 'such as "16GiB"')}
        {text("disk", "Disk of a slot", 'such as "100GiB"')}
        {text("gpus", "GPUs of a slot", "0 for none")}
        {withGpus && (
          <>
            <p>
              <label for="offer-model">GPU</label>
              <select id="offer-model" value={wish.model} onChange={(event) => pick(event.currentTarget.value)}>
                <option value="">pick one</option>
                {MODELS.map(({ slug }) => (
                  <option key={slug} value={slug}>
                    {slug}
                  </option>
                ))}
                {[...new Set([...VENDORS.map((vendor) => gpuName(vendor, OTHER_TIER)), ...unlisted])].map((name) => (
                  <option key={name} value={name}>
                    another model ({name})
                  </option>
                ))}
              </select>
            </p>
            {text("vram", "Memory of a GPU", "whole GiB")}
          </>
        )}
      </div>
      <p class="row">
        Runtimes
        {(Object.keys(RUNTIME_NAMES) as RuntimeName[]).map((name) => (
          <label key={name}>
            <input type="checkbox" checked={wish.runtimes.includes(name)} onChange={(event) => tick(name, event.currentTarget.checked)} /> {name}
          </label>
        ))}
      </p>
    </fieldset>
  );
}
