"""Each rule of each runtime's profile, looked at from inside a real guest and from outside: it stands.

`looks.py` says what a container sees, `looking_child.py` what a module's process does; every look fails on a guest
without the rules, which is run as a control. A rule that nothing looks at fails the suite.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hearth.base.wasm_engine import engine_of
from hearth.protocol.wasi import ENGINE_CONFIG
from tests.kit.played_gpu import CONTROL, card, played_machine
from tests.worker.runtimes import engines
from tests.worker.runtimes.engines import ENGINES, MIB, NUMPY, Kind, rules
from tests.worker.wasm_tools import command, from_text
from worker.gpu.nvidia import device_of
from worker.runtimes import docker as docker_runtime
from worker.runtimes import docker_engine, docker_request, walls, wasm, wasm_child
from worker.runtimes.base import Level, OutputRule, RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.profiles import DOCKER_PROFILE, WASM_PROFILE

LIMITS = SandboxLimits(wall_seconds=60, memory_bytes=256 * MIB, pids=40, out_bytes=8 * MIB, tmp_bytes=4 * MIB)
HARMLESS = {
    *("console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout"),
    *("tty", "urandom", "zero"),
}
OF_OURS = {
    *("USER", "HEARTH_UNIT", "HEARTH_UNITS", "PATH", "HOME", "HOSTNAME", "LC_CTYPE"),
    *("NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES"),
}
JOB_KEYS = {"Image", "Cmd", "WorkingDir", "Labels"}
"""The keys of the create call that say what is run, and deny nothing."""
GROUPS = {
    "memory": ("memory/{}/memory.limit_in_bytes", "{}/memory.max"),
    "pids": ("pids/{}/pids.max", "{}/pids.max"),
    "cpu": ("cpu/{}/cpu.cfs_quota_us", "{}/cpu.max"),
}
"""What is limited -> the file of the limit below /sys/fs/cgroup, of version 1 and of version 2."""


@dataclass
class Guest:
    """What a container said of itself, what the engine says of it, and what this kernel says of its process."""

    kind: Kind
    inside: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    oom: str = ""
    ipc: str = ""
    seccomp: str = ""

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked, as the engine took it."""
        asked: dict[str, Any] = self.engine["HostConfig"]
        return asked

    def mount(self, path: str) -> list[str]:
        """Return the options of a mount, as they are seen inside."""
        options: list[str] = self.inside["mounts"].get(path, [])
        return options

    def limit(self, name: str) -> int:
        """Return a hard limit of the guest's program that is as high as its soft one."""
        soft, hard = self.inside["limits"][name]
        assert soft == hard
        return int(hard)

    def ulimit(self, name: str) -> dict[str, Any]:
        """Return a limit as it was asked."""
        (found,) = [each for each in self.asked["Ulimits"] if each["Name"] == name]
        return dict(found)


def limits_of(pid: int) -> dict[str, str]:
    """Return the first word of each limit in the control group of a process of this machine."""
    groups = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    found = {}
    for name, (old, new) in GROUPS.items():
        own = [path for _, controllers, path in groups if name in controllers.split(",")]
        file = old.format(own[0].strip("/")) if own else new.format(groups[-1][2].strip("/"))
        found[name] = (Path("/sys/fs/cgroup") / file).read_text().split()[0]
    return found


def look_into(
    kind: Kind, folder: Path, asked: Callable[..., dict[str, Any]] | None = None, gpus: tuple[str, ...] = ()
) -> Guest:
    """Run looks.py in a container and look at it from outside too; `asked` builds another request."""
    import docker

    guest = Guest(kind)
    for name in ("in", "job", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "job" / "looks.py").write_text(Path(__file__).with_name("looks.py").read_text())
    request = RunRequest(
        unit=f"test-{uuid.uuid4().hex[:12]}",
        command=("python3", "looks.py"),
        job_dir=folder / "job",
        in_dir=folder / "in",
        out_dir=folder / "out",
        limits=LIMITS,
        image=NUMPY,
        outputs=(OutputRule("/out", required=False),),
        gpus=gpus,
    )
    said = bytearray()
    with docker.APIClient(base_url=kind.host, version="auto") as api:

        def on_log(stream: str, chunk: bytes) -> None:
            said.extend(chunk)
            if stream != "stdout" or not said.endswith(b"\n"):
                return
            (found,) = api.containers(filters={"label": f"{docker_request.LABEL}={request.unit}"})
            guest.engine, guest.info = api.inspect_container(found["Id"]), api.info()
            pid = guest.engine["State"]["Pid"]
            guest.groups = limits_of(pid)
            guest.oom = Path(f"/proc/{pid}/oom_score_adj").read_text()
            guest.ipc = os.readlink(f"/proc/{pid}/ns/ipc")
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            guest.seccomp = next(line.split()[1] for line in lines if line.startswith("Seccomp:"))

        with pytest.MonkeyPatch.context() as patch:
            if asked is not None:
                patch.setattr(docker_runtime, "container_config", asked)
            runtime = DockerRuntime(kind.host, runtime=kind.runtime, images=rules())
            result = runtime.run(request, threading.Event(), on_log)
    assert result.status is RunStatus.OK, (result, result.stderr)
    guest.inside = json.loads(said)
    return guest


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Guest]:
    """Return a function that runs one container of a kind, once, and returns what was seen of it."""

    @cache
    def of(name: str) -> Guest:
        return look_into(engines.need(name), tmp_path_factory.mktemp(name))

    return of


