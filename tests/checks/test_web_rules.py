"""The rules for the sources of the page (tools/build_web.py): its layers, and its tables, which somebody reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.build_web import broken_rules, handed_out, imports, unread


def planted(web: Path, **files: str) -> list[str]:
    """Return what is wrong with sources: `core__a` is core/a.ts."""
    for name, text in files.items():
        path = web / "src" / f"{name.replace('__', '/')}.ts"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(broken_rules(web))


def test_rules__the_page_of_now__breaks_none() -> None:
    assert list(broken_rules()) == []


@pytest.mark.parametrize(
    ("place", "line", "said"),
    [
        ("core__a", 'import { b } from "../chain/b";', "core imports from chain: ../chain/b"),
        ("core__deep__a", 'import type { B } from "../../chain/b";', "core imports from chain: ../../chain/b"),
        ("chain__a", 'import {\n  b,\n} from "../data/b";', "chain imports from data: ../data/b"),
        ("data__a", 'export * from "../wallet/b";', "data imports from wallet: ../wallet/b"),
        ("wallet__a", 'const b = await import("../ui/b");', "wallet imports from ui: ../ui/b"),
        ("generated__a", 'import "../core/b";', "generated imports from core: ../core/b"),
        ("offline__a", 'import { b } from "../core/b";', "offline imports from core: ../core/b"),
        ("ui__a", 'import { b } from "../offline/b";', "ui imports from offline: ../offline/b"),
        ("ui__a", 'import { b } from "../../test/b";', "ui imports from ../../test/b: ../../test/b"),
        ("other__a", 'import { b } from "./b";', "other imports from other: ./b"),
    ],
)
def test_layers__an_import_from_above__is_named(tmp_path: Path, place: str, line: str, said: str) -> None:
    (found,) = planted(tmp_path, **{place: f"// First.\n{line}\n"})
    assert found == f"web/src/{place.replace('__', '/')}.ts:{2 + line.count(chr(10))}: {said}"


def test_layers__two_that_import_each_other__are_named(tmp_path: Path) -> None:
    found = planted(tmp_path, core__a='import type { B } from "./b";', core__b='const a = import("./a");')
    assert found == ["circle: web/src/core/a.ts -> web/src/core/b.ts"]


def test_layers__imports_from_below_and_beside__are_fine(tmp_path: Path) -> None:
    below = 'import { b } from "./b";\nimport { c } from "../core/c";\nimport { render } from "preact";\n'
    assert planted(tmp_path, ui__a=below, data__a=below, core__a='import { c } from "./c";', offline__a="") == []
    assert list(imports(below)) == [(1, "./b"), (2, "../core/c")]


def test_tables__a_constant_that_nobody_reads__is_named(tmp_path: Path) -> None:
    table = "".join(f"export const {name} = 1 as const;\n" for name in ("READ", "OTHER", "TESTED", "WHOLE", "UNREAD"))
    reader = 'import {\n  READ,\n  OTHER as MINE,\n} from "../generated/table";\nconst UNREAD = 1;\n'
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "a.test.ts").write_text('import { TESTED } from "../src/generated/table";\n')
    (tmp_path / "test" / "b.test.ts").write_text('import * as all from "../src/generated/table";\nall.WHOLE;\n')
    (found,) = planted(tmp_path, generated__table=table, core__a=reader)
    assert found == "web/src/generated/table.ts: nobody reads UNREAD: leave it out in tools/web_tables/table.py"
    assert list(unread(tmp_path)) == [found]


def test_tables__a_constant_of_a_folder__is_of_its_own_file(tmp_path: Path) -> None:
    table = "export const READS = 1 as const;\n"
    reader = 'import { READS } from "../generated/reads/job-registry";\n'
    (found,) = planted(
        tmp_path, **{"generated__reads__lens": table, "generated__reads__job-registry": table, "core__a": reader}
    )
    assert found == "web/src/generated/reads/lens.ts: nobody reads READS: leave it out in tools/web_tables/reads.py"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("  readonly #a = new Map<Hex, number>();\n  get a() { return this.#a; }", [3]),
        ("  readonly #a: string[] = [];\n  all() {\n    return { a: this.#a, count: 1 };", [4]),
        ("  #a = new Set<string>();\n  all = () => this.#a;\n  some = () => ok ? this.#a : [];", [3, 4]),
        ("  private readonly a = new Map();\n  get b() { return this.a ?? 1; }", [3]),
        ("  readonly a: string[] = [];\n  note() { this.a.push(1); }", [2]),
        ("  readonly #a = new Map();\n  get a() { return new Map(this.#a); }\n  b() { return this.#a.get(1); }", []),
        ("  a: readonly number[] = [];\n  add() { this.a = [...this.a, 1]; }\n  get b() { return this.a; }", []),
        ("  readonly #a: number[] = [];\n  get a() { return [...this.#a, { of: this.#a.length }]; }", []),
    ],
)
def test_collections__handed_out_as_they_go_on_changing__are_named(body: str, lines: list[int]) -> None:
    """A page that memoises over one shows for ever what it was: a job's money of before it was settled."""
    assert [line for line, _ in handed_out(f"class A {{\n{body}\n}}\n")] == lines
