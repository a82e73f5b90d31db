// The zones as tiles that filter, and the table of distances between them.

import type { Tile } from "../../core/offers";
import type { Asset } from "../../core/units";
import { showRate } from "../../core/units";
import { DISTANCE, ZONES } from "../../generated/zones";

interface Props {
  readonly tiles: readonly Tile[] | undefined;
  readonly asset: Asset;
  // The slug of the zone that is picked, "" for none.
  readonly zone: string;
  readonly pick: (zone: string) => void;
}

export function Zones({ tiles, asset, zone, pick }: Props) {
  const picked = ZONES.find(({ slug }) => slug === zone);
  return (
    <>
      <div class="tiles" role="group" aria-label="Zones">
        {ZONES.map(({ number, slug, title }) => {
          const tile = tiles?.[number];
          return (
            <button key={slug} type="button" title={title} aria-pressed={slug === zone} onClick={() => pick(slug === zone ? "" : slug)}>
              <strong>{slug}</strong>
              {tile === undefined ? (
                <span>…</span>
              ) : (
                <>
                  <span>{`${tile.live} live, ${tile.silent} silent`}</span>
                  <span>{`${tile.free} free`}</span>
                  <span>{tile.cheapest === undefined ? "no ask" : `from ${showRate(tile.cheapest, asset)}`}</span>
                </>
              )}
            </button>
          );
        })}
      </div>
      {picked !== undefined && (
        <p>
          {picked.slug}: {namesOf(picked.countries)}
        </p>
      )}
      <details>
        <summary>How far zones are apart</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label="How far zones are apart">
          <table class="heat">
            <caption>
              <span>Classes of round trip from a table, not measured: 0 is here, 15 is far.</span>
            </caption>
            <thead>
              <tr>
                <th scope="col">zone</th>
                {ZONES.map(({ slug }) => (
                  <th key={slug} scope="col" class="number">
                    {slug}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {ZONES.map(({ number, slug }) => (
                <tr key={slug}>
                  <th scope="row">{slug}</th>
                  {DISTANCE[number]?.map((far, other) => (
                    <td key={other} class={`number heat-${Math.floor(far / 4)}`}>
                      {far}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

// Names of countries as the browser has them, in the page's language; a code that it does not know stays a code.
function namesOf(countries: readonly string[]): string {
  const names = new Intl.DisplayNames(["en"], { type: "region", fallback: "code" });
  return countries.map((code) => names.of(code.toUpperCase()) ?? code).sort().join(", ");
}
