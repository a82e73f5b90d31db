"""Documents: what strangers publish as JSON, and what people are given as YAML and TOML."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from hearth.base.addresses import gateway_fault
from hearth.base.errors import ConfigError, HearthError, StorageError
from hearth.base.untrusted_json import MAX_DEPTH, read_json
from hearth.client import prepared
from hearth.client.job.results import Results, check_result
from hearth.config import settings as client_settings
from hearth.jobfile import needs_of, parse_canonical
from hearth.jobfile.convert import convert
from hearth.jobfile.load import parse_spec
from hearth.jobfile.resolved import Blob, ResolvedInput, ResolvedResources, canonical_bytes
from hearth.market.calls import Calls
from hearth.market.manifest import ListedGpu, Manifest, carried, read_manifest
from hearth.market.network import network_of
from hearth.protocol import units
from hearth.protocol.types import NodeId, Offer, Outcome
from hearth.storage import canonical
from hearth.storage import cid as cids
from keeper import settings as keeper_settings
from tests.fuzz.target import Finding, Target, same
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from worker import settings as worker_settings
from worker.attempt.results import report_document, result_document
from worker.runtimes.base import RunResult, RunStatus

ROOT: Final = Path(__file__).parents[2]
NETWORK: Final = build.network(FakeChain())
_CID: Final = cids.of(b"data")


# ---- documents by their hash ----


def _check_json(data: bytes, value: Any) -> None:
    """What was read can be written, and is no deeper than it may be."""
    again = json.dumps(value, ensure_ascii=False).encode()
    same("json", json.loads(again), value)
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            x
            for one in level
            if isinstance(one, (dict, list))
            for x in (one.values() if isinstance(one, dict) else one)
        ]
    if depth > MAX_DEPTH + 1:
        raise Finding(f"json: {depth} deep")


def _check_canonical(data: bytes, value: Any) -> None:
    same("document", canonical.encode(value), data)


def _documents() -> Iterator[bytes]:
    for value in ({"a": [1, -1, None, True, "\u00e9\U0001f525\x1f"], "b": {"": {}}, "\u20ac": 2**53 - 1}, [], "text"):
        yield canonical.encode(value)


def _specs() -> Iterator[bytes]:
    module = Blob(cid=str(_CID), size=4)
    image = "docker.io/library/python@sha256:" + "0" * 64
    gpu = ResolvedResources(
        gpus=2,
        vendor="nvidia",
        tier="h100",
        exact=True,
        vram_gib=80,
        cpus=4,
        memory_mib=64,
        disk_gib=9,
        regions=("de", "fr"),
    )
    for spec in (
        build.spec(module=module),
        build.spec(
            module=module,
            env={"A": "1", "B": "\u00e9"},
            command=("a", "b c"),
            workdir=Blob(cid=str(cids.of(b"", cids.DAG_PB)), size=0),
            inputs=(
                ResolvedInput(cid=str(_CID), dst="/in/x", size=4),
                ResolvedInput(cid=str(_CID), dst="/in/y", size=4),
            ),
            units=9,
        ),
        build.spec(runtime="docker", image=image, resources=gpu),
    ):
        yield canonical_bytes(spec)


def _check_spec(data: bytes, spec: Any) -> None:
    """A spec is written as it was read, and says what it needs of a machine."""
    same("job-spec", canonical_bytes(spec), data)
    try:
        needs_of(spec.resources, spec.runtime)
    except HearthError:
        return


_SPEC: Final = b"\x11" * 32
_RUN: Final = RunResult(RunStatus.EXIT, "exit 3", exit_code=3, stderr=b"bad \xff", engine="wasmtime", fuel_used=5)


_STORED: Final = SimpleNamespace(cid=_CID, size=4)


def _result(data: bytes) -> Any:
    document = canonical.decode(data)
    check_result(document, _SPEC, 0, Outcome.OK)
    if document["outputs"] is not None:
        cids.parse(document["outputs"]["cid"])
    return document


def _results() -> Iterator[bytes]:
    for run, outputs in ((_RUN, None), (RunResult(RunStatus.OK), _STORED)):
        yield canonical.encode(result_document(spec=_SPEC, index=0, outcome=Outcome.OK, run=run, outputs=outputs))


def _report(data: bytes) -> dict[str, Any]:
    """Read a report as `hearth job get` does."""
    store = SimpleNamespace(get_json=lambda digest: canonical.decode(data))
    return Results(SimpleNamespace(session=SimpleNamespace(store=store)))._report(b"")  # type: ignore[arg-type]


def _reports() -> Iterator[bytes]:
    report = report_document(
        job=_SPEC,
        index=0,
        attempt=1,
        node=2,
        run=_RUN,
        logs=_STORED,
        began=1.5,
        ended=2.5,
        used=1,
        kept_until=9.0,
        machine={"cores": 4, "gpus": []},
    )
    yield canonical.encode(report)


_GATEWAYS: Final = ("https://gpu.example.org", "http://[2001:db8::1]:8080/a")
_MANIFEST: Final = Manifest("hearth 1", "de", (ListedGpu("NVIDIA X", "570", 24),), _GATEWAYS)
_NAMED: Final = canonical.encode(_MANIFEST.document())
_DIGEST: Final = canonical.digest(_MANIFEST.document())


def _check_manifest(data: bytes, found: Manifest) -> None:
    """Whatever is believed of it is within bounds, and is written and read as the same."""
    same("manifest", read_manifest(canonical.encode(found.document())), found)
    if any(gateway_fault(one) for one in found.gateways):
        raise Finding(f"manifest: {found.gateways}")


def _manifests() -> Iterator[bytes]:
    yield _NAMED
    yield canonical.encode({"version": 1, "software": "hearth 0", "country": "in", "gpus": []})
    yield canonical.encode({"version": 1, "gateways": [*_GATEWAYS, 7, "http://u:p@x.y", "http://x.y:22"], "later": {}})


def _check_carried(data: bytes, found: bytes) -> None:
    same("manifest-call", found, _NAMED)


def _carrying() -> Iterator[bytes]:
    calls, offer = Calls(NETWORK), Offer(slots=1)
    yield calls.register("0x" + "11" * 20, offer, _DIGEST, 5, _NAMED).data
    yield calls.update_offer(NodeId(3), offer, _DIGEST, _NAMED).data
    yield bytes(100) + calls.update_offer(NodeId(3), offer, _DIGEST, _NAMED).data + bytes(40)
    yield calls.update_offer(NodeId(3), offer, _DIGEST, _NAMED[:-1]).data


# ---- files that people are given ----


def _network(data: bytes) -> Any:
    return network_of(read_json(data))


def _check_network(data: bytes, network: Any) -> None:
    same("network-file", network_of(json.loads(json.dumps(network.as_dict()))), network)


def _networks() -> Iterator[bytes]:
    for asset in (build.NATIVE, build.TOKEN):
        network = build.network(FakeChain(), asset=asset, rpc=("http://127.0.0.1:8545",), gateways=("https://x.y",))
        yield json.dumps(network.as_dict()).encode()


def _prepared(data: bytes) -> Any:
    return prepared.read_prepared(read_json(data), NETWORK, "tx.json")


def _check_prepared(data: bytes, found: Any) -> None:
    call, function, _ = found
    same("prepared", prepared.read_prepared(call.document(NETWORK), NETWORK, "x")[1], function)


def _prepareds() -> Iterator[bytes]:
    calls = Calls(NETWORK)
    sender = "0x" + "11" * 20
    for action, call in (
        ("update", calls.update_offer(NodeId(3), Offer(slots=1), _DIGEST, _NAMED)),
        ("stake", calls.add_stake(NodeId(3), sender, 5)),
        ("withdraw", calls.withdraw(sender, 5)),
        ("exit start", calls.exit_start(NodeId(3))),
    ):
        yield json.dumps(prepared.Prepared(action, sender, call, 0, "key").document(NETWORK)).encode()


def _jobs() -> Iterator[bytes]:
    paths = sorted([*(ROOT / "hearth/local/templates").glob("*/job.yaml"), *(ROOT / "examples").glob("*/job.yaml")])
    yield from (path.read_bytes() for path in paths)
    yield json.dumps({"image": "x", "command": ["a"], "price": {"max_rate": "1/h"}}).encode()


def _peers() -> Iterator[bytes]:
    yield from (path.read_bytes() for path in sorted((ROOT / "tests/data/peers").iterdir()) if path.is_file())


_HOME: Final = Path(tempfile.gettempdir()) / f"hearth-fuzz-{os.getpid()}"


def _from_file(load: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Return a parser that reads its input from a file, as the programs do."""

    def read(data: bytes) -> Any:
        path = Path(f"{_HOME}.toml")
        try:
            path.write_bytes(data)
            return load(path)
        finally:
            path.unlink(missing_ok=True)

    return read


