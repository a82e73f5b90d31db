"""Run contracts in this process: compile with Vyper, execute on revm, decode by the ABI.

`Evm` is one chain with accounts, a clock and deployed contracts. A call from an account is a whole transaction: it
either succeeds and returns a `Receipt`, or leaves the state as it was and raises `Reverted`. Gas costs nothing here,
so balances move by `value` alone, and each transaction gets a block of its own at the time `Evm.now`.

revm keeps every transaction of one `Evm` in one journal: storage that an earlier call touched stays warm and keeps its
old "original" value, so gas figures come out too low, while results are those of a chain. `Evm(exact_gas=True)`
rebuilds the machine from its own state before each transaction, and then gas is that of a receipt on a chain:
intrinsic gas, calldata and capped refunds included. Only such a machine answers `Receipt.gas_used`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyrevm
import pytest
from eth_abi import decode, encode
from eth_hash.auto import keccak
from eth_utils import to_checksum_address as _to_checksum_address
from vyper.compiler.input_bundle import BUILTIN, FileInput, FilesystemInputBundle
from vyper.compiler.output import build_abi_output
from vyper.compiler.phases import CompilerData
from vyper.compiler.settings import OptimizationLevel, Settings

from hearth.protocol import reasons

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = ROOT / "contracts"
ARTIFACTS = ROOT / "hearth" / "market" / "artifacts"
CACHE = ROOT / ".build" / "evm"
COMPILER = "vyper 0.4.3 -O gas"

CHAIN_ID = 31337
SPEC = "CANCUN"
# Unix seconds at which every chain starts; a round number reads well in failures.
START = 1_800_000_000
# Gas that a transaction may use unless it says so, and the limit of each block.
BLOCK_GAS = 30_000_000
# Wei that each named account starts with.
FUNDS = 10**24
NATIVE = "0x" + "00" * 20

# Zero bytes that revm appends to analysed code.
_PADDING = 33

_REFUSED = keccak(b"Refused(uint256)")[:4]
_ERROR = keccak(b"Error(string)")[:4]
_PANIC = keccak(b"Panic(uint256)")[:4]
_REVERT = re.compile(r"^Revert \{ gas_used: (\d+), output: 0x([0-9a-f]*) \}$")
_HALT = re.compile(r"^Halt \{ reason: (.+), gas_used: (\d+) \}$")
_ACCOUNT = re.compile(
    r"(0x[0-9a-f]{40}): Account \{ info: AccountInfo \{ balance: (\d+), nonce: (\d+), code_hash: (0x[0-9a-f]{64}), "
    r".*?storage: \{(.*?)\}, status: AccountStatus\("
)
_SLOT = re.compile(r"(\d+): StorageSlot \{ previous_or_original_value: \d+, present_value: (\d+) \}")


# Decoded results name the same few addresses over and over.
to_checksum_address = lru_cache(maxsize=4096)(_to_checksum_address)


# ------------------------------------------------------------------------------------------------ compiling


@dataclass(frozen=True)
class Artifact:
    """One compiled contract: ABI, creation bytecode, and bytes of runtime code (immutables not counted)."""

    name: str
    abi: list[dict[str, Any]]
    bytecode: bytes
    runtime_size: int

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """Return the functions by name, overloads together."""
        found: dict[str, list[Function]] = {}
        for entry in self.abi:
            if entry["type"] == "function":
                found.setdefault(entry["name"], []).append(Function(entry))
        return found

    @cached_property
    def events(self) -> dict[bytes, Event]:
        """Return the events by their first topic."""
        found = [Event(entry) for entry in self.abi if entry["type"] == "event"]
        return {event.topic: event for event in found}


# What stands in the place of a source's own code, by its path: `tools.mutate` plants mutants here.
PLANTED: dict[Path, Artifact] = {}


def compile_contract(name: str) -> Artifact:
    """Compile contracts/`name`.vy (or .vyi, which gives an ABI and no code); the cache lies in .build/evm.

    Where the committed artifact was made of these very sources by this compiler, that is taken: what is deployed is
    what is tested. `make check` builds it anew and compares (`tools.build_artifacts --check`).

    `name` may be a path below contracts ("mocks/Token") or a whole source text, which is told by its line ends.
    """
    if "\n" in name:
        return _compile("Inline", None, name)
    for path in (CONTRACTS / f"{name}.vy", CONTRACTS / f"{name}.vyi"):
        if path in PLANTED:
            return PLANTED[path]
        if path.is_file():
            return _compile(path.stem, path, path.read_text(encoding="utf-8"))
    raise FileNotFoundError(f"no contract {name} below {CONTRACTS}")


def _below_root(path: Path) -> str:
    """Name a source by its place in the project, so that a copy of the project looks at its own file."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _committed(path: Path, text: str) -> Artifact | None:
    """Return the artifact in hearth/market/artifacts if its sources are those on disk, and this text among them."""
    stored = ARTIFACTS / f"{path.stem}.json"
    if path.suffix != ".vy" or path.parent != CONTRACTS or not stored.is_file():
        return None
    found = json.loads(stored.read_text(encoding="utf-8"))
    sources = {p: (ROOT / p).read_bytes() for p in found["sources"] if (ROOT / p).is_file()}
    sources[_below_root(path)] = text.encode()
    if f"vyper {found['compiler']} -O {found['optimise']}" != COMPILER:
        return None
    if {p: _digest(content) for p, content in sources.items()} != found["sources"]:
        return None
    return Artifact(path.stem, found["abi"], bytes.fromhex(found["bytecode"][2:]), found["runtime_size"])


