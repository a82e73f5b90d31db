"""The deployment plan, over a scripted chain that answers as the contracts would: what differs is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, ConfigError, UsageError
from hearth.chain.port import Call
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal, TxState
from hearth.client.session import MAX_FEE
from hearth.market import deploying, deployment
from hearth.market.abi import artifact, codec
from hearth.market.calls import token_call
from hearth.market.contracts import CONTRACTS
from hearth.market.creation import create_address
from hearth.market.deploying import KEYS, SCHEMA, Wish, prepare, record_path, worth_of
from hearth.market.deployment import (
    Created,
    DeploymentPlan,
    Step,
    TxDeployer,
    carry_out,
    constants,
    make_plan,
    read_back,
)
from hearth.market.network import load_network, network_of, save_network
from hearth.market.profiles import DEVNET, PROFILES, PUBLIC
from hearth.protocol import formulas, words
from hearth.protocol.units import Asset
from tests.kit.fake_chain import FakeChain
from tests.kit.scripted import answer_job_ids, answer_word
from tests.kit.world import World

DEPLOYER = "0x" + "de" * 20
TREASURY = "0x" + "77" * 20
NOBODY = "0x" + "00" * 20
COUNCIL = "0x" + "c0" * 20
GUARDIAN = "0x" + "9d" * 20
ETH = Asset("ETH", 18)
TOKEN = Asset("USDX", 6, "0x" + "70" * 20)


def plan_of(asset: Asset = ETH, nonce: int = 5) -> DeploymentPlan:
    worth = Fraction(2_500 if asset.address else 1)
    return make_plan(DEVNET, asset, deployer=DEPLOYER, nonce=nonce, treasury=TREASURY, council=COUNCIL, per_ether=worth)


def runtime(name: str) -> bytes:
    """Cut the runtime code out of the creation code."""
    return artifact(name).runtime


class FakeDeployer:
    """Put a step's code on the scripted chain, with getters that answer from `values`."""

    def __init__(self, chain: FakeChain, plan: DeploymentPlan, values: dict[str, dict[str, Any]] | None = None) -> None:
        self.address = plan.deployer
        self.chain, self.plan = chain, plan
        self.values = values if values is not None else {k: dict(v) for k, v in plan.expected.items()}
        self.done: list[Step] = []
        if plan.asset.address is not None:
            answer_word(chain, plan.asset.address, token_call("decimals"), plan.asset.decimals)

    def deploy(self, step: Step) -> Created:
        self.done.append(step)
        block = self.chain.mine()
        self.chain.set_code(step.address, runtime(step.name) + b"immutables of " + step.name.encode())
        for getter, value in self.values[step.name].items():
            self.chain.on_call(step.address, codec(step.name).selector(getter), self.answer(step.name, getter, value))
        if step.name == "JobRegistry":
            answer_job_ids(self.chain, step.address, self.chain.chain_id())
        return Created(step.address, block.number, keccak(step.code))

    @staticmethod
    def answer(name: str, getter: str, value: Any) -> Callable[..., bytes]:
        outputs = next(e for e in artifact(name).abi if e.get("name") == getter)["outputs"]
        types = [o["type"] for o in outputs]
        data = encode(types, list(value) if isinstance(value, tuple) else [value])
        return lambda call, block: data


@pytest.mark.parametrize("nonce", [0, 1, 127, 128, 255, 256, 65_535, 2**40])
def test_create_address__any_nonce__equals_rlp(nonce: int) -> None:
    import rlp

    expected = keccak(rlp.encode([bytes.fromhex(DEPLOYER[2:]), nonce]))[12:]
    assert create_address(DEPLOYER, nonce) == "0x" + expected.hex()


def test_create_address__a_known_one__is_the_known_one() -> None:
    assert create_address("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", 0).endswith(
        "5fbdb2315678afecb367f032d93f642f64180aa3"
    )


