"""Compile the deployable contracts into hearth/market/artifacts, or check that what is committed there equals the
sources.

One JSON document per contract: {name, abi, bytecode, runtime_size, sources, compiler, optimise, evm}. `sources` maps
every file that took part, by its path in the project, to the sha256 of its bytes. `abi` is the compiler's and, of a
contract that refuses by number, the error that it does it with, so that explorers and wallets can decode it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vyper.compiler.input_bundle import BUILTIN
from vyper.compiler.output import build_abi_output
from vyper.compiler.phases import CompilerData

from tools.reasons import ERROR, MODULE
from tools.vyper_files import COMPILER, ROOT, Source, find_sources, load

CONTRACTS = ROOT / "contracts"
ARTIFACTS = ROOT / "hearth" / "market" / "artifacts"
# Runtime code in bytes. EIP-170 allows 24,576; the rest is room for a fix.
SIZE_LIMIT = 24_000


def _imported(data: CompilerData) -> Iterator[Path]:
    """Yield the path of the contract and of every file that it imports, at any depth.

    The compiler's built-in interfaces are part of its version and are left out.
    """
    yield Path(data.file_input.resolved_path)
    for item in data.resolved_imports.compiler_inputs:
        if item.source_id != BUILTIN:
            yield Path(item.resolved_path)


def _source_key(path: Path) -> str:
    """Name a source by its path in the project, or by package and file where it is installed."""
    if path.is_relative_to(ROOT) and "site-packages" not in path.parts:
        return path.relative_to(ROOT).as_posix()
    parts = path.parts
    return "/".join(parts[parts.index("site-packages") + 1 :]) if "site-packages" in parts else path.name


def build(source: Source) -> dict[str, Any]:
    """Compile one contract with -O gas for the EVM version that its pragma pins.

    Raises ValueError where the pragma is missing: an unpinned target would change with the compiler.
    """
    data = load(source)
    evm = data.settings.evm_version
    if evm is None:
        raise ValueError(f"{source.label}: no evm-version pragma")
    sources = {_source_key(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in set(_imported(data))}
    refuses = _source_key(source.folder.resolve() / MODULE.name) in sources
    return {
        "name": source.path.stem,
        "abi": build_abi_output(data) + ([ERROR] if refuses else []),
        "bytecode": "0x" + data.bytecode.hex(),
        "runtime_size": len(data.bytecode_runtime),
        "sources": dict(sorted(sources.items())),
        "compiler": COMPILER,
        "optimise": str(data.settings.optimize),
        "evm": evm,
    }


def render(artifact: dict[str, Any]) -> str:
    """Return the committed text of an artifact: stable, one ABI entry per line."""
    abi = ",\n".join("    " + json.dumps(entry, sort_keys=True) for entry in artifact["abi"])
    rest = {key: value for key, value in artifact.items() if key not in ("name", "abi")}
    body = json.dumps(rest, indent=2)[2:]
    return f'{{\n  "name": {json.dumps(artifact["name"])},\n  "abi": [\n{abi}\n  ],\n{body}\n'


def check(folder: Path, wanted: dict[str, str]) -> list[str]:
    """Compare the artifacts on disk with `wanted` (file name to text); return one message per difference."""
    problems = []
    present = {path.name for path in folder.glob("*.json")} if folder.is_dir() else set()
    for name, text in wanted.items():
        if name not in present:
            problems.append(f"{name} is missing")
        elif (folder / name).read_text(encoding="utf-8") != text:
            problems.append(f"{name} differs from its source")
    problems += [f"{name} has no contract" for name in sorted(present - set(wanted))]
    return problems


def main(argv: list[str] | None = None) -> int:
    """Write the artifacts, or with --check compare them; exit 1 on a difference or a contract over its size."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_artifacts", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where an artifact is stale")
    parser.add_argument("--contracts", type=Path, default=CONTRACTS)
    parser.add_argument("--artifacts", type=Path, default=ARTIFACTS)
    args = parser.parse_args(argv)
    # Contracts stand at the top of the folder; interfaces, mocks and plug-ins for tests stand below it.
    sources = [s for s in find_sources(args.contracts) if s.is_deployable and s.path.parent == args.contracts]
    built = [build(source) for source in sources]
    problems = [
        f"{artifact['name']}: {artifact['runtime_size']} bytes of runtime code, limit {SIZE_LIMIT}"
        for artifact in built
        if artifact["runtime_size"] > SIZE_LIMIT
    ]
    texts = {f"{artifact['name']}.json": render(artifact) for artifact in built}
    if args.check:
        problems += [f"{problem}; run: make artifacts" for problem in check(args.artifacts, texts)]
    else:
        args.artifacts.mkdir(parents=True, exist_ok=True)
        for stale in args.artifacts.glob("*.json"):
            if stale.name not in texts:
                stale.unlink()
        for name, text in texts.items():
            (args.artifacts / name).write_text(text, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    sizes = ", ".join(f"{artifact['name']} {artifact['runtime_size']} B" for artifact in built) or "none"
    print(f"artifacts: {len(built)} contracts ({sizes}), {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
