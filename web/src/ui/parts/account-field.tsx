// An account that somebody types or pastes: its whole address, and none that nobody has.

import { ZERO_ADDRESS } from "../../generated/bounds";
import type { Hex } from "../../core/bytes";
import { HearthError } from "../../core/errors";

interface Props {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly change: (value: string) => void;
}

export function AccountField({ id, label, value, change }: Props) {
  return (
    <p>
      <label for={id}>{label}</label>{" "}
      <input type="text" id={id} class="mono" autocomplete="off" spellcheck={false} placeholder="0x…" value={value} onInput={(event) => change(event.currentTarget.value)} />
    </p>
  );
}

// Read an address. Throws BAD_ADDRESS.
export function accountOf(text: string): Hex {
  const found = text.trim();
  if (/^0x[0-9a-fA-F]{40}$/.test(found) && found !== ZERO_ADDRESS) return found.toLowerCase() as Hex;
  throw new HearthError("BAD_ADDRESS", "an account is 0x and 40 hex digits, and not all zero", "copy the whole address");
}
