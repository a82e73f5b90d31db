import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import { accountOf, recipientOf } from "../src/core/recipient";
import { typedTwice } from "../src/core/typed-twice";
import { revokeOf } from "../src/wallet/calls";
import { refusal } from "./refusal";
import { vectors } from "./vectors";

interface Told {
  readonly network: unknown;
  readonly revokes: readonly { readonly spender: Hex; readonly to: Hex; readonly data: Hex; readonly value: string; readonly label: string }[];
  readonly typed: readonly { readonly text: string; readonly to: Hex | null; readonly refused: string | null }[];
}

const told = vectors<Told>("purse");
const network = networkOf(told.network);

describe("a wallet's page", () => {
  it("revokes as the library approves nothing", () => {
    for (const { spender, ...wanted } of told.revokes) {
      const call = revokeOf(network.asset.address as Hex, spender);
      expect({ ...call, value: String(call.value) }).toEqual(wanted);
    }
    expect(told.revokes.map(({ spender }) => spender)).toEqual([network.contracts.JobRegistry, network.contracts.NodeRegistry, network.contracts.Escrow]);
  });

  it.each(told.typed.map((one) => [one.text, one] as const))("takes %s for what the library takes it", (text, { to, refused }) => {
    const taken = (): [Hex | null, string | null] => {
      try {
        return [recipientOf(text, network), null];
      } catch (error) {
        return [null, codeOf(error)];
      }
    };
    expect(taken()).toEqual([to, refused]);
  });

  it("takes an account that is typed twice alone", () => {
    const [one] = told.typed.filter(({ to }) => to !== null);
    const account = one?.to as Hex;
    const other = `${account.slice(0, -1)}${account.endsWith("1") ? "2" : "1"}`;
    const taken = (first: string, second: string): string => {
      try {
        return typedTwice(first, second, network);
      } catch (error) {
        return codeOf(error) ?? "";
      }
    };
    expect(taken(account, ` ${account} `)).toBe(account);
    expect(taken(account, told.typed[1]?.text as string)).toBe(account);
    for (const second of ["", " ", other, account.slice(0, -1), network.contracts.Escrow]) expect(taken(account, second)).toBe("BAD_ADDRESS");
    expect(taken(network.contracts.Escrow, network.contracts.Escrow)).toBe("BAD_ADDRESS");
  });
});

describe("an account that is pasted", () => {
  const whole = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

  it("is read with spaces around it", () => {
    for (const text of [whole, ` ${whole.toLowerCase()}\n`]) expect(accountOf(text)).toBe(whole.toLowerCase());
  });

  it("is refused where a letter was mistyped, where it is no address, and where it is nobody's", () => {
    for (const text of [whole.replace("Fd6", "fd6"), whole.slice(0, -1), `0x${"0".repeat(40)}`, ""]) {
      expect(refusal(() => accountOf(text))).toBe("BAD_ADDRESS");
    }
  });
});
