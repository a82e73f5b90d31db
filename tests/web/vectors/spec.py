"""Job files, and what the library makes of them: the canonical document, what it needs, prices and terms, or a refusal.

Files come from the examples, the templates, the tables of bad input, and a generator of odd and of sound ones. What a
source became follows from its name (`source_of`), so that the page's test makes the same.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hearth.base.errors import SpecError
from hearth.jobfile import (
    Blob,
    LoadedSpec,
    canonical_bytes,
    local_sources,
    needs_of,
    plan_prices,
    resolve,
    spec_digest,
    terms_of,
)
from hearth.jobfile.loaded import check, spec_from
from hearth.jobfile.text import read_text
from hearth.market.profiles import DEVNET, PUBLIC
from hearth.protocol import words
from hearth.protocol.types import MAX_PARENTS, ZERO_ADDRESS
from hearth.protocol.units import Asset
from hearth.storage import cid
from tests.e2e.bad_input import GOOD, SPEC_ROWS
from tests.jobfile.test_jobfile import BAD, FULL, UNBUILT
from tests.jobfile.test_wrong_types import PLACES, WRITTEN, WRONG, file_with, with_value
from tools.vyper_files import ROOT

_NAME = "job.yaml"
_NOW = 1_800_000_000
_SUBMITTER = "0x" + "5b" * 20
_SALT = 2**96 - 7
_JUDGE, _JUDGE_DATA = "0x" + "77" * 20, 2**255 + 9
_IMAGE = "registry.example:5000/team/image@sha256:" + "0d" * 32
_CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_JOB = "0x" + "cd" * 32

_TAKEN = (0, 1, 2, 0, 1, 2, 3)
"""The market of each case, by its number: the asset without decimals takes few amounts."""
_AT = (0, 1, 2, 6)
"""A number of each market."""
MARKETS = (
    (Asset("ETH", 18), PUBLIC.policy),
    (Asset("ETH", 18), DEVNET.policy),
    (
        Asset("USDX", 6, "0x" + "11" * 20),
        dataclasses.replace(PUBLIC.policy, min_price=1_000, min_keeper_fee=400, probation_price=10**6),
    ),
    (
        Asset("WHOLE", 0, "0x" + "22" * 20),
        dataclasses.replace(PUBLIC.policy, min_price=0, min_keeper_fee=5, min_challenge_window=3_601, grace_floor=0),
    ),
)


def _wrong_types() -> Iterator[str]:
    """Yield a file with a field of another type, or with a value that YAML may make a number of."""
    for at, place in enumerate(PLACES):
        if at % 2:
            yield json.dumps(with_value(place, WRONG[at % len(WRONG)]))
        else:
            yield file_with(place, WRITTEN[at % len(WRITTEN)])


def cases() -> dict[str, Any]:
    """Return the markets, what all jobs have in common, and the files with what they become."""
    files = [
        *((name, text, _named(text)) for name, text in _examples()),
        *((row.name, _edited(row.edits), {}) for row in SPEC_ROWS if all(old in GOOD for old, _ in row.edits)),
        *(("bad", text, {}) for text, *_ in BAD if len(text) < 2_000),
        *(("unbuilt", row[0], {}) for row in UNBUILT),
        *(("wrong type", text, {}) for text in _wrong_types()),
        *(("hand-written", text, {}) for text in FIXED),
        *(("random", text, {}) for text in _random(random.Random(21), 8)),
    ]
    made = [_case(at, text, variables) for at, (_, text, variables) in enumerate(files) if _is_read(text, variables)]
    made += [_case(_AT[market], text, {}) for text, market in _priced()]
    return _told(made)


def drawn(seed: str, count: int) -> dict[str, Any]:
    """Return as many more job files, drawn at random from a seed, with what they become."""
    texts = [text for text in _random(random.Random(seed), count * 2) if _is_read(text, {})]
    return _told([_case(at, text, {}) for at, text in enumerate(texts[:count])])


def _told(made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "markets": [
            {
                "symbol": asset.symbol,
                "decimals": asset.decimals,
                "address": asset.address,
                "policy": hex(words.pack_policy(policy)),
            }
            for asset, policy in MARKETS
        ],
        "now": _NOW,
        "submitter": _SUBMITTER,
        "salt": str(_SALT),
        "judge": _JUDGE,
        "judgeData": str(_JUDGE_DATA),
        "image": _IMAGE,
        "cases": list(made),
    }


def _priced() -> Iterator[tuple[str, int]]:
    """Yield jobs with each price in each market, and with the least that each takes, and a little less."""
    many = f"array: {{units: 3}}\nretry: {{attempts: 2}}\nafter: {_JOB!r}\nlimits: {{runtime: 7m}}\n"
    for market, (asset, policy) in enumerate(MARKETS):
        for price in PRICES:
            yield f"module: a\nprice: {{{price}}}\n{many}", market
        for key in ("max_total", "max_rate"):
            zero = spec_from({"module": "a", "price": {key: "0/h" if key == "max_rate" else "0"}}).spec
            try:
                plan_prices(zero, asset, policy)
            except SpecError as error:
                least = re.findall('"([^"]*)"', error.hint)[0]
                yield f'module: a\nprice: {{{key}: "{least}"}}\n', market
                yield f'module: a\nprice: {{{key}: "{_less(least)}"}}\n', market
    # The ceiling is exactly the least, and one below.
    for amount in ("7.846691", "7.84669"):
        yield f'module: a\nprice: {{max_rate: "{amount}/d"}}\nlimits: {{runtime: 11s}}\n', 2
    # The sum is beyond the chain, and neither the rate nor the fee is.
    yield 'module: a\nprice: {max_rate: "1/s"}\narray: {units: 1048576}\nlimits: {runtime: 30d}\n', 0
    yield 'module: a\nprice: {max_rate: "2/s"}\n', 0


def _less(amount: str) -> str:
    """Return an amount or a rate with one taken from its last digit that is not 0."""
    digits, unit = re.fullmatch("([0-9.]+)(.*)", amount).groups()  # type: ignore[union-attr]
    at = max(place for place, digit in enumerate(digits) if digit not in "0.")
    return f"{digits[:at]}{int(digits[at]) - 1}{digits[at + 1 :]}{unit}"


_WASM = 'module: a.wasm\nprice: {max_total: "1"}\n'
_DOCKER = 'image: "a"\nprice: {max_total: "1"}\n'
_MOMENTS = (
    *("2027-01-16T00:00:00+05:30", "2027-01-15T08:15:59.999Z", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59.5Z"),
    *("2028-02-29T00:00Z", "2027-02-29T00:00Z", "2100-02-29T00:00Z", "2027-06-31T00:00Z", "2027-06-30T24:00Z"),
    *("2027-06-30T12:00:00", "2027-06-30 12:00:00Z", "0000-06-30T12:00:00Z", "12726000d", "36812-02-20T00:36:15Z"),
    *("2027-01-15T08:10:00,5-00:05", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2027-13-01T00:00Z"),
)
_PARENTS = [f'{{job: "0x{at:064x}", if: {("always", "failure", "success")[at % 3]}}}' for at in range(MAX_PARENTS)]
FIXED = (
    FULL.replace(", encrypt: true", "").replace("mode: retrial", "mode: attested, attesters: a.yaml, keep: true"),
    f'module: "ipfs://{_CID}"\nprice: {{max_total: "1"}}\n',
    'module: a.wasm\nprice: {max_total: "1", max_rate: "0.001/s"}\nenv: {__proto__: "a", constructor: "b", Z: "c"}\n',
    'module: a.wasm\nprice: {max_rate: "3 gwei/s"}\nlimits: {runtime: 1s}\n',
    f"{_WASM}limits: {{runtime: 30d}}\nretry: {{attempts: 8}}\n",
    f"{_WASM}limits: {{deadline: 60d}}\nverify: {{attesters: a, window: 2h}}\n",
    *(f'{_WASM}limits: {{deadline: "{text}"}}\n' for text in _MOMENTS),
    f"{_WASM}limits: {{deadline: 61d}}\nverify: {{attesters: a}}\n",
    f"{_WASM}verify: {{attesters: a, window: 0s}}\n",
    f"{_WASM}limits: {{runtime: 20d}}\nverify: {{attesters: a}}\nretry: {{attempts: 8}}\n",
    *(f'{_WASM}after: "{_JOB}"\nmatch: {{window: {window}}}\n' for window in ("0s", "1s", "12s", "300s", "10s")),
    f"{_WASM}after: {{job: '{_JOB}', if: failure}}\n",
    f"{_WASM}after: [{', '.join(_PARENTS)}]\n",
    *(f"{_WASM}checkpoint: {{every: {every}, path: /out/c}}\n" for every in ("1s", "5s", "59s", "1m", "599s")),
    f"{_DOCKER}resources: {{gpu: RTX4090, cpu: 4, memory: 16Gi}}\ncommand: \"a 'b c' d\\\\e\"\n",
    f'image: "a:1@sha256:{"ab" * 32}"\nprice: {{max_total: "1"}}\n'
    'resources: {gpu: {tier: h200}, regions: [IN, " fr"]}\n',
    *(
        f'{_DOCKER}resources: {{gpu: {{tier: "{tier}"}}}}\n'
        for tier in ("rtx-409", "\u212aNVIDIA", "A100", "Rtx 4090", "", "MI300X")
    ),
    *(
        f"{_DOCKER}resources: {{gpu: {{{gpu}}}}}\n"
        for gpu in (
            "vendor: amd",
            "tier: h100, exact: true",
            "tier: h100, vendor: nvidia",
            "tier: mi210, exact: true",
            "tier: mi300x, vendor: nvidia",
            "tier: rtx-4090, vendor: amd",
            "vendor: intel",
            "exact: true",
            "exact: 1",
            "count: 0, exact: true, tier: t4",
            "count: 0, vendor: amd",
        )
    ),
    f"{_DOCKER}resources: {{disk: 1GiB}}\ninputs: [{{src: big, dst: /in/a}}]\n",
    f"{_DOCKER}inputs: [{{src: big, dst: /in/a}}]\n",
    f"{_DOCKER}outputs: [{{path: /out/a, max_size: 131071GiB}}, {{path: /out/b, max_size: 1B}}]\n",
    f"{_DOCKER}command: x\ninput_data: ./a\noutput_dest: /results\n",
    f'{_DOCKER}output_dest: [1, null, {{a: "it\'s"}}, true, \'"\', "\\x07\\u00ad\\U000e0001"]\n',
    *(f"{_DOCKER}command: '{text}'\n" for text in ('a "b c" d\\\\ e', '"" a', "a # b", 'a "b\\"c"', 'a\\"b', 'x "a')),
    *(
        f"{_DOCKER}command: {json.dumps(text)}\n"
        for text in ("'a|b' c", "a 'b' \"$c\"", "a;b", "a\\|b", "a\\", "  ", "''\t\r")
    ),
    *(
        f"image: a\nresources: {{gpu: {gpu}}}\n"
        for gpu in ("2", "'3'", "2 x A100 80GB", "x4090", "true", "0", "1000", "gtx1080")
    ),
    f'{_DOCKER}verify: none\narray: {{units: "16"}}\nretry: {{attempts: "1"}}\n',
    'image: "a"\nprice: {max_total: "1", keeper_fee: "0.5"}\narray: {units: 1048576}\nretry: {attempts: 8}\n',
    'image: "a"\nprice: {max_total: "1000000", keeper_fee: "0.5"}\n',
    'image: "a"\nprice: {max_total: "1e5"}\n',
    'image: "a"\nprice: {max_rate: "1/fortnight"}\n',
    'image: "a"\nprice: {max_rate: "99999999999999999999/h"}\n',
    'image: "a"\n',
    "image: a\noutputs: [{path: /out/stra\u00dfe}, {path: /out/STRASSE}]\n",
    "image: a\noutputs: [{path: /out/e\u0301}, {path: /out/\u00e9/x}]\n",
    "image: a\noutputs: [{path: /out/\u1f00\u03b9}, {path: /out/\u1f88}, {path: /out/\u1e9e}, {path: /out/SS}]\n",
    "image: a\noutputs: [{path: /out/\u202ex}, {path: /out/\ue000}, {path: '/out/a\\b'}, {path: /out/\u00ad}]\n",
    "image: a\noutputs: [{path: /out//a}, {path: out}, {path: /out/../a}, {path: /in/a}]\n",
    f"image: a\ninputs: [{{src: a, dst: /in/{'a/' * 16}}}, {{src: a, dst: /in/{'é' * 126}}}, {{src: a, dst: /in}}]\n",
    f"image: a\ninputs: [{{src: a, dst: /in/{'a/' * 14}b}}, {{src: a, dst: /in/{'a/' * 15}b}}]\n",
    'image: a\nenv: {A-B: "x", "": "x", API_TOKEN: "x", apikey: "x", key: "x", Ld_X: "x", K: 1, MONKEY: "x"}\n',
    'image: a\nenv: {A-B: "x", "": "x", API_TOKEN: "x", apikey: "x", key: "x", Ld_X: "x", MyPassword1: ""}\n',
    'image: a\nenv: {A: "pg://u:p@h/d", B: "x,redis://:p@h", C: "http://h:80/a@b", D: "ssh://u@h", MY_KEY: "a://b:c@d"}\n',
    'image: a\nenv: {C: "http://h:80/a@b", D: "ssh://u@h"}\ninputs: [{src: "https://u:p@h/x", dst: /in/x}]\n',
    "image: a\nmodule: 'ftp://x'\nworkdir: 'http://x'\ninputs: [{src: '', dst: /in/a}, {src: ipfs://x, dst: /in}]\n",
    "image: a\nresources: {regions: [uk, eu, us, US, eu-west, zz, '']}\n",
    "image: a\nlimit: {runtime: 1h}\nresources: {memry: 1GiB, regoins: []}\nenvs: {}\nInput: []\nverify: {compar: x}\n",
    "image: a\n'': 1\n'__proto__': 1\nconstructor: 2\ntoString: 3\n'\U0001f525': 4\n",
    "image: a\nresources: 5\nlimits: x\nprice: [1]\nmatch: true\narray: 7\nretry: '3'\ncheckpoint: 1m\n",
    "image: 1\nname: true\nmodule: null\ncommand: [1, null, [a], {b: c}]\nenv: [a]\ninputs: [x, 5, {}, null]\n",
    "image: a\nverify: {compare: {kind: cosine, atol: '1', file: /out/x.json}, replicas: 8, keep: 'yes', window: 1}\n",
    "image: a\nverify: {compare: {kind: cosine, atol: '1', file: /out/x.json}}\n",
    "image: a\nverify: {compare: {kind: allclose, file: /out/x.npy, minimum: '1', field: a}}\n",
    "image: a\nverify: {compare: {kind: metric, file: '', field: ''}}\n",
    "image: a\nruntime: wasm\nresources: {gpu: {count: 64, vram: 0B}, cpus: 0, memory: 1B, disk: 16TB}\n",
    "image: a\nruntime: wasm\nresources: {gpu: {count: 63, vram: 0B}, cpus: 1, memory: 1B, disk: 1B}\n",
    "name: 'a\n\n  b'\nimage: a\n",
    f"{_DOCKER}resources: {{gpu: ' 2\u3000'}}\n",
    f"{_DOCKER}output_dest: /out\n",
    "image: a\nLIMITS: {}\nPRICE: {}\nresources: {MEMORY: 1GiB}\n",
    *(f"image: a\nprice: {{max_rate: {rate}}}\n" for rate in ("x/h", "'1 /h'", "'/h'", "' 1.2 ETH / h '", "'1e3/h'")),
    "image: a\noutputs: [{path: /out/a/b}, {path: /out/a}]\n",
    "image: a\narray: {units: 1048576}\nretry: {attempts: 8}\nverify: {replicas: 2}\n",
)
"""Files for corners that no other table has."""


PRICES = (
    *('max_rate: "1.20/h"', 'max_rate: "5/s"', 'max_rate: "1/d"', 'max_total: "7"', 'max_total: "123456789"'),
    *('max_total: "60", max_rate: "1/s"', 'max_total: "1000000", max_rate: "1/h"', 'max_total: "50", keeper_fee: "5"'),
    *('max_total: "50", keeper_fee: "4"', 'max_total: "0", keeper_fee: "5"', 'max_total: "0"'),
    *('max_rate: "0/h"', 'max_rate: "9999999999999/s"'),
)
"""Prices that are tried in every market, each with an array, a few attempts and a parent."""


def source_of(src: str) -> Blob:
    """Return what a source became: a CID and a size that follow from its name."""
    digest = hashlib.sha256(src.encode()).digest()
    size = 2**41 if src == "big" else int.from_bytes(digest[:3], "big")
    return Blob(cid=str(cid.Cid(1, cid.DAG_PB if digest[3] & 1 else cid.RAW, cid.SHA2_256, digest)), size=size)


def _examples() -> Iterator[tuple[str, str]]:
    for path in sorted([*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("hearth/local/templates/*/job.yaml")]):
        if path.name != "attesters.yaml":
            yield path.name, path.read_text(encoding="utf-8")


def _edited(edits: Sequence[tuple[str, str]]) -> str:
    text = GOOD
    for old, new in edits:
        text = text.replace(old, new)
    return text


def _named(text: str) -> dict[str, str]:
    given = {"PARENT": _JOB, "IMAGE": _IMAGE}
    return {name: given[name] for name in sorted(set(re.findall(r"(?<!\$)\$\{([A-Z]+)\}", text)))}


def _is_read(text: str, variables: Mapping[str, str]) -> bool:
    """Say whether the text is one that holds values: what is no such text has vectors of its own."""
    try:
        read_text(text.encode(), _NAME, variables=variables)
    except SpecError:
        return False
    return True


def _case(at: int, text: str, variables: Mapping[str, str]) -> dict[str, Any]:
    case: dict[str, Any] = {"text": text, **({"variables": dict(variables)} if variables else {})}
    data, source = read_text(text.encode(), _NAME, variables=variables)
    try:
        loaded = check(data, source, ROOT)
    except SpecError as error:
        return {**case, "problems": sorted({f"{one['field']} {one['code']}" for one in error.details["problems"]})}
    case["market"] = _TAKEN[at % len(_TAKEN)]
    if loaded.notes:
        case["notes"] = len(loaded.notes)
    return {**case, **_planned(loaded, *MARKETS[case["market"]], whole=at < 14 and not text.startswith("module: a\n"))}


def _planned(loaded: LoadedSpec, asset: Asset, policy: Any, *, whole: bool) -> dict[str, Any]:
    spec = loaded.spec
    blobs = {src: source_of(src) for _, src in local_sources(spec)}
    try:
        resolved = resolve(spec, blobs, image=_IMAGE)
    except SpecError as error:
        return {"resolve": _refusal(error)}
    digest, needs = spec_digest(resolved), needs_of(resolved.resources, resolved.runtime)
    made: dict[str, Any] = {"digest": "0x" + digest.hex(), "needs": hex(words.pack_needs(needs))}
    if whole:
        made["canonical"] = canonical_bytes(resolved).decode()
    try:
        prices = plan_prices(spec, asset, policy)
    except SpecError as error:
        return {**made, "prices": _refusal(error)}
    made["prices"] = [str(value) for value in dataclasses.astuple(prices)]
    judged = spec.verify.attesters is not None
    try:
        terms = terms_of(
            spec,
            submitter=_SUBMITTER,
            salt=_SALT,
            digest=digest,
            needs=needs,
            prices=prices,
            policy=policy,
            policy_word=words.pack_policy(policy),
            now=_NOW,
            judge=_JUDGE if judged else ZERO_ADDRESS,
            judge_data=_JUDGE_DATA if judged else 0,
        )
    except SpecError as error:
        return {**made, "terms": _refusal(error)}
    packed = words.pack_terms(terms)
    # The other words are those that all jobs have in common, or stand above.
    return {**made, "terms": [hex(packed[3]), hex(packed[4]), "0x" + packed[8].hex()]}


def _refusal(error: SpecError) -> dict[str, Any]:
    """Return where and why a job is refused, with the amounts that its hint names: they are what would be taken."""
    amounts = re.findall(r"[0-9]+(?:\.[0-9]+)?", error.hint) if error.details["field"].startswith("price") else []
    return {"code": error.code, "field": error.details["field"], **({"amounts": amounts} if amounts else {})}


# ---- files at random ----

_PATHS = ("/out", "/out/a", "/out/a/b", "/out/A", "/out/w.npy", "/out/w.json", "/in/a", "/in/b/c", "/in", "out")
_TIMES = ("0s", "1s", "90s", "5m", "10m", "2h", "1h30m", "6h", "1d", "29d", "30d", "31d", "7d", "8d", "300s", "301s")
_SIZES = ("0B", "1B", "5MiB", "64MiB", "1.5GiB", "2GiB", "0.3B", "16GB", "1TiB", "1023GiB", "1024GiB", "16384GiB")
_SOURCES = (
    f"ipfs://{_CID}",
    f"ipfs://{_CID}/a/b",
    "ipfs://bafynonsense",
    "https://a.b/c",
    "https://u:p@a.b/c",
    "ftp://x",
    "./data",
    "",
    ".",
)
_AMOUNTS = ("0.0001", "1", "60.60", "5", "0.5 ETH", "1000000000", "0.0000000001", "1e5", "7", "12", "3")
_RATES = ("1.20/h", "0.01/s", "3 gwei/s", "1/d", "100/min", "0.00000001/h", "1 USDX/h", "1/y", "1.20", "5/h")
_POOL: Mapping[str, Sequence[Any]] = {
    "path": _PATHS,
    "dst": _PATHS,
    "file": _PATHS,
    "every": _TIMES,
    "window": _TIMES,
    "deadline": (*_TIMES, "2027-01-16T00:00:00Z", "2027-01-15T08:00:00Z", "2030-01-01", "soon"),
    "memory": _SIZES,
    "disk": _SIZES,
    "vram": _SIZES,
    "max_size": _SIZES,
    "src": _SOURCES,
    "module": _SOURCES,
    "workdir": _SOURCES,
    "image": ("python:3.12", "a/b:tag@sha256:" + "ab" * 32, "localhost:5000/a", "Python", "a b", None),
    "runtime": ("wasm", "docker", *_TIMES),
    "count": (0, 1, 2, 63, 64, "3"),
    "tier": ("rtx-4090", "RTX 4090", "h100", "A100 80GB", "rtx-409", "mi300x", None),
    "vendor": ("nvidia", "amd", "intel", None),
    "exact": (True, False),
    "units": (1, 2, 24, 1_048_576, 1_048_577, 0, "7"),
    "chunk": (1, 2, 3, 257),
    "attempts": (1, 3, 8, 9, "2"),
    "replicas": (1, 2, 8, None),
    "kind": ("hash", "allclose", "cosine", "metric", "sum"),
    "mode": ("none", "attested", "referee", "retrial", None),
    "keep": (True, False),
    "newcomers": (True, False),
    "encrypt": (True, False),
    "billing": ("auto", "fixed", "fuel", "metered", "hourly"),
    "job": (_JOB, _JOB.upper(), "0x" + "ee" * 32),
    "if": ("success", "failure", "always", "never"),
    "max_total": _AMOUNTS,
    "keeper_fee": ("auto", *_AMOUNTS),
    "max_rate": _RATES,
    "attesters": ("a.yaml", None),
    "regions": (["de"], ["in", "us", "br"], ["de", "DE"], ["zz"], []),
}
_ANY = (None, True, 0, 7, -1, 10**17, "", "x", "007", [], {}, ["a"], {"a": "b"}, "1GiB", "5m", "0.60")
_KEYS = (
    "versions",
    "image",
    "limit",
    "gpu",
    "cpu",
    "env",
    "Price",
    "zzz",
    "after",
    "input_data",
    "output_dest",
    "[key]",
)


def _random(source: random.Random, count: int) -> Iterator[str]:
    """Yield job files as YAML, one key a line: sound ones, and such with a few values or keys that do not fit."""
    seeds: list[dict[str, Any]] = [read_text(text.encode(), _NAME)[0] for text in FIXED[:6]]
    for at in range(count):
        data = copy.deepcopy(source.choice([*seeds[:1] * 5, *seeds]))
        _reprice(source, data)
        if at % 2:
            _vary(source, data, lambda key: _POOL.get(key, ()))
        else:
            _vary(source, data, lambda key: (*_POOL.get(key, ()), *_ANY))
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
        yield "\n".join(lines) + "\n"


def _reprice(source: random.Random, data: dict[str, Any]) -> None:
    """Give a job another price, a small or a large one."""
    digits = str(source.randrange(1, 10**6))
    amount = digits if source.random() < 0.4 else f"{source.randrange(10)}.{digits}"
    data["price"] = {**data.get("price", {}), source.choice(("max_total", "max_rate")): ""}
    for key in ("max_total", "max_rate"):
        if data["price"].get(key) == "":
            data["price"][key] = amount if key == "max_total" else f"{amount}/{source.choice(('h', 'min', 's', 'd'))}"
    if source.random() < 0.3:
        data["array"] = {"units": source.choice((1, 2, 7, 100, 4_096))}


def _vary(source: random.Random, data: dict[str, Any], pool: Callable[[str], Sequence[Any]]) -> None:
    """Change a few values to such as their key may have, and at times put in a key."""
    places = list(_places(data))
    for holder, key in source.sample(places, min(len(places), source.choice((0, 1, 1, 2, 4)))):
        choices = pool(key if isinstance(key, str) else "")
        if choices:
            holder[key] = copy.deepcopy(source.choice(choices))
        elif source.random() < 0.2 and isinstance(holder, dict):
            del holder[key]
    if source.random() < 0.15:
        data[source.choice(_KEYS)] = copy.deepcopy(source.choice(_ANY))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    for key, item in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(item, (dict, list)):
            yield from _places(item)
