"""Keys and money: new, import, list, show, balance, history, send, withdraw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth.base.errors import ConfigError, RefusedError, UsageError
from hearth.base.files import AnyPath, path_of
from hearth.client.face import refusing
from hearth.client.money import recipient, sent_asset
from hearth.client.paying import Payment, credit_to_withdraw, pay_once
from hearth.client.posting.post import WITHDRAW_GAS
from hearth.client.reading import JobReader
from hearth.protocol.units import NATIVE, Asset, format_amount, parse_amount, show_amount

if TYPE_CHECKING:
    from hearth.chain.keys import KeyFile
    from hearth.chain.port import Call
    from hearth.client.reports import (
        AccountHistory,
        Balance,
        FileSending,
        KeyFacts,
        KeyList,
        KeyPlan,
        Sending,
        Withdrawal,
    )
    from hearth.client.session import Session


@refusing
class Wallet:
    """Keys of this home folder and what they hold: `client.wallet`."""

    def __init__(self, session: Session) -> None:
        """Open nothing yet."""
        self.session = session

    def new(self, name: str = "default") -> KeyFacts | KeyPlan:
        """Write a new encrypted key file and return its name and address."""
        return self._made(name, None)

    def import_key(
        self, name: str, file: AnyPath, *, index: int = 0, old_password_file: AnyPath | None = None
    ) -> KeyFacts | KeyPlan:
        """Write a key file for a key from elsewhere: a file of mode 600, or stdin for "-".

        It holds 64 hex digits, a keystore (its password is in `old_password_file`, or asked for), or a recovery phrase
        of which account `index` is taken. Raises ConfigError.
        """
        from hearth.chain.key_import import read_secret
        from hearth.chain.keys import read_password

        def password(question: str) -> str:
            if old_password_file is not None:
                return read_password(path_of(old_password_file))
            if self.session.ask_password is None:
                raise ConfigError(
                    "a keystore needs its password, and there is no terminal to ask on",
                    hint="use --old-password-file FILE",
                    code="NO_PASSWORD",
                    component="wallet",
                )
            return self.session.ask_password(question)

        return self._made(name, read_secret(path_of(file), password=password, index=index))

    def list(self) -> KeyList:
        """Return the keys by name; none is unlocked."""
        from hearth.chain.keys import list_keys

        return {
            "schema": "hearth.wallets/1",
            "folder": str(self.session.settings.keys_folder),
            "keys": [
                {"name": key.name, "address": key.address} for key in list_keys(self.session.settings.keys_folder)
            ],
        }

    def show(self, name: str | None = None) -> KeyFacts:
        """Return one key's name, address and file."""
        key = self._named(name)
        return {"schema": "hearth.wallet/1", "name": key.name, "address": key.address, "file": str(key.path)}

    def balance(self, name: str | None = None) -> Balance:
        """Return what an account holds: native coin, the market's asset, and credit in Escrow."""
        address = self._address(name)
        market = self.session.market
        coin, credit = market.port.balance(address), market.credit(address)
        asset = market.asset_balance(address)
        return {
            "schema": "hearth.balance/1",
            "network": self.session.network.name,
            "address": address,
            "native": str(coin),
            "asset_symbol": self.session.asset.symbol,
            "asset": str(asset),
            "credit": str(credit),
            "text": {
                "native": show_amount(coin, NATIVE),
                "asset": self.session.amount(asset),
                "credit": self.session.amount(credit),
            },
        }

    def history(self, name: str | None = None, *, since: str | None = None) -> AccountHistory:
        """Return what an account spent and earned on the market, by job, and its gas.

        `since` is a span, such as "30d"; without it all of the market's time counts. Every event of it is read.
        Raises UsageError for what is no span, ChainError.
        """
        from hearth.client.job.history import history

        return history(JobReader(self.session), self._address(name), since)

    def _address(self, name: str | None) -> str:
        from eth_utils.address import is_address

        return name.lower() if name is not None and is_address(name) else self._named(name).address

    def withdraw(self, *, amount: str | None = None, to: str | None = None, again: bool = False) -> Withdrawal:
        """Withdraw credit from Escrow, all of it by default, to the account itself or to `to`.

        An amount to somebody else is a payment, and leaves once as `send` does (`already_sent`, `again`).
        Raises FundsError NO_CREDIT where there is less than asked for; ChainError TX_PENDING, TX_UNCLEAR.
        """
        session = self.session
        key = session.key()
        target = key.address if to is None else recipient(to, session.network)
        pays = amount is not None and target != key.address
        wanted = parse_amount(amount, session.asset) if amount is not None and pays else self._credit(key, amount)
        if wanted == 0:
            self._credit(key, amount)
        session.tell("confirm", {"text": f"withdraw {session.amount(wanted)} to {target}?", "needed": False})
        call, already = session.market.calls.withdraw(target, wanted), False
        if pays:
            payment = Payment(
                call,
                f"withdraw/{session.network.escrow}/{target}/{wanted}/",
                f"withdrawal of {session.amount(wanted)} to {target}",
                "hearth wallet withdraw",
                lambda sender: bool(self._credit(key, amount)),
            )
            sent, already = pay_once(session, payment, again=again)
        else:
            nonce = session.market.port.nonce(key.address)
            with session.sender() as sender:
                sent = [session.send(sender, call, f"withdraw/{nonce}")]
        return {
            "schema": "hearth.action/1",
            "action": "withdraw",
            "amount": str(wanted),
            "amount_text": session.amount(wanted),
            "to": target,
            "already_sent": already,
            "transactions": sent,
            "dry_run": session.dry_run,
        }

    def _credit(self, key: KeyFile, amount: str | None) -> int:
        """Return what is to be withdrawn, in base units, where the credit and the coin for gas suffice."""
        wanted = credit_to_withdraw(self.session, key.address, amount)
        self.session.require_funds(key.address, asset_units=0, gas=WITHDRAW_GAS, what="withdrawing")
        return wanted

    def send(self, to: str, amount: str, *, again: bool = False) -> Sending:
        """Send native coin or the market's asset to an address; a unit in `amount` says which, by default the asset.

        One amount to one address is one send: a second call finds the first one, waits for it where it is still on its
        way, and pays nothing (`already_sent`), for the 30 days that the journal remembers; `again` sends once more.
        Raises UsageError BAD_ADDRESS, BAD_AMOUNT; FundsError; RefusedError; ChainError TX_PENDING where `again` comes
        before the last one was reported, TX_UNCLEAR where nobody says whether the earlier one was mined.
        """
        from hearth.market.calls import transfer

        session = self.session
        key, target = session.key(), recipient(to, session.network)
        if target == key.address:
            raise UsageError(
                f"{target} is this account itself", hint="hearth wallet list", code="BAD_ADDRESS", component="wallet"
            )
        asset = sent_asset(amount, session.asset)
        units = parse_amount(amount, asset)
        if units == 0:
            raise UsageError("an amount of nothing sends nothing", hint="hearth wallet send --help", code="BAD_AMOUNT")
        call = transfer(asset, target, units)
        if not session.dry_run:
            text = f"send {format_amount(units, asset)} to {target} on {session.network.name}?"
            session.tell("confirm", {"text": text, "needed": True})
        payment = Payment(
            call,
            f"send/{asset.address or 'coin'}/{target}/{units}/",
            f"send of {format_amount(units, asset)} to {target}",
            f'hearth wallet send {target} "{format_amount(units, asset)}"',
            lambda sender: self._require_sendable(key, asset, units, call),
        )
        sent, already = pay_once(session, payment, again=again)
        return {
            "schema": "hearth.action/1",
            "action": "send",
            "asset": asset.symbol,
            "amount": str(units),
            "amount_text": format_amount(units, asset),
            "from": key.address,
            "to": target,
            "already_sent": already,
            "transactions": sent,
            "dry_run": session.dry_run,
        }

    def send_file(self, text: str) -> FileSending:
        """Send the calls of a file that `--print-tx` or the page wrote, in its order, each once.

        Raises what `hearth.client.sending.send_file` does.
        """
        from hearth.client.sending import send_file

        return send_file(self.session, text)

    # ---- inside ----

    def _require_sendable(self, key: KeyFile, asset: Asset, units: int, call: Call) -> bool:
        """Say that a send can go. Raises where the account cannot pay it, or the token or the recipient refuses it."""
        session, native = self.session, asset.address is None
        what = f"sending {format_amount(units, asset)}"
        coin_units, asset_units = (units, 0) if native else (0, units)
        session.require_funds(key.address, asset_units=asset_units, coin_units=coin_units, gas=0, what=what)
        port = session.market.port
        answer = port.call(call, sender=key.address)
        if not native and answer and not any(answer):
            raise RefusedError(
                f"the token {asset.symbol} refuses the transfer: it answers false",
                hint="hearth wallet balance",
                code="TOKEN_REFUSES",
            )
        # As much as the sender will ask for, so that it does not refuse what was confirmed.
        gas = port.estimate_gas(call, key.address) * 6 // 5
        session.require_funds(key.address, asset_units=asset_units, coin_units=coin_units, gas=gas, what=what)
        return True

    def _named(self, name: str | None) -> KeyFile:
        from hearth.chain.keys import find_key

        if name is not None:
            return find_key(self.session.settings.keys_folder, name)
        if self.session.settings.account is None and not (self.session.settings.keys_folder / "dev.json").is_file():
            return find_key(self.session.settings.keys_folder, None)
        return self.session.key()

    def _made(self, name: str, secret: bytes | None) -> KeyFacts | KeyPlan:
        from hearth.base.files import make_private
        from hearth.chain.keys import create_key, read_password

        if self.session.settings.password_file is not None:
            password = read_password(self.session.settings.password_file)
        elif self.session.ask_password is not None:
            password = self.session.ask_password(f"new password of {name}")
            if self.session.ask_password(f"new password of {name}, once more") != password:
                raise ConfigError(
                    "the two passwords differ", hint="hearth wallet new", code="WRONG_PASSWORD", component="wallet"
                )
        else:
            raise ConfigError(
                "a new key needs a password, and there is no terminal to ask on",
                hint="use --password-file FILE",
                code="NO_PASSWORD",
                component="wallet",
            )
        if self.session.dry_run:
            return {"schema": "hearth.wallet/1", "name": name, "dry_run": True}
        make_private(self.session.settings.home)
        key = create_key(self.session.settings.keys_folder, name, password, secret=secret)
        return {"schema": "hearth.wallet/1", "name": key.name, "address": key.address, "file": str(key.path)}
