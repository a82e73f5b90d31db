"""What the docker runtime asks of an engine, and how it reads an engine's answers: no engine needed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.jobfile import image_config
from hearth.protocol.types import LOCAL_CHAIN_ID
from worker.gpu.nvidia import device_of
from worker.gpu.port import Device
from worker.runtimes import docker, docker_engine, docker_images, docker_places, docker_request
from worker.runtimes.base import Level, RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.docker_gpu import held_elsewhere
from worker.runtimes.docker_request import GPUS_LABEL

DIGEST = "sha256:" + "ab" * 32
UUID = "GPU-6f0e8f2c-1111-2222-3333-444455556666"


def request(**changes: Any) -> RunRequest:
    values: dict[str, Any] = {
        "unit": "n7-job-0",
        "command": ("python3", "train.py"),
        "job_dir": Path("/w/job"),
        "in_dir": Path("/w/in"),
        "out_dir": Path("/w/out"),
        "limits": SandboxLimits(wall_seconds=60, memory_bytes=1 << 30, cpus=3, pids=99, out_bytes=1000, tmp_bytes=2000),
        "image": f"python@{DIGEST}",
    }
    return RunRequest(**{**values, **changes})


def host(**changes: Any) -> dict[str, Any]:
    config: dict[str, Any] = docker_request.container_config(request(**changes), {}, cpus=3)["HostConfig"]
    return config


def test_container_config__every_flag_of_the_sandbox__asked_for() -> None:
    config = docker_request.container_config(request(), {"EPOCHS": "3"}, cpus=3)
    asked = config["HostConfig"]
    assert config["Image"] == f"python@{DIGEST}" and config["Cmd"] == ["python3", "train.py"]
    assert config["User"] == "60706:65534" and config["WorkingDir"] == "/job"
    assert config["Env"] == ["USER=nobody", "EPOCHS=3", "NVIDIA_VISIBLE_DEVICES=void", "AMD_VISIBLE_DEVICES=void"]
    assert config["Labels"] == {
        "hearth.unit": "n7-job-0",
        "hearth.janitor": "0",
        "hearth.user": "60706",
        "hearth.gpus": "",
    }
    assert config["NetworkDisabled"] is True
    assert config["Healthcheck"] == {"Test": ["NONE"]} and config["StopTimeout"] == 5
    assert asked["NetworkMode"] == "none" and asked["ReadonlyRootfs"] is True and asked["Privileged"] is False
    assert asked["CapDrop"] == ["ALL"] and "CapAdd" not in asked
    assert asked["SecurityOpt"] == ["no-new-privileges", f"seccomp={docker_request.seccomp_profile()}"]
    assert (asked["IpcMode"], asked["CgroupnsMode"]) == ("private", "private")
    assert not {"PidMode", "UTSMode", "UsernsMode", "Devices", "Binds", "PortBindings", "VolumesFrom"} & set(asked)
    assert (asked["PidsLimit"], asked["NanoCpus"]) == (99, 3 * 10**9)
    assert asked["Memory"] == asked["MemorySwap"] == 1 << 30
    assert asked["Tmpfs"] == {"/tmp": "rw,noexec,nosuid,nodev,size=2000,mode=1777"}
    assert asked["LogConfig"] == {"Type": "local", "Config": {"max-size": "10m", "max-file": "2"}}
    limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in asked["Ulimits"]}
    assert limits == {"nofile": (1024, 1024), "core": (1, 1), "fsize": (2000 + (1 << 20),) * 2}


def test_janitor_config__root_of_the_host__three_rights_and_one_folder() -> None:
    config = docker_request.janitor_config("hearth-janitor:1", Path("/w/out"), "n7-job-0")
    asked = config["HostConfig"]
    assert (config["User"], asked["UsernsMode"]) == ("0:0", "host")
    assert (asked["CapDrop"], asked["CapAdd"]) == (["ALL"], ["CHOWN", "DAC_OVERRIDE", "FOWNER"])
    assert asked["SecurityOpt"][0] == "no-new-privileges" and asked["Privileged"] is False
    assert asked["NetworkMode"] == "none" and asked["ReadonlyRootfs"] is True
    assert [(mount["Source"], mount["Target"]) for mount in asked["Mounts"]] == [("/w/out", "/folder")]
    assert config["Labels"] == {"hearth.unit": "n7-job-0", "hearth.janitor": "1"}


def test_gpu_trial_config__limits__leave_room_for_the_hooks_that_a_jobs_leave() -> None:
    """NVIDIA's hooks run within them: on a machine of eight cores they need more threads than the janitor has."""
    config = docker_request.gpu_trial_config("hearth-janitor:1", device_of(UUID), f"trial-{UUID}")
    assert config["HostConfig"]["PidsLimit"] == SandboxLimits.pids == 256


