// Where the page lies decides whether it may ask a wallet to sign (page.md).

import { HearthError } from "../core/errors";
import { sharedOrigin } from "../data/origin";

// What of a window is looked at.
export interface Place {
  readonly location: Location;
  readonly self: unknown;
  readonly top: unknown;
}

// Refuse to sign where another site shares the page's origin, or frames it and so decides what a reader sees. Throws
// SHARED_ORIGIN, IN_A_FRAME.
export function requireOwnPlace(place: Place): void {
  if (sharedOrigin(place.location)) {
    throw new HearthError(
      "SHARED_ORIGIN",
      "this address is shared with every other site of its gateway, which a wallet cannot tell apart: nothing is signed here",
      "run hearth web, or open the page at an address of its own",
    );
  }
  if (place.top !== place.self) {
    throw new HearthError(
      "IN_A_FRAME",
      "another page shows this one in a frame, and may cover what you would sign: nothing is signed here",
      "open the page by itself",
    );
  }
}