# ---- containers: what is looked at for each rule ----


def sees_user(it: Guest) -> None:
    status = it.inside["status"]
    assert {*status["Gid"].split(), *status["Groups"].split()} == {"65534"}
    (user,) = set(status["Uid"].split())
    assert int(user) in docker_request.GUEST_UIDS


def sees_capabilities(it: Guest) -> None:
    sets = {name: value.strip() for name, value in it.inside["status"].items() if name.startswith("Cap")}
    assert set(sets.values()) == {"0" * 16} and len(sets) == (4 if it.kind.gvisor else 5)
    assert it.asked["CapDrop"] == ["ALL"] and not it.asked["CapAdd"] and not it.asked["Privileged"]


def sees_no_new_privileges(it: Guest) -> None:
    assert it.inside["no_new_privileges"] == 1
    assert "no-new-privileges" in it.asked["SecurityOpt"]


def sees_system_calls(it: Guest) -> None:
    assert it.seccomp == "2"
    if not it.kind.gvisor:
        assert it.inside["status"]["Seccomp"].strip() == "2"
        assert set(it.inside["refused"].values()) == {True}, it.inside["refused"]


def sees_apparmor(it: Guest) -> None:
    """Not counted where the kernel has none: the doctor warns, and that is what is looked at."""
    there = any("apparmor" in option for option in it.info["SecurityOptions"])
    rows = docker_engine.judge_engine({"Version": "1", "Os": "", "Arch": ""}, it.info, 1)
    assert [row.level for row in rows if row.name == "apparmor"] == [Level.PASS if there else Level.WARN]
    if there:
        assert "docker-default" in it.inside["apparmor"]


def sees_network(it: Guest) -> None:
    assert it.inside["interfaces"] == ["lo"]
    assert it.asked["NetworkMode"] == "none" and set(it.engine["NetworkSettings"]["Networks"]) <= {"none"}


def sees_root(it: Guest) -> None:
    assert "ro" in it.mount("/")


def sees_temporary_files(it: Guest) -> None:
    for path, size in (("/tmp", "size=4096k"), ("/dev/shm", "size=65536k")):
        wanted = {"noexec", "nosuid", size} | (set() if it.kind.gvisor else {"nodev"})
        assert wanted <= set(it.mount(path)), path


def sees_scratch(it: Guest) -> None:
    assert not it.mount("/scratch") and "/scratch" not in it.asked["Tmpfs"]


def sees_mounts(it: Guest) -> None:
    found = {mount["Destination"]: (mount["RW"], mount["Propagation"]) for mount in it.engine["Mounts"]}
    assert found == {"/job": (False, "rprivate"), "/in": (False, "rprivate"), "/out": (True, "rprivate")}
    assert [it.mount(path)[0] for path in ("/job", "/in", "/out")] == ["ro", "ro", "rw"]


def sees_devices(it: Guest) -> None:
    assert set(it.inside["devices"]) <= HARMLESS | ({"fuse", "net"} if it.kind.gvisor else set())
    assert not it.asked["Devices"]


def sees_gpus(it: Guest) -> None:
    """By CDI they are tested as a request alone: test_docker_request."""
    assert not any(name.startswith("nvidia") for name in it.inside["devices"]) and not it.asked["DeviceRequests"]
    assert {it.inside["environ"][f"{vendor}_VISIBLE_DEVICES"] for vendor in ("NVIDIA", "AMD")} == {"void"}


