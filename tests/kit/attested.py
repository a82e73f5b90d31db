"""A market with one worker that accepts a set of three attesters, of whom two must sign, and what they do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hearth.chain import keys
from tests.kit.running import wait
from tests.kit.town import Said, Town, example_text

PASSWORD = "attesters sign"
NAMES = ("ada", "bob", "cid")


class Attested:
    """A market with one worker that accepts the set of three attesters, and the files of both."""

    def __init__(self, place: Town) -> None:
        self.place = place
        self.folder = place.home / "attested"
        self.folder.mkdir()
        self.password = self.folder / "password"
        self.password.write_text(PASSWORD + "\n")
        self.password.chmod(0o600)
        made = [keys.create_key(place.home / "keys", name, PASSWORD, devnet=True) for name in (*NAMES, "eve")]
        self.addresses = [key.address for key in made[:3]]
        self.set = self.folder / "attesters.yaml"
        self.set.write_text(json.dumps({"keys": self.addresses, "quorum": 2}))
        text = example_text("digits", self.folder)
        self.job = self.folder / "job.yaml"
        self.job.write_text(text + "\nverify: {attesters: ./attesters.yaml}\n")
        # It ends with 8: no worker is there yet.
        self.plan = self.say("check", str(self.job), "--json", code=8).json
        self._start_worker(self.plan["judge"]["digest"])

    def _start_worker(self, digest: str) -> None:
        """Start a worker that takes the set's word."""
        path = self.place.worker_file()
        text, count = re.subn(r"(?m)^\[accept\].*$", f'[accept]\nattesters = ["{digest}"]', path.read_text())
        assert count == 1
        path.write_text(text)
        self.say("worker", "register", "--config", str(path), "--stake", "20")
        self.place.start("worker", "-m", "worker", "--config", str(path))
        self.place.wait_beat(1)

    def say(self, *arguments: str, code: int = 0) -> Said:
        told = self.place.hearth(*arguments)
        assert told.code == code, (arguments, told.out, told.err)
        return told

    def submitted(self) -> str:
        """Post the job and return its id once its result is on the chain."""
        job = str(self.say("submit", str(self.job), "--again", "-q").out.strip())
        wait(lambda: self.lease(job)["state"] == "submitted", "the result is submitted", 120)
        return job

    def lease(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.say("job", "show", job, "--json").json["leases"][0]
        return found

    def attest(self, job: str, name: str, *more: str, code: int = 0) -> tuple[Path, Said]:
        out = self.folder / f"{name}.json"
        account = ("--account", name, "--password-file", str(self.password))
        return out, self.say("job", "attest", job, "--out", str(out), *account, *more, code=code)

    def confirm(self, job: str, *more: str, code: int = 0) -> Said:
        return self.say("job", "confirm", job, *more, "--attesters", str(self.set), "--json", code=code)
