"""What a transaction says of the contract that it created, and what a network file may say of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from eth_utils.crypto import keccak

from hearth.chain.port import Transaction
from hearth.market.contracts import CONTRACTS
from hearth.market.creation import creation_fault
from hearth.market.deployment import carry_out
from tests.kit.fake_chain import FakeChain
from tests.market.test_deployment import TREASURY, FakeDeployer, plan_of

PLAN = plan_of()
CHAIN = FakeChain()
NETWORK = carry_out(PLAN, FakeDeployer(CHAIN, PLAN), CHAIN, name="x")
STEPS = {step.name: step for step in PLAN.steps}


def creating(name: str, **changes: Any) -> Transaction:
    step = STEPS[name]
    values: dict[str, Any] = {
        "hash": keccak(step.code),
        "sender": PLAN.deployer,
        "to": None,
        "nonce": step.nonce,
        "value": 0,
        "data": step.code,
        "gas": 1,
        "max_fee": 1,
        "priority_fee": 1,
        "block_number": NETWORK.deploy_block,
        "block_hash": bytes(32),
    }
    return Transaction(**{**values, **changes})


@pytest.mark.parametrize("name", CONTRACTS)
def test_creation_fault__transaction_of_the_plan__none(name: str) -> None:
    assert creation_fault(name, creating(name), NETWORK) is None


@pytest.mark.parametrize("name", CONTRACTS)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"to": TREASURY}, "not created by the transaction"),
        ({"nonce": 99}, "not created by the transaction"),
        ({"sender": TREASURY}, "not created by the transaction"),
        ({"block_number": None}, "from which events are read"),
        ({"block_number": NETWORK.deploy_block - 1}, "from which events are read"),
    ],
)
def test_creation_fault__another_transaction__is_said(name: str, changes: dict[str, Any], said: str) -> None:
    assert said in str(creation_fault(name, creating(name, **changes), NETWORK))


@pytest.mark.parametrize("name", CONTRACTS)
def test_creation_fault__other_code_or_arguments__is_said(name: str) -> None:
    code = STEPS[name].code
    other = bytes([code[0] ^ 1]) + code[1:]
    assert "by other code" in str(creation_fault(name, creating(name, data=other), NETWORK))
    for data in (code + b"\0", code[:-1]):
        assert "cannot be read" in str(creation_fault(name, creating(name, data=data), NETWORK))
    assert creation_fault(name, creating(name, data=b""), NETWORK) is not None


@pytest.mark.parametrize("name", CONTRACTS)
def test_creation_fault__each_argument_of_each_contract__is_compared_or_the_deployers(name: str) -> None:
    """A bit of each word: what no file names (seats, treasury, delay) may differ, and nothing else."""
    from hearth.market.abi import artifact, codec
    from hearth.market.creation import OPEN_ARGUMENTS

    size, code = len(artifact(name).bytecode), STEPS[name].code
    for at, parameter in enumerate(codec(name).constructor_parameters()):
        changed = bytearray(code)
        changed[size + 32 * at + 31] ^= 1
        fault = creation_fault(name, creating(name, data=bytes(changed)), NETWORK)
        if parameter.strip("_") in OPEN_ARGUMENTS:
            assert fault is None
        else:
            assert fault is not None and f"was created with {parameter.strip('_')} " in fault


def test_creation_fault__events_before_the_files_first_block__are_hidden_by_no_file() -> None:
    late = replace(NETWORK, deploy_block=NETWORK.deploy_block + 1)
    assert creation_fault("Escrow", creating("Escrow"), late) is not None
