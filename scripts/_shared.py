"""What the scripts share: errors in our words, the account that signs, and the one transaction path.

ape chooses the network; it runs no file whose name begins with an underscore.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from ape.cli import ConnectedProviderCommand
from ape.exceptions import AccountsError, ApeException, SignatureError

from hearth.base import found
from hearth.base.errors import ChainError, ConfigError, HearthError, UsageError
from hearth.base.files import make_private
from hearth.base.text import one_line
from hearth.chain.keys import KeyFile, find_key, password_of, read_key, unlock
from hearth.chain.port import ChainPort
from hearth.chain.tx import Sender, SenderConfig, Signer
from hearth.config.settings import NETWORK_NAME, Settings, load_settings
from hearth.daemon.signer import OnChain, open_sender

NETWORKS = Path(found.NETWORKS)
"""Where network files are, from the clone, in which ape is run and `hearth --network NAME` looks."""
INTERRUPTED = 130


class Refusal(click.ClickException):
    """One of our errors on its way out: message, next command, exit status of commands.md "Commands"."""

    def __init__(self, error: HearthError) -> None:
        super().__init__(error.message)
        self.hint = error.hint
        self.exit_code = error.exit_code

    def show(self, file: Any = None) -> None:
        """Print it as `hearth` prints its own."""
        click.echo(f"error: {self.message}\n  next: {self.hint}", err=True, file=file)


class Command(ConnectedProviderCommand):
    """A command on a network of ape's, which ends with our errors and exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except HearthError as error:
            raise Refusal(error) from error
        except (AccountsError, SignatureError) as error:
            raise Refusal(
                ConfigError(f"ape's account cannot sign: {error}", hint="ape accounts list", code="NO_ACCOUNT")
            ) from error
        except ApeException as error:
            raise Refusal(ChainError(f"the network cannot be used: {error}", hint="ape networks list")) from error
        except (click.Abort, KeyboardInterrupt):
            click.echo("\nstopped", err=True)
            ctx.exit(INTERRUPTED)


def network_path(folder: Path, name: str) -> Path:
    """Return the file of the network of this name, by which `hearth --network NAME` finds it.

    Raises UsageError for a name that no network has, such as one that leads out of the folder.
    """
    if not NETWORK_NAME.fullmatch(name):
        raise UsageError(
            f'--name "{name}" names no network: 1 to 32 of a-z, 0-9 and -, not - first', hint="use --name mymarket"
        )
    return (folder / f"{name}.json").absolute()


def signing_options(function: Any) -> Any:
    """Add the options of whoever signs."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option(
            "--password-file", type=click.Path(path_type=Path), help="A file of mode 600 with the key's password."
        ),
        click.option(
            "--account",
            required=True,
            metavar="NAME|FILE",
            help="The key: of hearth wallet, a keystore file, or an alias of ape.",
        ),
    ):
        function = option(function)
    return function


class ApeSigner:
    """Sign with an account of ape's, whatever holds its key: a keystore, a test mnemonic, a device."""

    def __init__(self, account: Any) -> None:
        self._account = account

    @property
    def address(self) -> str:
        """Return the account's address."""
        return str(self._account.address)

    def sign_transaction(self, transaction_dict: dict[str, Any], /) -> Any:
        """Sign the fields of a transaction. Raises ConfigError NOT_CONFIRMED where the account declines."""
        from ape import networks
        from eth_account.datastructures import SignedTransaction
        from eth_utils.crypto import keccak
        from hexbytes import HexBytes

        transaction = networks.provider.network.ecosystem.create_transaction(
            **transaction_dict, sender=self._account.address
        )
        signed = self._account.sign_transaction(transaction)
        if signed is None:
            raise ConfigError(
                f"{self._account.address} did not sign", hint="the same command again", code="NOT_CONFIRMED"
            )
        raw = bytes(signed.serialize_transaction())
        part = signed.signature
        return SignedTransaction(
            HexBytes(raw), HexBytes(keccak(raw)), int.from_bytes(part.r, "big"), int.from_bytes(part.s, "big"), part.v
        )