def sees_processes(it: Guest) -> None:
    assert int(it.groups["pids"]) == (144 if it.kind.gvisor else 40)


def sees_memory(it: Guest) -> None:
    assert int(it.groups["memory"]) == (320 if it.kind.gvisor else 256) * MIB


def sees_swap(it: Guest) -> None:
    assert it.asked["MemorySwap"] == it.asked["Memory"] > 0


def sees_cpu_time(it: Guest) -> None:
    assert it.asked["NanoCpus"] == 10**9 and int(it.groups["cpu"]) == 100_000


def sees_open_files(it: Guest) -> None:
    assert it.limit("NOFILE") == 1024


def sees_core_files(it: Guest) -> None:
    assert it.limit("CORE") == 1


def sees_file_size(it: Guest) -> None:
    assert it.limit("FSIZE") == 9 * MIB


def sees_out_of_memory(it: Guest) -> None:
    assert int(it.oom) == 500
    assert it.kind.gvisor or int(it.inside["oom"]) == 500


def sees_ipc(it: Guest) -> None:
    assert it.ipc != os.readlink("/proc/self/ns/ipc")


def sees_control_groups(it: Guest) -> None:
    assert it.inside["cgroup_written"] == []
    name = it.engine["Id"]
    assert all(path in (("/" + name) if it.kind.gvisor else "/",) for path in it.inside["cgroups"])


def sees_other_processes(it: Guest) -> None:
    assert it.inside["pid"] == 1 and it.inside["processes"] == [1]
    assert (it.asked["PidMode"], it.asked["UTSMode"]) == ("", "")


def sees_kernel_files(it: Guest) -> None:
    assert not it.inside["keys"] and not it.inside["firmware"] and not it.inside["sys_written"]
    assert it.asked["MaskedPaths"] and it.asked["ReadonlyPaths"]


def sees_user_namespace(it: Guest) -> None:
    first = [int(number) for number in it.inside["uid_map"].split()[:3]]
    assert (first[1] != 0 and first[2] <= 65536) is it.kind.remapped
    assert it.asked["UsernsMode"] == ""
    rows = docker_engine.judge_engine({"Version": "1", "Os": "", "Arch": ""}, it.info, 1)
    told = [row.level for row in rows if row.name == "user namespace"]
    assert told == [Level.PASS if it.kind.remapped else Level.WARN]


def sees_kernel(it: Guest) -> None:
    assert (it.inside["kernel"] != os.uname().release) is it.kind.gvisor
    assert it.asked["Runtime"] == (it.kind.runtime or it.info["DefaultRuntime"])


def sees_environment(it: Guest) -> None:
    assert set(it.inside["environ"]) <= OF_OURS


def sees_input(it: Guest) -> None:
    assert it.inside["stdin"] == ""
    assert not it.engine["Config"]["Tty"] and not it.engine["Config"]["OpenStdin"]


def sees_init(it: Guest) -> None:
    assert it.inside["first"].strip() == "python3" and it.asked["Init"] is False


def sees_logs(it: Guest) -> None:
    assert it.asked["LogConfig"] == {"Type": "local", "Config": {"max-size": "10m", "max-file": "2"}}


def sees_end(it: Guest) -> None:
    assert it.engine["Config"]["StopTimeout"] == 5 and it.engine["Config"]["Healthcheck"] == {"Test": ["NONE"]}
    assert it.asked["RestartPolicy"]["Name"] == "no" and it.engine["RestartCount"] == 0


DOCKER_LOOKS: Mapping[str, Callable[[Guest], None]] = {
    "user": sees_user,
    "capabilities": sees_capabilities,
    "no new privileges": sees_no_new_privileges,
    "system calls": sees_system_calls,
    "apparmor": sees_apparmor,
    "network": sees_network,
    "root file system": sees_root,
    "temporary files": sees_temporary_files,
    "scratch": sees_scratch,
    "mounts": sees_mounts,
    "devices": sees_devices,
    "gpus": sees_gpus,
    "processes": sees_processes,
    "memory": sees_memory,
    "swap": sees_swap,
    "cpu time": sees_cpu_time,
    "open files": sees_open_files,
    "core files": sees_core_files,
    "file size": sees_file_size,
    "out of memory": sees_out_of_memory,
    "ipc": sees_ipc,
    "control groups": sees_control_groups,
    "other processes": sees_other_processes,
    "kernel files": sees_kernel_files,
    "user namespace": sees_user_namespace,
    "kernel": sees_kernel,
    "environment": sees_environment,
    "input": sees_input,
    "init": sees_init,
    "logs": sees_logs,
    "end": sees_end,
}