def test_make_plan__arguments__name_each_others_addresses() -> None:
    plan = plan_of()
    assert [step.name for step in plan.steps] == list(CONTRACTS)
    assert [step.address for step in plan.steps] == [create_address(DEPLOYER, 5 + i) for i in range(len(CONTRACTS))]
    registry = next(step for step in plan.steps if step.name == "NodeRegistry")
    tail = registry.code[len(artifact("NodeRegistry").bytecode) :]
    parameters = DEVNET.node_parameters
    assert tail == encode(
        ["address", "address", *["uint256"] * 7, "address"],
        [
            plan.addresses["Escrow"],
            plan.addresses["JobRegistry"],
            parameters.dead_after,
            parameters.ask_notice,
            parameters.unbonding,
            parameters.minimum_stake,
            parameters.fee_reference,
            parameters.liveness_fee,
            parameters.ration_bps,
            plan.addresses["Steward"],
        ],
    )


def test_make_plan__steward__governs_both_and_the_deployer_keeps_nothing() -> None:
    seats = {"deployer": DEPLOYER, "nonce": 5, "treasury": TREASURY, "council": COUNCIL}
    plan = make_plan(PUBLIC, ETH, **seats, guardian=GUARDIAN)  # type: ignore[arg-type]
    steward = plan.addresses["Steward"]
    code = {step.name: step.code for step in plan.steps}
    assert code["Steward"].endswith(
        encode(
            ["address", "address", "address", "address", "uint256"],
            [plan.addresses["NodeRegistry"], plan.addresses["Rules"], COUNCIL, GUARDIAN, 2 * 86_400],
        )
    )
    assert code["Rules"].endswith(encode(["address"], [steward]))
    for name in ("Rules", "NodeRegistry"):
        assert plan.expected[name]["governor"] == steward and plan.expected[name]["offered_governor"] == NOBODY
    told = (plan.expected["Steward"]["council"], plan.expected["Steward"]["guardian"])
    assert told == (COUNCIL, GUARDIAN) == (plan.council, plan.guardian)
    assert plan_of().expected["Steward"]["guardian"] == NOBODY and plan_of().expected["Steward"]["DELAY"] == 5
    # Nothing but creations is signed by the deployer, and none of them names it.
    assert all(bytes.fromhex(DEPLOYER[2:]) not in step.code for step in plan.steps)


def test_make_plan__zero_council__is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(DEVNET, ETH, deployer=DEPLOYER, nonce=0, treasury=TREASURY, council=NOBODY)
    assert caught.value.code == "BAD_COUNCIL" and "--council" in caught.value.hint


@pytest.mark.parametrize("name", CONTRACTS)
def test_make_plan__every_constant_of_every_contract__has_an_expected_value(name: str) -> None:
    assert constants(name) <= set(plan_of().expected[name])
    assert constants("NodeRegistry") >= {"ESCROW", "JOBS", "DEAD_AFTER", "MINIMUM_STAKE"}


def test_make_plan__zero_treasury__is_refused() -> None:
    with pytest.raises(ConfigError):
        make_plan(DEVNET, ETH, deployer=DEPLOYER, nonce=0, treasury="0x" + "00" * 20, council=COUNCIL)


