import { vi } from "vitest";

type SetItem = (words: Map<string, string>, name: string, word: string) => void;

// A browser's storage for a test, empty, and what is in it; `setItem` may refuse.
export function stubStorage(setItem: SetItem = (words, name, word) => words.set(name, word)): Map<string, string> {
  const words = new Map<string, string>();
  vi.stubGlobal("dispatchEvent", vi.fn());
  vi.stubGlobal("StorageEvent", class {});
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => words.get(name) ?? null,
    setItem: (name: string, word: string) => setItem(words, name, word),
    removeItem: (name: string) => words.delete(name),
  });
  return words;
}