in_a_container = [
    pytest.mark.docker,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="looks.py makes calls by the numbers of x86-64"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the kernel shows a guest's process to root"),
]


def marked(*marks: pytest.MarkDecorator) -> Callable[[Any], Any]:
    def mark(test: Any) -> Any:
        for each in marks:
            test = each(test)
        return test

    return mark


def test_profiles__every_rule__has_a_look() -> None:
    assert list(DOCKER_LOOKS) == [rule.name for rule in DOCKER_PROFILE]
    assert list(WASM_LOOKS) == [rule.name for rule in WASM_PROFILE]


def test_docker_profile__every_key_that_is_asked__belongs_to_a_rule() -> None:
    request = RunRequest(
        "unit",
        ("run",),
        Path("/j"),
        Path("/i"),
        Path("/o"),
        LIMITS,
        gpus=(replace(device_of("GPU-1"), groups=(1,)),),
        image="x",
        volume=Path("/v"),
    )
    config = docker_request.container_config(request, {}, cpus=1, runtime="runc")
    asked = {key for key in config if key != "HostConfig"} | {f".{key}" for key in config["HostConfig"]}
    ruled = {key for rule in DOCKER_PROFILE for key in rule.keys}
    assert asked - JOB_KEYS == ruled
    assert not JOB_KEYS & ruled


@marked(*in_a_container)
@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("rule", DOCKER_LOOKS)
def test_docker_profile__rule__stands(rule: str, name: str, guest: Callable[[str], Guest]) -> None:
    DOCKER_LOOKS[rule](guest(name))


def gpu_sees_temporary_files(it: Guest) -> None:
    for path, size in (("/tmp", "size=4096k"), ("/dev/shm", f"size={128 << 10}k")):
        assert {"noexec", "nosuid", "nodev", size} <= set(it.mount(path)), path


def gpu_sees_scratch(it: Guest) -> None:
    options = set(it.mount("/scratch"))
    assert {"rw", "nosuid", "nodev", f"size={128 << 10}k"} <= options and "noexec" not in options


def gpu_sees_gpus(it: Guest) -> None:
    assert [name for name in it.inside["devices"] if re.fullmatch(r"nvidia\d+", name)] == ["nvidia1"]
    assert set(it.inside["devices"]) <= HARMLESS | {"nvidia1", *CONTROL}


def gpu_sees_environment(it: Guest) -> None:
    played = {"PLAYED_GPU", "PLAYED_GPU_NODES"}
    assert set(it.inside["environ"]) <= OF_OURS | set(docker_request.CACHES) | played
    assert it.inside["environ"]["HOME"] == "/scratch"


def gpu_sees_mounts(it: Guest) -> None:
    found = {mount["Destination"] for mount in it.engine["Mounts"]}
    assert found == {"/job", "/in", "/out"}
    assert [it.mount(path)[0] for path in ("/job", "/in", "/out")] == ["ro", "ro", "rw"]


def gpu_sees_system_calls(it: Guest) -> None:
    assert it.seccomp == "2" and set(it.inside["refused"].values()) == {True}, it.inside["refused"]


def gpu_sees_open_files(it: Guest) -> None:
    assert it.limit("NOFILE") == docker_request.GPU_FILES


def gpu_sees_file_size(it: Guest) -> None:
    assert it.limit("FSIZE") == 129 * MIB


GPU_LOOKS: Mapping[str, Callable[[Guest], None]] = {
    **DOCKER_LOOKS,
    "temporary files": gpu_sees_temporary_files,
    "scratch": gpu_sees_scratch,
    "gpus": gpu_sees_gpus,
    "devices": gpu_sees_gpus,
    "environment": gpu_sees_environment,
    "mounts": gpu_sees_mounts,
    "system calls": gpu_sees_system_calls,
    "open files": gpu_sees_open_files,
    "file size": gpu_sees_file_size,
}
"""What a container with a GPU lives under: each wall that is lowered for it, and all others as they are."""


@pytest.fixture(scope="module")
def gpu_guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """A container with the second of two GPUs."""
    engines.need("gpu")
    with played_machine(card(), card()) as machine:
        return look_into(ENGINES["gpu"], tmp_path_factory.mktemp("gpus"), gpus=(device_of(machine.cards[1].uuid),))


