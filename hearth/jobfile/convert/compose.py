"""Docker Compose: a file of one service."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from hearth.jobfile import rules
from hearth.jobfile.convert.draft import (
    NO_COUNTERPART,
    NO_NETWORK,
    OURS,
    Draft,
    NotConvertible,
    count,
    mapping,
    not_taken,
    only,
    sequence,
    shown,
    text,
)
from hearth.protocol.gpu_tiers import AMD, NVIDIA, VENDORS, VendorName

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE: Final = re.compile(rf"(?P<name>{_NAME.pattern})(?:(?P<how>:?[-?+])(?P<word>.*))?", re.DOTALL)
"""What may stand behind a dollar, without its braces."""
_MAX_NESTED: Final = 16
"""Defaults inside defaults."""
_KEPT: Final = ("`", ")")
"""Quotes that stay in a word: no shell reads what they hold."""

_NO_RIGHTS: Final = "a job runs as a user without rights"
_NO_TERMINAL: Final = "a job has no terminal"
_SERVICE: Final = {
    "restart": "a job runs once; retry.attempts says how many workers may try",
    "networks": NO_NETWORK,
    "dns": NO_NETWORK,
    "extra_hosts": NO_NETWORK,
    "expose": NO_NETWORK,
    "env_file": "is not read: the environment of a job is public; write in env what may be seen",
    "secrets": "everything in a job is public",
    "configs": "a job has files only as inputs, all of them public: name one below this file's folder",
    "user": _NO_RIGHTS,
    "privileged": _NO_RIGHTS,
    "cap_add": _NO_RIGHTS,
    "security_opt": _NO_RIGHTS,
    "tty": _NO_TERMINAL,
    "stdin_open": _NO_TERMINAL,
    "devices": "a job sees no devices but GPUs",
    "build": "build the image, push it, and name it",
    "healthcheck": "a job runs once and ends",
    "depends_on": "a job is one container; after names jobs that it waits for",
    "profiles": "a job file is one job",
    "shm_size": "/dev/shm of a job has 64 MiB, with a GPU up to 1 GiB: keep what is larger in memory or in /tmp",
    "ipc": "a job shares no memory with its machine",
    "ulimits": "a job has 1,024 open files, with a GPU 16,384, and 256 processes",
    "tmpfs": "a job has /tmp, of 256 MiB",
    "read_only": "a job's root is always read-only",
    "logging": "hearth job logs JOB shows what a job has written",
    "platform": "workers run linux/amd64 or linux/arm64, as the image has it",
}


def recognise(document: dict[str, Any]) -> bool:
    """Say whether a file is Compose's: services, whatever they hold, and no key that only a job file has."""
    return "services" in document and not OURS & set(document)


def convert(document: dict[str, Any], draft: Draft) -> None:
    """Take over the one service. Raises NotConvertible."""
    name, raw = only(_started(mapping(document["services"], "services"), draft), "service")
    where = f"services.{name}"
    service = _filled(mapping(raw, where), where, draft, {})
    if service.get("ports"):
        raise NotConvertible(
            f"{where}.ports publishes ports: {NO_NETWORK}; where the program ends by itself, remove ports"
        )
    mode = service.get("network_mode")
    if mode is not None and text(mode, f"{where}.network_mode") != "none":
        raise NotConvertible(f"{where}.network_mode is {str(mode)[:40]}: {NO_NETWORK}")
    if mode is None:
        draft.note(f"{where}.network_mode", f"Compose gives a container a network unless it says none; {NO_NETWORK}")
    if service.get("image") is None and "build" in service:
        raise NotConvertible(f"{where}.build builds its image: push the image, and name it")
    draft.name(document.get("name") or name)
    draft.image(service.get("image"), f"{where}.image")
    entry, command = f"{where}.entrypoint", f"{where}.command"
    first, rest = _split(service.get("entrypoint"), entry, draft), _split(service.get("command"), command, draft)
    draft.command(first, rest, entry, command)
    draft.env(service.get("environment"), f"{where}.environment", filled=True)
    _volumes(service, where, draft)
    _resources(service, where, draft)
    used = (
        *("image", "entrypoint", "command", "environment", "network_mode", "volumes", "deploy", "ports", "scale"),
        *("container_name", "cpus", "mem_limit", "mem_reservation", "gpus", "runtime", "working_dir"),
    )
    files = ", ".join(_env_files(service.get("env_file"), f"{where}.env_file")) or "it"
    draft.leave(where, service, used, {**_SERVICE, "env_file": f"{files} {_SERVICE['env_file']}"})
    top = {key for key in document if key.startswith("x-")} | {"version", "name", "services"}
    draft.leave("", document, top, {"volumes": "a job has no volumes of its own", "networks": NO_NETWORK})


