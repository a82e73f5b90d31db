"""The job spec as a user writes it: paths, human units, one schema for YAML and JSON.

Structure is pydantic's; what fields mean together is `problems_of`, and what this version cannot do yet is
`unbuilt_in`. Both name the field, so that every refusal carries a line. Source: protocol.md "Job spec".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from hearth.base.errors import HearthError
from hearth.jobfile import rules
from hearth.jobfile.problems import Location, Problem
from hearth.protocol.gpu_tiers import VendorName
from hearth.protocol.runtimes import DEFAULT, RUNTIMES, RuntimeKind, RuntimeName
from hearth.protocol.types import MAX_ATTEMPTS, MAX_PARENTS, MAX_VRAM_GIB
from hearth.protocol.units import format_size, parse_duration, parse_size, split_amount, split_rate

MAX_RUNTIME = 30 * 86_400
MAX_UNITS = 1 << 20
MAX_CHUNK = 256
MAX_MATCH_WINDOW = 300
MAX_MEMORY_GIB, MAX_DISK_GIB = 16_383, 131_071
"""What the lanes of the chain's words hold."""
MAX_CHALLENGE_WINDOW = 7 * 86_400
MAX_TRIES = 1 << 24
"""Leases times attempts stay below this."""
JOB_ID = re.compile("0x[0-9a-f]{64}")
NAME_ATTESTERS = 'write verify: {attesters: "attesters.yaml"}, a file with keys and quorum'
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")


def refusal(message: str, hint: str = "", code: str = "BAD_SPEC") -> PydanticCustomError:
    """Return an error that pydantic carries with its place in the spec."""
    return PydanticCustomError("hearth", "{message}", {"message": message, "hint": hint, "code": code})


def _read_by(parse: Callable[[str], object]) -> Callable[[object], str]:
    def read(value: object) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise refusal(f"{value} has no unit", code="BAD_UNIT")
        if not isinstance(value, str):
            raise refusal(f"must be text, not {_kind(value)}")
        try:
            parse(value)
        except HearthError as error:
            raise refusal(error.message, error.hint, error.code) from error
        return value

    return read


def _text(value: object) -> str:
    if isinstance(value, bool | int | float):
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        raise refusal(f"{shown} is unquoted, and this is text", code="UNQUOTED")
    if not isinstance(value, str):
        raise refusal(f"must be text, not {_kind(value)}")
    if "\0" in value:
        raise refusal("holds a NUL character")
    if len(value) > rules.MAX_TEXT:
        raise refusal(f"has {len(value)} characters; the most is {rules.MAX_TEXT}")
    return value


def _decimal(value: object) -> str:
    text = _text(value)
    if not rules.DECIMAL.fullmatch(text):
        raise refusal(f'"{text}" is not a decimal number', 'write it as "0.001" or "1e-5"')
    return text


def _amount(value: object) -> str:
    text = _text(value)
    try:
        split_amount(text)
    except HearthError as error:
        raise refusal(error.message, error.hint, error.code) from error
    return text


def _fee(value: object) -> str:
    return "auto" if value == "auto" else _amount(value)


def _rate(value: object) -> str:
    text = _text(value)
    try:
        amount, _ = split_rate(text)
    except HearthError as error:
        raise refusal(error.message, error.hint, error.code) from error
    _amount(amount)
    return text


def _integer(value: object) -> object:
    # A value that came in by ${NAME} is text; digits in quotes are as good as digits.
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _parent(value: object) -> object:
    return value if isinstance(value, dict | After) else {"job": _text(value)}


def _parents(value: object) -> object:
    return list(value) if isinstance(value, list | tuple) else [value]


def _any_form_of_parents(schema: dict[str, Any]) -> None:
    """Let the schema take what `_parents` does: one parent or a list, each by its id or with a condition."""
    one = [{"type": "string", "pattern": f"^{JOB_ID.pattern}$"}, schema.pop("items")]
    listed = {"type": schema.pop("type"), "maxItems": schema.pop("maxItems"), "items": {"anyOf": one}}
    schema["anyOf"] = [*one, listed]


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return {dict: "a mapping", list: "a list", type(None): "empty"}.get(type(value), type(value).__name__)