# Kept per text, so a test that plants a bug in a source sees the change; the files that it imports are read once.
@cache
def _compile(name: str, path: Path | None, text: str) -> Artifact:
    if path and (committed := _committed(path, text)):
        return committed
    key = _digest(f"{COMPILER}\0{path.relative_to(CONTRACTS) if path else ''}\0{text}".encode())
    stored = CACHE / f"{name}-{key[:32]}.json"
    if stored.is_file():
        found = json.loads(stored.read_text(encoding="utf-8"))
        if all((ROOT / p).is_file() and _digest((ROOT / p).read_bytes()) == h for p, h in found["sources"].items()):
            return Artifact(name, found["abi"], bytes.fromhex(found["bytecode"]), found["runtime_size"])
    # Lowest precedence first, as the compiler's own command line orders them.
    bundle = FilesystemInputBundle([Path(entry) for entry in reversed(sys.path) if entry] + [CONTRACTS])
    where = path or Path(f"{name}.vy")
    data = CompilerData(
        FileInput(source_id=-1, path=where, resolved_path=where, contents=text),
        bundle,
        Settings(optimize=OptimizationLevel.GAS),
    )
    interface = where.suffix == ".vyi"
    artifact = Artifact(
        name,
        build_abi_output(data),
        b"" if interface else data.bytecode,
        0 if interface else len(data.bytecode_runtime),
    )
    imported = {
        Path(item.resolved_path) for item in data.resolved_imports.compiler_inputs if item.source_id != BUILTIN
    } - {where}
    CACHE.mkdir(parents=True, exist_ok=True)
    entry = {
        "sources": {_below_root(p): _digest(p.read_bytes()) for p in sorted(imported)},
        "abi": artifact.abi,
        "bytecode": artifact.bytecode.hex(),
        "runtime_size": artifact.runtime_size,
    }
    # Other workers may read at the same moment: a file appears whole or not at all.
    with tempfile.NamedTemporaryFile("w", dir=CACHE, delete=False, encoding="utf-8") as file:
        json.dump(entry, file)
    os.replace(file.name, stored)
    return artifact


# ------------------------------------------------------------------------------------------------ results


class Reverted(Exception):
    """A transaction or a call failed and changed nothing.

    `reason` is the text of `Refused(uint256)` or `Error(string)`, "" for an empty revert (Vyper's checked arithmetic
    and clamps), "panic: n", "halt: ..." when the machine itself stopped (out of gas), else the raw bytes in hex.
    `data` holds the raw bytes, `gas_used` the gas, warm as described above.
    """

    def __init__(self, reason: str, data: bytes, gas_used: int) -> None:
        super().__init__(reason or "(no reason)")
        self.reason = reason
        self.data = data
        self.gas_used = gas_used


