// Words of this page alone. An origin that is shared with other sites keeps none, and what lies there is theirs.

import { sharedOrigin } from "./origin";
import { recall, remember } from "./remember";

type Here = Pick<Location, "pathname">;

// The word under a name, null for none.
export const recallOwn = (name: string, here: Here): string | null => (sharedOrigin(here) ? null : recall(name));

// Keep a word under a name, and say whether it lasts; null forgets it.
export const rememberOwn = (name: string, word: string | null, here: Here): boolean => !sharedOrigin(here) && remember(name, word);