_DURATION = r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
Text = Annotated[str, BeforeValidator(_text)]
Duration = Annotated[
    str,
    BeforeValidator(_read_by(parse_duration)),
    WithJsonSchema({"type": "string", "pattern": _DURATION, "examples": ["30m", "2h30m"]}),
]
Size = Annotated[
    str,
    BeforeValidator(_read_by(parse_size)),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9.]+ ?([KMGT]i)?B?$", "examples": ["16GiB", "512MiB"]}),
]
Amount = Annotated[str, BeforeValidator(_amount), WithJsonSchema({"type": "string", "examples": ["0.60", "0.6 ETH"]})]
Fee = Annotated[str, BeforeValidator(_fee), WithJsonSchema({"type": "string", "examples": ["auto", "0.002"]})]
Rate = Annotated[str, BeforeValidator(_rate), WithJsonSchema({"type": "string", "examples": ["1.20/h"]})]
Decimal = Annotated[str, BeforeValidator(_decimal), WithJsonSchema({"type": "string", "examples": ["1e-5"]})]
_DIGITS = BeforeValidator(_integer)


class Model(BaseModel):
    """A part of the spec: unknown keys, coerced types and later changes are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Gpu(Model):
    """The GPUs of one slot: how many, whose, the least tier or the only one, and the least memory of each."""

    count: Annotated[int, Field(ge=0, le=63), _DIGITS] = 1
    tier: Text | None = Field(
        default=None, description="a model of the tier table, such as rtx-4090: this one or better"
    )
    vram: Size | None = None
    vendor: VendorName | None = Field(default=None, description="that of the tier, or nvidia, unless it is named")
    exact: bool = Field(default=False, description="GPUs of this very tier, and of no better one")


class Resources(Model):
    """What one unit needs. `disk` defaults to what inputs and outputs add up to."""

    gpu: Gpu = Gpu(count=0)
    cpus: Annotated[int, Field(ge=1, le=1023), _DIGITS] = 1
    memory: Size = "1GiB"
    disk: Size | None = None
    regions: list[Text] = Field(default=[], description="two-letter countries; each admits its whole zone")


class Input(Model):
    """A file or folder that a unit reads: a path, an ipfs:// CID, or a URL that is fetched once, at submit."""

    src: Text
    dst: Text = Field(description="absolute, under /in")
    encrypt: bool = False


class Output(Model):
    """A file or folder that a unit leaves behind; a required one must exist and hold something."""

    path: Text = Field(description="absolute, /out or below")
    required: bool = True
    max_size: Size = "1GiB"


class Limits(Model):
    """How long a unit may run, and when the whole job must be over: a duration from now or an ISO 8601 time."""

    runtime: Duration = "10m"
    deadline: Text | None = None


class Price(Model):
    """What the job may cost: all that escrow can ever lose, and the most per unit and time."""

    max_total: Amount | None = None
    max_rate: Rate | None = None
    keeper_fee: Fee = "auto"
    billing: Literal["auto", "fixed", "fuel", "metered"] = "auto"


class Match(Model):
    """How a worker is chosen: by the best proposal in a window, or, at 0s, first come. Default: the shortest window."""

    window: Duration | None = None
    newcomers: bool = Field(default=False, description="let nodes on probation take it at any price")


class Compare(Model):
    """How two results are compared. hash: bit for bit; the others need a file of the output."""

    kind: Literal["hash", "allclose", "cosine", "metric"] = "hash"
    file: Text | None = None
    atol: Decimal | None = None
    rtol: Decimal | None = None
    minimum: Decimal | None = Field(default=None, description="cosine: the least similarity")
    field: Text | None = Field(default=None, description="metric: the JSON field")


class After(Model):
    """A job to wait for, and which end of it lets this one run: well (every unit ok), otherwise, or either."""

    job: Text = Field(description="its id")
    condition: Literal["success", "failure", "always"] = Field(default="success", alias="if")


