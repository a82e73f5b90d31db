import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import { recipientOf } from "../src/core/recipient";
import { typedTwice } from "../src/core/twice";
import { revokeCall } from "../src/wallet/revoke";
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
      const call = revokeCall(network.asset.address as Hex, spender);
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