def test_seccomp_profile__a_list_of_what_is_allowed__without_what_no_job_needs() -> None:
    profile = json.loads(docker_request.seccomp_profile())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    plain = {
        name
        for rule in profile["syscalls"]
        if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule
        for name in rule["names"]
    }
    assert not plain & {"socket", "socketpair", "socketcall", "clone", "clone3", "fallocate", "personality"}
    assert not allowed & {
        *("add_key", "bpf", "clone3", "fsmount", "fsopen", "io_uring_enter", "io_uring_register", "io_uring_setup"),
        *("init_module", "kcmp", "keyctl", "mount", "mount_setattr", "move_mount", "open_by_handle_at", "open_tree"),
        *("perf_event_open", "pidfd_getfd", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace"),
        *("request_key", "setns", "syslog", "umount2", "unshare", "userfaultfd", "modify_ldt", "kexec_load", "reboot"),
    }
    names = [name for rule in profile["syscalls"] if "args" not in rule for name in rule["names"]]
    assert len(names) == len(set(names)) > 250


def test_container_config__mounts__three_and_only_out_writable() -> None:
    mounts = host()["Mounts"]
    assert [(m["Target"], m["Source"], m["ReadOnly"]) for m in mounts] == [
        ("/job", "/w/job", True),
        ("/in", "/w/in", True),
        ("/out", "/w/out", False),
    ]
    assert all(m["Type"] == "bind" and m["BindOptions"]["Propagation"] == "rprivate" for m in mounts)


def test_container_config__no_gpu__no_device_request() -> None:
    assert "DeviceRequests" not in host()


def test_container_config__gpus__by_uuid_through_cdi() -> None:
    assert "GroupAdd" not in host(gpus=(device_of(UUID),))
    card = Device("GPU-1", "amd.com/gpu=0", "/dev/dri/renderD", "refresh", 128, groups=(44, 109))
    asked = host(gpus=(card, replace(card, cdi="amd.com/gpu=3", groups=(109,))))
    assert asked["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": ["amd.com/gpu=0", "amd.com/gpu=3"]}]
    assert asked["GroupAdd"] == ["44", "109"]
    assert host(gpus=(device_of(UUID),))["DeviceRequests"] == [
        {"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={UUID}"]}
    ]


def test_container_config__no_command__the_images_own() -> None:
    assert "Cmd" not in docker_request.container_config(request(command=()), {}, cpus=1)


@pytest.mark.parametrize("name", ["runsc", "runsc-kvm"])
def test_container_config__gvisor__named_with_room_for_its_own_process(name: str) -> None:
    asked = docker_request.container_config(request(), {}, cpus=1, runtime=name)["HostConfig"]
    assert asked["Runtime"] == name
    assert asked["PidsLimit"] == 2 * 99 + 64
    assert asked["Memory"] == asked["MemorySwap"] == (1 << 30) + (64 << 20)


def test_container_config__other_runtime__named_and_nothing_more() -> None:
    asked = docker_request.container_config(request(), {}, cpus=1, runtime="crun")["HostConfig"]
    assert (asked["Runtime"], asked["PidsLimit"], asked["Memory"]) == ("crun", 99, 1 << 30)


def test_container_config__volumes_of_the_image__capped_tmpfs() -> None:
    tmpfs = docker_request.container_config(request(), {}, ("/data",), cpus=1)["HostConfig"]["Tmpfs"]
    assert set(tmpfs) == {"/tmp", "/data"}
    assert "size=2000" in tmpfs["/data"] and "noexec" in tmpfs["/data"]


