"""The canonical spec: the JSON document (RFC 8785) whose sha2-256 is on chain, and what a worker reads.

It holds no path, no human unit and no float: data are CIDs with their sizes, an image is a digest, resources and times
are integers, decimals are strings. Every key is always there, so that one job has one document; but `checkpoint` is
there only where a job makes them, as documents of before have none. Price, salt and parents are not in it: they are
terms. Source: protocol.md "Job spec".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hearth.base.errors import BadCid, BadDocument, SpecError, TooLarge
from hearth.jobfile import rules
from hearth.jobfile.model import (
    MAX_DISK_GIB,
    MAX_MEMORY_GIB,
    MAX_RUNTIME,
    MAX_UNITS,
    Checkpoint,
    Compare,
    Gpu,
    Input,
    JobSpec,
    Resources,
)
from hearth.jobfile.problems import Problem, Source, field_name
from hearth.protocol.gpu_tiers import NVIDIA, TIERS, VENDORS, VendorName, vendor_of_slug
from hearth.protocol.runtimes import RUNTIMES, RuntimeName
from hearth.protocol.types import MAX_VRAM_GIB, Needs
from hearth.protocol.units import GIB, gib_ceil, mib_ceil, parse_duration, parse_size
from hearth.protocol.zones import zone_mask, zone_of
from hearth.storage import canonical as documents
from hearth.storage import cid

FUEL_PER_SECOND = 1_000_000_000
"""WASM fuel that is billed as one second (protocol.md "Job spec"): a constant of spec version 1."""

MAX_SIZE = (1 << 53) - 1
"""Sizes are JSON numbers, which are exact up to here."""


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def _cid(text: str) -> str:
    if not is_data_cid(text):
        raise ValueError("is not a CIDv1 of raw or dag-pb data by sha2-256, in base32")
    return text


Count = Annotated[int, Field(ge=0, le=MAX_SIZE)]
# Not Literal[1], which would take true for 1.
One = Annotated[int, Field(ge=1, le=1)]
Text = Annotated[str, Field(max_length=rules.MAX_TEXT), AfterValidator(_no_nul)]
DataCid = Annotated[str, AfterValidator(_cid)]


class Canonical(BaseModel):
    """A part of the canonical document: every key present, none besides, no coercion, no later change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Blob(Canonical):
    """Data that a worker fetches: its CID, and the bytes of its files."""

    cid: DataCid
    size: Count


class ResolvedInput(Canonical):
    """Data mounted read-only at `dst`, under /in."""

    cid: DataCid
    dst: Text
    size: Count


class ResolvedOutput(Canonical):
    """A file or folder that a unit leaves, of at most `max_size` bytes."""

    path: Text
    required: bool
    max_size: Annotated[int, Field(ge=1, le=MAX_SIZE)]


class ResolvedResources(Canonical):
    """What one unit gets. `vendor` is whose GPUs, and empty where there are none; `tier` is a slug of the tier table or
    empty, and `exact` says that no better one is wanted; `regions` are country codes, the
    first being the one that distances are measured from."""

    gpus: Annotated[int, Field(ge=0, le=63)]
    vendor: VendorName | Literal[""]
    tier: Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9-]{0,40})?$")]
    exact: bool
    vram_gib: Annotated[int, Field(ge=0, le=MAX_VRAM_GIB)]
    cpus: Annotated[int, Field(ge=1, le=1023)]
    memory_mib: Annotated[int, Field(ge=1, le=MAX_MEMORY_GIB << 10)]
    disk_gib: Annotated[int, Field(ge=1, le=MAX_DISK_GIB)]
    regions: Annotated[tuple[str, ...], Field(max_length=300)]