class Log(NamedTuple):
    """One decoded event; `args` holds indexed and other fields by name."""

    name: str
    args: dict[str, Any]
    address: str


@dataclass(frozen=True)
class Receipt:
    """What a transaction returned, logged and cost."""

    value: Any
    logs: tuple[Log, ...]
    warm_gas: int
    exact: bool = field(repr=False)

    @property
    def gas_used(self) -> int:
        """Return the gas of a receipt on a chain; raises on a machine without `exact_gas`."""
        if not self.exact:
            raise RuntimeError("gas is warm here; build Evm(exact_gas=True) to measure it")
        return self.warm_gas

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the fields of every event called `name`, in order."""
        return [log.args for log in self.logs if log.name == name]

    def event(self, name: str) -> dict[str, Any]:
        """Return the fields of the only event called `name`."""
        found = self.events(name)
        assert len(found) == 1, f"{len(found)} {name} events among {[log.name for log in self.logs]}"
        return found[0]


@contextmanager
def reverts(reason: str) -> Iterator[pytest.ExceptionInfo[Reverted]]:
    """Demand that the block reverts with exactly this reason."""
    with pytest.raises(Reverted) as caught:
        yield caught
    assert caught.value.reason == reason, f"reverted with {caught.value.reason!r}, not {reason!r}"


def _failure(error: RuntimeError) -> Reverted:
    """Read revm's error text; anything that is not the contract's own failure is raised as it came."""
    text = str(error)
    halt = _HALT.match(text)
    if halt:
        return Reverted(f"halt: {halt[1]}", b"", int(halt[2]))
    revert = _REVERT.match(text)
    if not revert:
        raise error
    data = bytes.fromhex(revert[2])
    return Reverted(reason_in(data), data, int(revert[1]))


def reason_in(data: bytes) -> str:
    """Return what a revert's data say, as `Reverted` describes it. Data that are longer than they should be are raw."""
    if data[:4] == _REFUSED and len(data) == 36:
        return reasons.text_of(decode(["uint256"], data[4:])[0])
    if data[:4] == _ERROR:
        return str(decode(["string"], data[4:])[0])
    if data[:4] == _PANIC:
        return f"panic: {decode(['uint256'], data[4:])[0]}"
    return "0x" + data.hex() if data else ""


# ------------------------------------------------------------------------------------------------ ABI


def _type(item: Mapping[str, Any]) -> str:
    kind = str(item["type"])
    if kind.startswith("tuple"):
        return "(" + ",".join(_type(part) for part in item["components"]) + ")" + kind[len("tuple") :]
    return kind


@cache
def _record(names: tuple[str, ...]) -> Callable[..., Any]:
    return namedtuple("Struct", names, rename=True)  # type: ignore[misc]


def _plain(value: Any) -> Any:
    """Make a Python value fit for eth_abi: contracts become their addresses."""
    if isinstance(value, Contract):
        return value.address
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    return value


def _nice(item: Mapping[str, Any], value: Any) -> Any:
    """Make a decoded value fit for asserts: checksummed addresses, lists, structs with field names."""
    kind = str(item["type"])
    if kind.endswith("]"):
        inner = {**item, "type": kind[: kind.rindex("[")]}
        return [_nice(inner, part) for part in value]
    if kind == "tuple":
        parts = item["components"]
        make = _record(tuple(str(part["name"]) for part in parts))
        return make(*(_nice(part, v) for part, v in zip(parts, value, strict=True)))
    return to_checksum_address(value) if kind == "address" else value


# Calldata and answers of views that are kept, per process and per function.
_KEPT = 2**14


@lru_cache(maxsize=_KEPT)
def _encode_once(takes: tuple[str, ...], args: tuple[Any, ...], told: str) -> bytes:
    return encode(takes, args)