@pytest.mark.parametrize(
    ("reference", "parsed"),
    [
        (f"python@{DIGEST}", ("python", DIGEST)),
        (f"python:3.12@{DIGEST}", ("python", DIGEST)),
        (f"127.0.0.1:5000/hearth/x@{DIGEST}", ("127.0.0.1:5000/hearth/x", DIGEST)),
        (f"127.0.0.1:5000/hearth/x:1@{DIGEST}", ("127.0.0.1:5000/hearth/x", DIGEST)),
        (f"ghcr.io/a/b:1:111@{DIGEST}", None),
        (f"ghcr.io/a/b:é@{DIGEST}", None),
        (f"localhost:123456/x@{DIGEST}", None),
        ("python", None),
        ("python:latest", None),
        (f"python@{DIGEST[:-1]}", None),
        (f"python@{DIGEST.upper()}", None),
        (f"--privileged@{DIGEST}", None),
        (f"python@{DIGEST}\n", None),
        ("", None),
    ],
)
def test_parse_image__only_digests__accepted(reference: str, parsed: tuple[str, str] | None) -> None:
    assert docker_request.parse_image(reference) == parsed


@pytest.mark.parametrize("image", [None, "python:3.12", "python"])
def test_run__image_without_digest__image_missing_before_any_engine(image: str | None) -> None:
    result = docker.DockerRuntime("unix:///nowhere.sock").run(request(image=image), threading.Event())
    assert result.status is RunStatus.IMAGE_MISSING


def test_held_elsewhere__gpu_without_a_name__is_no_gpu_of_a_job_without_any() -> None:
    class Engine:
        def containers(self, **_: Any) -> list[dict[str, Any]]:
            return [{"Labels": {GPUS_LABEL: gpus, docker_request.LABEL: "theirs"}} for gpus in ("", f"x,{UUID}")]

    assert held_elsewhere(Engine(), ("",), "ours") == held_elsewhere(Engine(), (UUID,), "theirs") == ""
    assert held_elsewhere(Engine(), (UUID,), "ours") == f"the container of theirs has {UUID}"


def test_runtime__no_engine__named_everywhere_and_never_raised() -> None:
    runtime = docker.DockerRuntime("unix:///nowhere.sock")
    able, why = runtime.available()
    assert not able and "no Docker engine answers" in why
    refused = runtime.prepare(f"python@{DIGEST}")
    assert refused is not None and refused.status is RunStatus.BROKEN
    assert runtime.run(request(), threading.Event()).status is RunStatus.BROKEN
    assert runtime.sweep("x") == 0
    assert [row.level for row in runtime.capabilities(1)] == [Level.FAIL]


FOLDERS = ("/data", "/var/lib/x", "/in", "/job", "/out", "/tmp", "/tmp/x", "/dev/shm", "/proc/x", "/outer", "/in.d/x")
HIDING = ("/out/data", "/out/a/b", "/in/x", "/job/src")
"""What an image's volumes would take away from a job: its outputs, its inputs."""
NO_FOLDERS = ("/", "/proc", "/dev")
SPELLINGS = ("{}", "{}/", "/{}", "//{}", "/.{}", "{}/.", "{}//")


def spelled(folders: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(folder, spelling.format(folder)) for folder in folders for spelling in SPELLINGS]


@pytest.mark.parametrize(("folder", "volume"), spelled(FOLDERS))
def test_refuse_image__volume_that_a_sandbox_can_have__a_bounded_folder_of_one_name(folder: str, volume: str) -> None:
    """An engine puts its own volume where what is asked for has another name: on the host's disk, without a cap, or
    over the outputs."""
    image = {"Volumes": {volume: {}, folder: {}}}
    assert docker_images.refuse_image({"Config": image}) is None
    volumes = image_config.volumes_of(image)
    assert volumes == (() if folder in ("/in", "/job", "/out") else (folder,))
    asked = docker_request.container_config(request(), {}, volumes, cpus=1)["HostConfig"]
    assert folder in {*asked["Tmpfs"], *(mount["Target"] for mount in asked["Mounts"])}
    assert not set(asked["Tmpfs"]) & {mount["Target"] for mount in asked["Mounts"]}