class ResolvedCompare(Canonical):
    """How two results are compared; a field that the kind does not use is empty."""

    kind: Literal["hash", "allclose", "cosine", "metric"]
    file: Text
    atol: Annotated[str, Field(pattern=rf"^({rules.DECIMAL.pattern})?$")]
    rtol: Annotated[str, Field(pattern=rf"^({rules.DECIMAL.pattern})?$")]
    minimum: Annotated[str, Field(pattern=rf"^({rules.DECIMAL.pattern})?$")]
    field: Text


class ResolvedVerify(Canonical):
    """How results are compared. Who judges them stands in the terms, and not in version 1 of the document."""

    mode: Literal["none"]
    compare: ResolvedCompare


class ResolvedCheckpoint(Canonical):
    """Every how many seconds a unit's published state is stored, and the folder below /out that holds it."""

    every: Annotated[int, Field(ge=1, lt=MAX_RUNTIME)]
    path: Text


class ResolvedSpec(Canonical):
    """A job that a worker can run: parse it with `parse_canonical`, write it with `canonical`."""

    version: One
    name: Annotated[str, Field(pattern=rules.NAME.pattern)]
    runtime: RuntimeName
    image: Annotated[str, Field(max_length=350)]
    module: Blob | None
    command: Annotated[tuple[Text, ...], Field(max_length=rules.MAX_ITEMS)]
    workdir: Blob | None
    env: Annotated[dict[str, Text], Field(max_length=rules.MAX_ITEMS)]
    inputs: Annotated[tuple[ResolvedInput, ...], Field(max_length=rules.MAX_ITEMS)]
    outputs: Annotated[tuple[ResolvedOutput, ...], Field(min_length=1, max_length=rules.MAX_ITEMS)]
    resources: ResolvedResources
    runtime_seconds: Annotated[int, Field(ge=1, le=MAX_RUNTIME)]
    fuel_per_second: Annotated[int, Field(ge=FUEL_PER_SECOND, le=FUEL_PER_SECOND)]
    units: Annotated[int, Field(ge=1, le=MAX_UNITS)]
    chunk: One
    verify: ResolvedVerify
    checkpoint: ResolvedCheckpoint | None = None

    @property
    def target(self) -> str:
        """Return the name of the program: the module's CID, or the image with its digest."""
        program: Blob | str = getattr(self, RUNTIMES[self.runtime].program)
        return program.cid if isinstance(program, Blob) else program

    @property
    def download_bytes(self) -> int:
        """Return the bytes of all data that a worker fetches; an image is not counted."""
        blobs = [blob.size for blob in (self.module, self.workdir) if blob is not None]
        return sum(blobs) + sum(item.size for item in self.inputs)

    @property
    def output_bytes(self) -> int:
        """Return the most bytes that the outputs may add up to."""
        return sum(item.max_size for item in self.outputs)


def resolve(spec: JobSpec, blobs: Mapping[str, Blob], *, image: str | None = None) -> ResolvedSpec:
    """Return the canonical form of a spec, given what its sources became; does no I/O.

    `blobs` maps each source as written (`local_sources`) to its data; `image` is the digest reference that the spec's
    image was resolved to, not needed where the spec names a digest itself.
    Raises SpecError, with the field in its details, where something is missing.
    """

    inputs = tuple(_input(index, item, blobs) for index, item in enumerate(spec.inputs))
    module = _blob("module", spec.module, blobs) if spec.module is not None else None
    workdir = _blob("workdir", spec.workdir, blobs) if spec.workdir is not None else None
    outputs = tuple(
        ResolvedOutput(path=item.path, required=item.required, max_size=parse_size(item.max_size))
        for item in spec.outputs
    )
    taken = sum(data.size for data in (module, workdir) if data is not None) + sum(item.size for item in inputs)
    written = sum(item.max_size for item in outputs)
    disk_gib = _disk_gib(spec.resources.disk, taken + written)
    resolved = ResolvedSpec(
        version=1,
        name=spec.name,
        runtime=spec.kind,
        image=_digest_image(spec.image, image) if spec.image is not None else "",
        module=module,
        command=tuple(spec.command),
        workdir=workdir,
        env=dict(spec.env),
        inputs=inputs,
        outputs=outputs,
        resources=_resources(spec.resources, disk_gib),
        runtime_seconds=spec.max_seconds,
        fuel_per_second=FUEL_PER_SECOND,
        units=spec.array.units,
        chunk=1,
        verify=ResolvedVerify(mode="none", compare=_compare(spec.verify.compare)),
        checkpoint=_checkpoint(spec.checkpoint),
    )
    canonical_bytes(resolved)
    return resolved


