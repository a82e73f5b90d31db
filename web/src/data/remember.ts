// Words that this page keeps in the browser from visit to visit, under names. A browser that blocks storage, or has no room
// left, makes them last as long as the page.

const PREFIX = "hearth.";
const here = new Map<string, string>();

// The word under a name, null for none.
export function recall(name: string): string | null {
  try {
    return here.get(name) ?? localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

// Keep a word under a name, and say whether it lasts; null forgets it.
export function remember(name: string, word: string | null): boolean {
  here.delete(name);
  try {
    if (word === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, word);
    return true;
  } catch {
    if (word !== null) here.set(name, word);
    return false;
  }
}

// Forget all words.
export function forgetWords(): void {
  here.clear();
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStorage.removeItem(name);
  } catch {
    // It is blocked: nothing is in it.
  }
  // The parts of this page hear of it as they do where another tab did it.
  dispatchEvent(new StorageEvent("storage", { key: null }));
}
