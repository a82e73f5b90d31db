"""The docker runtime on a real engine: what a container cannot do, each with the one defence removed as control.

Needs an engine (HEARTH_DOCKER_HOST or DOCKER_HOST), the loopback registry (HEARTH_TEST_REGISTRY) and the busybox image
in it by digest (HEARTH_TEST_IMAGE_BUSYBOX).
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
import pytest

from hearth.protocol.runtimes import DOCKER
from hearth.storage import canonical
from tests.kit.require import require
from tests.worker.runtimes.engines import (
    BUSYBOX,
    CHOSEN,
    HOST,
    MIB,
    NUMPY,
    Mutation,
    as_root,
    host,
    published,
    rules,
    runtime_of,
)
from worker.gpu.nvidia import device_of
from worker.runtimes import docker as subject
from worker.runtimes import docker_engine, docker_images, docker_request, profiles
from worker.runtimes.base import OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits

pytestmark = [pytest.mark.docker, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
NO_OUTPUT = (OutputRule("/out", required=False),)
IN_GVISOR = CHOSEN.gvisor


@pytest.fixture(scope="module")
def runtime() -> subject.DockerRuntime:
    return runtime_of(rules("127.0.0.1:1"))


@pytest.fixture(scope="module")
def api(runtime: subject.DockerRuntime) -> Iterator[Any]:
    import docker

    with docker.APIClient(base_url=HOST, version="auto") as client:
        yield client


@dataclass
class Bench:
    """Run shell scripts in the sandbox, in fresh folders, with or without one of its defences."""

    runtime: subject.DockerRuntime
    root: Path
    monkeypatch: pytest.MonkeyPatch
    label: str
    mutations: list[Mutation]

    def request(self, script: str, limits: dict[str, Any] | None = None, **changes: Any) -> RunRequest:
        folder = self.root / uuid.uuid4().hex[:8]
        for name in ("in", "job", "out"):
            (folder / name).mkdir(parents=True, mode=0o700)
        (folder / "in" / "data.txt").write_text("hello\n")
        (folder / "in" / "data.txt").chmod(0o600)
        base = {"wall_seconds": 60, "memory_bytes": 64 * MIB, "out_bytes": 8 * MIB, "tmp_bytes": 4 * MIB, "pids": 32}
        values: dict[str, Any] = {
            "unit": self.label,
            "command": ("sh", "-c", script),
            "job_dir": folder / "job",
            "in_dir": folder / "in",
            "out_dir": folder / "out",
            "limits": SandboxLimits(**{**base, "log_bytes": 256 * 1024, **(limits or {})}),
            "image": BUSYBOX,
            "outputs": NO_OUTPUT,
        }
        return RunRequest(**{**values, **changes})

    def run(self, script: str, limits: dict[str, Any] | None = None, **changes: Any) -> RunResult:
        return self.runtime.run(self.request(script, limits, **changes), threading.Event())

    def change(self, mutation: Mutation) -> None:
        """Alter what is asked of the engine from now on."""
        self.mutations.append(mutation)


@pytest.fixture
def bench(runtime: subject.DockerRuntime, api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    mutations: list[Mutation] = []
    plain = subject.container_config

    def asked(*args: Any, **kwargs: Any) -> dict[str, Any]:
        config = plain(*args, **kwargs)
        for mutation in mutations:
            mutation(config)
        return config

    monkeypatch.setattr(subject, "container_config", asked)
    label = f"test-{uuid.uuid4().hex[:12]}"
    yield Bench(runtime, tmp_path, monkeypatch, label, mutations)
    assert labelled(api, label) == []  # every test: nothing is left behind


def labelled(api: Any, label: str) -> list[str]:
    found = api.containers(all=True, filters={"label": f"{docker_request.LABEL}={label}"})
    return [container["Id"] for container in found]


def without_limit(name: str) -> Mutation:
    def apply(config: dict[str, Any]) -> None:
        limits = config["HostConfig"]["Ulimits"]
        config["HostConfig"]["Ulimits"] = [limit for limit in limits if limit["Name"] != name]

    return apply


def writable_mounts(config: dict[str, Any]) -> None:
    for mount in config["HostConfig"]["Mounts"]:
        mount["ReadOnly"] = False


# Where the engine has user namespaces they are a wall of their own, before each of which the others are tried.
as_on_the_host = host(UsernsMode="host")


# -- inside ------------------------------------------------


def test_run__reads_input_and_writes_output__ok_and_owned_by_the_worker(bench: Bench) -> None:
    request = bench.request(
        "cat /in/data.txt; pwd; mkdir /out/d; umask 077; cat /in/data.txt > /out/d/x; echo oops >&2",
        outputs=(OutputRule("/out/d/x"),),
    )
    streamed: list[tuple[str, bytes]] = []
    result = bench.runtime.run(request, threading.Event(), lambda stream, chunk: streamed.append((stream, chunk)))
    assert (result.status, result.exit_code) == (RunStatus.OK, 0), result
    assert (result.stdout, result.stderr) == (b"hello\n/job\n", b"oops\n")
    assert b"".join(chunk for name, chunk in streamed if name == "stdout") == result.stdout
    written = request.out_dir / "d" / "x"
    assert written.read_text() == "hello\n"
    assert written.stat().st_uid == os.geteuid() and written.stat().st_mode & 0o7777 == 0o600
    assert result.engine.startswith("docker ")


def test_run__what_it_writes__is_never_asked_of_the_engines_log_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under load the log held what the stream had brought already: `said` came twice in one of thousands of runs."""
    asked: list[dict[str, Any]] = []
    attach = docker.APIClient.attach

    def recorded(api: docker.APIClient, container: str, **options: Any) -> Any:
        asked.append(options)
        return attach(api, container, **options)

    monkeypatch.setattr(docker.APIClient, "attach", recorded)
    result = bench.runtime.run(bench.request("echo said"), threading.Event())
    assert (result.status, result.stdout) == (RunStatus.OK, b"said\n")
    assert [(one["stream"], one.get("logs", False)) for one in asked] == [(True, False)]