_WORKER: Final = b"""network = "devnet"
home = "~/.hearth/worker"
rpc = ["http://127.0.0.1:8545"]
stores = ["folder:///data"]
[account]
payout = "0x1111111111111111111111111111111111111111"
keystore = "key.json"
password_file = "password"
[offer]
price = "0.10 ETH/h"
country = "de"
slots = 2
gpus = "all"
memory = "16GiB"
[docker]
registries = ["docker.io", "*.example.org"]
max_image = "20GiB"
[metrics]
listen = "127.0.0.1:9464"
[storage]
reserve = "2GiB"
"""
_KEEPER: Final = b"""network = "networks/x.json"
home = "keeper"
rpc = ["https://a.example", "https://b.example"]
[account]
keystore = "key.json"
password_file = "password"
[work]
jitter = "5s"
latency = "2s"
[price]
coin = "2000"
[metrics]
listen = ""
"""
_CLIENT: Final = b"""network = "devnet"
rpc = ["http://127.0.0.1:8545"]
store = "folder://store"
account = "main"
gateways = ["https://x.example"]
timeout = "30s"
"""


def _amount(data: bytes) -> Any:
    """Read a text in each way that people write quantities; what is taken is written and read back."""
    text, found = data.decode("utf-8", "replace"), None
    for asset in (build.NATIVE, build.TOKEN):
        try:
            found = units.parse_amount(text, asset)
            same("amount", units.parse_amount(units.format_amount(found, asset), asset), found)
        except HearthError:
            continue
    for read, write in ((units.parse_duration, units.format_duration), (units.parse_size, units.format_size)):
        try:
            found = read(text)
        except HearthError:
            continue
        same("amount", read(write(found)), found)
    try:
        found = units.parse_rate(text, build.NATIVE)
    except HearthError:
        return found
    return found


