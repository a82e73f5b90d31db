"""The worker's settings: worker.toml, checked as a whole before anything starts, and again at a reload.

Every refusal names the file, the field and what would be right. Secrets are named by file, never written here. Prices
stay text until the market's asset is known (`ask`). docs/worker.toml.md explains each field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from hearth.base.errors import ConfigError, HearthError
from hearth.base.urls import folder_url
from hearth.chain.keys import KeyFile, read_key
from hearth.config import sections
from hearth.config.sections import (
    Address,
    Amount,
    AmountOrUnlimited,
    Digest,
    Duration,
    GasPrice,
    GatewayUrl,
    LogLevel,
    Network,
    Rate,
    RateOrNone,
    RpcUrl,
    Section,
    Size,
    UserPath,
)
from hearth.market.manifest import MAX_GATEWAYS
from hearth.protocol import units
from hearth.protocol.gpu_tiers import vram_gib
from hearth.protocol.runtimes import DOCKER, RUNTIMES, WASM, RuntimeName
from hearth.protocol.types import MAX_RATE, Offer
from hearth.protocol.types import Runtime as RuntimeFlag
from hearth.protocol.units import GIB, Asset
from hearth.protocol.zones import zone_of
from worker.attempt.task import Pace
from worker.cgroups import memory_bytes, usable_cores
from worker.gpu import probing
from worker.registries import DEFAULT_REGISTRIES
from worker.runtimes.profiles import NO_GPU_IN_GVISOR, is_gvisor

if TYPE_CHECKING:
    from worker.gpu.port import GpuInfo, GpuProbe
    from worker.runtimes.base import Runtime
    from worker.runtimes.docker import DockerRuntime

DOCTOR: Final = "hearth worker doctor"
HINT: Final = f"mend it in worker.toml, then {DOCTOR}"
MEND_RPC: Final = f"mend rpc in worker.toml, then {DOCTOR}"
MEND_CODE: Final = "where you know that code, name its hashes under code in worker.toml"
NEW_KEY: Final = "hearth worker operator ADDRESS --node N --account owner"
"""What gives a node whose key is lost another one."""
INIT: Final = "hearth worker init --price RATE --country CODE"
_SPAN: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def _schedule(text: str) -> str:
    for span in filter(None, (part.strip() for part in text.split(","))):
        match = _SPAN.fullmatch(span)
        if match is None:
            raise ValueError(f'"{span}" is not a span of the day; write "22:00-08:00", several with commas')
        if (match[1], match[2]) == (match[3], match[4]):
            raise ValueError(f'"{span}" is empty; leave the schedule out to accept work at any time')
    return text


def _registry(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9.*?\[\]!-]+(:[0-9*]{1,5})?", text):
        raise ValueError(f'"{text}" is not a registry; write its host, with a port where it has one: "ghcr.io"')
    return text


def _image_pattern(text: str) -> str:
    if "://" in text or not re.fullmatch(r"[a-z0-9._:/@*?\[\]!-]+", text):
        right = text.lower() if text.lower() != text else "ghcr.io/me/*"
        raise ValueError(f'"{text}" is no pattern of images: write it as "{right}"')
    name, _, digest = text.rpartition("@")
    algorithm, colon, digits = (digest if name else text).partition("sha256:")
    if colon and not algorithm and not set(digits) & set("*?[") and not re.fullmatch("[0-9a-f]{64}", digits):
        raise ValueError(f'"{text}": a digest is sha256: and 64 hex digits')
    if not name and colon and not algorithm:
        return text
    if ":" in (name or text).rpartition("/")[2]:
        raise ValueError(f'"{text}": jobs name images by digest, and a tag says nothing of it; leave the tag out')
    return text


def _module_pattern(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9*?\[\]!-]+", text):
        raise ValueError(f'"{text}" is no pattern of modules: write a CID in base32, "bafy...", without ipfs://')
    return text


ImagePattern = Annotated[str, AfterValidator(_image_pattern)]
ModulePattern = Annotated[str, AfterValidator(_module_pattern)]


def _oci_runtime(text: str) -> str:
    if not re.fullmatch(r"([a-z0-9][a-z0-9._-]{0,63})?", text):
        raise ValueError(f'"{text}" is no name of a runtime; write the one that the engine has it under: "runsc"')
    return text


UPDATE: Final = "hearth worker update"


class Account(Section):
    """Who is paid, and the hot key that works: a cold address, an encrypted keystore and its password's file."""

    payout: Address
    keystore: UserPath
    password_file: UserPath


