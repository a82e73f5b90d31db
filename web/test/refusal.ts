// What a call refuses, as vectors say it: the code, or null where it refuses nothing.

import { codeOf } from "../src/core/errors";

export function refusal(act: () => unknown): string | null {
  try {
    act();
  } catch (error) {
    return codeOf(error);
  }
  return null;
}

export async function refusalOf(act: () => Promise<unknown>): Promise<string | null> {
  try {
    await act();
  } catch (error) {
    return codeOf(error);
  }
  return null;
}