def _encode_again(takes: tuple[str, ...], args: tuple[Any, ...]) -> bytes:
    """Encode arguments that came before. Their text is part of the key: True and 1 are equal, and not the same."""
    return _encode_once(takes, args, repr(args))


class Function:
    """One ABI entry: how to encode its arguments and decode its answer."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.entry = entry
        self.name = str(entry["name"])
        self.takes = tuple(_type(item) for item in entry["inputs"])
        self.gives = tuple(_type(item) for item in entry["outputs"])
        self.signature = f"{self.name}({','.join(self.takes)})"
        self.selector = keccak(self.signature.encode())[:4]
        self.is_view = entry["stateMutability"] in ("view", "pure")
        # Invariants ask the same views with the same arguments after every step, and mostly get the same answers:
        # to encode and decode them anew takes many times what revm takes. Lists could be changed by who gets them.
        if self.is_view and not any("[" in kind for kind in self.gives):
            self.decode = lru_cache(maxsize=_KEPT)(self.decode)

    def encode(self, args: Sequence[Any]) -> bytes:
        """Return the calldata."""
        to_bytes = _encode_again if self.is_view else encode
        return self.selector + to_bytes(self.takes, _plain(args))

    def decode(self, data: bytes) -> Any:
        """Return nothing, the one value, or a tuple of values."""
        if not self.gives:
            return None
        values = decode(self.gives, data)
        nice = tuple(_nice(item, value) for item, value in zip(self.entry["outputs"], values, strict=True))
        return nice[0] if len(nice) == 1 else nice


class Event:
    """One ABI entry of an event: how to decode a log of it."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.name = str(entry["name"])
        self.order = [str(item["name"]) for item in entry["inputs"]]
        self.indexed = [item for item in entry["inputs"] if item["indexed"]]
        self.others = [item for item in entry["inputs"] if not item["indexed"]]
        self.types = [_type(item) for item in self.others]
        signature = f"{self.name}({','.join(_type(item) for item in entry['inputs'])})"
        self.topic = keccak(signature.encode())

    def decode(self, topics: Sequence[bytes], data: bytes) -> dict[str, Any]:
        """Return the fields by name, in the order of the declaration."""
        args: dict[str, Any] = {}
        for item, topic in zip(self.indexed, topics[1:], strict=True):
            args[item["name"]] = _nice(item, decode([_type(item)], topic)[0])
        for item, value in zip(self.others, decode(self.types, data), strict=True):
            args[item["name"]] = _nice(item, value)
        return {name: args[name] for name in self.order}


class _Calls:
    """Turn attribute access into a call of the contract's function of that name."""

    def __init__(self, contract: Contract, send: bool) -> None:
        self._contract = contract
        self._send = send

    def __getattr__(self, name: str) -> Callable[..., Any]:
        contract = self._contract
        overloads = contract.functions(name)

        def invoke(*args: Any, **options: Any) -> Any:
            function = next((f for f in overloads if len(f.takes) == len(args)), None)
            if function is None:
                takes = " or ".join(f.signature for f in overloads)
                raise TypeError(f"{contract.name}.{name} was given {len(args)} arguments; it is {takes}")
            run = contract.evm.transact if self._send else contract.evm.simulate
            return run(contract, function, args, **options)

        return invoke


class Contract:
    """A deployed contract: `c.send.fn(*args, sender=, value=, gas=)` transacts, `c.call.fn(*args, ...)` only asks."""

    def __init__(self, evm: Evm, artifact: Artifact, address: str, deploy_gas: int = 0) -> None:
        self.evm = evm
        self.artifact = artifact
        self.name = artifact.name
        self.address = address
        self.deploy_gas = deploy_gas
        self.send = _Calls(self, send=True)
        self.call = _Calls(self, send=False)

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    def all_functions(self) -> list[Function]:
        """Return every function of the ABI, overloads apart."""
        return [function for same in self.artifact.functions.values() for function in same]

    def functions(self, name: str) -> list[Function]:
        """Return the function called `name`, once per number of arguments that it takes."""
        if name not in self.artifact.functions:
            raise AttributeError(f"{self.name} has no function {name}")
        return self.artifact.functions[name]

    def function(self, name: str) -> Function:
        """Return the function called `name` that takes the most arguments."""
        return max(self.functions(name), key=lambda function: len(function.takes))

    def encode(self, name: str, *args: Any) -> bytes:
        """Return the calldata of a call, for `Evm.raw_call` and for contracts that forward calls."""
        return self.function(name).encode(args)