class OfferSettings(Section):
    """What one slot costs and holds. Sizes left out are the machine's, divided by the slots."""

    price: Rate
    slots: Annotated[int, Field(ge=1, le=63)] = 1
    gpus: Literal["all", "none"] | tuple[str, ...] = "all"
    gpus_per_slot: Annotated[int, Field(ge=0, le=63)] | None = None
    country: str
    runtimes: tuple[RuntimeName, ...] | None = None
    cores: Annotated[int, Field(ge=1, le=1023)] | None = None
    memory: Size | None = None
    disk: Size | None = None

    @property
    def gpu_names(self) -> tuple[str, ...]:
        """Return the GPUs that are named, none where all or none are offered."""
        return self.gpus if isinstance(self.gpus, tuple) else ()

    def gpus_of_slot(self, gpus: int) -> int:
        """Return how many of so many GPUs each slot has."""
        return self.gpus_per_slot if self.gpus_per_slot is not None else gpus // self.slots

    @field_validator("country")
    @classmethod
    def _known(cls, text: str) -> str:
        try:
            zone_of(text)
        except HearthError as error:
            raise ValueError(f"{error.message}; write a two-letter country code") from error
        return text.lower()


class Docker(Section):
    """Which container engine runs jobs, and how: its address, and a runtime that is registered with it.

    `patched_runc` are versions, as the engine prints them, whose distribution has fixes that a number does not show.
    `registries` are hosts, or shell patterns of public hosts, that images are fetched from; `max_image` is the most
    that one takes unpacked, `keep_images` what those that this worker fetched may take together before the oldest go.
    """

    host: str = ""
    runtime: Annotated[str, AfterValidator(_oci_runtime)] = ""
    patched_runc: tuple[str, ...] = ()
    registries: tuple[Annotated[str, AfterValidator(_registry)], ...] = DEFAULT_REGISTRIES
    max_image: Size = "32GiB"
    keep_images: Size = "64GiB"


class Accept(Section):
    """Which jobs are taken. Patterns are those of the shell: `*`, `?`, `[...]`; what is refused wins.

    `min_price` is the least that the node asks while it takes work, `min_pay` the least that a unit pays which takes
    all of its time. `submitters` None is anybody. `max_bond` is a multiple of what a unit may pay at most. `resume`
    says which units may begin with the state that another node stored.
    """

    schedule: Annotated[str, AfterValidator(_schedule)] = ""
    submitters: tuple[Address, ...] | None = None
    refuse_submitters: tuple[Address, ...] = ()
    images: tuple[ImagePattern, ...] = ("*",)
    refuse_images: tuple[ImagePattern, ...] = ()
    modules: tuple[ModulePattern, ...] = ("*",)
    refuse_modules: tuple[ModulePattern, ...] = ()
    judges: tuple[Address, ...] = ()
    attesters: tuple[Digest, ...] = ()
    max_bond: Annotated[int, Field(ge=1, le=10_000)] = 10
    resume: Literal["unjudged", "always", "never"] = "unjudged"
    gpu_only: bool = False
    min_price: RateOrNone = ""
    min_pay: Amount = ""
    max_runtime: Duration = "30d"
    confirmations: Annotated[int, Field(ge=0, le=1000)] = 2
    propose: bool = True
    propose_after: Duration = "0s"
    settle_after: Duration = "0s"

    @model_validator(mode="after")
    def _takes_something(self) -> Self:
        for name, listed in (("submitters", self.submitters), ("images", self.images), ("modules", self.modules)):
            if listed is not None and not listed:
                raise ValueError(f"{name} is empty, which allows none; leave it out to allow all")
        both = sorted(set(self.submitters or ()) & set(self.refuse_submitters))
        if both:
            raise ValueError(f"submitters and refuse_submitters both name {both[0]}")
        if units.parse_duration(self.max_runtime) == 0:
            raise ValueError('max_runtime "0s" allows no job; leave it out to allow all')
        return self


class Storage(Section):
    """Bounds on what jobs may bring and leave, how long results are kept, and what is left free on the disk.

    A lease whose data comes more slowly than `fetch_floor` in `fetch_window` is given back.
    """

    max_input: Size = "64GiB"
    max_output: Size = "64GiB"
    fetch_window: Duration = "2m"
    fetch_floor: Size = "1MiB"
    keep: Duration = "7d"
    reserve: Size = "2GiB"


