"""Files and trees that the UnixFS tests share, and the two independent importers that they are compared with."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, quote_plus, urlencode, urlsplit

from hearth.storage import cid, unixfs
from hearth.storage.cid import Cid
from tests.kit.require import require

ROOT = Path(__file__).parents[2]
ORACLE = ROOT / "tests" / "oracles" / "unixfs.mjs"


class Hasher:
    """Name blocks and drop them."""

    def put_block(self, data: bytes, codec: int = cid.RAW) -> Cid:
        return cid.of(data, codec)


@dataclass(frozen=True)
class Case:
    """Import `path` with the given constants."""

    path: Path
    chunk: int = unixfs.CHUNK_BYTES
    links: int = unixfs.LINKS_PER_NODE

    @property
    def name(self) -> str:
        return f"{self.path.name}/{self.chunk}/{self.links}"


def write(path: Path, size: int) -> Path:
    """Write `size` bytes that differ from file to file; above 16 MiB mostly a hole, which is cheap and still read."""
    seeded = random.Random(f"{path.name} {size}")
    with open(path, "wb") as file:
        if size <= 2**24:
            file.write(seeded.randbytes(size))
        else:
            for at in range(0, size - 4096, 2**24):
                file.seek(at)
                file.write(seeded.randbytes(4096))
            file.truncate(size)
    return path


def make_files(root: Path) -> list[Case]:
    """Make the file sizes at which a UnixFS tree changes shape, with the market's constants and with small ones."""
    chunk, links = unixfs.CHUNK_BYTES, unixfs.LINKS_PER_NODE
    cases = [
        Case(write(root / f"f{size}", size))
        for size in (0, 1, chunk - 1, chunk, chunk + 1, 100 * 2**20, links * chunk, links * chunk + 1)
    ]
    for small, few in ((1, 2), (7, 3), (256, 2), (1024, 174)):
        for size in (0, 1, small - 1, small, small + 1, few * small, few * small + 1):
            cases.append(Case(write(root / f"s{size}", size), small, few))
        for rows in (few * few, few * few * few if few < 10 else 0):
            for size in (rows * small, rows * small + 1):
                cases.append(Case(write(root / f"s{size}", size), small, few))
    return cases


def make_directories(root: Path) -> list[Case]:
    """Make the trees that the issue names; the last of them holds all the others."""
    (root / "empty").mkdir()
    nested = root / "nested"
    (nested / "a" / "b" / "c").mkdir(parents=True)
    (nested / "a" / "none").mkdir()
    write(nested / "a" / "b" / "c" / "deep", 10)
    write(nested / "top", unixfs.CHUNK_BYTES + 5)
    many = root / "many"
    many.mkdir()
    for number in range(1000):
        write(many / f"file-{number}", number % 7)
    names = root / "names"
    names.mkdir()
    for name in (
        ".hidden",
        "with space",
        " lead",
        "tail ",
        "z\u00fcrich",
        "\u65e5\u672c\u8a9e",
        "\U0001f525",
        "a+b%20&c=#?",
        "-rf",
        "...",
        "A",
        "B",
    ):
        write(names / name, 3)
    (names / ".config").mkdir()
    order = root / "order"  # directory entries sort by bytes, without any slash behind directories
    order.mkdir()
    for name in ("a", "a.b", "a-b", "aa", "Z", "~"):
        write(order / name, 1)
    (order / "a0").mkdir()
    return [Case(root / name) for name in ("empty", "nested", "many", "names", "order")] + [Case(root)]


def ours(case: Case) -> unixfs.Entry:
    """Import with hearth.storage.unixfs."""
    return unixfs.import_path(case.path, Hasher(), chunk_bytes=case.chunk, links_per_node=case.links)