@pytest.mark.parametrize(
    "volume",
    [*(volume for _, volume in spelled((*HIDING, *NO_FOLDERS))), "/out/../out/x", "/../..", "/x/../y", "data", ""],
)
def test_refuse_image__volume_that_no_sandbox_has_or_that_hides_a_jobs_data__refused_by_name(volume: str) -> None:
    refused = docker_images.refuse_image({"Config": {"Volumes": {volume: {}, "/data": {}}}})
    assert refused is not None and refused.status is RunStatus.IMAGE_MISSING
    assert repr(volume) in refused.detail and "build it without" in refused.detail


LINKS: dict[str, tuple[dict[str, str], tuple[str, ...], str]] = {
    "none": ({}, ("/data",), ""),
    "/out elsewhere": ({"/out": "/data"}, (), ""),
    "a volume elsewhere": ({"/var/run": "/run"}, ("/var/run/x",), ""),
    "a volume into /tmp": ({"/data": "/tmp/data"}, ("/data",), ""),
    "/out to /tmp": ({"/out": "/tmp"}, (), "link at /out"),
    "/out below /in": ({"/out": "/in/out"}, (), "link at /out"),
    "/tmp to /out": ({"/tmp": "/out"}, (), "link at /tmp"),
    "/in and /job to one": ({"/in": "/x", "/job": "/x"}, (), "link at /in"),
    "/out to the root": ({"/out": "/"}, (), "link at /out"),
    "/out to the engine's shm": ({"/out": "/dev/shm"}, (), "link at /out"),
    "/out among the engine's files": ({"/out": "/etc"}, (), "link at /out"),
    "a volume to /out": ({"/data": "/out"}, ("/data",), "VOLUME"),
    "a volume below /out": ({"/data": "/out/data"}, ("/data",), "VOLUME"),
    "a volume below a link to /out": ({"/data": "/out"}, ("/data/a/b",), "VOLUME"),
    "a volume to /in": ({"/data": "/in"}, ("/data",), "VOLUME"),
    "a volume to the root": ({"/data": "/"}, ("/data",), "VOLUME"),
    "a volume where /out leads": ({"/out": "/data"}, ("/data",), "VOLUME"),
    "a volume over where /out leads": ({"/out": "/data/x"}, ("/data",), "VOLUME"),
}


@pytest.mark.parametrize("case", LINKS)
def test_place_fault__links_of_an_image__refused_where_one_folder_hides_another(case: str) -> None:
    links, volumes, said = LINKS[case]

    def look(path: str) -> dict[str, Any] | None:
        if path in links:
            return {"mode": docker_places.SYMLINK | 0o777, "linkTarget": links[path]}
        return {"mode": 0o755, "linkTarget": ""} if path.count("/") == 1 else None

    fault = docker_places.place_fault(look, volumes)
    assert said in fault if said else fault == ""


def test_refuse_image__more_volumes_than_a_sandbox_takes__refused_with_their_number() -> None:
    def volumes(count: int) -> dict[str, Any]:
        return {"Config": {"Volumes": {f"/{number}": {} for number in range(count)}}}

    assert docker_images.refuse_image(volumes(image_config.MAX_VOLUMES)) is None
    refused = docker_images.refuse_image(volumes(image_config.MAX_VOLUMES + 1))
    assert refused is not None and "65 volumes, more than 64" in refused.detail


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        ({"ExitCode": 0, "OOMKilled": False}, RunStatus.OK, 0),
        ({"ExitCode": 3, "OOMKilled": False}, RunStatus.EXIT, 3),
        ({"ExitCode": 137, "OOMKilled": True}, RunStatus.OOM, 137),
        ({"ExitCode": 1, "OOMKilled": True}, RunStatus.OOM, 1),
        ({"ExitCode": 0, "OOMKilled": True}, RunStatus.OK, 0),
        ({"ExitCode": 137, "OOMKilled": False}, RunStatus.EXIT, 137),
    ],
)
def test_name_end__state_of_the_engine__typed(state: dict[str, Any], status: RunStatus, code: int) -> None:
    result = docker.name_end(state, None, request())
    assert (result.status, result.exit_code) == (status, code)


class LateEngine:
    """An engine that says only at its third look that the memory limit ended a container, or never."""

    def __init__(self, code: int, *, oom: bool) -> None:
        self.looks, self._code, self._oom = 0, code, oom

    def inspect_container(self, container: str) -> dict[str, Any]:
        self.looks += 1
        return {"State": {"ExitCode": self._code, "OOMKilled": self._oom and self.looks > 2}}