@dataclass(frozen=True)
class Account:
    """An account that was found and not unlocked yet: in a key file of ours, or as ape's own."""

    key: KeyFile
    ape: Any = None

    @property
    def address(self) -> str:
        """Return the address in lower case."""
        return self.key.address

    def unlocked(self, password_file: Path | None) -> Signer:
        """Return what signs; a password that no file holds is asked for once. Raises ConfigError."""
        if self.ape is not None and not hasattr(self.ape, "keyfile_path"):
            return ApeSigner(self.ape)
        password = password_of(self.key, password_file, _ask if on_terminal() else None)
        return unlock(self.key, password, foreign=self.ape is not None)


def _ask(question: str) -> str:
    answer: str = click.prompt(question, hide_input=True, err=True)
    return answer


def find_account(name: str, settings: Settings) -> Account:
    """Return the account of a keystore's path, of a key of hearth wallet, or of ape, in this order.

    Raises ConfigError NO_ACCOUNT, MANY_ACCOUNTS where hearth and ape know different keys by this name.
    """
    if "/" in name or name.endswith(".json"):
        return Account(read_key(Path(name)))
    theirs = _apes(name, settings)
    try:
        ours = Account(find_key(settings.keys_folder, name))
    except ConfigError as error:
        if error.code != "NO_ACCOUNT":
            raise
        if theirs is None:
            raise ConfigError(
                f"neither hearth wallet nor ape has an account {name}",
                hint=f"hearth wallet import {name} FILE",
                code="NO_ACCOUNT",
            ) from error
        return theirs
    if theirs is not None and theirs.address != ours.address:
        raise ConfigError(
            f"{name} is {ours.address} in hearth wallet and {theirs.address} in ape",
            hint=f"use --account {ours.key.path}, or ape's keystore file",
            code="MANY_ACCOUNTS",
        )
    return ours


def _apes(name: str, settings: Settings) -> Account | None:
    from ape import accounts

    # By alias only: asked for an address that it has no key of, ape would impersonate it on a local chain.
    try:
        if name.startswith("TEST::"):
            found: Any = accounts.test_accounts[int(name.removeprefix("TEST::"))]
        elif name in accounts.aliases:
            found = accounts.load(name)
        else:
            return None
    except (KeyError, IndexError, ValueError):
        return None
    path = getattr(found, "keyfile_path", settings.keys_folder / f"{name.replace(':', '')}.json")
    return Account(KeyFile(name, str(found.address).lower(), Path(path)), found)


def on_terminal() -> bool:
    """Say whether somebody can be asked."""
    return click.get_text_stream("stdin").isatty()


def confirm(question: str, *, yes: bool, needed: bool) -> None:
    """Ask once, on a terminal. Raises ConfigError NOT_CONFIRMED where there is none and an answer is needed."""
    if yes:
        return
    if on_terminal():
        click.confirm(one_line(question), abort=True, err=True)
    elif needed:
        raise ConfigError(f"{question} There is no terminal to ask on", hint="use --yes", code="NOT_CONFIRMED")


def settings_here() -> Settings:
    """Return the settings of the command line; whether found files may be used is asked on a terminal."""

    def vouch(question: str) -> bool:
        return click.confirm(one_line(question), err=True)

    return load_settings(ask=vouch if on_terminal() else None)


@contextmanager
def sending(
    port: ChainPort, on: OnChain, account: Account, settings: Settings, config: SenderConfig, password_file: Path | None
) -> Iterator[Sender]:
    """Unlock an account and hold it for this process, with the journal of every `hearth` command of this user."""
    signer = account.unlocked(password_file or settings.password_file)
    home = make_private(settings.home) / "state"
    with open_sender(port, on, account.key, signer, home=home, user_home=settings.home, config=config) as sender:
        sender.reconcile()
        yield sender