@marked(*in_a_container)
@pytest.mark.parametrize("rule", GPU_LOOKS)
def test_docker_profile__rule_of_a_job_with_a_gpu__stands(rule: str, gpu_guest: Guest) -> None:
    GPU_LOOKS[rule](gpu_guest)


NOT_TAKEN_AWAY = {"apparmor", "user namespace", "kernel"}
"""Rules that no request asks for, or asks away: what stands is the engine's and the kernel's."""


def loose(folder: Path) -> Callable[..., dict[str, Any]]:
    """Return a builder of requests that ask for nothing of the profile."""

    def asked(request: RunRequest, *_: Any, **__: Any) -> dict[str, Any]:
        binds = [f"{folder / name}:/{name}" for name in ("in", "job", "out")]
        return {
            "Image": request.image,
            "Cmd": list(request.command),
            "WorkingDir": "/job",
            "Labels": {docker_request.LABEL: request.unit},
            "Env": ["SECRET=1"],
            "OpenStdin": True,
            "HostConfig": {
                "Binds": [*binds, f"{folder}:/beside"],
                "CapAdd": ["SYS_PTRACE"],
                "Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/nvidia0", "CgroupPermissions": "r"}],
                "MaskedPaths": [],
                "ReadonlyPaths": [],
                "NetworkMode": "host",
                "PidMode": "host",
                "IpcMode": "host",
                "CgroupnsMode": "host",
                "SecurityOpt": ["seccomp=unconfined"],
                "Init": True,
                "LogConfig": {"Type": "json-file"},
                "Ulimits": [{"Name": name, "Soft": 4096, "Hard": 4096} for name in ("nofile", "core", "fsize")],
                "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 1},
            },
        }

    return asked


@marked(*in_a_container)
def test_docker_profile__request_that_asks_for_no_rule__every_look_fails(tmp_path: Path) -> None:
    """Control: none of the looks is one that cannot fail."""
    it = look_into(engines.need("runc"), tmp_path, loose(tmp_path))
    stood = []
    for rule in DOCKER_LOOKS:
        try:
            DOCKER_LOOKS[rule](it)
        except (AssertionError, KeyError, ValueError):
            continue
        stood.append(rule)
    assert set(stood) == NOT_TAKEN_AWAY


# ---- a module's process ----


@dataclass
class Child:
    """What a module's process said of itself, and what the kernel says of it."""

    inside: dict[str, Any]
    status: dict[str, str]
    environ: set[str]
    files: list[str]
    own_session: bool
    oom: int
    filters: set[str]
    end: RunResult | None = None


def look_into_child(folder: Path, label: str, *, plain: bool = False) -> Child:
    for name in ("in", "job", "out", "scratch"):
        (folder / name).mkdir()
    (folder / "key.json").write_text("secret")
    seen: list[Child] = []

    def on_log(_: str, chunk: bytes) -> None:
        if not chunk.startswith(b"{"):
            return
        (pid,) = [pid for pid, unit in wasm.children() if unit == label]
        here = Path(f"/proc/{pid}")
        lines = (here / "status").read_text().splitlines()
        variables = (here / "environ").read_bytes().split(b"\0")
        seen.append(
            Child(
                json.loads(chunk),
                dict(line.split(":", 1) for line in lines),
                {item.partition(b"=")[0].decode() for item in variables if item},
                [os.readlink(fd).partition(":")[0].replace(str(pid), "self") for fd in (here / "fd").iterdir()],
                own_session=os.getsid(pid) == pid,
                filters={
                    line.split()[1]
                    for task in (here / "task").iterdir()
                    for line in (task / "status").read_text().splitlines()
                    if line.startswith("Seccomp:")
                },
                oom=int((here / "oom_score_adj").read_text()),
            )
        )

    request = RunRequest(
        unit=label,
        command=(str(folder / "key.json"),),
        job_dir=folder / "job",
        in_dir=folder / "in",
        out_dir=folder / "out",
        limits=SandboxLimits(wall_seconds=60, memory_bytes=64 * MIB, out_bytes=8 * MIB, tmp_bytes=4 * MIB),
        module=from_text(folder, command("nop")),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wasm, "CHILD", "tests.worker.runtimes.looking_child")
        if plain:
            patch.setattr(wasm.Watch, "excess", lambda _: "")
        result = wasm.WasmRuntime(folder / "scratch").run(request, threading.Event(), on_log)
    assert seen, result
    seen[0].end = result
    return seen[0]


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Child:
    return look_into_child(tmp_path_factory.mktemp("child"), f"look-{os.getpid()}")


