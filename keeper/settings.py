"""The keeper's settings: keeper.toml, checked as a whole before anything starts, then never changed.

Every refusal names the file and the field. Secrets are named by file, never written here. Amounts stay text until the
market's asset is known. Without an account the keeper is a dry run. docs/KEEPER.md explains each field.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, field_validator, model_validator

from hearth.config import sections
from hearth.config.sections import (
    Address,
    Amount,
    AmountOrUnlimited,
    Digest,
    Duration,
    GasPrice,
    LogLevel,
    Network,
    RpcUrl,
    Section,
    UserPath,
)
from hearth.protocol import units
from hearth.protocol.types import COIN
from hearth.protocol.units import Asset
from keeper.config import Config

LIST: Final = "hearth keeper list"
"""It reads the settings and the chain, and sends nothing."""
HINT: Final = f"mend it in keeper.toml, then {LIST}"
MEND_CODE: Final = "where you know that code, name its hashes under code in keeper.toml"
START: Final = "copy that of docs/KEEPER.md; without --config a keeper takes this account's own settings"


class Account(Section):
    """The key that sends: an encrypted keystore and its password's file. `payee` is credited, the key's by default."""

    keystore: UserPath
    password_file: UserPath
    payee: Address | None = None


class Work(Section):
    """Which work is worth it, and how much of it is left to other keepers."""

    jitter: Duration = "12s"
    latency: Duration = "3s"
    max_loss: AmountOrUnlimited = "0"
    ack_share_bps: Annotated[int, Field(ge=0, le=10_000)] = 9_000
    burst: Annotated[int, Field(ge=1, le=64)] = 8


class CoinPrice(Section):
    """What one native coin is worth in the market's asset: a fixed amount, or a file that another program keeps.

    A market that pays in the native coin needs neither. The file holds one amount, such as "2650.40", and is read at
    every cycle.
    """

    coin: Amount = ""
    coin_file: UserPath | None = None


class MetricsSettings(sections.MetricsSettings):
    """Where Prometheus metrics, /healthz, /readyz and /status are served; an empty address serves none."""

    listen: str = "127.0.0.1:9465"


class SpendingLimits(Section):
    """When to pay no more, to wait, and to give up."""

    max_gas_price: GasPrice = "200 gwei"
    max_gas_per_day: str = ""
    max_failures: Annotated[int, Field(ge=1)] = 20
    max_lag: Duration = "2m"
    wait: Duration = "30s"
    page_blocks: Annotated[int, Field(ge=1)] = 2_000
    compare_every: Annotated[int, Field(ge=1)] = 100

    @field_validator("max_gas_per_day")
    @classmethod
    def _coins(cls, text: str) -> str:
        return sections.coins(text)

    @property
    def day_budget(self) -> int | None:
        """Return the wei that the gas of 24 hours may cost, None for any."""
        return units.parse_amount(self.max_gas_per_day, units.NATIVE) if self.max_gas_per_day else None

    @property
    def max_gas_wei(self) -> int:
        """Return the highest price per gas that is ever paid, in wei."""
        return sections.gas_price(self.max_gas_price)


LIVE: Final = frozenset(
    {"rpc", "poll", "withdraw_at", "log_level", "work.*", "price.*"}
    | {f"limits.{key}" for key in SpendingLimits.model_fields if key != "page_blocks"}
)
"""The keys that a running keeper takes up; worker.md "Reload" says what becomes of the others."""


class Settings(Section):
    """A whole keeper.toml. Relative paths count from the file's folder and are absolute here."""

    network: Network
    home: UserPath
    rpc: tuple[RpcUrl, ...] = Field(default=(), repr=False)
    code: tuple[Digest, ...] = ()
    poll: Annotated[float, Field(gt=0, le=60)] = 1.0
    account: Account | None = None
    work: Work = Work()
    price: CoinPrice = CoinPrice()
    limits: SpendingLimits = SpendingLimits()
    metrics: MetricsSettings = MetricsSettings()
    withdraw_at: Amount = ""
    log_level: LogLevel = "info"

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.price.coin and self.price.coin_file is not None:
            raise ValueError("price.coin and price.coin_file exclude each other")
        return self

    def max_loss(self, asset: Asset) -> int:
        """Return what an action may lose, in base units; "unlimited" is more than any market holds."""
        if self.work.max_loss == sections.UNLIMITED:
            return 1 << 128
        return sections.amount(self.work.max_loss, asset, "work.max_loss", hint=HINT)

    def withdraw_threshold(self, asset: Asset) -> int:
        """Return the credit in base units from which it is paid out to the account, 0 for never."""
        return sections.amount(self.withdraw_at, asset, "withdraw_at", hint=HINT) if self.withdraw_at else 0

    def coin_price(self, asset: Asset) -> int:
        """Return base units of the market's asset for one native coin. Raises ConfigError where none is known."""
        if asset.address is None:
            return COIN
        text = self.price.coin
        if self.price.coin_file is not None:
            try:
                text = self.price.coin_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = f"{self.price.coin_file} cannot be read: {error}"
                raise sections.refusal("price.coin_file", why, hint=HINT) from error
        if not text:
            why = f"this market pays in {asset.symbol}, gas is paid in the native coin: say what one coin is worth"
            raise sections.refusal("price.coin", why, hint=HINT)
        return sections.amount(text, asset, "price.coin", hint=HINT)

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
    return parse(sections.read_toml(path, start=START, then=LIST), path)


def parse(data: dict[str, Any], path: Path) -> Settings:
    """Check the content of a keeper.toml that lies at `path`. Raises ConfigError."""
    folder = path.resolve().parent
    settings = sections.check(Settings, data, path, then=LIST)
    changes: dict[str, Any] = {
        "network": sections.network_of(settings.network, folder),
        "home": sections.absolute(settings.home, folder),
        "price": sections.with_absolute(settings.price, folder, "coin_file"),
    }
    if settings.account is not None:
        changes["account"] = sections.with_absolute(settings.account, folder, "keystore", "password_file")
    return settings.model_copy(update=changes)