def _started(services: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Return the services that Compose starts when no profile is asked for; all of them where that is none."""
    started = {name: raw for name, raw in services.items() if not (isinstance(raw, dict) and raw.get("profiles"))}
    if len(started) != 1:
        return services
    for name in services:
        if name not in started:
            draft.note(f"services.{name}", "Compose starts it only where its profile is asked for")
    return started


def _env_files(value: object, key: str) -> list[str]:
    """Return the names of a service's files of variables: text, or a list of texts and of mappings with a path."""
    listed = [value] if isinstance(value, str) else sequence(value, key, "text or a list")
    named = (
        (one.get("path"), f"{key}[{index}].path") if isinstance(one, dict) else (one, f"{key}[{index}]")
        for index, one in enumerate(listed)
    )
    return [text(name, where)[:120] for name, where in named]


def _filled(value: Any, where: str, draft: Draft, done: dict[int, Any]) -> Any:
    """Return plain values as Compose reads them, `$$` as a dollar; what it takes from a shell stays, and is noted.

    `done` holds what was filled already: an alias stays the same object, or a few lines would become a billion.
    """
    if isinstance(value, str):
        return _fill(value, where, draft)
    if not isinstance(value, list | dict):
        return value
    if id(value) not in done:
        done[id(value)] = (
            [_filled(item, f"{where}[{index}]", draft, done) for index, item in enumerate(value)]
            if isinstance(value, list)
            else {key: _filled(item, f"{where}.{key}", draft, done) for key, item in value.items()}
        )
    return done[id(value)]


def _fill(template: str, where: str, draft: Draft, depth: int = 0) -> str:
    """Replace the variables of one text. Raises NotConvertible for what Compose refuses too."""
    out, at = [], 0
    while (dollar := template.find("$", at)) >= 0:
        out.append(template[at:dollar])
        end = _end_of(template, dollar + 1)
        inner = template[dollar + 1 : end]
        found = _VARIABLE.fullmatch(inner[1:-1] if inner.startswith("{") else inner)
        if inner == "$":
            out.append("$")
        elif found is None or depth > _MAX_NESTED:
            raise NotConvertible(
                f"{where} holds {template[dollar : dollar + 40]!r}: in Compose, $$ stands for a dollar"
            )
        elif rules.is_secret_name(found["name"]):
            draft.note(where, f"{found['name'][:60]} looks like a secret, and a job is public: it is left out")
        elif found["how"] in ("-", ":-"):
            out.append(_fill(found["word"], where, draft, depth + 1))
            draft.note(where, f"{found['name'][:60]} is not taken from your shell: its default is")
        elif found["how"] in ("+", ":+"):
            draft.note(where, f"{found['name'][:60]} is not taken from your shell: what depends on it is left out")
        else:
            out.append(template[dollar:end])
            draft.note(where, f"{found['name'][:60]} is not taken from your shell, and is left in: write its value")
        at = end
    return "".join([*out, template[at:]])


def _end_of(template: str, start: int) -> int:
    """Return where what follows a dollar ends: another dollar, a name, or braces with all that they hold."""
    if template.startswith("$", start):
        return start + 1
    if not template.startswith("{", start):
        found = _NAME.match(template, start)
        return found.end() if found else start
    depth = 1
    for at in range(start + 1, len(template)):
        if template[at] == "}":
            depth -= 1
            if depth == 0:
                return at + 1
        depth += template.startswith("${", at)
    return start


def _split(command: object, where: str, draft: Draft) -> object:
    """Return a command as a list of words, as Compose splits text: by a shell's quotes, and by nothing else of a shell.

    Source: mattn/go-shellwords, as compose-go calls it. What it would leave out from an unquoted operator on is kept.
    """
    if not isinstance(command, str):
        return command
    words: list[str] = []
    word, quote, escaped, operator = "", "", False, ""
    started = False
    for at, one in enumerate(command):
        if escaped:
            word += {"t": "\t", "n": "\n"}.get(one, one) if quote in ("", '"') else f"\\{one}"
            escaped = False
        elif one == "\\" and quote != "'":
            escaped = started = True
        elif quote:
            word += one if one != quote or quote in _KEPT else ""
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote, started = one, True
        elif one in " \t\r\n":
            words += [word] if started else []
            word, started = "", False
        elif one in "()" and not (one == "(" and word.endswith("$")):
            raise NotConvertible(f"{where} holds a bare {one}, which Compose refuses too: quote it at {at}")
        else:
            quote = {"`": "`", "(": ")"}.get(one, "")
            operator = operator or (one if one in ";&|<>" else "")
            word, started = word + one, True
    if quote or escaped:
        raise NotConvertible(f"{where} has a quote without an end")
    if operator:
        draft.note(
            where, f"no shell reads {operator}: it is passed to the program, where Compose drops what follows it"
        )
    return [*words, word] if started else words


def _volumes(service: dict[str, Any], where: str, draft: Draft) -> None:
    mounts = [
        _mount(raw, f"{where}.volumes[{index}]")
        for index, raw in enumerate(sequence(service.get("volumes"), f"{where}.volumes"))
    ]
    start = service.get("working_dir")
    start = "" if start is None else text(start, f"{where}.working_dir")
    work = _work_mount(mounts, start)
    if start.rstrip("/") not in ("", "/job") and work is None:
        draft.note(f"{where}.working_dir", f"a job starts in /job, not {start[:120]}")
    for mount in mounts:
        key, source, target = mount.key, mount.source, mount.target
        if _is_within(target, "/out"):
            draft.output(target, key)
        elif "$" in source:
            draft.note(key, f"{shown(source)} is not taken: write the path out, below this file's folder")
        elif not (mount.is_path and target):
            draft.note(key, "a job has no volumes of its own: /tmp is its scratch, results go to /out")
        elif mount is work:
            draft.workdir(source, target, key, read_only=mount.read_only)
            if start and start.rstrip("/") != target.rstrip("/"):
                draft.note(
                    f"{where}.working_dir", f"a job starts in /job, not {start[:120]}: name its files from there"
                )
        else:
            draft.input(source, target, key)
            if not mount.read_only and not not_taken(source):
                draft.note(key, f"inputs are read-only: what is written to {target[:120]} is refused; write to /out")


class _Mount(NamedTuple):
    """One of a service's volumes: its key in the file, what is mounted, where, and how."""

    key: str
    source: str
    target: str
    read_only: bool
    is_path: bool


def _mount(raw: object, key: str) -> _Mount:
    """Return a volume, in its long or short form. Raises NotConvertible."""
    if isinstance(raw, dict):
        source, target = (text(raw.get(end, ""), f"{key}.{end}") for end in ("source", "target"))
        return _Mount(key, source, target, raw.get("read_only") is True, raw.get("type") == "bind")
    source, _, rest = text(raw, key).partition(":")
    target, _, mode = rest.partition(":")
    return _Mount(key, source, target, "ro" in mode.split(","), source.startswith((".", "/", "~")))


def _work_mount(mounts: list[_Mount], start: str) -> _Mount | None:
    """Return the folder of this machine that holds what the container starts in, by default /job: the nearest one."""
    fitting = [
        mount
        for mount in mounts
        if mount.is_path and "$" not in mount.source and not not_taken(mount.source)
        if mount.target.strip("/")
        and _is_within(start or "/job", mount.target)
        and not _is_within(mount.target, "/out")
    ]
    return max(fitting, key=lambda mount: len(mount.target.rstrip("/")), default=None)


def _is_within(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _resources(service: dict[str, Any], where: str, draft: Draft) -> None:
    deploy = mapping(service.get("deploy"), f"{where}.deploy")
    if count(deploy.get("replicas", service.get("scale")), f"{where}.deploy.replicas") > 1:
        raise NotConvertible(f"{where}.deploy.replicas asks for several containers, and a job is one")
    given = mapping(deploy.get("resources"), f"{where}.deploy.resources")
    bounds = f"{where}.deploy.resources.limits"
    limits = mapping(given.get("limits"), bounds)
    devices = f"{where}.deploy.resources.reservations"
    reserved = mapping(given.get("reservations"), devices)
    for cpus, key in (
        (limits.get("cpus"), f"{bounds}.cpus"),
        (service.get("cpus"), f"{where}.cpus"),
        (reserved.get("cpus"), f"{devices}.cpus"),
    ):
        if cpus is not None:
            draft.cpus(cpus, key)
            break
    for memory, key in (
        (limits.get("memory"), f"{bounds}.memory"),
        (service.get("mem_limit"), f"{where}.mem_limit"),
        (service.get("mem_reservation"), f"{where}.mem_reservation"),
        (reserved.get("memory"), f"{devices}.memory"),
    ):
        if memory is not None:
            draft.size("memory", memory, key, decimal=False)
            break
    gpus, vendor = _gpus(service, sequence(reserved.get("devices"), f"{devices}.devices"), where, draft)
    draft.gpu(gpus, (), f"{where}.gpus", vendor=vendor)
    draft.leave(f"{where}.deploy", deploy, ("resources", "replicas"), {"restart_policy": _SERVICE["restart"]})
    draft.leave(f"{where}.deploy.resources", given, ("limits", "reservations"))
    draft.leave(bounds, limits, ("cpus", "memory"))
    draft.leave(devices, reserved, ("cpus", "memory", "devices"))


def _gpus(service: dict[str, Any], devices: list[Any], where: str, draft: Draft) -> tuple[int, VendorName]:
    """Return how many GPUs a service asks for, and whose: all of a machine's count as one."""
    said: list[str] = []
    asked = service.get("gpus")
    if not isinstance(asked, list):
        wanted = [] if asked is None else [asked]
    else:
        wanted, devices = [], [{"capabilities": ["gpu"], **mapping(raw, f"{where}.gpus")} for raw in asked]
    for raw in [] if wanted else devices:
        device = mapping(raw, f"{where}.deploy.resources.reservations.devices")
        if "gpu" in sequence(device.get("capabilities"), f"{where} capabilities"):
            ids = device.get("device_ids")
            said += map(str, [device.get("driver"), *(ids if isinstance(ids, list) else ())])
            wanted.append(len(ids) if isinstance(ids, list) else device.get("count", "all"))
    runtime = service.get("runtime")
    if not wanted and runtime in VENDORS:
        wanted = ["all"]
    said.append(str(runtime))
    if runtime is not None and runtime not in VENDORS:
        draft.note(f"{where}.runtime", NO_COUNTERPART)
    every = [one for one in wanted if one in ("all", -1, "-1")]
    if every:
        draft.note(f"{where}.gpus", "all GPUs of a machine became one: resources.gpu.count says how many")
    vendor = AMD if any(text.startswith("amd") for text in said) else NVIDIA
    return len(every) + sum(count(one, f"{where}.gpus", 0) for one in wanted if one not in every), vendor.name
