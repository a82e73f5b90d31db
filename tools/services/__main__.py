"""`python -m tools.services up|down|status|env [NAME...]`: start, stop and describe the test services."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tools.services import engine, geth, gpu, images, kubo, registry
from tools.services.base import Service, ServiceError, Unavailable, instance_folder, locked, log, save, saved

NAMES = ("registry", "docker", "userns", "images", "gpu", "kubo", "geth")
# What is built from source, where the machine has not got it, and for which service: minutes on the first call.
PROGRAMS = {"docker": engine.GVISOR, "kubo": kubo.PROGRAM, "geth": geth.PROGRAM}
# What each cannot start without.
NEEDS = {
    "images": ("docker", "registry"),
    **dict.fromkeys(("docker", "userns", "gpu"), ("registry",)),
}


def up(names: Sequence[str]) -> int:
    """Start what is not running; a service that this machine cannot have is named and left out.

    Programs are built in the background, while packages, the engine and its images are seen to. Returns 0 where every
    named service runs, 3 where one is unavailable, and raises ServiceError where one failed.
    """
    wanted = {need for name in names for need in (name, *NEEDS.get(name, ()))}
    running = {service.name: service for service in saved() if service.alive}
    if "docker" not in running:
        # Images live in the engine and its registry.
        running.pop("images", None)
    missing = []
    with ThreadPoolExecutor() as builders:
        building = {
            name: builders.submit(program.binary)
            for name, program in PROGRAMS.items()
            if name in wanted and name not in running
        }
        starters: dict[str, Callable[[], Service]] = {
            "registry": registry.start,
            "docker": lambda: engine.start(running["registry"].env["HEARTH_TEST_REGISTRY"], building["docker"].result),
            "userns": lambda: engine.start_userns(running["registry"].env["HEARTH_TEST_REGISTRY"]),
            "images": lambda: images.publish(
                running["docker"].env["DOCKER_HOST"], running["registry"].env["HEARTH_TEST_REGISTRY"]
            ),
            "gpu": lambda: gpu.start(running["registry"].env["HEARTH_TEST_REGISTRY"]),
            "kubo": lambda: kubo.start(building["kubo"].result()),
            "geth": lambda: geth.start(building["geth"].result()),
        }
        for name in NAMES:
            if name not in wanted or name in running:
                continue
            if any(need not in running for need in NEEDS.get(name, ())):
                missing.append(name)
                continue
            try:
                running[name] = starters[name]()
            except Unavailable as why:
                log(f"{name}: unavailable: {why}")
                missing.append(name)
            finally:
                save(list(running.values()))
    return 3 if missing else 0


def down() -> int:
    """Stop what we started, last first, and remove the instance's folder."""
    for service in reversed(saved()):
        if service.process is not None:
            log(f"{service.name}: stopping {service.process.pid}")
            service.process.stop()
    engine.clean_up()
    shutil.rmtree(instance_folder(), ignore_errors=True)
    return 0


def status() -> int:
    """Print one line per service; exit 3 where one of them is not running."""
    known = {service.name: service for service in saved()}
    for name in NAMES:
        service = known.get(name)
        word = "running" if service and service.alive else "stopped"
        details = " ".join(f"{key}={value}" for key, value in sorted(service.env.items())) if service else ""
        print(f"{name:9} {word:8} {details}".rstrip())
    return 0 if all(name in known and known[name].alive for name in NAMES) else 3


def env() -> int:
    """Print the variables of what runs as shell exports, for `eval "$(python -m tools.services env)"`."""
    for service in saved():
        if service.alive:
            for key, value in sorted(service.env.items()):
                print(f"export {key}={shlex.quote(value)}")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run one verb under this clone's lock."""
    parser = argparse.ArgumentParser(prog="python -m tools.services", description=__doc__)
    parser.add_argument("verb", choices=("up", "down", "status", "env"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"with up: some of {', '.join(NAMES)}")
    args = parser.parse_args(argv)
    unknown = set(args.names) - set(NAMES)
    if unknown:
        parser.error(f"no such service: {', '.join(sorted(unknown))}")
    folder = instance_folder()
    try:
        with locked(folder.parent / f"{folder.name}.lock"):
            if args.verb == "up":
                return up(args.names or NAMES)
            return {"down": down, "status": status, "env": env}[args.verb]()
    except ServiceError as failure:
        log(str(failure))
        return 1


if __name__ == "__main__":
    sys.exit(main())