class Verify(Model):
    """Who judges a result: nobody, or attesters of whom enough must sign it before its worker is paid."""

    mode: Literal["none", "attested", "referee", "retrial"] | None = None
    attesters: Text | None = Field(
        default=None, description="a file with keys (1 to 16 addresses) and quorum, how many of them must sign"
    )
    window: Duration | None = None
    compare: Compare = Compare()
    replicas: Annotated[int, Field(ge=1, le=7), _DIGITS] | None = None
    keep: bool = Field(default=False, description="let the chain itself keep the digests of results")

    @property
    def kind(self) -> Literal["none", "attested", "referee", "retrial"]:
        """Return the mode, which naming attesters implies where it is left out."""
        return self.mode or ("none" if self.attesters is None else "attested")


class Array(Model):
    """How many units the job has, and how many of them one lease runs."""

    units: Annotated[int, Field(ge=1, le=MAX_UNITS), _DIGITS] = 1
    chunk: Annotated[int, Field(ge=1, le=MAX_CHUNK), _DIGITS] = 1


class Retry(Model):
    """How many times a unit may be started."""

    attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS), _DIGITS] = 3


class Checkpoint(Model):
    """How often what a unit has published of its state is stored, and in which folder it publishes it.

    A unit that is lost is begun again by another worker, which finds the files of the last time at the same place.
    """

    every: Duration
    path: Text = Field(description="a folder below /out")


class JobSpec(Model):
    """A Hearth job, as its submitter writes it."""

    version: Annotated[int, Field(ge=1, le=1), _DIGITS] = 1
    name: Annotated[str, Field(pattern=rules.NAME.pattern), BeforeValidator(_text)] = "job"
    runtime: RuntimeName | None = Field(
        default=None,
        description=", ".join(f"{name} with `{kind.program}`" for name, kind in sorted(RUNTIMES.items())),
    )
    image: Text | None = None
    module: Text | None = Field(default=None, description="a path or ipfs://CID")
    command: list[Text] = Field(default=[], max_length=rules.MAX_ITEMS)
    workdir: Text | None = Field(default=None, description="a folder, mounted read-only at /job, the working directory")
    env: dict[str, Text] = Field(default={}, max_length=rules.MAX_ITEMS)
    inputs: list[Input] = Field(default=[], max_length=rules.MAX_ITEMS)
    outputs: list[Output] = Field(
        default=[Output(path="/out", required=False)], min_length=1, max_length=rules.MAX_ITEMS
    )
    resources: Resources = Resources()
    limits: Limits = Limits()
    price: Price = Price()
    match: Match = Match()
    verify: Verify = Verify()
    array: Array = Array()
    after: Annotated[list[Annotated[After, BeforeValidator(_parent)]], BeforeValidator(_parents)] = Field(
        default=[],
        max_length=MAX_PARENTS,
        description="jobs to wait for, by id; a job that ends otherwise than asked ends this one",
        json_schema_extra=_any_form_of_parents,
    )
    retry: Retry = Retry()
    checkpoint: Checkpoint | None = None

    @property
    def kind(self) -> RuntimeName:
        """Return the runtime, which the program implies where it is left out."""
        if self.runtime is not None:
            return self.runtime
        return next((kind.name for kind in RUNTIMES.values() if self.has_program(kind)), DEFAULT.name)

    def has_program(self, kind: RuntimeKind) -> bool:
        """Say whether the spec names a program such as a runtime runs."""
        return getattr(self, kind.program) is not None

    @property
    def max_seconds(self) -> int:
        """Return the longest that one unit may run."""
        return parse_duration(self.limits.runtime)


def problems_of(spec: JobSpec) -> Iterator[Problem]:
    """Yield what is wrong with a spec whose every field is well formed by itself."""
    yield from _program(spec)
    for part, src in local_sources(spec):
        yield from rules.source(src, part)
    yield from rules.env(spec.env, ("env",))
    yield from rules.env_values(spec.env, ("env",))
    yield from rules.places([(("inputs", i, "dst"), item.dst) for i, item in enumerate(spec.inputs)], "/in")
    yield from rules.places([(("outputs", i, "path"), item.path) for i, item in enumerate(spec.outputs)], "/out")
    yield from _resources(spec)
    yield from _limits(spec)
    yield from _verify(spec.verify)
    for index, parent in enumerate(spec.after):
        if not JOB_ID.fullmatch(parent.job):
            yield Problem(("after", index), f'"{parent.job[:80]}" is not a job id', "hearth jobs --mine")
        elif parent.job in (other.job for other in spec.after[:index]):
            yield Problem(("after", index), "names a job twice", "keep one condition; a job ends in one way only")
    if spec.checkpoint is not None:
        yield from _checkpoint(spec, spec.checkpoint)


