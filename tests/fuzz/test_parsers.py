"""Every parser of strangers' bytes on every kept input, and on seeded mutations of them; no fuzzer is needed.

`make fuzz-parsers` looks for new inputs with coverage. What it found and what was mended has a plain test of its own.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from hearth.storage.unixfs.codec import decode_dag_pb
from tests.fuzz import corpus, table
from tests.fuzz.mutate import MUTATE
from tests.fuzz.target import AIMS, MAX_BYTES, Target, check, quiet
from tests.fuzz.targets import TARGETS
from tests.kit.require import require

MUTATIONS = {"bytes": 2_000, "json": 1_000, "text": 60, "disk": 100}
"""Of each parser, from one seed, by what it reads: YAML is slow."""
ROOT = corpus.FOLDER.parents[2]


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    with quiet():
        yield


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_parser__kept_inputs_and_mutations__refuses_by_name_within_its_bounds(target: Target) -> None:
    inputs = corpus.kept(target)
    taken = sum(check(target, data) for data in target.seeds())
    assert taken, "no seed is taken: the parser's inside is never reached"
    refused = sum(not check(target, data) for data in inputs)
    draw = Random(f"hearth {target.name}")
    for _ in range(MUTATIONS[target.kind]):
        mutated = MUTATE[target.kind](draw.choice(inputs), draw, inputs)
        assert len(mutated) <= MAX_BYTES
        refused += not check(target, mutated)
    # What is written to disk is a tree that was read: its blocks are made whole before it.
    assert refused or target.kind == "disk", "nothing is ever refused: that something is taken says nothing"


def test_corpus__in_git__is_of_a_parser_each_and_small() -> None:
    files = list(corpus.FOLDER.iterdir())
    assert {path.stem for path in files} <= set(TARGETS)
    assert all(path.stat().st_size <= corpus.KEPT_BYTES for path in files)
    assert {target.kind for target in TARGETS.values()} == set(AIMS) == set(MUTATIONS)


def test_record__in_git__is_what_assurance_says() -> None:
    """The page claims what was run and no more: every cell but that on lines is the record's, which has none."""
    record = json.loads((corpus.FOLDER.parent / "record.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "ASSURANCE.md").read_text(encoding="utf-8")
    claimed = page.partition("<!-- fuzz -->")[2].partition("<!-- /fuzz -->")[0].strip().splitlines()[2:]
    reached = [line.split("|")[8].strip() for line in claimed]
    assert claimed == [table.line(name, record.get(name), cell) for name, cell in zip(TARGETS, reached, strict=True)]
    for name, cell in zip(TARGETS, reached, strict=True):
        found = re.fullmatch(r"(\d+) of (\d+)", cell)
        assert found is not None and 0 < int(found[1]) <= int(found[2]) if name in record else not cell, name


def test_dag_pb__what_we_take__another_reader_takes_as_the_same() -> None:
    """@ipld/dag-pb, which shares no code with ours, reads every node that ours does, links and data alike."""
    node = shutil.which("node")
    require("node", node is not None, "no node on PATH")
    require("node", (ROOT / "node_modules" / "@ipld" / "dag-pb").is_dir(), "no node_modules: make setup")
    target = TARGETS["dag-pb"]
    draw, inputs = Random("dag-pb beside another"), corpus.kept(target)
    tried = [*inputs, *(MUTATE["bytes"](draw.choice(inputs), draw, inputs) for _ in range(3_000))]
    ours: list[tuple[bytes, Any]] = []
    for data in tried:
        try:
            links, message = decode_dag_pb(data)
        except Exception:  # noqa: BLE001 - what it may raise is the test above
            continue
        # JavaScript holds no larger number exactly, and its reader makes text of names.
        if any(link.tsize >= 2**53 or not link.name.isascii() for link in links):
            continue
        named = [[link.cid.digest.hex(), link.name.hex(), link.tsize] for link in links]
        ours.append((data, [named, message.hex()]))
    done = subprocess.run(
        [str(node), str(ROOT / "tests/oracles/dag_pb.mjs")],
        input=json.dumps([base64.b64encode(data).decode() for data, _ in ours]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout)
    assert len(theirs) == len(ours) > 100
    for (data, read), other in zip(ours, theirs, strict=True):
        assert other == read, data.hex()
