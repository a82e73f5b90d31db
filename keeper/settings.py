"""The keeper's settings: keeper.toml, checked as a whole before anything starts, then never changed.

Every refusal names the file and the field. Secrets are named by file, never written here. Amounts stay text until the
market's asset is known. Without an account the keeper is a dry run. docs/KEEPER.md explains each field.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hearth import units
from hearth.errors import ConfigError, HearthError
from hearth.units import Asset
from keeper.decide import COIN, Config

HINT: Final = "hearth keeper run --help"
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_LISTEN: Final = re.compile(r"(.+):(\d{1,5})")
_GWEI: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?gwei")
_EVERYTHING: Final = "unlimited"


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f'"{text}" is not an address: 0x and 40 hex digits')
    return text.lower()


def _duration(text: str) -> str:
    try:
        units.parse_duration(text)
    except HearthError as error:
        raise ValueError(f"{error.message} ({error.hint})") from error
    return text


Address = Annotated[str, AfterValidator(_address)]
Duration = Annotated[str, AfterValidator(_duration)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Account(_Part):
    """The key that sends: an encrypted keystore and its password's file. `payee` is credited, the key's by default."""

    keystore: Path
    password_file: Path
    payee: Address | None = None


class Work(_Part):
    """Which work is worth it, and how much of it is left to other keepers."""

    jitter: Duration = "12s"
    latency: Duration = "3s"
    max_loss: str = "0"
    ack_share_bps: Annotated[int, Field(ge=0, le=10_000)] = 9_000
    burst: Annotated[int, Field(ge=1, le=64)] = 8


class Price(_Part):
    """What one native coin is worth in the market's asset: a fixed amount, or a file that another program keeps.

    A market that pays in the native coin needs neither. The file holds one amount, such as "2650.40", and is read at
    every cycle.
    """

    coin: str = ""
    coin_file: Path | None = None


class Metrics(_Part):
    """Where Prometheus metrics, /healthz, /readyz and /status are served; an empty address serves none."""

    listen: str = "127.0.0.1:9465"

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, text: str) -> str:
        match = _LISTEN.fullmatch(text)
        if text and (match is None or int(match[2]) > 65_535):
            raise ValueError(f'"{text}" is not HOST:PORT')
        return text

    @property
    def address(self) -> tuple[str, int] | None:
        """Return (host, port), or None where nothing is served."""
        host, _, port = self.listen.rpartition(":")
        return (host, int(port)) if self.listen else None


class Limits(_Part):
    """When to pay no more, to wait, and to give up."""

    max_gas_price: str = "200 gwei"
    max_failures: Annotated[int, Field(ge=1)] = 20
    max_lag: Duration = "2m"
    wait: Duration = "30s"
    page_blocks: Annotated[int, Field(ge=1)] = 2_000
    compare_every: Annotated[int, Field(ge=1)] = 100

    @field_validator("max_gas_price")
    @classmethod
    def _gwei(cls, text: str) -> str:
        if not _GWEI.fullmatch(text):
            raise ValueError(f'"{text}" is not a gas price; write "200 gwei"')
        return text

    @property
    def max_gas_wei(self) -> int:
        """Return the highest price per gas that is ever paid, in wei."""
        match = _GWEI.fullmatch(self.max_gas_price)
        assert match is not None  # checked when the settings were read
        return units.parse_amount(match[1], Asset("gwei", 9))


class Settings(_Part):
    """A whole keeper.toml. Relative paths count from the file's folder and are absolute here."""

    network: str
    home: Path
    rpc: tuple[str, ...] = Field(default=(), repr=False)
    poll: Annotated[float, Field(gt=0, le=60)] = 1.0
    account: Account | None = None
    work: Work = Work()
    price: Price = Price()
    limits: Limits = Limits()
    metrics: Metrics = Metrics()
    withdraw_at: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.price.coin and self.price.coin_file is not None:
            raise ValueError("price.coin and price.coin_file exclude each other")
        return self

    def max_loss(self, asset: Asset) -> int:
        """Return what an action may lose, in base units; "unlimited" is more than any market holds."""
        if self.work.max_loss == _EVERYTHING:
            return 1 << 128
        return _amount(self.work.max_loss, asset, "work.max_loss")

    def withdraw_threshold(self, asset: Asset) -> int:
        """Return the credit in base units from which it is paid out to the account, 0 for never."""
        return _amount(self.withdraw_at, asset, "withdraw_at") if self.withdraw_at else 0

    def coin_price(self, asset: Asset) -> int:
        """Return base units of the market's asset for one native coin. Raises ConfigError where none is known."""
        if asset.address is None:
            return COIN
        text = self.price.coin
        if self.price.coin_file is not None:
            try:
                text = self.price.coin_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise _refuse("price.coin_file", f"{self.price.coin_file} cannot be read: {error}") from error
        if not text:
            raise _refuse(
                "price.coin",
                f"this market pays in {asset.symbol}, gas is paid in the native coin: say what one coin is worth",
            )
        return _amount(text, asset, "price.coin")

    def config(self, asset: Asset, keeper: str) -> Config:
        """Return the settings as `decide` takes them, for the key `keeper`."""
        work = self.work
        payee = keeper if self.account is None or self.account.payee is None else self.account.payee
        return Config(
            keeper=keeper,
            payee=payee,
            jitter=units.parse_duration(work.jitter),
            latency=units.parse_duration(work.latency),
            coin_price=self.coin_price(asset),
            max_loss=self.max_loss(asset),
            ack_bps=work.ack_share_bps,
            burst=work.burst,
        )


def load(path: Path) -> Settings:
    """Read and check a keeper.toml. Raises ConfigError that names the file and every field at fault."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {path}", hint=HINT, code="NO_CONFIG", component="keeper") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint=HINT, component="keeper") from error
    return parse(data, path)


def parse(data: dict[str, Any], path: Path) -> Settings:
    """Check the content of a keeper.toml that lies at `path`. Raises ConfigError."""
    folder = path.resolve().parent
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}"
            for item in error.errors(include_url=False)
        ]
        raise ConfigError(
            f"{path}: {'; '.join(problems)}", hint=HINT, code="BAD_CONFIG", component="keeper", problems=problems
        ) from error
    changes: dict[str, Any] = {"home": folder / settings.home}
    if settings.account is not None:
        changes["account"] = settings.account.model_copy(
            update={
                "keystore": folder / settings.account.keystore,
                "password_file": folder / settings.account.password_file,
            }
        )
    if settings.price.coin_file is not None:
        changes["price"] = settings.price.model_copy(update={"coin_file": folder / settings.price.coin_file})
    return settings.model_copy(update=changes)


def _amount(text: str, asset: Asset, name: str) -> int:
    try:
        return units.parse_amount(text, asset)
    except HearthError as error:
        raise _refuse(name, f"{error.message} ({error.hint})") from error


def _refuse(name: str, why: str) -> ConfigError:
    return ConfigError(f"{name}: {why}", hint=HINT, code="BAD_CONFIG", component="keeper")