def unbuilt_in(spec: JobSpec) -> Iterator[Problem]:
    """Yield each part of a well formed spec that this version of the network does not offer, with its own code."""
    later = "is not available in this version"
    mode = spec.verify.kind
    if mode in ("referee", "retrial"):
        yield Problem(
            ("verify", "mode"),
            f"mode {mode} {later}: nobody can challenge a result yet, only attesters can confirm one",
            "use mode: none, or name attesters",
            {"referee": "NO_REFEREE", "retrial": "NO_RETRIAL"}[mode],
        )
    if spec.verify.replicas is not None and spec.verify.replicas > 1:
        yield Problem(("verify", "replicas"), f"more than one replica {later}", "remove replicas", "NO_REPLICAS")
    if spec.array.chunk > 1:
        yield Problem(("array", "chunk"), f"chunk above 1 {later}", "use chunk: 1", "NO_CHUNK")
    for index, item in enumerate(spec.inputs):
        if item.encrypt:
            yield Problem(
                ("inputs", index, "encrypt"),
                f"confidential input {later}; everything that is uploaded is public",
                "remove encrypt, or keep this data at home",
                "NO_ENCRYPT",
            )


def local_sources(spec: JobSpec) -> Iterator[tuple[Location, str]]:
    """Yield where each thing that a spec takes in is named, and its name: module, workdir, inputs."""
    if spec.module is not None:
        yield ("module",), spec.module
    if spec.workdir is not None:
        yield ("workdir",), spec.workdir
    for index, item in enumerate(spec.inputs):
        yield ("inputs", index, "src"), item.src


def _program(spec: JobSpec) -> Iterator[Problem]:
    kind = RUNTIMES[spec.kind]
    if spec.image is not None and spec.module is not None:
        yield Problem(("module",), "image and module exclude each other", "keep the one that fits the runtime")
    elif not spec.has_program(kind):
        hint = f"add {kind.program}: {kind.example}"
        if kind is DEFAULT:
            # Nothing that the spec says tells which runtime was meant.
            others = (other for other in RUNTIMES.values() if other.program != kind.program)
            hint += "".join(f", or {other.program}: for a {other.title} job" for other in others)
        yield Problem(("runtime",) if spec.runtime else (), f"runtime {kind.name} needs {kind.program}", hint)
    if spec.image is not None and not rules.IMAGE.fullmatch(spec.image):
        yield Problem(("image",), f'"{spec.image}" is not an image reference', 'write "name:tag" or "name@sha256:..."')
    if spec.price.billing == "fuel" and not kind.meters_fuel:
        metered = " and ".join(other.title for other in RUNTIMES.values() if other.meters_fuel)
        yield Problem(("price", "billing"), f"fuel is counted in {metered} only", "use billing: fixed or metered")


def _resources(spec: JobSpec) -> Iterator[Problem]:
    need = spec.resources
    where: Location = ("resources",)
    if need.gpu.count and not RUNTIMES[spec.kind].takes_gpu:
        able = " or ".join(other.name for other in RUNTIMES.values() if other.takes_gpu)
        hint = f"ask for no GPU, or run an image (runtime {able})"
        yield Problem((*where, "gpu"), f"runtime {spec.kind} computes on the CPU", hint)
    if not need.gpu.count and need.gpu != Gpu(count=0):
        yield Problem((*where, "gpu", "count"), "tier, vram, vendor and exact say nothing of 0 GPUs", "use count: 1")
    if need.gpu.exact and need.gpu.tier is None:
        yield Problem((*where, "gpu", "exact"), "says nothing without a tier", "name a model: tier: rtx-4090")
    for name, size, most in (
        ("vram", need.gpu.vram, MAX_VRAM_GIB),
        ("memory", need.memory, MAX_MEMORY_GIB),
        ("disk", need.disk, MAX_DISK_GIB),
    ):
        place: Location = (*where, "gpu", name) if name == "vram" else (*where, name)
        if size is not None and not 0 < parse_size(size) <= most << 30:
            yield Problem(place, f"{size} is outside 1B..{most}GiB")
    kind = RUNTIMES[spec.kind]
    least = kind.least_memory_with_gpus if need.gpu.count else kind.least_memory
    if 0 < parse_size(need.memory) < least:
        least_size, with_gpus = format_size(least), " with GPUs" if need.gpu.count else ""
        problem = f"{need.memory} is less than the {least_size} with which {kind.title} starts a program{with_gpus}"
        yield Problem((*where, "memory"), problem, f'write memory: "{least_size}", or more')
    yield from rules.regions(need.regions, (*where, "regions"))
    written = sum(parse_size(item.max_size) for item in spec.outputs)
    if need.disk is not None and parse_size(need.disk) < written:
        yield Problem(
            (*where, "disk"), "is smaller than what the outputs may add up to", "raise disk or lower max_size"
        )
    for index, item in enumerate(spec.outputs):
        if not 0 < parse_size(item.max_size) <= MAX_DISK_GIB << 30:
            yield Problem(("outputs", index, "max_size"), f"{item.max_size} is outside 1B..{MAX_DISK_GIB}GiB")