def test_run__environment__only_the_specs_and_the_unit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTH_PASSWORD_FILE", "/canary")
    result = bench.run("env", env={"EPOCHS": "3"}, index=4, units=9)
    names = dict(line.split("=", 1) for line in result.stdout.decode().splitlines())
    voids = (("NVIDIA_VISIBLE_DEVICES", "void"), ("AMD_VISIBLE_DEVICES", "void"))
    for expected in (("EPOCHS", "3"), ("HEARTH_UNIT", "4"), ("HEARTH_UNITS", "9"), *voids):
        assert names.pop(expected[0]) == expected[1]
    assert set(names) <= {"PATH", "HOME", "HOSTNAME", "PWD", "SHLVL", "USER"}


@pytest.mark.parametrize("name", ["LD_PRELOAD", "NVIDIA_VISIBLE_DEVICES", "HEARTH_UNIT"])
def test_run__env_name_kept_for_the_sandbox__bad_input(bench: Bench, name: str) -> None:
    assert bench.run("true", env={name: "all"}).status is RunStatus.BAD_INPUT


STATUS = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid)' /proc/self/status"


def facts(result: RunResult) -> dict[str, str]:
    return {line.split(":")[0]: line.split(":")[1].split()[0] for line in result.stdout.decode().splitlines()}