class Gas(Section):
    """What gas may cost: in 24 hours, in the native coin, and how much more than it brings a unit may cost.

    `max_loss` is in the market's asset, "unlimited" for any, left out: nothing, but any on a local chain. `coin` is
    what one native coin is worth where the market pays in a token; left out there, nothing is compared.
    """

    max_per_day: str = ""
    max_loss: AmountOrUnlimited = ""
    coin: Amount = ""

    @field_validator("max_per_day")
    @classmethod
    def _coins(cls, text: str) -> str:
        return sections.coins(text)


class MetricsSettings(sections.MetricsSettings):
    """Where Prometheus metrics, /healthz and /readyz are served; an empty address serves none."""

    listen: str = "127.0.0.1:9464"


class GatewaySettings(sections.Served):
    """Where this worker's own store is served, block by block, and under which public addresses others reach it.

    An empty `listen` serves nothing: what `urls` name is then somebody else's, such as a Kubo's own gateway.
    """

    urls: tuple[GatewayUrl, ...] = ()

    @field_validator("urls")
    @classmethod
    def _few(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        if len(urls) > MAX_GATEWAYS or len(set(urls)) != len(urls):
            raise ValueError(f"{len(urls)} addresses, and a manifest names {MAX_GATEWAYS} different ones at most")
        return urls


LIVE: Final = frozenset({"rpc", "max_gas_price", "withdraw_at", "log_level", "accept.*", "storage.*", "gas.*"})
"""The keys that a running worker takes up; worker.md "Reload" says what becomes of the others."""


class Settings(Section):
    """A whole worker.toml. Relative paths count from the file's folder and are absolute here."""

    network: Network
    node: Annotated[int, Field(ge=1, lt=1 << 32)] | None = None
    home: UserPath
    rpc: tuple[RpcUrl, ...] = Field(default=(), repr=False)
    stores: tuple[str, ...] = ()
    code: tuple[Digest, ...] = ()
    account: Account
    offer: OfferSettings
    docker: Docker = Docker()
    accept: Accept = Accept()
    storage: Storage = Storage()
    gas: Gas = Gas()
    gateway: GatewaySettings = GatewaySettings()
    metrics: MetricsSettings = MetricsSettings()
    max_gas_price: GasPrice = "200 gwei"
    withdraw_at: Amount = ""
    log_level: LogLevel = "info"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.accept.gpu_only and self.offer.gpus == "none":
            raise ValueError('accept.gpu_only takes jobs for GPUs alone, and offer.gpus is "none"')
        if len(set(self.offer.gpu_names)) != len(self.offer.gpu_names):
            raise ValueError("offer.gpus names a GPU twice")
        if self.offer.gpu_names and len(probing.drivers_of(self.offer.gpu_names)) > 1:
            raise ValueError("offer.gpus names GPUs of two vendors, and a node offers those of one: run two workers")
        if self.offer.gpu_names and is_gvisor(self.docker.runtime):
            raise ValueError(f'offer.gpus names GPUs and docker.runtime is "{self.docker.runtime}": {NO_GPU_IN_GVISOR}')
        return self

    @property
    def max_gas_wei(self) -> int:
        """Return the highest price per gas that is ever paid, in wei."""
        return sections.gas_price(self.max_gas_price)

    @property
    def day_budget(self) -> int | None:
        """Return the wei that the gas of 24 hours may cost, None for any."""
        return units.parse_amount(self.gas.max_per_day, units.NATIVE) if self.gas.max_per_day else None

    @property
    def reserve_bytes(self) -> int:
        """Return the free bytes of disk below which nothing new is taken."""
        return units.parse_size(self.storage.reserve)

    @property
    def max_input_bytes(self) -> int:
        """Return the most bytes that a job may bring."""
        return units.parse_size(self.storage.max_input)

    @property
    def max_output_bytes(self) -> int:
        """Return the most bytes that a job may leave."""
        return units.parse_size(self.storage.max_output)

    @property
    def pace(self) -> Pace:
        """Return how slowly a job's data may come."""
        return Pace(units.parse_duration(self.storage.fetch_window), units.parse_size(self.storage.fetch_floor))

    @property
    def max_runtime_seconds(self) -> int:
        """Return the longest lease that is taken."""
        return units.parse_duration(self.accept.max_runtime)

    @property
    def propose_after_seconds(self) -> int:
        """Return how long keepers are given to propose this node before it proposes itself."""
        return units.parse_duration(self.accept.propose_after)

    @property
    def settle_after_seconds(self) -> int:
        """Return how long keepers are given to settle before the worker does."""
        return units.parse_duration(self.accept.settle_after)

    @property
    def keep_seconds(self) -> int:
        """Return how long results of ended leases are kept."""
        return units.parse_duration(self.storage.keep)

    def ask(self, asset: Asset) -> int:
        """Return the ask of one slot, base units x 1e6 per second, rounded down. Raises ConfigError."""
        return _rate(self.offer.price, asset, "offer.price")

    def min_rate(self, asset: Asset) -> int:
        """Return the lowest rate at which work is taken, 0 for any. Raises ConfigError."""
        return _rate(self.accept.min_price, asset, "accept.min_price") if self.accept.min_price else 0

    def min_pay(self, asset: Asset) -> int:
        """Return the least that a unit must be able to pay, base units, 0 for any. Raises ConfigError."""
        text = self.accept.min_pay
        return sections.amount(text, asset, "accept.min_pay", hint=HINT) if text else 0

    def coin_price(self, asset: Asset) -> int:
        """Return base units of the market's asset for one native coin, 0 where nobody said. Raises ConfigError."""
        if asset.address is None:
            return 10**18
        return sections.amount(self.gas.coin, asset, "gas.coin", hint=HINT) if self.gas.coin else 0

    def max_loss(self, asset: Asset, *, local: bool) -> int | None:
        """Return what a unit may lose by its gas, base units, None for any loss. Raises ConfigError."""
        text = self.gas.max_loss or (sections.UNLIMITED if local else "0")
        return None if text == sections.UNLIMITED else sections.amount(text, asset, "gas.max_loss", hint=HINT)

    def withdraw_threshold(self, asset: Asset) -> int:
        """Return the operator's credit in base units from which it is paid out, 0 for never. Raises ConfigError."""
        return sections.amount(self.withdraw_at, asset, "withdraw_at", hint=HINT) if self.withdraw_at else 0


def load(path: Path, vouch: Callable[[Path, bytes], None] | None = None) -> Settings:
    """Read and check a worker.toml. Raises ConfigError that names the file and every field at fault, or `vouch`'s."""
    return parse(sections.read_toml(path, start=INIT, then=DOCTOR, vouch=vouch), path)


def operator_key(settings: Settings) -> KeyFile:
    """Return the key that works, still locked. Raises ConfigError NO_ACCOUNT, BAD_KEY_FILE, with the way back."""
    try:
        return read_key(settings.account.keystore)
    except ConfigError as error:
        first = "mend account.keystore in worker.toml" if error.code == "NO_ACCOUNT" else error.hint
        error.hint = f"{first}; where the key is lost, on the owner's machine: {NEW_KEY}"
        raise


def parse(data: dict[str, Any], path: Path) -> Settings:
    """Check the content of a worker.toml that lies at `path`. Raises ConfigError."""
    folder = path.resolve().parent
    settings = sections.check(Settings, data, path, then=DOCTOR)
    home = sections.absolute(settings.home, folder)
    # All that a container can be given, and in gVisor that is none.
    gpus = "none" if is_gvisor(settings.docker.runtime) else settings.offer.gpus
    return settings.model_copy(
        update={
            "offer": settings.offer.model_copy(update={"gpus": gpus}),
            "network": sections.network_of(settings.network, folder),
            "home": home,
            "account": sections.with_absolute(settings.account, folder, "keystore", "password_file"),
            "stores": settings.stores or (folder_url(home / "store"),),
        }
    )


def docker_of(settings: Settings) -> DockerRuntime:
    """Return the container runtime of these settings."""
    from worker.runtimes.docker import DockerRuntime
    from worker.runtimes.docker_images import ImageRules

    wish = settings.docker
    rules = ImageRules(
        registries=wish.registries,
        max_bytes=units.parse_size(wish.max_image),
        keep_bytes=units.parse_size(wish.keep_images),
        reserve_bytes=settings.reserve_bytes,
        ledger=settings.home / "images.json",
    )
    return DockerRuntime(wish.host or None, runtime=wish.runtime, images=rules)


def refuse_unknown_runtime(settings: Settings) -> None:
    """Refuse an OCI runtime that the engine does not have, where containers are offered. Raises ConfigError."""
    wished = settings.offer.runtimes
    if wished is not None and DOCKER.name not in wished:
        return
    lack = docker_of(settings).unknown_runtime()
    if lack:
        raise ConfigError(
            f"docker.runtime: {lack}",
            hint="hearth worker doctor; or leave docker.runtime out",
            code="NO_OCI_RUNTIME",
            component="worker",
        )


def runtimes_of(settings: Settings, scratch: Path | None = None) -> dict[str, Runtime]:
    """Return the sandbox of every runtime by its name; `scratch` is a folder for what one run needs."""
    from worker.runtimes.wasm import WasmRuntime

    return {WASM.name: WasmRuntime(scratch), DOCKER.name: docker_of(settings)}


def accepting_at(schedule: str, minute: int) -> bool:
    """Say whether a minute of the day (0..1439, local time) is inside a schedule; an empty one holds always.

    Spans are half-open and may pass midnight: "22:00-08:00" holds at 22:00 and at 07:59.
    """
    spans = [_SPAN.fullmatch(part.strip()) for part in schedule.split(",") if part.strip()]
    if not spans:
        return True
    for span in spans:
        assert span is not None  # checked when the settings were read
        start, end = int(span[1]) * 60 + int(span[2]), int(span[3]) * 60 + int(span[4])
        if start <= minute < end or (start > end and (minute >= start or minute < end)):
            return True
    return False


# ---- the offer ----


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine can give to jobs: sizes in bytes, GPUs that are fit to be used."""

    cores: int
    memory: int
    disk: int
    runtimes: RuntimeFlag
    gpus: tuple[GpuInfo, ...] = ()


def chosen_gpus(wish: OfferSettings, found: GpuProbe, lent: Collection[str] = ()) -> tuple[GpuInfo, ...]:
    """Return the GPUs that the settings give to jobs: named ones must be here and fit, of "all" the unfit are left out.

    One that is `lent` is used by a job of this worker, which makes it no less fit. Raises ConfigError naming a GPU that
    is missing or has a problem.
    """
    if wish.gpus == "all":
        return tuple(gpu for gpu in found.gpus if not gpu.problems_but(lent))
    here = {gpu.uuid: gpu for gpu in found.gpus}
    for uuid in wish.gpus:
        if uuid not in here:
            raise _refuse("offer.gpus", f"{uuid} is not on this machine ({found.reason or ', '.join(here)})")
        if problems := here[uuid].problems_but(lent):
            raise _refuse("offer.gpus", f"{uuid}: {'; '.join(problems)}")
    return tuple(here[uuid] for uuid in wish.gpus)


def given_gpus(settings: Settings, lent: Collection[str] = ()) -> tuple[GpuInfo, ...]:
    """Return the GPUs of this machine, as it is now, that `chosen_gpus` gives to jobs. Raises ConfigError."""
    if settings.offer.gpus == "none":
        return ()
    return chosen_gpus(settings.offer, probing.probe(settings.offer.gpu_names), lent)


def promised_gpu(wish: OfferSettings, offer: Offer, gpu: GpuInfo) -> str | None:
    """Say what a GPU lacks of what the node's offer promises of each, "" for nothing; None for one that the settings do
    not give to jobs.

    What a desktop takes of its memory changes, and is no matter here.
    """
    if wish.gpus == "none" or (wish.gpus != "all" and gpu.uuid not in wish.gpus):
        return None
    if gpu.tier < offer.tier:
        return f"it is of tier {gpu.slug}, and the offer promises better: {UPDATE}"
    has = vram_gib(gpu.vram_bytes)
    if has < offer.vram_gib:
        return f"it has {has} GiB of memory, and the offer promises {offer.vram_gib}: {UPDATE}"
    return ""


def wanted_runtimes(wish: OfferSettings, working: Mapping[str, tuple[bool, str]]) -> RuntimeFlag:
    """Return the runtimes to offer: those that work, of those that the settings name (all, where they name none).

    `working` says of each runtime whether it works and why not. Raises ConfigError for a named one that does not.
    """
    flags = RuntimeFlag(0)
    for name, kind in RUNTIMES.items():
        works, why = working.get(name, (False, "it is not built in"))
        if wish.runtimes is not None and name in wish.runtimes and not works:
            raise _refuse("offer.runtimes", f"{name} does not work here: {why}")
        if works and (wish.runtimes is None or name in wish.runtimes):
            flags |= kind.flag
    if not flags:
        raise _refuse("offer.runtimes", "no runtime works on this machine")
    return flags


def make_offer(settings: Settings, asset: Asset, machine: Machine) -> Offer:
    """Return the offer of one slot: the settings' sizes, else the machine's share, in whole GiB, rounded down.

    Raises ConfigError where a slot would be empty or the settings offer more than the machine has.
    """
    wish, slots = settings.offer, settings.offer.slots
    gpus = machine.gpus
    per_slot = wish.gpus_of_slot(len(gpus))
    if per_slot * slots > len(gpus):
        raise _refuse("offer.gpus_per_slot", f"{slots} slots of {per_slot} GPUs, and there are {len(gpus)}")
    if per_slot == 0 and gpus and wish.gpus_per_slot is None:
        raise _refuse("offer.slots", f"{slots} slots share {len(gpus)} GPUs; set gpus_per_slot = 0 or fewer slots")
    if per_slot > 1 and any(gpu.part is not None for gpu in gpus):
        raise _refuse("offer.slots", f"a program uses one MIG slice alone: set slots = {len(gpus)}")
    runtimes = machine.runtimes | gpus[0].vendor.flag if per_slot else machine.runtimes
    # A tenth of the memory is the system's.
    memory = units.parse_size(wish.memory) if wish.memory is not None else machine.memory * 9 // 10 // slots
    disk = units.parse_size(wish.disk) if wish.disk is not None else (machine.disk - settings.reserve_bytes) // slots
    cores = wish.cores if wish.cores is not None else machine.cores // slots
    for name, size, has in (("memory", memory, machine.memory), ("disk", disk, machine.disk)):
        if size * slots > has:
            text = units.format_size(has)
            raise _refuse(f"offer.{name}", f"{slots} slots of {units.format_size(size)}, and the machine has {text}")
    for name, number in (("cores", cores), ("memory", memory // GIB), ("disk", disk // GIB)):
        if number < 1:
            raise _refuse(f"offer.{name}", f"a slot would have none of it with {slots} slots")
    offered = gpus if per_slot else ()
    return Offer(
        runtimes=runtimes,
        # A slot may get any of the GPUs, so it promises no more than the least of them.
        tier=min((gpu.tier for gpu in offered), default=0),
        gpu_count=per_slot,
        vram_gib=min((gpu.vram_gib for gpu in offered), default=0),
        cores=min(cores, 1023),
        ram_gib=min(memory // GIB, 16_383),
        disk_gib=min(disk // GIB, 131_071),
        zone=zone_of(wish.country),
        slots=slots,
        ask=settings.ask(asset),
    )


def probe_offer(
    settings: Settings, asset: Asset, runtimes: RuntimeFlag | None = None, *, lent: Collection[str] = ()
) -> Offer:
    """Return the offer of one slot of this machine, for `hearth worker register`. Raises ConfigError.

    `runtimes` are those that work here, of those that the settings name; None has them looked for. `lent` are GPUs that
    jobs of this worker have now.
    """
    from worker.volumes import room_under

    if runtimes is None:
        refuse_unknown_runtime(settings)
        working = {name: runtime.available() for name, runtime in runtimes_of(settings).items()}
        runtimes = wanted_runtimes(settings.offer, working)
    machine = Machine(
        cores=usable_cores(),
        memory=memory_bytes(),
        disk=room_under(settings.home),
        runtimes=runtimes,
        gpus=given_gpus(settings, lent),
    )
    return make_offer(settings, asset, machine)


def _rate(text: str, asset: Asset, field: str) -> int:
    try:
        rate = units.parse_rate(text, asset)
    except HearthError as error:
        raise _refuse(field, f"{error.message} ({error.hint})") from error
    if not 0 < rate <= MAX_RATE:
        most = units.rate_at_most(MAX_RATE, asset)
        raise _refuse(field, f'"{text}" is no price: it is more than 0 and at most {most}')
    return rate


def _refuse(field: str, why: str) -> ConfigError:
    return sections.refusal(field, why, hint=HINT)