def sees_module(_: Child) -> None:
    import wasmtime

    engine = engine_of(ENGINE_CONFIG)
    store = wasmtime.Store(engine)
    store.set_fuel(1000)
    store.set_epoch_deadline(1)
    code = wasmtime.wat2wasm(command("(drop (i32.load (i32.const -4)))"))
    start = wasmtime.Instance(store, wasmtime.Module(engine, code), []).exports(store)["_start"]
    assert isinstance(start, wasmtime.Func)
    with pytest.raises(wasmtime.Trap, match="out of bounds"):
        start(store)


def limit(it: Child, name: str) -> int:
    soft, hard = it.inside["limits"][name]
    assert soft == hard
    return int(hard)


def sees_memory_of_child(it: Child) -> None:
    assert limit(it, "DATA") == (64 << 20) + wasm.ENGINE_BYTES
    assert limit(it, "AS") == (64 << 20) + wasm_child.ADDRESS_SLACK


def sees_watch(it: Child) -> None:
    assert it.end is not None and it.end.status is RunStatus.BAD_INPUT
    assert "/tmp holds 4194305 bytes" in it.end.detail


def sees_descriptors(it: Child) -> None:
    assert sorted(it.files) == ["/proc/self/statm", "pipe", "pipe", "pipe", "pipe"], it.files


def truth(check: Callable[[Child], bool]) -> Callable[[Child], None]:
    def look(it: Child) -> None:
        assert check(it)

    return look


WASM_LOOKS: Mapping[str, Callable[[Child], None]] = {
    "module": sees_module,
    "files": truth(lambda it: not it.inside["works"]["key"]),
    "system calls": truth(
        lambda it: it.filters == {"2"} and not it.inside["works"]["ptrace"] and not it.inside["works"]["mount"]
    ),
    "network": truth(lambda it: not it.inside["works"]["socket"]),
    "programs": truth(lambda it: not it.inside["works"]["fork"]),
    "threads": truth(lambda it: it.status["Threads"].strip() == "2" and not it.inside["works"]["thread"]),
    "uncounted memory": truth(lambda it: not it.inside["works"]["shared"]),
    "listed folders": truth(lambda it: not it.inside["works"]["hidden"]),
    "memory advice": truth(lambda it: not it.inside["works"]["advice"]),
    "no new privileges": truth(lambda it: it.status["NoNewPrivs"].strip() == "1"),
    "capabilities": truth(
        lambda it: all(int(it.status[f"Cap{name}"], 16) == 0 for name in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
    ),
    "memory": sees_memory_of_child,
    "watch": sees_watch,
    "out of memory": truth(lambda it: it.oom == wasm_child.OOM_SCORE == 500),
    "cpu time": truth(lambda it: 60 < limit(it, "CPU") < 1000),
    "open files": truth(lambda it: limit(it, "NOFILE") == 2 * wasm_child.MAX_FDS),
    "file size": truth(lambda it: limit(it, "FSIZE") == 8 << 20),
    "core files": truth(lambda it: limit(it, "CORE") == 1),
    "inspection": truth(lambda it: it.inside["dumpable"] == 0),
    "environment": truth(lambda it: it.environ <= {"PYTHONPATH", "HEARTH_PARENT", "LC_CTYPE"}),
    "descriptors": sees_descriptors,
    "end": truth(lambda it: it.inside["death"] == 9 and it.own_session),
}

walled = pytest.mark.skipif(
    walls.landlock_version() < walls.LEAST_VERSION or not walls.has_filters() or os.geteuid() != 0,
    reason="this kernel has no Landlock or no seccomp filter, or this user may not look at such a child",
)


@walled
@pytest.mark.parametrize("rule", WASM_LOOKS)
def test_wasm_profile__rule__stands(rule: str, child: Child) -> None:
    WASM_LOOKS[rule](child)


@walled
def test_wasm_profile__child_without_its_rules__every_look_fails(tmp_path: Path) -> None:
    """Control. What is passed to a child, and what its engine does, no child leaves out."""
    it = look_into_child(tmp_path, f"look-{os.getpid()}-plain", plain=True)
    stood = []
    for rule, look in WASM_LOOKS.items():
        try:
            look(it)
        except AssertionError:
            continue
        stood.append(rule)
    # Any test that ran a program of ours in this process has left it the limit of cores that these set themselves.
    inherited = ["core files"] if resource.getrlimit(resource.RLIMIT_CORE)[1] == 1 else []
    assert stood == ["module", *inherited, "environment", "descriptors"]