def test_run__process_status__no_rights_at_all(bench: Bench) -> None:
    found = facts(bench.run(STATUS))
    assert {value for name, value in found.items() if name.startswith("Cap")} == {"0" * 16}
    assert int(found["Uid"]) in docker_request.GUEST_UIDS
    assert IN_GVISOR or (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")  # its kernel has no filter, and no line


def test_run__process_status_without_the_defences__has_rights(bench: Bench) -> None:
    """Control: as root, capabilities kept, no seccomp, new privileges allowed."""
    bench.change(as_root)
    bench.change(host(CapDrop=[], SecurityOpt=["seccomp=unconfined"]))
    found = facts(bench.run(STATUS))
    assert int(found["CapEff"], 16) != 0
    assert (found.get("NoNewPrivs", "0"), found["Seccomp"], found["Uid"]) == ("0", "0", "0")


def test_run__devices_and_network__only_the_harmless_ones(bench: Bench) -> None:
    script = "sed -n 's/:.*//p' /proc/net/dev; echo --; ls /dev; echo --; ls /var/run/docker.sock /dev/kmsg 2>&1"
    result = bench.run(script)
    network, devices, _ = result.stdout.decode().split("--\n")
    assert network.split() == ["lo"]
    allowed = {"core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout"}
    allowed |= {"fuse", "net"} if IN_GVISOR else set()  # its kernel's own
    assert set(devices.split()) <= allowed | {"tty", "urandom", "zero", "console"}
    assert b"docker.sock: No such file" in result.stdout and b"kmsg: No such file" in result.stdout


@pytest.mark.skipif(IN_GVISOR, reason="its runtime is registered with no network at all, whatever a request says")
def test_run__network_with_the_hosts__sees_more(bench: Bench) -> None:
    """Control: the one flag removed."""
    bench.change(host(NetworkMode="host"))
    bench.change(as_on_the_host)
    bench.change(lambda config: config.update(NetworkDisabled=False))
    here = sorted(os.listdir("/sys/class/net"))
    if here == ["lo"]:
        pytest.skip("this machine has no network but loopback to show")
    assert bench.run("ls /sys/class/net").stdout.decode().split() == here


# Each row: script, words that it prints when stopped, the mutation that removes the one defence, and what both share.
ABUSES: dict[str, tuple[str, str, Mutation, list[Mutation]]] = {
    "write to the root file system": (
        "touch /bin/planted && echo DONE",
        "Read-only file system",
        host(ReadonlyRootfs=False),
        [as_root],
    ),
    "change owners": ("touch /tmp/f && chown 1:1 /tmp/f && echo DONE", "not permitted", host(CapDrop=[]), [as_root]),
    "write to the input": (
        "echo gone > /in/data.txt && echo DONE",
        "Read-only file system",
        writable_mounts,
        [as_root, as_on_the_host, host(CapDrop=[])],
    ),
    "write to the workdir": (
        "echo x > /job/planted && echo DONE",
        "Read-only file system",
        writable_mounts,
        [as_root, as_on_the_host, host(CapDrop=[])],
    ),
    "run a program from /tmp": (
        "cp /bin/busybox /tmp/true && /tmp/true && echo DONE",
        "Permission denied",
        host(Tmpfs={"/tmp": "rw,exec,size=4194304,mode=1777"}),
        [],
    ),
    "fill /tmp": (
        "dd if=/dev/zero of=/tmp/big bs=1M count=6 && echo DONE",
        "No space left",
        host(Tmpfs={"/tmp": "rw,size=16777216,mode=1777"}),
        [],
    ),
    "fork bomb": (
        "for i in $(seq 60); do sleep 5 & done; echo DONE; kill $(jobs -p)",
        "" if IN_GVISOR else "can't fork",  # there the sandbox ends, and says nothing
        host(PidsLimit=200),
        [],
    ),
    "open many files": (
        'ulimit -n; i=3; while [ $i -lt 1200 ]; do eval "exec $i</dev/null" || exit 1; i=$((i+1)); done; echo DONE',
        "Too many open files",
        without_limit("nofile"),
        [],
    ),
}


@pytest.mark.parametrize("abuse", ABUSES)
def test_run__abuse__stopped_and_with_its_one_defence_removed_succeeds(bench: Bench, abuse: str) -> None:
    script, stopped, remove, shared = ABUSES[abuse]
    for mutation in shared:
        bench.change(mutation)
    defended = bench.run(script)
    assert b"DONE" not in defended.stdout
    assert stopped in defended.stderr.decode() + defended.stdout.decode()
    bench.change(remove)
    assert b"DONE" in bench.run(script).stdout


# -- ends ------------------------------------------------

MEMORY_BOMB = 'awk \'BEGIN { s = "x"; while (length(s) < 200000000) s = s s; print "DONE" }\''


def test_run__memory_bomb__oom(bench: Bench) -> None:
    result = bench.run(MEMORY_BOMB)
    assert result.status is RunStatus.OOM
    assert str(64 * MIB) in result.detail


def test_run__memory_bomb_without_limit__succeeds(bench: Bench) -> None:
    bench.change(host(Memory=0, MemorySwap=0))
    assert b"DONE" in bench.run(MEMORY_BOMB).stdout


def test_run__exits_nonzero__exit_with_code_and_stderr(bench: Bench) -> None:
    result = bench.run("echo no rows >&2; exit 3")
    assert (result.status, result.exit_code, result.stderr) == (RunStatus.EXIT, 3, b"no rows\n")


@pytest.mark.parametrize(("command", "code"), [(("nosuch",), 127), (("/etc/passwd",), 126)])
def test_run__command_that_cannot_start__exit_not_broken(bench: Bench, command: tuple[str, ...], code: int) -> None:
    result = bench.run("", command=command)
    assert (result.status, result.exit_code) == (RunStatus.EXIT, code)


def test_run__sleeps_forever__timeout(bench: Bench) -> None:
    result = bench.run("trap '' TERM; sleep 1000", {"wall_seconds": 1})
    assert result.status is RunStatus.TIMEOUT
    assert result.wall_seconds >= 1


def test_run__cancelled__container_gone(bench: Bench, api: Any) -> None:
    request = bench.request("touch /out/started; sleep 1000")
    cancel = threading.Event()
    results: list[RunResult] = []
    thread = threading.Thread(target=lambda: results.append(bench.runtime.run(request, cancel)), daemon=True)
    thread.start()
    wait_for(lambda: (request.out_dir / "started").exists())
    assert len(labelled(api, bench.label)) == 1
    cancel.set()
    thread.join(60)
    assert results[0].status is RunStatus.CANCELLED


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("waited a minute in vain")


DISK_BOMB = "i=0; while [ $i -lt 40 ]; do dd if=/dev/zero of=/out/$i bs=1M count=4 2>/dev/null; i=$((i+1)); done"


def test_run__disk_bomb__killed_over_its_cap_while_it_runs(bench: Bench) -> None:
    result = bench.run(f"{DISK_BOMB}; sleep 600")
    assert result.status is RunStatus.OUTPUT_OVER_CAP
    assert str(8 * MIB) in result.detail


def test_run__disk_bomb_with_a_larger_cap__fills_it(bench: Bench) -> None:
    """Control: the same bytes are no problem where the unit was given them."""
    assert bench.run(DISK_BOMB, {"out_bytes": 200 * MIB}).status is RunStatus.OK


def test_run__one_huge_file__stopped_by_the_file_size_limit(bench: Bench) -> None:
    request = bench.request("dd if=/dev/zero of=/out/big bs=1M count=500")
    result = bench.runtime.run(request, threading.Event())
    assert result.status in (RunStatus.OUTPUT_OVER_CAP, RunStatus.EXIT)
    assert (request.out_dir / "big").stat().st_size <= 8 * MIB + docker_request.FILE_SLACK_BYTES


def test_run__huge_sparse_file__over_cap(bench: Bench) -> None:
    bench.change(without_limit("fsize"))
    result = bench.run("dd if=/dev/zero of=/out/sparse bs=1 count=1 seek=100000000000 2>/dev/null")
    assert result.status is RunStatus.OUTPUT_OVER_CAP


def test_run__log_bomb__head_and_tail_kept_within_the_cap(bench: Bench) -> None:
    result = bench.run("echo first; yes 0123456789012345678901234567890123456789 | head -c 20000000; echo; echo last")
    assert result.status is RunStatus.OK and result.stdout_truncated
    assert len(result.stdout) <= 256 * 1024 + 64
    assert result.stdout.startswith(b"first\n") and result.stdout.endswith(b"last\n")


def test_log_driver_local__after_a_flood__bounded_and_still_readable(runtime: subject.DockerRuntime, api: Any) -> None:
    """What the engine keeps for `docker logs`: two files of 10 MB at most, and the driver can be read back."""
    label = f"test-{uuid.uuid4().hex[:12]}"
    folder = Path("/")
    request = RunRequest(
        label,
        ("sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 60000000; echo; echo last"),
        folder,
        folder,
        folder,
        SandboxLimits(60, 64 * MIB),
        image=BUSYBOX,
    )
    config = subject.container_config(request, {}, cpus=1)
    config["HostConfig"]["Mounts"] = []
    container = api.create_container_from_config(config)["Id"]
    try:
        api.start(container)
        api.wait(container)
        kept = api.logs(container)
        assert kept.endswith(b"last\n")
        assert 1_000_000 < len(kept) < 25_000_000
    finally:
        api.remove_container(container, force=True)


FILE = "mkdir -p /out/d/e; echo 1 > /out/d/e/f"
HIDDEN = {
    "folders that nobody may enter": f"umask 077; {FILE}; chmod 000 /out/d/e/f /out/d/e /out/d",
    "a folder that may be listed and not entered": f"{FILE}; chmod 744 /out/d/e /out/d",
    "files that nobody may write": f"{FILE}; chmod 444 /out/d/e/f; chmod 555 /out/d/e /out/d",
    "a program that runs as its owner": f"{FILE}; chmod 6755 /out/d/e/f; chmod 1777 /out/d",
}


@pytest.mark.parametrize("what", HIDDEN)
def test_run__output_with_modes_of_its_own__is_the_workers_to_read_and_to_delete(bench: Bench, what: str) -> None:
    """What a cheat gains: nothing. A worker that is no root reads, stores and deletes what a guest hid from it."""
    request = bench.request(f"{HIDDEN[what]}; echo said", outputs=(OutputRule("/out/d/e/f"),))
    result = bench.runtime.run(request, threading.Event())
    assert (result.status, result.stdout) == (RunStatus.OK, b"said\n"), result
    assert (request.out_dir / "d" / "e" / "f").read_text() == "1\n"
    found = [request.out_dir, *request.out_dir.rglob("*")]
    assert {path.stat().st_uid for path in found} == {os.geteuid()}
    assert {path.stat().st_mode & 0o7777 for path in found} == {0o700, 0o600}
    shutil.rmtree(request.out_dir)


def test_run__link_with_a_name_that_is_no_text__refused_in_words_that_can_be_stored(bench: Bench) -> None:
    """What a cheat gains: nothing. A reason that no report can hold would look like a fault of the worker."""
    result = bench.run(r"ln -s x $(printf '/out/\377')")
    assert result.status is RunStatus.OUTPUT_MISSING
    assert r"/out/\udcff is not a regular file" in result.detail
    canonical.encode({"detail": result.detail})


@pytest.mark.parametrize("script", ["ln -s /etc/passwd /out/x", "mkfifo /out/x", "echo 1 > /out/a; ln /out/a /out/x"])
def test_run__link_or_pipe_in_the_output__refused(bench: Bench, script: str) -> None:
    result = bench.run(script)
    if IN_GVISOR and script.startswith("mkfifo"):
        assert result.status is RunStatus.OK  # a pipe is its kernel's own, and never comes to /out
        return
    assert result.status is RunStatus.OUTPUT_MISSING
    assert "/x" in result.detail or "/a" in result.detail


def test_run__folders_nested_thousands_deep__over_cap_and_removed(bench: Bench) -> None:
    """Such a tree breaks every tool that goes by path names, the worker's own clean-up among them."""
    request = bench.request(
        "cd /out; i=0; while [ $i -lt 3000 ]; do mkdir d && cd -P d || break; i=$((i+1)); done; echo $i"
    )
    result = bench.runtime.run(request, threading.Event())
    assert result.status is RunStatus.OUTPUT_OVER_CAP, result
    assert "deeper than" in result.detail and int(result.stdout or b"3000") > 500
    assert list(request.out_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("filling", "said"),
    [
        (
            "for i in $(seq 10); do dd if=/dev/zero of=/out/d/$i bs=1048576 count=4; done",
            "than the cap of 8388608",
        ),
        ("cd /out/d; for i in 1 2 3 4 5; do mkdir $i; (cd $i; seq 3500 | xargs touch); done", "entries"),
    ],
    ids=["bytes", "entries"],
)
def test_run__outputs_in_a_folder_that_its_owner_alone_reads__are_measured_while_it_runs(
    bench: Bench, filling: str, said: str
) -> None:
    """What a cheat gains: nothing. A worker that is a plain user saw none of it, and what was deleted before the end
    was never counted."""
    result = bench.run(f"umask 077; mkdir /out/d; {filling}; sleep 40; rm -r /out/d", {"memory_bytes": 256 * MIB})
    assert result.status is RunStatus.OUTPUT_OVER_CAP, (result, result.stderr[-300:])
    assert said in result.detail


def test_run__folders_of_its_own_within_the_cap__are_no_fault(bench: Bench) -> None:
    result = bench.run("umask 077; mkdir -p /out/a/b; echo 1 > /out/a/b/f; sleep 2; ls -l /out/a/b")
    assert result.status is RunStatus.OK, result


def test_run__more_files_than_a_program_takes_as_arguments__over_cap_and_removed(bench: Bench) -> None:
    """What a cheat gains: nothing. Names that no `rm` can be given at once are no trouble of the machine."""
    name = "x" * 200
    script = f"cd /out; i=0; while [ $i -lt 170 ]; do echo $i-{name}-; i=$((i+1)); done > /tmp/names; i=0; " + (
        'while [ $i -lt 100 ]; do sed "s/$/$i/" /tmp/names | xargs touch; i=$((i+1)); done'
    )
    request = bench.request(script, {"memory_bytes": 256 * MIB})
    result = bench.runtime.run(request, threading.Event())
    assert result.status is RunStatus.OUTPUT_OVER_CAP, result
    assert "entries" in result.detail and list(request.out_dir.iterdir()) == []
    assert (request.out_dir.stat().st_uid, request.out_dir.stat().st_mode & 0o777) == (os.geteuid(), 0o700)


def test_run__required_output_missing__not_a_success(bench: Bench) -> None:
    result = bench.run("true", outputs=(OutputRule("/out"),))
    assert (result.status, result.exit_code) == (RunStatus.OUTPUT_MISSING, 0)


# -- images ------------------------------------------------


def test_prepare__digest_that_the_registry_has__pulled(runtime: subject.DockerRuntime, api: Any) -> None:
    image = published(api, ["LABEL fresh=" + uuid.uuid4().hex])
    api.remove_image(image, force=True)
    assert runtime.prepare(image) is None
    assert api.inspect_image(image)["RepoDigests"]


def test_prepare__digest_that_nobody_has__image_missing(runtime: subject.DockerRuntime) -> None:
    name = BUSYBOX.split("@")[0]
    refused = runtime.prepare(f"{name}@sha256:{'0' * 64}")
    assert refused is not None and refused.status is RunStatus.IMAGE_MISSING, refused


def test_prepare__registry_that_does_not_answer__broken_not_missing(runtime: subject.DockerRuntime) -> None:
    refused = runtime.prepare(f"127.0.0.1:1/hearth/x@sha256:{'0' * 64}")
    assert refused is not None and refused.status is RunStatus.BROKEN, refused


@pytest.mark.parametrize(
    ("changes", "env", "home"),
    [
        ([], {}, "/tmp"),
        ([], {"HOME": "/out"}, "/out"),
        (["ENV HOME=/data"], {}, "/data"),
        (["ENV HOME=/d"], {"HOME": "/out"}, "/out"),
    ],
)
def test_run__home_of_a_guest__can_be_written_unless_job_or_image_say_else(
    bench: Bench, api: Any, changes: list[str], env: dict[str, str], home: str
) -> None:
    """B13: it was / or /nonexistent, where no library could keep anything."""
    image = published(api, changes) if changes else BUSYBOX
    ran = bench.run('echo "$HOME"; touch "$HOME/x" 2>/dev/null; ls "$HOME/x"', image=image, env=env)
    assert ran.stdout.split()[0] == home.encode()
    assert (b"/x" in ran.stdout) is (home in ("/tmp", "/out"))


def test_run__image_that_preloads_code__refused(bench: Bench, api: Any) -> None:
    image = published(api, ["ENV LD_PRELOAD=/proc/self/cwd/evil.so"])
    result = bench.run("true", image=image)
    assert result.status is RunStatus.IMAGE_MISSING and "LD_PRELOAD" in result.detail


TAKERS = {
    "a volume below /out": (["VOLUME /out/data"], "true"),
    "a volume that leads to /out": (["VOLUME /data"], "rm -rf /data; ln -s /out /data"),
    "a volume /out of another spelling": (["VOLUME /out/"], "true"),
    "/out leads to /tmp": ([], "rm -rf /out; ln -s /tmp /out"),
}
"""Images that take a unit's outputs away, and what makes them."""


@pytest.mark.parametrize("image", TAKERS)
def test_run__image_that_takes_the_outputs_away__refused_or_overridden(
    bench: Bench, api: Any, monkeypatch: pytest.MonkeyPatch, image: str
) -> None:
    """Case 11: the result was ok and paid, and its folder empty."""
    changes, script = TAKERS[image]
    made = published(api, changes, script)

    def outputs() -> tuple[RunResult, bool]:
        request = bench.request("mkdir -p /out/data && echo kept > /out/data/x", image=made)
        result = bench.runtime.run(request, threading.Event())
        return result, (request.out_dir / "data" / "x").is_file()

    result, kept = outputs()
    if image == "a volume /out of another spelling":
        assert result.ok and kept, result
    else:
        assert result.status is RunStatus.IMAGE_MISSING and not kept, result
        assert "VOLUME that no sandbox" in result.detail or "the image has a link at /out" in result.detail
    monkeypatch.setattr(docker_images, "image_fault", lambda config: "")  # control: each without what refuses it
    monkeypatch.setattr(subject, "volumes_of", lambda config: tuple(config.get("Volumes") or ()))
    monkeypatch.setattr(subject, "place_fault", lambda *_: "")
    result, kept = outputs()
    # A newer engine mounts its own folders last.
    assert result.status is RunStatus.OK
    assert not kept or docker_engine.engine_major(api.version()) >= docker_engine.CDI_ENGINE_MAJOR, result


def test_run__image_and_job_without_a_program__refused_by_name(bench: Bench) -> None:
    nothing = io.BytesIO()
    tarfile.open(fileobj=nothing, mode="w").close()
    refused = bench.runtime.run_archive(nothing.getvalue(), bench.request("", command=()))
    assert (refused.status, refused.detail) == (RunStatus.IMAGE_MISSING, subject.NO_COMMAND)


@pytest.mark.parametrize("volume", ["/", "/proc", "/in/x", "/etc/passwd"])
def test_run__volume_that_no_sandbox_has__is_the_images_doing(
    bench: Bench, api: Any, monkeypatch: pytest.MonkeyPatch, volume: str
) -> None:
    """What a cheat gains: nothing. The engine refuses such a container each time, as if the machine were broken."""
    image = published(api, [f"VOLUME {volume}"])
    refused = bench.run("true", image=image)
    assert (
        refused.status is RunStatus.IMAGE_MISSING
        and f"VOLUME that no sandbox can give it, '{volume}'" in refused.detail
    )
    if IN_GVISOR and volume in ("/proc", "/in/x"):
        return  # it would mount there too
    monkeypatch.setattr(docker_images, "refuse_image", lambda *_: None)  # control
    monkeypatch.setattr(subject, "place_fault", lambda *_: "")
    monkeypatch.setattr(
        subject, "name_start_failure", lambda message, *_, plain=subject.name_start_failure: plain(message)
    )
    monkeypatch.setattr(subject, "starts_ours", lambda *_: False)
    assert bench.run("true", image=image).status is RunStatus.BROKEN


LINKED = {
    "a link to /proc at /tmp": "link at /tmp, to /proc",
    "a link into a process at /out": "link at /out, to /proc/self",
}
"""Shapes that are seen before the engine is asked for a start."""
SHAPES = {
    "a file at /out": "rm -rf /out; echo > /out",
    "a link to itself at /in": "ln -s /in /in",
    "a file at /job": "echo > /job",
    "a link to /proc at /tmp": "rm -rf /tmp; ln -s /proc /tmp",
    "a link into a process at /out": "ln -s /proc/self /out",
}
NAMES = {"a path through a file": "/etc/passwd/x", "a name of 32,768 letters": "x" * 32_768}


@pytest.mark.parametrize("shape", SHAPES)
def test_run__image_whose_own_files_refuse_the_sandbox__is_the_images_doing(
    bench: Bench, api: Any, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """What a cheat gains: nothing. The engine starts no container of it, as if the machine were broken."""
    image = published(api, [], SHAPES[shape])
    refused = bench.run("true", image=image)
    assert refused.status is RunStatus.IMAGE_MISSING and LINKED.get(shape, subject.NO_PLACE) in refused.detail, refused
    if shape in LINKED:
        return
    monkeypatch.setattr(subject, "starts_ours", lambda *_: False)  # control
    assert bench.run("true", image=image).status is RunStatus.BROKEN


@pytest.mark.parametrize("name", NAMES)
def test_run__command_that_is_no_path__is_the_jobs_doing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if IN_GVISOR and "/passwd/" in NAMES[name]:
        # Its engine says so in words that are known.
        assert bench.run("", command=(NAMES[name],)).exit_code == 126
        return
    assert bench.run("", command=(NAMES[name],)).status is RunStatus.IMAGE_MISSING
    monkeypatch.setattr(subject, "starts_ours", lambda *_: False)  # control
    assert bench.run("", command=(NAMES[name],)).status is RunStatus.BROKEN


def test_run__engine_that_starts_nothing__is_the_machines_trouble(bench: Bench) -> None:
    """Whatever the image: where our own program does not start either, nothing is said of the job."""
    bench.change(host(Runtime="nosuch"))
    assert bench.run("true").status is RunStatus.BROKEN


def test_run__less_memory_than_the_engine_gives__bad_input(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    little = {"memory_bytes": DOCKER.least_memory - 1}
    refused = bench.run("true", limits=little)
    assert refused.status is RunStatus.BAD_INPUT and "a container has 6MiB at least" in refused.detail
    least = bench.run("true", limits={"memory_bytes": DOCKER.least_memory})
    assert least.status is not RunStatus.BROKEN
    if IN_GVISOR:
        return  # the engine sees 64 MiB more
    monkeypatch.setattr(subject, "DOCKER", replace(DOCKER, least_memory=1))  # control
    assert bench.run("true", limits=little).status is RunStatus.BROKEN


def test_run__volume_of_the_image__is_a_capped_tmpfs(bench: Bench, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    image = published(api, ["VOLUME /data"])
    script = "dd if=/dev/zero of=/data/big bs=1M count=6 && echo DONE"
    defended = bench.run(script, image=image)
    assert b"DONE" not in defended.stdout and b"No space left" in defended.stderr

    def forget(config: dict[str, Any]) -> None:
        config["HostConfig"]["Tmpfs"].pop("/data")

    bench.change(forget)  # control: the image's own volume is the host's disk
    bench.change(as_root)
    assert b"DONE" in bench.run(script, image=image).stdout


def test_run__entrypoint_and_user_of_the_image__entrypoint_kept_user_not(bench: Bench, api: Any) -> None:
    image = published(api, ['ENTRYPOINT ["echo", "entry"]', "USER root", "HEALTHCHECK CMD touch /out/health"])
    result = bench.run("", command=("and", "more"), image=image)
    assert result.stdout == b"entry and more\n"


# -- the worker's side ------------------------------------------------


HIDES = "umask 077; mkdir /out/d; echo 1 > /out/d/f; chmod 000 /out/d/f /out/d; touch /out/started; sleep 1000"


def test_sweep__worker_killed__its_container_removed_and_no_other(bench: Bench, api: Any) -> None:
    request = bench.request("")
    program = f"""
import threading
from pathlib import Path
from worker.runtimes.base import SandboxLimits, RunRequest
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_images import ImageRules
rules = ImageRules(registries=({BUSYBOX.partition("/")[0]!r},))
DockerRuntime({HOST!r}, images=rules).run(RunRequest({bench.label + "-orphan"!r}, ("sh", "-c", {HIDES!r}),
    Path({str(request.job_dir)!r}), Path({str(request.in_dir)!r}), Path({str(request.out_dir)!r}),
    SandboxLimits(600, 64 << 20), image={BUSYBOX!r}), threading.Event())
"""
    worker = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    wait_for(lambda: (request.out_dir / "started").exists() or worker.poll() is not None)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    orphan = f"{bench.label}-orphan"
    # A container outlives its worker, and so does one of ours that looked at it: that is why there is a sweep.
    assert labelled(api, orphan)
    assert bench.runtime.sweep("someone-else") == 0
    assert bench.runtime.sweep(bench.label) >= 1
    assert labelled(api, orphan) == []
    shutil.rmtree(request.out_dir)  # what the guest hid is the worker's now


def test_run__outputs_that_cannot_be_taken_back_now__broken_and_taken_back_by_the_next_sweep(
    bench: Bench, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the end of a unit and its clean-up loses nothing: its container says what is still to be done."""

    def fails(*_: Any) -> str:
        raise subject.Unreclaimed("the janitor did not end")

    request = bench.request(HIDDEN["folders that nobody may enter"])
    with monkeypatch.context() as broken:
        broken.setattr(subject, "reclaim", fails)
        result = bench.runtime.run(request, threading.Event())
    assert (result.status, result.detail) == (RunStatus.BROKEN, "the janitor did not end")
    assert len(labelled(api, bench.label)) == 1
    assert bench.runtime.sweep(bench.label) == 1
    shutil.rmtree(request.out_dir)


def test_sweep__image_with_the_janitors_label__its_outputs_are_taken_back_too(
    bench: Bench, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. An engine gives a container its image's labels, and a janitor's is only removed."""

    def fails(*_: Any) -> str:
        raise subject.Unreclaimed("killed")

    image = published(api, [f"LABEL {docker_request.JANITOR_LABEL}=1 {docker_request.LABEL}=another-unit"])
    request = bench.request(HIDDEN["folders that nobody may enter"], image=image)
    with monkeypatch.context() as killed:
        killed.setattr(subject, "reclaim", fails)
        assert bench.runtime.run(request, threading.Event()).status is RunStatus.BROKEN
    assert len(labelled(api, bench.label)) == 1
    assert bench.runtime.sweep(bench.label) == 1 and labelled(api, bench.label) == []
    assert {path.stat().st_uid for path in request.out_dir.iterdir()} == {os.geteuid()}
    api.remove_image(image, force=True)


def test_run__container_removed_under_it__broken(bench: Bench, api: Any) -> None:
    request = bench.request("touch /out/started; sleep 1000")
    results: list[RunResult] = []
    thread = threading.Thread(target=lambda: results.append(bench.runtime.run(request, threading.Event())), daemon=True)
    thread.start()
    wait_for(lambda: (request.out_dir / "started").exists())
    (container,) = labelled(api, bench.label)
    api.remove_container(container, force=True)
    thread.join(60)
    assert results[0].status is RunStatus.BROKEN


def test_run__gpu_on_an_engine_without_cdi__refused_with_its_version(bench: Bench, api: Any) -> None:
    version = api.version()
    if docker_engine.engine_major(version) >= docker_engine.CDI_ENGINE_MAJOR:
        pytest.skip("this engine takes CDI requests; the refusal is tested with recorded versions")
    result = bench.run("true", gpus=(device_of("GPU-6f0e8f2c-1111-2222-3333-444455556666"),))
    assert result.status is (RunStatus.BROKEN if IN_GVISOR else RunStatus.GPU_REFUSED)
    assert (profiles.NO_GPU_IN_GVISOR if IN_GVISOR else version["Version"]) in result.detail


def test_capabilities__this_engine__a_row_per_flag(runtime: subject.DockerRuntime) -> None:
    rows = {row.name: row for row in runtime.capabilities(31337)}
    assert rows["docker engine"].level.value == "PASS"
    assert {"runc", "memory limit", "process limit", "seccomp", "user namespace", "log driver local"} <= set(rows)


def test_available__unknown_runtime__refused_by_name(runtime: subject.DockerRuntime) -> None:
    other = subject.DockerRuntime(HOST, runtime="nosuch")
    able, why = other.available()
    assert not able and "nosuch" in why and other.unknown_runtime() == why
    assert runtime.unknown_runtime() == ""


def test_numpy_train__example__reads_nine_of_ten_unseen_digits(bench: Bench) -> None:
    require("docker", bool(NUMPY), "HEARTH_TEST_IMAGE_PYTHON_NUMPY is not set")
    example = ROOT / "examples" / "numpy-train"
    request = bench.request("", {"memory_bytes": 512 * MIB, "pids": 64}, image=NUMPY)
    (request.in_dir / "digits.csv").write_bytes((ROOT / "examples/digits/digits.csv").read_bytes())
    (request.job_dir / "train.py").write_bytes((example / "work" / "train.py").read_bytes())
    request = replace(
        request,
        command=("python3", "train.py"),
        env={"EPOCHS": "200", "OPENBLAS_NUM_THREADS": "1"},
        outputs=(OutputRule("/out/weights.npy"), OutputRule("/out/metrics.json")),
    )
    result = bench.runtime.run(request, threading.Event())
    assert result.status is RunStatus.OK, result
    metrics = json.loads((request.out_dir / "metrics.json").read_text())
    assert metrics["held_out"] == 360 and metrics["correct"] >= 324
    assert re.search(rb"epoch 200 of 200", result.stdout)