def _blob(field: str, src: str, blobs: Mapping[str, Blob]) -> Blob:
    """Return what a source became. Raises SpecError where it was not uploaded."""
    if src not in blobs:
        raise _refuse(field, f'"{src}" was not uploaded', "hearth submit job.yaml")
    return blobs[src]


def _input(index: int, item: Input, blobs: Mapping[str, Blob]) -> ResolvedInput:
    data = _blob(f"inputs[{index}].src", item.src, blobs)
    return ResolvedInput(cid=data.cid, dst=item.dst, size=data.size)


def _disk_gib(asked: str | None, needed: int) -> int:
    """Return the disk that a unit gets, whole GiB: what is asked, else the bytes that inputs and outputs need."""
    disk = parse_size(asked) if asked is not None else max(needed, 1)
    if disk < needed:
        raise _refuse("resources.disk", f"{asked} is less than inputs and outputs need", f"use {gib_ceil(needed)}GiB")
    if gib_ceil(disk) > MAX_DISK_GIB:
        raise _refuse("resources.disk", f"inputs and outputs need more than {MAX_DISK_GIB}GiB", "lower max_size")
    return gib_ceil(disk)


def _resources(need: Resources, disk_gib: int) -> ResolvedResources:
    """Return resources in whole units; sizes round up."""
    tier = tier_slug(need.gpu.tier) if need.gpu.tier is not None else ""
    return ResolvedResources(
        gpus=need.gpu.count,
        vendor=_vendor(need.gpu, tier),
        tier=tier,
        exact=need.gpu.exact,
        vram_gib=gib_ceil(parse_size(need.gpu.vram)) if need.gpu.vram is not None else 0,
        cpus=need.cpus,
        memory_mib=mib_ceil(parse_size(need.memory)),
        disk_gib=disk_gib,
        regions=tuple(country.strip().lower() for country in need.regions),
    )


def _vendor(gpu: Gpu, tier: str) -> VendorName | Literal[""]:
    """Return whose GPUs are asked: who makes the tier, who is named, or the first. Raises SpecError for two."""
    if not gpu.count:
        return ""
    maker = vendor_of_slug(tier)
    if maker is not None and gpu.vendor not in (None, maker.name):
        problem, hint = f"{tier} is a GPU of {maker.title}", f"write vendor: {maker.name}, or leave it out"
        raise _refuse("resources.gpu.vendor", problem, hint)
    return gpu.vendor or (maker.name if maker is not None else NVIDIA.name)


def _checkpoint(checkpoint: Checkpoint | None) -> ResolvedCheckpoint | None:
    if checkpoint is None:
        return None
    return ResolvedCheckpoint(every=parse_duration(checkpoint.every), path=checkpoint.path)


def _compare(compare: Compare) -> ResolvedCompare:
    """Return a comparator with every field present, empty where it is not used."""
    return ResolvedCompare(
        kind=compare.kind,
        file=compare.file or "",
        atol=compare.atol or "",
        rtol=compare.rtol or "",
        minimum=compare.minimum or "",
        field=compare.field or "",
    )


def canonical(spec: ResolvedSpec) -> dict[str, Any]:
    """Return the canonical document: plain JSON values without floats or nulls in place of numbers."""
    document = spec.model_dump(mode="json")
    if spec.checkpoint is None:
        del document["checkpoint"]
    return document