@pytest.mark.parametrize("asset", [ETH, TOKEN])
def test_carry_out__all_as_planned__gives_a_network_file(asset: Asset, tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine(count=3)
    plan = plan_of(asset)
    deployer = FakeDeployer(chain, plan)
    network = carry_out(plan, deployer, chain, name="x", rpc=("http://localhost:1",))
    assert [step.name for step in deployer.done] == list(CONTRACTS)
    assert network.deploy_block == 4 and network.genesis_hash == chain.genesis_hash()
    assert network.asset == asset and network.contracts == plan.addresses
    for name, address in network.contracts.items():
        assert network.code_hashes[name] == keccak(chain.code(address))
    assert network.creations == {step.name: keccak(step.code) for step in plan.steps}
    save_network(network, tmp_path / "x.json")
    assert load_network(tmp_path / "x.json") == network


def test_carry_out__any_value_that_differs__is_refused() -> None:
    plan = plan_of()
    tried = 0
    for name, values in plan.expected.items():
        for getter, value in values.items():
            wrong: Any = (
                value + 1 if isinstance(value, int) else (1, 2, 3, 4, 5) if isinstance(value, tuple) else TREASURY
            )
            if wrong == value:
                wrong = DEPLOYER
            changed = {k: dict(v) for k, v in plan.expected.items()}
            changed[name][getter] = wrong
            chain = FakeChain()
            with pytest.raises(ChainError) as caught:
                carry_out(plan, FakeDeployer(chain, plan, changed), chain, name="x")
            assert caught.value.code == "WRONG_CONTRACTS" and f"{name}.{getter}" in caught.value.message
            tried += 1
    assert tried >= 20


def test_carry_out__another_address__is_refused() -> None:
    chain, plan = FakeChain(), plan_of()
    deployer = FakeDeployer(chain, plan)
    real = deployer.deploy
    deployer.deploy = lambda step: real(step)._replace(address="0x" + "99" * 20)  # type: ignore[method-assign]
    with pytest.raises(ChainError, match="address"):
        carry_out(plan, deployer, chain, name="x")


def test_deploy__receipt_that_names_no_contract__is_no_other_contract(tmp_path: Path) -> None:
    """The address follows from the nonce, and what stands there is read back: it need not be told."""
    chain, account = FakeChain(), Account.from_key(b"\x11" * 32)
    chain.set_balance(account.address, 10**20)
    facts: dict[str, Any] = {"chain_id": chain.chain_id(), "genesis_hash": chain.genesis_hash()}
    journal = TxJournal(tmp_path / "tx.db", address=account.address, **facts)
    sender = Sender(chain, account, journal, SenderConfig(MAX_FEE), sleep=lambda _: chain.mine() and None)
    plan = make_plan(DEVNET, ETH, deployer=account.address, nonce=0, treasury=TREASURY, council=COUNCIL)
    assert TxDeployer(sender, chain).deploy(plan.steps[0]).address == plan.steps[0].address
    journal.close()


@pytest.mark.parametrize("planned", [4, 6])
def test_carry_out__the_nonce_moved__signs_nothing(planned: int, tmp_path: Path) -> None:
    chain = FakeChain()
    account = Account.from_key(b"\x11" * 32)
    chain.set_balance(account.address, 10**18)
    facts: dict[str, Any] = {"chain_id": chain.chain_id(), "genesis_hash": chain.genesis_hash()}
    journal = TxJournal(tmp_path / "tx.db", address=account.address, **facts)
    sender = Sender(chain, account, journal, SenderConfig(MAX_FEE, timeout=2.0, poll=0.05))
    for number in range(5):
        pending = sender.start(Call(TREASURY, b"", 1, "test.pay"), key=f"pay/{number}")
        chain.mine()
        sender.finish(pending)
    plan = make_plan(DEVNET, ETH, deployer=account.address, nonce=planned, treasury=TREASURY, council=COUNCIL)
    with pytest.raises(ChainError) as caught:
        carry_out(plan, TxDeployer(sender, chain), chain, name="x")
    assert caught.value.code == "DEPLOY_NONCE" and "--force" in caught.value.hint and not caught.value.retryable
    assert chain.pending == [] and chain.nonce(account.address, pending=True) == 5
    assert [intent.note for intent in journal.intents(TxState.FAILED)] == ["never signed"]
    journal.close()


def test_carry_out__confirmations__are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, plan = FakeChain(), plan_of()
    deployer = FakeDeployer(chain, plan)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        chain.mine()

    monkeypatch.setattr(deployment.time, "sleep", sleep)
    carry_out(plan, deployer, chain, name="x", confirmations=3)
    assert len(slept) == 3 and chain.head().number == len(CONTRACTS) + 3
    monkeypatch.setattr(deployment, "CONFIRM_SECONDS", 0.0)
    with pytest.raises(ChainError) as caught:
        carry_out(plan, FakeDeployer(chain, plan), chain, name="x", confirmations=1)
    assert caught.value.code == "TX_PENDING"


def test_carry_out__another_account__is_a_mistake() -> None:
    chain, plan = FakeChain(), plan_of()
    deployer = FakeDeployer(chain, plan)
    deployer.address = TREASURY
    with pytest.raises(ValueError, match="is 0xdede"):
        carry_out(plan, deployer, chain, name="x")
    assert deployer.done == []


def test_read_back__other_code__is_refused() -> None:
    chain, plan = FakeChain(), plan_of()
    carry_out(plan, FakeDeployer(chain, plan), chain, name="x")
    good = chain.code(plan.addresses["Lens"])
    for code in (b"", good[:100], b"\x00" + good[1:]):
        chain.set_code(plan.addresses["Lens"], code)
        with pytest.raises(ChainError, match="Lens's code"):
            read_back(plan, chain)


@pytest.mark.parametrize("asset", [TOKEN, ETH, Asset("USDX", 18, TOKEN.address)])
def test_check_asset__token_of_six__is_taken_as_that_alone(asset: Asset) -> None:
    chain = FakeChain()
    assert TOKEN.address is not None
    chain.set_code(TOKEN.address, b"\x00")
    chain.on_call(TOKEN.address, keccak(text="decimals()")[:4], lambda call, block: encode(["uint8"], [6]))
    if asset.decimals == 6 or asset.address is None:
        deploying._check_asset(asset, chain)
        return
    with pytest.raises(ConfigError, match="has 6 decimals, not 18") as caught:
        deploying._check_asset(asset, chain)
    assert (caught.value.code, caught.value.hint) == ("BAD_DECIMALS", "use --decimals 6")


@pytest.mark.parametrize("decimals", [0, 6, 17, 19])
def test_check_asset__a_coin_of_other_decimals_than_coins_have__is_refused(decimals: int) -> None:
    with pytest.raises(ConfigError, match=f"has 18 decimals, not {decimals}") as caught:
        deploying._check_asset(Asset("COIN", decimals), FakeChain())
    assert (caught.value.code, caught.value.hint) == ("BAD_DECIMALS", "use --decimals 18")


def test_check_asset__no_contract_or_no_decimals__names_the_flag() -> None:
    chain = FakeChain()
    assert TOKEN.address is not None
    chain.on_call(TOKEN.address, keccak(text="decimals()")[:4], lambda call, block: b"")
    for code, why in ((b"", "is no contract on this chain"), (b"\x00", "is no ERC-20")):
        chain.set_code(TOKEN.address, code)
        with pytest.raises(UsageError, match=f"--token {TOKEN.address} {why}") as caught:
            deploying._check_asset(TOKEN, chain)
        assert caught.value.code == "BAD_ADDRESS" and "--token ADDRESS" in caught.value.hint


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("decimals", "per_ether"),
    [(6, "2500"), (6, "2718.28"), (6, "80"), (8, "1"), (8, "0.8"), (18, "1"), (18, "2500"), (18, "0.0001"), (23, "1")],
)
def test_for_asset__by_value__is_taken_by_the_contracts(profile: Any, decimals: int, per_ether: str) -> None:
    worth = Fraction(per_ether)
    scaled = profile.for_asset(Asset("USDX", decimals), worth)
    assert words.unpack_policy(words.pack_policy(scaled.policy)) == scaled.policy
    parameters = scaled.node_parameters
    assert parameters.minimum_stake == int(10**decimals * worth)
    exact = profile.policy.probation_price * worth * Fraction(10**decimals, 10**18)
    assert exact * 99 // 100 <= scaled.policy.probation_price <= exact
    # The bounds in the contracts' code, on them.
    world = World(policy=scaled.policy, parameters=parameters)
    assert world.rules.call.policies()[0] == words.pack_policy(scaled.policy)
    policy = scaled.policy
    assert min(policy.min_keeper_fee // 8, policy.min_price * policy.fee_bps // 10_000) >= 1
    least = world.terms(keeper_fee=policy.min_keeper_fee, max_seconds=1, ceiling=1)
    assert formulas.slash_of(least) // 4 >= 1
    assert 1 <= parameters.liveness_fee <= parameters.minimum_stake


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("decimals", "per_ether", "what"),
    [
        (6, "1", "an eighth of min_keeper_fee would be nothing"),
        (6, "79.99", "an eighth of min_keeper_fee would be nothing"),
        (2, "2500", "an eighth of min_keeper_fee would be nothing, the fee on min_price would be nothing"),
        (0, "10", "fee_reference would be nothing, liveness_fee would be nothing"),
        (25, "1", "half of minimum_stake would be too large"),
        (36, "1", "min_keeper_fee would be too large"),
    ],
)
def test_for_asset__share_that_is_nothing_or_too_large__is_refused_before_anything_is_sent(
    profile: Any, decimals: int, per_ether: str, what: str, tmp_path: Path
) -> None:
    asset = Asset("USDX", decimals)
    with pytest.raises(ConfigError) as caught:
        profile.for_asset(asset, Fraction(per_ether))
    assert caught.value.code == "UNFIT_AMOUNTS" and what in caught.value.message
    wish = Wish("x", profile, asset, TREASURY, COUNCIL, per_ether=Fraction(per_ether))
    chain = FakeChain()
    with pytest.raises(ConfigError) as caught:
        prepare(wish, chain, DEPLOYER, tmp_path / "x.json", SenderConfig(MAX_FEE))
    assert caught.value.code == "UNFIT_AMOUNTS" and chain.sent == [] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", [None, "", "0", "0.0", "-1", "1e3", "1/3", "nan", "2,500", "1" * 13])