@pytest.mark.parametrize(
    ("code", "oom", "stopped", "looks", "status"),
    [
        (137, True, None, 3, RunStatus.OOM),
        (137, False, None, docker.OOM_LOOKS, RunStatus.EXIT),
        (3, True, None, 1, RunStatus.EXIT),
        (137, True, RunResult(RunStatus.TIMEOUT), 1, RunStatus.TIMEOUT),
    ],
)
def test_end_of__limit_that_the_engine_tells_late__is_waited_for_after_a_kill_of_its_own(
    code: int, oom: bool, stopped: RunResult | None, looks: int, status: RunStatus
) -> None:
    engine, pauses = LateEngine(code, oom=oom), list[float]()
    state = docker.end_of(engine, "unit", stopped, pauses.append)
    assert (engine.looks, docker.name_end(state, stopped, request()).status) == (looks, status)
    assert sum(pauses) <= docker.OOM_SECONDS


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ('exec: "nosuch": executable file not found in $PATH: unknown', RunStatus.EXIT),
        ('exec: "/job/x": permission denied: unknown', RunStatus.EXIT),
        ("exec /job/x: no such file or directory", RunStatus.EXIT),
        ("starting sandbox: creating process: failed to load /job/x: exec format error: unknown", RunStatus.EXIT),
        ("starting sandbox: creating process: failed to load /job: permission denied: unknown", RunStatus.EXIT),
        ("starting sandbox: creating process: failed to load /x: no such file or directory: unknown", RunStatus.EXIT),
        (
            'starting sandbox: error finding executable "x" in PATH [/usr/bin]: no such file or directory: unknown',
            RunStatus.EXIT,
        ),
        ("failed to create task: cgroup: out of memory", RunStatus.BROKEN),
        ("error running hook #0: fork/exec /usr/bin/nvidia-ctk: no such file or directory: unknown", RunStatus.BROKEN),
        ("error running hook #0: fork/exec /usr/bin/nvidia-ctk: permission denied: unknown", RunStatus.BROKEN),
        ('mounting "/var/run/exec/libcuda.so" to rootfs: no such file or directory: unknown', RunStatus.BROKEN),
    ],
)
def test_name_start_failure__message__whose_fault(message: str, status: RunStatus) -> None:
    result = docker.name_start_failure(message, ("nosuch",))
    assert result.status is status and message not in result.detail


GOOD_INFO: dict[str, Any] = {
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "CgroupVersion": "2",
    "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=userns"],
    "Plugins": {"Log": ["json-file", "local"]},
    "Runtimes": {"runc": {}, "runsc": {}},
    "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
}
GOOD_VERSION: dict[str, Any] = {
    "Version": "28.5.1",
    "Os": "linux",
    "Arch": "amd64",
    "Components": [{"Name": "runc", "Version": "1.3.3"}],
}


def levels(
    version: dict[str, Any],
    info: dict[str, Any],
    chain: int = 1,
    gpus: Sequence[Device] = (device_of(UUID),),
    wished: str = "runsc",
) -> dict[str, Level]:
    rows = docker_engine.judge_engine(version, info, chain, gpus=gpus, wished=wished)
    assert all(bool(row.fix) is (row.level is not Level.PASS) for row in rows)
    return {row.name: row.level for row in rows}


def test_judge_engine__everything_there__only_the_quota_warns() -> None:
    found = levels(GOOD_VERSION, GOOD_INFO)
    assert {name for name, level in found.items() if level is not Level.PASS} == {"output quota"}