def javascript(cases: list[Case]) -> list[tuple[str, int]]:
    """Import with the npm importer; return CID and cumulative size of each case."""
    node = shutil.which("node")
    require("node", node is not None, "no node on PATH")
    require("node", (ROOT / "node_modules" / "ipfs-unixfs-importer").is_dir(), "no node_modules: make setup")
    requests = [{"path": os.fspath(case.path), "chunk": case.chunk, "links": case.links} for case in cases]
    done = subprocess.run(
        [str(node), str(ORACLE)], input=json.dumps(requests), capture_output=True, text=True, check=True
    )
    return [(answer["cid"], answer["tsize"]) for answer in json.loads(done.stdout)]


def kubo_api() -> SplitResult:
    """Return the RPC address of the real Kubo that HEARTH_KUBO_API names, if it answers."""
    url = os.environ.get("HEARTH_KUBO_API", "")
    require("kubo", url != "", "HEARTH_KUBO_API is not set: make services-up")
    api = urlsplit(url)
    answer = post(api, "version")
    require("kubo", "Version" in json.loads(answer[0]), f"{url} answers {answer[0][:80]!r}")
    return api


def kubo(cases: list[Case]) -> list[str]:
    """Import with a real Kubo, every constant passed explicitly; return the root CID of each case."""
    api = kubo_api()
    return [_kubo_add(api, case) for case in cases]


def kubo_with_profile(cases: list[Case], repo: Path) -> list[str]:
    """Import with a real Kubo that has the profile of protocol.md; return the root CID of each case."""
    program = os.environ.get("HEARTH_KUBO_BIN", "")
    require("kubo", program != "", "HEARTH_KUBO_BIN is not set: make services-up")
    environ = {**os.environ, "IPFS_PATH": str(repo)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [program, "--offline", *arguments], env=environ, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout.strip()

    run("init", "--empty-repo")
    run("config", "profile", "apply", "unixfs-v1-2025")
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"`ipfs (add [^`]*)`", text)
    return [run(*command.split(), "--quieter", "--only-hash", str(case.path)) for case in cases]


def _kubo_add(api: SplitResult, case: Case) -> str:
    return kubo_add(
        api,
        case.path,
        {
            "only-hash": "true",
            "cid-version": "1",
            "hash": "sha2-256",
            "raw-leaves": "true",
            "chunker": f"size-{case.chunk}",
            "max-file-links": str(case.links),
            "trickle": "false",
            "inline": "false",
            "preserve-mode": "false",
            "preserve-mtime": "false",
        },
    )


def kubo_add(api: SplitResult, path: Path, options: dict[str, str]) -> str:
    """Import with a real Kubo and the given options; return the root CID."""
    boundary = "hearth-oracle"
    query = urlencode({**options, "pin": "false", "progress": "false", "quieter": "true"})
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return str(json.loads(post(api, f"add?{query}", _parts(path, boundary), headers)[-1])["Hash"])


def _parts(path: Path, boundary: str) -> Iterator[bytes]:
    """Yield a multipart body: parents before children, names percent-encoded, as Kubo's own client sends them."""

    def part(relative: str, kind: str) -> bytes:
        return (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quote_plus(relative)}"\r\n'
            f"Content-Type: {kind}\r\n\r\n"
        ).encode()

    def walk(here: Path, relative: str) -> Iterator[bytes]:
        if here.is_dir():
            yield part(relative, "application/x-directory") + b"\r\n"
            for child in sorted(here.iterdir()):
                yield from walk(child, f"{relative}/{child.name}")
        else:
            yield part(relative, "application/octet-stream")
            with open(here, "rb") as file:
                while piece := file.read(2**20):
                    yield piece
            yield b"\r\n"

    yield from walk(path, "root")
    yield f"--{boundary}--\r\n".encode()


def post(
    api: SplitResult, call: str, body: bytes | Iterator[bytes] = b"", headers: dict[str, str] | None = None
) -> list[bytes]:
    """Call the RPC API and return the lines of its answer."""
    connection = http.client.HTTPConnection(api.hostname or "", api.port, timeout=120)
    try:
        connection.request("POST", f"/api/v0/{call}", body, headers or {})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    assert response.status == 200, answer
    return answer.splitlines()