def test_worth_of__no_amount__is_refused(text: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        worth_of(text, TOKEN)
    assert caught.value.code == "BAD_AMOUNT" and "--per-ether 2500" in (caught.value.hint or "")


def test_worth_of__amount__is_exact_and_one_for_the_native_coin() -> None:
    assert worth_of("2718.28", TOKEN) == Fraction("2718.28")
    assert (worth_of(None, ETH), worth_of("4000", ETH)) == (1, 4_000)


def test_network_of__bad_files__say_what_is_wrong(tmp_path: Path) -> None:
    chain, plan = FakeChain(), plan_of()
    good = carry_out(plan, FakeDeployer(chain, plan), chain, name="x").as_dict()
    bad: list[tuple[dict[str, Any], str]] = [
        ({k: v for k, v in good.items() if k != "contracts"}, "BAD_NETWORK"),
        ({**good, "contracts": {**good["contracts"], "Lens": "0x12"}}, "BAD_NETWORK"),
        ({**good, "contracts": {**good["contracts"], "Lens": "0x" + "00" * 20}}, "BAD_NETWORK"),
        ({**good, "genesis_hash": "0x12"}, "BAD_NETWORK"),
        ({**good, "node_parameters": {"dead_after": 1}}, "BAD_NETWORK"),
        ({**good, "asset": {**good["asset"], "decimals": 21}}, "BAD_NETWORK"),
        *(({**good, name: str(2**256)}, "BAD_NETWORK") for name in ("chain_id", "deployed_chain_id")),
        ({**good, "protocol_version": 2}, "WRONG_VERSION"),
    ]
    for raw, code in bad:
        with pytest.raises(ConfigError) as caught:
            network_of(raw)
        assert caught.value.code == code and caught.value.hint
    with pytest.raises(ConfigError) as caught:
        load_network(tmp_path / "none.json")
    assert caught.value.code == "NO_NETWORK"
    odd = [
        *(
            {**good, name: value}
            for name in ("chain_id", "deployed_chain_id", "deploy_block")
            for value in (float("inf"), 10**400, -5)
        ),
        {**good, "name": "\ud800"},
        {**good, "asset": {**good["asset"], "decimals": float("inf")}},
    ]
    for text in ("{", "[" * 100_000, "\xff", *map(json.dumps, odd)):
        (tmp_path / "odd.json").write_text(text, encoding="latin-1")
        with pytest.raises(ConfigError) as caught:
            load_network(tmp_path / "odd.json")
        assert caught.value.code == "BAD_NETWORK"


@pytest.mark.parametrize(
    "changes",
    [
        *({"nonce": value} for value in (-1, 2**64, 10**400, True, None)),
        *({"since": value} for value in (-5, 10**400, float("inf"))),
        *({"deployer": value} for value in (5, "0x12", None, "\ud800")),
        "[" * 100_000,
    ],
)
def test_prepare__record_out_of_bounds__is_refused(tmp_path: Path, changes: Any) -> None:
    wish = Wish("x", PUBLIC, ETH, TREASURY, COUNCIL)
    path = tmp_path / "x.json"
    good = {
        **dict.fromkeys(KEYS, "0x"),
        "schema": SCHEMA,
        "nonce": 0,
        "since": 0,
        "deployer": DEPLOYER,
        "settings": wish.settings(),
    }
    record_path(path).write_text(changes if isinstance(changes, str) else json.dumps({**good, **changes}))
    for wished in (wish, Wish("x", DEVNET, ETH, TREASURY, COUNCIL)):
        with pytest.raises(ConfigError) as caught:
            prepare(wished, FakeChain(), DEPLOYER, path, SenderConfig(MAX_FEE))
        assert caught.value.code == "DEPLOY_UNFINISHED" and caught.value.message.encode()


def test_call__creation__has_no_target() -> None:
    assert Call(None, plan_of().steps[0].code).to is None