def _amounts() -> Iterator[bytes]:
    for text in (
        "1.5 ETH",
        "0.000001",
        "12 USDX",
        "1.20/h",
        "3 ETH/min",
        "2h30m",
        "1d12h",
        "0s",
        "16GiB",
        "1.5 KiB",
        "7B",
    ):
        yield text.encode()


TARGETS: Final = (
    Target("json", "json", "any JSON text", read_json, _documents, (ValueError,), _check_json),
    Target("document", "json", "a canonical document", canonical.decode, _documents, (StorageError,), _check_canonical),
    Target("job-spec", "json", "a job's spec", parse_canonical, _specs, (HearthError,), _check_spec),
    Target("result", "json", "a result document", _result, _results, (StorageError,)),
    Target("report", "json", "a report document", _report, _reports, (StorageError,)),
    Target("manifest", "json", "a node's manifest", read_manifest, _manifests, (StorageError,), _check_manifest),
    Target(
        "manifest-call",
        "bytes",
        "the call that carries it",
        lambda data: carried(data, _DIGEST),
        _carrying,
        (),
        _check_carried,
    ),
    Target("network-file", "json", "a network file", _network, _networks, (ConfigError, ValueError), _check_network),
    Target("prepared", "json", "a prepared call", _prepared, _prepareds, (HearthError, ValueError), _check_prepared),
    Target("amount", "bytes", "amounts, rates, times and sizes", _amount, _amounts),
    Target("job-file", "text", "a job file", parse_spec, _jobs),
    Target("peer-file", "text", "a job file of another system", lambda data: convert(data, "x.yaml"), _peers),
    Target("worker-toml", "text", "a worker.toml", _from_file(worker_settings.load), lambda: [_WORKER], (ConfigError,)),
    Target("keeper-toml", "text", "a keeper.toml", _from_file(keeper_settings.load), lambda: [_KEEPER], (ConfigError,)),
    Target(
        "settings-toml",
        "text",
        "a hearth.toml of a project",
        _from_file(lambda path: client_settings._from_file(path, path.read_bytes())),
        lambda: [_CLIENT],
        (ConfigError,),
    ),
)