@pytest.mark.parametrize(
    ("change", "row", "level"),
    [
        ({"MemoryLimit": False}, "memory limit", Level.FAIL),
        ({"SwapLimit": False}, "swap limit", Level.WARN),
        ({"PidsLimit": False}, "process limit", Level.FAIL),
        ({"CpuCfsQuota": False}, "cpu limit", Level.FAIL),
        ({"CgroupVersion": "1"}, "control groups v2", Level.WARN),
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, "seccomp", Level.FAIL),
        ({"SecurityOptions": []}, "seccomp", Level.FAIL),
        ({"SecurityOptions": ["name=seccomp,profile=default"]}, "apparmor", Level.WARN),
        ({"SecurityOptions": ["name=seccomp,profile=default"]}, "user namespace", Level.WARN),
        ({"Plugins": {"Log": ["json-file"]}}, "log driver local", Level.FAIL),
        ({"Runtimes": {"runsc": {"runtimeArgs": ["--oci-seccomp"]}}}, "gVisor (runsc)", Level.WARN),
    ],
)
def test_judge_engine__one_thing_missing__its_row_says_so(change: dict[str, Any], row: str, level: Level) -> None:
    assert levels(GOOD_VERSION, {**GOOD_INFO, **change})[row] is level


@pytest.mark.parametrize(
    ("wished", "default", "level"),
    [("", "runc", Level.WARN), ("", "runsc", Level.PASS), ("runsc", "runc", Level.PASS), ("crun", "runsc", Level.WARN)],
)
def test_judge_engine__gvisor_registered__counts_where_containers_have_it(
    wished: str, default: str, level: Level
) -> None:
    info = {**GOOD_INFO, "DefaultRuntime": default}
    assert levels(GOOD_VERSION, info, wished=wished)["gVisor (runsc)"] is level
    (engine,) = [
        row for row in docker_engine.judge_engine(GOOD_VERSION, info, 1, wished=wished) if "engine" in row.name
    ]
    assert engine.detail == f"docker 28.5.1 {wished or default} linux/amd64"


@pytest.mark.parametrize(
    ("version", "info", "lack"),
    [
        ({"Version": "26.1.5"}, {"CDISpecDirs": []}, "CDI is off in this engine"),
        ({"Version": "26.1.5"}, {"CDISpecDirs": None}, "CDI is off in this engine"),
        ({}, {"DiscoveredDevices": None}, f"no CDI device for {UUID}"),
        ({}, {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}, f"no CDI device for {UUID}"),
        ({}, {"DiscoveredDevices": [{"Source": "cdi", "ID": f"nvidia.com/gpu={UUID}"}]}, ""),
        ({"Version": "5.4.2", "Components": [{"Name": "Podman Engine"}]}, {}, "Podman's Docker API"),
        ({"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]}, {"CDISpecDirs": ["/etc/cdi"]}, "Podman"),
    ],
)
def test_judge_engine__way_of_gpus__what_is_wrong_with_it(
    version: dict[str, Any], info: dict[str, Any], lack: str
) -> None:
    rows = docker_engine.judge_engine({**GOOD_VERSION, **version}, {**GOOD_INFO, **info}, 1, gpus=[device_of(UUID)])
    (row,) = [row for row in rows if row.name == "GPU by CDI"]
    assert row.level is (Level.FAIL if lack else Level.PASS) and lack in row.detail


def test_judge_engine__old_engine__no_gpu_and_runc_by_chain() -> None:
    old = {**GOOD_VERSION, "Version": "20.10.24+dfsg1", "Components": [{"Name": "runc", "Version": "1.1.5+ds1"}]}
    assert levels(old, GOOD_INFO)["GPU by CDI"] is Level.FAIL
    assert levels(old, GOOD_INFO)["runc"] is Level.FAIL
    assert levels(old, GOOD_INFO, chain=LOCAL_CHAIN_ID)["runc"] is Level.WARN
    assert "GPU by CDI" not in levels(old, GOOD_INFO, gpus=())


def test_import__runtime_module__does_not_load_the_sdk() -> None:
    program = "import sys, worker.runtimes.docker; print('docker' in sys.modules, 'requests' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_free_user__others_that_run__are_somebody_else() -> None:
    first, second = docker_request.GUEST_UIDS[:2]
    assert docker_request.free_user([], 0) == first
    assert docker_request.free_user([{"hearth.user": str(first)}, {}, {"hearth.user": "x"}], 0) == second
    last = docker_request.GUEST_UIDS[-1]
    assert docker_request.free_user([{"hearth.user": str(last)}], len(docker_request.GUEST_UIDS) - 1) == first
    everybody = [{"hearth.user": str(user)} for user in docker_request.GUEST_UIDS]
    assert docker_request.free_user(everybody, 1) == second, "more containers than users: two share one"