def canonical_bytes(spec: ResolvedSpec) -> bytes:
    """Return the document's RFC 8785 bytes, at most 1 MiB. Raises SpecError when it is larger."""
    try:
        return documents.encode(canonical(spec))
    except TooLarge as error:
        raise _refuse("", error.message, "move long arguments or environment into an input file") from error


def spec_digest(spec: ResolvedSpec) -> bytes:
    """Return the 32 bytes on chain: sha2-256 of the canonical bytes."""
    return hashlib.sha256(canonical_bytes(spec)).digest()


def parse_canonical(document: bytes | Mapping[str, Any]) -> ResolvedSpec:
    """Return the spec in a canonical document that somebody else wrote.

    Bytes must be the document's only spelling (RFC 8785), since their hash is what the chain holds. Raises SpecError
    BAD_DOCUMENT for everything that this version would not have written.
    """
    try:
        if isinstance(document, bytes):
            documents.decode(document)
            raw = document
        else:
            raw = documents.encode(dict(document))
        spec = ResolvedSpec.model_validate_json(raw)
    except (BadDocument, TooLarge) as error:
        raise _bad_document(error.message) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _bad_document(f"{field_name(first['loc'])}: {first['msg']}") from error
    fault = next(_faults(spec), None)
    if fault is not None:
        raise _bad_document(f"{field_name(fault.where)}: {fault.message}")
    return spec


