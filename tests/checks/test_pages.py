"""docs/JOB.md says what the code says: every key with its default, the outcomes, the variables, the limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hearth.client.posting.sources import MAX_URL_BYTES
from hearth.jobfile import FUEL_PER_SECOND, rules, text
from hearth.jobfile.model import MAX_UNITS, JobSpec
from hearth.protocol import wasi
from hearth.protocol.types import MAX_ATTEMPTS, Outcome
from hearth.storage import unixfs
from worker.runtimes import base, docker_request

DOCS = Path(__file__).resolve().parents[2] / "docs"
JOB = (DOCS / "JOB.md").read_text(encoding="utf-8")
IN_WORDS = {
    "outputs": "`/out`, not required, `1GiB`",
    "resources.gpu.count": "`0`, `1` where `gpu` is given",
    "resources.gpu.vendor": "that of the tier, else `nvidia`",
}
"""Defaults that a page says better than JSON does."""


GUESTS = docker_request.GUEST_UIDS


def section(title: str) -> str:
    return JOB.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """Return the cells of every table row of a section, heads and rules left out."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [row for row in cells if row[0].startswith("`")]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every key that can be written, with its field; of a mapping only what is in it."""
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        listed = getattr(field.annotation, "__origin__", None) is list
        name = field.alias or name
        if inner is None or listed:
            yield f"{prefix}{name}", field
        if inner is not None:
            yield from keys(inner, f"{prefix}{name}{'[]' if listed else ''}.")


def default(key: str, field: FieldInfo) -> str:
    if key in IN_WORDS:
        return IN_WORDS[key]
    if field.is_required():
        return "needed"
    return "-" if field.default is None else f"`{json.dumps(field.default)}`"


def test_job_page__keys_and_defaults__are_the_models() -> None:
    told = {row[0].strip("`"): row[1] for row in rows("Keys")}
    assert told == {key: default(key, field) for key, field in keys(JobSpec)}
    assert len(told) == len(rows("Keys"))


def test_job_page__defaults_in_words__are_the_models() -> None:
    spec = JobSpec(image="x")
    assert [(output.path, output.required, output.max_size) for output in spec.outputs] == [("/out", False, "1GiB")]
    assert spec.resources.gpu.count == 0
    assert type(spec.resources.gpu)().count == 1


def test_job_page__outcomes__are_those_that_a_unit_can_end_with() -> None:
    words = {row[0].strip("`"): row[2] for row in rows("How a unit ends")}
    ended = {outcome for outcome in Outcome if outcome not in (Outcome.NONE, Outcome.BAD_KEY)}
    assert words == {outcome.name.lower(): "yes" if outcome.is_result else "no" for outcome in ended}


def test_job_page__variables__are_those_of_a_guest() -> None:
    request = base.RunRequest(
        unit="u",
        command=(),
        job_dir=Path("/"),
        in_dir=Path("/"),
        out_dir=Path("/"),
        limits=base.SandboxLimits(wall_seconds=1, memory_bytes=1),
        image="x",
    )
    own = docker_request.container_config(request, base.guest_env(request), cpus=1)["Env"]
    told = [row[0].strip("`") for row in rows("What a program sees") if not row[0].startswith("`/")]
    assert told == [entry.partition("=")[0] for entry in own]


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Limits", f"| module | {wasi.MAX_MODULE_BYTES >> 20} MiB, {wasi.MAX_MEMORY_BYTES >> 30} GiB of memory |"),
        ("Limits", f"{text.MAX_BYTES >> 20} MiB, {rules.MAX_ITEMS:,} entries in a list, {rules.MAX_TEXT:,} characters"),
        ("Limits", f"| environment | {base.MAX_ENV_BYTES >> 10} KiB |"),
        ("Limits", f"| URL input | {MAX_URL_BYTES >> 30} GiB |"),
        (
            "Limits",
            f"{base.MAX_OUTPUT_ENTRIES:,} entries, {unixfs.MAX_PATH_DEPTH} folders deep,"
            f" paths of {unixfs.MAX_PATH_BYTES} bytes",
        ),
        ("Limits", f"| fuel | {FUEL_PER_SECOND:,} a second"),
        ("Limits", f"{docker_request.SHM_BYTES >> 20} MiB of `/dev/shm`"),
        ("What a program sees", f"| {base.SandboxLimits.tmp_bytes >> 20} MiB, gone afterwards |"),
        ("What a program sees", f"| one | {base.SandboxLimits.pids} |"),
        (
            "What a program sees",
            f"| one of {GUESTS[0]} to {GUESTS[-1]}, group {docker_request.GUEST_GID}, no",
        ),
        ("How a unit ends", f"of more than {base.SandboxLimits.log_bytes >> 20} MiB"),
        ("Keys", f"up to {MAX_UNITS:,}"),
        ("Keys", f"may be started, 1 to {MAX_ATTEMPTS} |"),
    ],
)
def test_job_page__each_limit__is_the_codes(title: str, words: str) -> None:
    assert words in section(title)


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_page__files_that_it_links__are_there(path: Path) -> None:
    for name in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / name).exists(), name


def test_audit_page__its_length__is_what_one_reads_in_a_sitting() -> None:
    assert len((DOCS / "AUDIT.md").read_text(encoding="utf-8").splitlines()) <= 300


def test_audit_page__files_that_it_names__are_there() -> None:
    named = re.findall(
        r"`((?:contracts|tests|docs|hearth|tools)/[\w./]*)`", (DOCS / "AUDIT.md").read_text(encoding="utf-8")
    )
    assert len(named) > 10
    assert [name for name in named if not (DOCS.parent / name).exists()] == []


def test_audit_page__every_contract__is_in_its_scope() -> None:
    text = (DOCS / "AUDIT.md").read_text(encoding="utf-8").split("## Who calls whom")[0]
    assert [path.name for path in (DOCS.parent / "contracts").glob("*.vy") if path.name not in text] == []


def test_audit_page__example_of_an_attack__passes() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (DOCS / "AUDIT.md").read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, Any] = {}
    exec(example, found)  # the page's own text
    (test,) = [value for name, value in found.items() if name.startswith("test_")]
    test()


def test_provider_page__rate__is_what_the_bench_recorded() -> None:
    from bench import bench_rate
    from bench.sections import part

    results = json.loads(bench_rate.OUT.read_text(encoding="utf-8"))
    assert part(bench_rate.PAGE, "rate") == bench_rate.said(results)
    assert {row["name"] for row in results["seasoned"]["processes"]} == {"worker-1", "worker-2", "worker-3", "keeper"}


def test_pages__whatever_installs_hearth__names_its_wheel_and_no_index() -> None:
    """No index has it: `pip install hearth-market` finds nothing, or somebody else's package."""
    root = DOCS.parent
    texts = [*DOCS.rglob("*.md"), *DOCS.rglob("*.service"), *root.glob("*.md"), root / "Makefile"]
    texts += [
        path for room in ("hearth", "keeper", "worker", "scripts", "tools") for path in (root / room).rglob("*.py")
    ]
    lines = [line for path in texts for line in path.read_text(encoding="utf-8").splitlines() if "pip" in line]
    named = re.findall(r"pip(?:3|x)? (?:install|wheel|download)[^#\n]*?(hearth\S*)", "\n".join(lines))
    assert len(named) >= 6
    assert [one for one in named if not re.fullmatch(r"hearth_market-(\*|VERSION)\.whl[,`]*", one)] == []
