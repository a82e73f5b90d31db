// Countries, the 16 zones that hold them, and the distances between zones. Mirrors hearth/protocol/zones.py.

import { ANY_ZONE, ZONE_COUNT } from "../generated/bounds";
import { DISTANCE, ZONES } from "../generated/zones";
import { HearthError } from "./errors";
import { trimmed } from "./unicode";

export type Zone = (typeof ZONES)[number];

const ZONE_OF_COUNTRY: ReadonlyMap<string, number> = new Map(
  ZONES.flatMap((zone) => zone.countries.map((country): [string, number] => [country, zone.number])),
);

// Return the zone, 0..15, of a two-letter ISO 3166-1 country code in either case. Throws BAD_COUNTRY for anything else.
export function zoneOf(country: string): number {
  const code = trimmed(country).toLowerCase();
  const zone = ZONE_OF_COUNTRY.get(code);
  if (zone !== undefined) return zone;
  throw new HearthError("BAD_COUNTRY", `"${country}" is not an ISO 3166-1 country code`, 'write two letters, such as "de" or "in"', { country });
}

// Return the 16-bit mask of the zones that hold these countries; no country at all means any zone.
export function zoneMask(countries: Iterable<string>): number {
  let mask = 0;
  for (const country of countries) mask |= 1 << zoneOf(country);
  return mask === 0 ? ANY_ZONE : mask;
}

// Return the zones whose bit is set in a 16-bit mask, in order of their number. Throws BAD_WORD for another mask.
export function zonesIn(mask: number): readonly Zone[] {
  if (!Number.isInteger(mask) || mask < 0 || mask > ANY_ZONE) {
    throw new HearthError("BAD_WORD", `zone mask ${mask} does not fit in ${ZONE_COUNT} bits`);
  }
  return ZONES.filter((zone) => (mask >> zone.number) & 1);
}

// Return the distance class, 0..15, of two zones. Throws BAD_WORD for what is no zone.
export function zoneDistance(a: number, b: number): number {
  const distance = DISTANCE[a]?.[b];
  if (distance === undefined) throw new HearthError("BAD_WORD", `zones ${a} and ${b} must be in 0..${ZONE_COUNT - 1}`);
  return distance;
}