# ------------------------------------------------------------------------------------------------ the machine


class Evm:
    """One chain in memory. Amounts are wei, times Unix seconds, gas as in the module's docstring."""

    def __init__(self, *, exact_gas: bool = False, now: int = START) -> None:
        self.exact_gas = exact_gas
        self.now = now
        self.block = 1
        self.chain_id = CHAIN_ID
        self._machine = self._fresh_machine()
        # State below the machine's journal: slots by account, as they were when the journal last ended.
        self._settled: dict[str, dict[int, int]] = {}
        # Where that journal began, if the machine below it is this block's own to change.
        self._ground: Any = None
        self._contracts: dict[str, Contract] = {}
        self._events: dict[bytes, Event] = {}
        self._names: dict[str, str] = {}
        self.deployer = self.account("deployer")

    # accounts

    def account(self, name: str) -> str:
        """Return the address that belongs to a name, the same in every run; funded when first asked for."""
        address = to_checksum_address(keccak(b"hearth test account " + name.encode())[12:])
        if address not in self._names:
            self._names[address] = name
            self.set_balance(address, FUNDS)
        return address

    def balance(self, who: str | Contract) -> int:
        """Return the native balance in wei."""
        return int(self._machine.get_balance(_plain(who)))

    def set_balance(self, who: str | Contract, amount: int) -> None:
        """Set the native balance in wei, as a block reward or a self-destruct would: no code of `who` runs."""
        self._machine.set_balance(_plain(who), amount)

    def code_at(self, who: str | Contract) -> bytes:
        """Return the runtime code."""
        address = _plain(who)
        code, wanted = bytes(self._machine.get_code(address) or b""), self._machine.basic(address).code_hash
        # revm pads code that it has run with zeros; the account's hash tells code from padding.
        return code if keccak(code) == wanted else code[:-_PADDING]

    def storage_at(self, who: str | Contract, slot: int) -> int:
        """Return one storage word."""
        return int(self._machine.storage(_plain(who), slot))

    def put_storage(self, who: str | Contract, slot: int, word: int) -> None:
        """Let one storage word be another, as no call would."""
        self.settle()
        address = _plain(who)
        self._settled.setdefault(address, {})[slot] = word
        point = self._machine.snapshot()
        self._machine.insert_account_storage(address, slot, word)
        self._machine.revert(point)
        self._ground = self._machine.snapshot()

    def create_address(self, deployer: str, ahead: int = 0) -> str:
        """Predict the address of the deployment that follows `ahead` more by `deployer`.

        Only deployments move a nonce here; transactions do not.
        """
        nonce = int(self._machine.basic(deployer).nonce) + ahead
        item = b"" if nonce == 0 else nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
        encoded = item if nonce and nonce < 0x80 else bytes([0x80 + len(item)]) + item
        body = b"\x94" + bytes.fromhex(deployer[2:]) + encoded
        return to_checksum_address(keccak(bytes([0xC0 + len(body)]) + body)[12:])

    # time

    def warp(self, seconds: int) -> None:
        """Let time pass; the next transaction sees it."""
        assert seconds >= 0, "time does not run backwards"
        self.now += seconds

    def at(self, timestamp: int) -> None:
        """Set the time of the next transaction; it may not lie before the present one."""
        self.warp(timestamp - self.now)

    # contracts

    def deploy(self, name: str, *args: Any, sender: str | None = None, value: int = 0) -> Contract:
        """Compile and deploy contracts/`name`.vy, or a source text, with constructor arguments."""
        artifact = compile_contract(name)
        inputs = next((entry["inputs"] for entry in artifact.abi if entry["type"] == "constructor"), [])
        if len(inputs) != len(args):
            raise TypeError(f"{artifact.name} takes {len(inputs)} constructor arguments, {len(args)} were given")
        code = artifact.bytecode + encode([_type(item) for item in inputs], _plain(args))
        address, gas = self._create(code, sender or self.deployer, value)
        return self._bind(artifact, address, gas)

    def deploy_code(self, code: bytes, *, sender: str | None = None, value: int = 0) -> str:
        """Deploy raw creation code and return its address."""
        return self._create(code, sender or self.deployer, value)[0]

    def contract_at(self, name: str, address: str) -> Contract:
        """Look at a deployed address through the ABI of contracts/`name`."""
        return self._bind(compile_contract(name), to_checksum_address(address), 0)

    def _bind(self, artifact: Artifact, address: str, gas: int) -> Contract:
        contract = Contract(self, artifact, address, gas)
        self._contracts[address] = contract
        self._events.update(artifact.events)
        return contract

    # running

    def transact(
        self,
        contract: Contract,
        function: Function,
        args: Sequence[Any],
        *,
        sender: str | None = None,
        value: int = 0,
        gas: int = BLOCK_GAS,
    ) -> Receipt:
        """Send one transaction; `Contract.send` is its short form."""
        data = self.raw_call(contract, function.encode(args), sender=sender, value=value, gas=gas)
        result = self._machine.result
        logs = tuple(self._decode_log(log) for log in result.logs)
        return Receipt(function.decode(data), logs, int(result.gas_used), self.exact_gas)

    def simulate(
        self,
        contract: Contract,
        function: Function,
        args: Sequence[Any],
        *,
        sender: str | None = None,
        value: int = 0,
        gas: int = BLOCK_GAS,
        at: int | None = None,
    ) -> Any:
        """Return what a call would answer, now or `at` another time; nothing is kept. `Contract.call` in short."""
        if function.is_view and at is None:
            # A static call keeps nothing anyway.
            return function.decode(self._run(contract.address, function.encode(args), sender, value, gas, static=True))
        with self.isolated():
            self.now = self.now if at is None else at
            data = self._run(contract.address, function.encode(args), sender, value, gas, static=function.is_view)
        return function.decode(data)

    def raw_call(
        self, to: str | Contract, data: bytes = b"", *, sender: str | None = None, value: int = 0, gas: int = BLOCK_GAS
    ) -> bytes:
        """Send one transaction with raw calldata and return the raw answer."""
        if self.exact_gas:
            self.settle()
        self.block += 1
        return self._run(_plain(to), data, sender, value, gas, static=False)

    def _run(self, to: str, data: bytes, sender: str | None, value: int, gas: int, *, static: bool) -> bytes:
        self._open_block()
        try:
            answer = self._machine.message_call(
                sender or self.deployer, to, data, value=value, gas=gas, is_static=static
            )
        except RuntimeError as error:
            raise _failure(error) from None
        return bytes(answer)

    def _create(self, code: bytes, sender: str, value: int) -> tuple[str, int]:
        if self.exact_gas:
            self.settle()
        self.block += 1
        self._open_block()
        try:
            address = self._machine.deploy(sender, code, value=value, gas=BLOCK_GAS)
        except RuntimeError as error:
            raise _failure(error) from None
        return to_checksum_address(address), int(self._machine.result.gas_used)

    def _open_block(self) -> None:
        self._machine.set_block_env(
            pyrevm.BlockEnv(number=self.block, timestamp=self.now, basefee=0, gas_limit=BLOCK_GAS)
        )
        self._machine.reset_transient_storage()

    def _decode_log(self, log: Any) -> Log:
        address = to_checksum_address(log.address)
        topics, data = log.data
        raw = [bytes(topic) for topic in topics]
        event = self._events.get(raw[0]) if raw else None
        if event is None:
            return Log("(unknown)", {"topics": raw, "data": bytes(data)}, address)
        return Log(event.name, event.decode(raw, bytes(data)), address)

    @property
    def last_gas(self) -> int:
        """Return the gas of the last call that succeeded, warm unless the machine is exact."""
        return int(self._machine.result.gas_used)

    @property
    def last_logs(self) -> tuple[Log, ...]:
        """Return what the last transaction that succeeded logged, a deployment's too."""
        return tuple(self._decode_log(log) for log in self._machine.result.logs)

    # state

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Undo, at the end of the block, all that happened in it: state, time, block number, contracts."""
        machine, settled, ground = self._machine, self._settled, self._ground
        saved = (self.now, self.block, dict(self._contracts), dict(self._names))
        point = machine.snapshot()
        self._ground = None
        try:
            yield
        finally:
            machine.revert(point)
            self._machine, self._settled, self._ground = machine, settled, ground
            self.now, self.block, self._contracts, self._names = saved

    def state(self) -> dict[str, tuple[int, int, str, dict[int, int]]]:
        """Return every account that is not empty: nonce, balance in wei, code hash, non-zero storage words."""
        found = {}
        for address, info in self._journal().items():
            balance, nonce, code_hash, slots = info
            words = {slot: word for slot, word in sorted(slots.items()) if word}
            if balance or nonce or words:
                found[address] = (nonce, balance, code_hash, words)
        return dict(sorted(found.items()))

    def state_hash(self) -> str:
        """Return a digest of `state`: equal before and after a call means that the call changed nothing."""
        return _digest(repr(self.state()).encode())

    def _journal(self) -> dict[str, tuple[int, int, str, dict[int, int]]]:
        """Read balances, nonces, code hashes and storage words of the whole state."""
        state = {}
        for address in self._settled:
            info = self._machine.basic(address)
            state[address] = (int(info.balance), int(info.nonce), info.code_hash.hex(), dict(self._settled[address]))
        for address, (balance, nonce, code_hash, slots) in self._touched():
            state[address] = (balance, nonce, code_hash, {**self._settled.get(address, {}), **slots})
        return state

    def _touched(self) -> Iterator[tuple[str, tuple[int, int, str, dict[int, int]]]]:
        """Yield the accounts of the running journal and their words in it; its own text is the only way to them."""
        text = self._machine.journal_str
        for found in _ACCOUNT.finditer(text, 0, text.index(", transient_storage: {")):
            slots = {int(slot): int(word) for slot, word in _SLOT.findall(found[5])}
            yield to_checksum_address(found[1]), (int(found[2]), int(found[3]), found[4][2:], slots)

    def settle(self) -> None:
        """End the running journal: every account and slot is cold after it, and holds what it held.

        What the journal changed goes to the database below it. Where that is not ours to change, the first time and in
        a block that will be undone, a new machine is built from the whole state.
        """
        machine, ground = self._machine, self._ground
        if ground is None:
            changed = {address: slots for address, (_, _, _, slots) in self._journal().items()}
            self._machine, self._settled = self._fresh_machine(), {}
        else:
            changed = {address: slots for address, (_, _, _, slots) in self._touched()}
        infos = {address: machine.basic(address) for address in changed}
        if ground is not None:
            machine.revert(ground)
        for address, slots in changed.items():
            self._machine.insert_account_info(address, infos[address])
            settled = self._settled.setdefault(address, {})
            for slot, word in slots.items():
                if word == settled.get(slot, 0):
                    continue
                settled[slot] = word
                # The word goes to the database, and loads the account into the journal, where a next word would be
                # warm; the revert unloads it.
                point = self._machine.snapshot()
                self._machine.insert_account_storage(address, slot, word)
                self._machine.revert(point)
        self._ground = self._machine.snapshot()

    def become_chain(self, chain_id: int) -> None:
        """Go on as a chain of another id, with the same state."""
        self.chain_id, self._ground = chain_id, None
        self.settle()

    def _fresh_machine(self) -> Any:
        return pyrevm.EVM(
            env=pyrevm.Env(
                cfg=pyrevm.CfgEnv(chain_id=self.chain_id), block=pyrevm.BlockEnv(basefee=0, gas_limit=BLOCK_GAS)
            ),
            gas_limit=BLOCK_GAS,
            spec_id=SPEC,
        )