def _limits(spec: JobSpec) -> Iterator[Problem]:
    seconds = spec.max_seconds
    if not 1 <= seconds <= MAX_RUNTIME:
        yield Problem(("limits", "runtime"), f"{spec.limits.runtime} is outside 1s..30d")
    if spec.limits.deadline is not None and rules.deadline(spec.limits.deadline) is None:
        yield Problem(
            ("limits", "deadline"),
            f'"{spec.limits.deadline}" is neither a duration nor a time',
            'write "6h" or "2030-01-31T12:00:00Z"',
        )
    if spec.match.window is not None and parse_duration(spec.match.window) > MAX_MATCH_WINDOW:
        yield Problem(("match", "window"), f"{spec.match.window} is above {MAX_MATCH_WINDOW}s")
    units, chunk = spec.array.units, spec.array.chunk
    if units % chunk:
        yield Problem(("array", "chunk"), f"{chunk} does not divide {units} units")
    elif chunk > 1 and chunk * seconds > MAX_RUNTIME:
        yield Problem(("array", "chunk"), f"{chunk} units of {spec.limits.runtime} last longer than 30d")
    elif units // chunk * (spec.verify.replicas or 1) * spec.retry.attempts >= MAX_TRIES:
        yield Problem(("retry", "attempts"), f"leases times attempts must stay below {MAX_TRIES}", "lower attempts")


def _checkpoint(spec: JobSpec, checkpoint: Checkpoint) -> Iterator[Problem]:
    where: Location = ("checkpoint",)
    yield from rules.folder_below(checkpoint.path, "/out", (*where, "path"))
    every = parse_duration(checkpoint.every)
    if every < 1:
        yield Problem((*where, "every"), "must be at least 1s")
    elif every >= spec.max_seconds:
        problem = f"{checkpoint.every} is not less than limits.runtime: no checkpoint would ever be made"
        yield Problem((*where, "every"), problem, "write a shorter time, or a longer limits.runtime")
    if spec.price.billing not in ("auto", "metered"):
        problem = f"billing {spec.price.billing} has no checkpoints: a worker is paid for them by time"
        yield Problem(("price", "billing"), problem, "use billing: metered, or remove checkpoint")


def _verify(verify: Verify) -> Iterator[Problem]:
    mode = verify.kind
    if mode == "attested" and verify.attesters is None:
        yield Problem(("verify", "attesters"), "mode attested needs attesters", NAME_ATTESTERS)
    if mode != "attested" and verify.attesters is not None:
        yield Problem(("verify", "attesters"), f"mode {mode} has no attesters", "use mode: attested")
    window = 0 if verify.window is None else parse_duration(verify.window)
    if mode == "none" and window:
        yield Problem(("verify", "window"), "mode none has no window", "remove window, or name attesters")
    if window > MAX_CHALLENGE_WINDOW:
        yield Problem(("verify", "window"), f"{verify.window} is above {MAX_CHALLENGE_WINDOW // 86_400}d")
    yield from rules.compare(verify.compare.model_dump(exclude_none=True), ("verify", "compare"))