def needs_of(resources: ResolvedResources, runtime: str) -> Needs:
    """Return what the chain compares with an offer. Sizes round up to whole GiB; no region means any zone.

    `home`, from which distances count, is the zone of the first region.
    """
    runtimes = RUNTIMES[runtime].flag
    return Needs(
        runtimes=runtimes | VENDORS[resources.vendor].flag if resources.gpus else runtimes,
        tier=tier_number(resources.tier),
        gpu_count=resources.gpus,
        vram_gib=resources.vram_gib,
        cores=resources.cpus,
        ram_gib=-(-resources.memory_mib // 1024),
        disk_gib=resources.disk_gib,
        zone_mask=zone_mask(resources.regions) if resources.regions else 0,
        home=zone_of(resources.regions[0]) if resources.regions else 0,
        exact=resources.exact,
    )


def tier_slug(name: str) -> str:
    """Return the table's slug for a GPU model in any common spelling: "RTX4090", "rtx 4090" and "rtx-4090" are one.

    Raises SpecError UNKNOWN_TIER with the nearest slugs.
    """
    wanted = _squash(name)
    for slug in TIERS:
        if _squash(slug) == wanted:
            return slug
    shown = near_tiers(name)
    raise _refuse(
        "resources.gpu.tier",
        f'"{name}" is not in the tier table',
        f"did you mean {' or '.join(shown)}?" if shown else "name a model such as rtx-4090 or h100, or vram alone",
        "UNKNOWN_TIER",
    )


def near_tiers(name: str) -> list[str]:
    """Return the slugs, three at most, that a name of no model is near to."""
    import difflib

    wanted = _squash(name)
    # A name without its memory ("A100") is several models.
    shown = [slug for slug in TIERS if wanted and _squash(slug).startswith(wanted)][:3]
    near = difflib.get_close_matches(wanted, [_squash(slug) for slug in TIERS], n=3, cutoff=0.6)
    return shown or [slug for slug in TIERS if _squash(slug) in near]


def tier_number(slug: str) -> int:
    """Return the routing key of a tier slug; no slug is 0, which every node satisfies."""
    return TIERS[tier_slug(slug)] if slug else 0


def _gpu_faults(need: ResolvedResources) -> Iterator[Problem]:
    """Yield what the parts of `resources` that are about GPUs say against each other."""
    if not need.gpus and (need.tier or need.vram_gib or need.vendor or need.exact):
        yield Problem(("resources", "gpus"), "tier, vram, vendor and exact say nothing of 0 GPUs")
    if need.gpus and not need.vendor:
        yield Problem(("resources", "vendor"), "is missing")
    if need.exact and not need.tier:
        yield Problem(("resources", "exact"), "says nothing without a tier")
    maker = vendor_of_slug(need.tier)
    if maker is not None and need.vendor not in ("", maker.name):
        yield Problem(("resources", "vendor"), f"{need.tier} is a GPU of {maker.title}")


def exact_tier(need: ResolvedResources) -> int | None:
    """Return the only tier that GPUs may have, None where better ones do as well."""
    return tier_number(need.tier) if need.exact else None


def is_data_cid(text: str) -> bool:
    """Say whether text is the one spelling of a CIDv1 (raw or dag-pb, sha2-256) in lower case base32."""
    try:
        parsed = cid.parse(text)
    except BadCid:
        return False
    known = parsed.version == 1 and parsed.codec in (cid.RAW, cid.DAG_PB) and parsed.hash_code == cid.SHA2_256
    return known and str(parsed) == text


def _digest_image(written: str, resolved: str | None) -> str:
    repository, at, digest = written.partition("@")
    if at:
        # A tag beside a digest says nothing; one image has one name.
        head, slash, last = repository.rpartition("/")
        return f"{head}{slash}{last.partition(':')[0]}@{digest}"
    if resolved is None or not rules.DIGEST_IMAGE.fullmatch(resolved):
        raise _refuse("image", f'"{written}" was not resolved to a digest', f"docker pull {written}")
    return resolved


def _faults(spec: ResolvedSpec) -> Iterator[Problem]:
    """Yield what the types cannot say of a document from outside."""
    kind = RUNTIMES[spec.runtime]
    if kind.program != "module" and spec.module is not None:
        yield Problem(("module",), f"runtime {kind.name} has no module")
    if kind.program == "module" and spec.module is None:
        yield Problem(("module",), f"runtime {kind.name} needs a module")
    if kind.program != "image" and spec.image:
        yield Problem(("image",), f"runtime {kind.name} has no image")
    if kind.program == "image" and not rules.DIGEST_IMAGE.fullmatch(spec.image):
        yield Problem(("image",), "is not a digest reference")
    if spec.resources.gpus and not kind.takes_gpu:
        yield Problem(("resources", "gpus"), f"runtime {kind.name} has no GPU")
    yield from _gpu_faults(spec.resources)
    yield from rules.env(spec.env, ("env",))
    yield from rules.places([(("inputs", i, "dst"), item.dst) for i, item in enumerate(spec.inputs)], "/in")
    yield from rules.places([(("outputs", i, "path"), item.path) for i, item in enumerate(spec.outputs)], "/out")
    regions = spec.resources.regions
    yield from rules.regions(regions, ("resources", "regions"))
    if any(country != country.strip().lower() for country in regions):
        yield Problem(("resources", "regions"), "are not lower case codes")
    yield from rules.compare(spec.verify.compare.model_dump(), ("verify", "compare"))
    if spec.checkpoint is None and "checkpoint" in spec.model_fields_set:
        yield Problem(("checkpoint",), "is left out where there is none")
    if spec.checkpoint is not None:
        yield from rules.folder_below(spec.checkpoint.path, "/out", ("checkpoint", "path"))
    if spec.download_bytes + spec.output_bytes > spec.resources.disk_gib * GIB:
        yield Problem(("resources", "disk_gib"), "is less than inputs and outputs need")


def _squash(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _refuse(field: str, message: str, hint: str, code: str = "BAD_SPEC") -> SpecError:
    return SpecError(f"{field}: {message}" if field else message, hint=hint, code=code, field=field)


def _bad_document(message: str) -> SpecError:
    return Source("spec document", {}).refuse(
        [Problem((), message, "the submitter's tool wrote a spec that this version does not read", "BAD_DOCUMENT")]
    )
