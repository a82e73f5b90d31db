"""The pages that people read first have short sentences and the field's words (`make prose`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose

FIRST = prose.PAGES[0]


def of(words: int) -> str:
    """Return a sentence of so many words."""
    return " ".join(["Word", *["word"] * (words - 1)]) + ". "


def folder(tmp_path: Path, **texts: str) -> Path:
    """Write a checkout with every page, most of them short."""
    (tmp_path / "docs").mkdir()
    for name in prose.PAGES:
        (tmp_path / name).write_text("One sentence.\n")
    for name, text in texts.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    return tmp_path


def test_prose__this_project__passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main([]) == 0, capsys.readouterr().err
    assert len(prose.read(prose.ROOT, FIRST).sentences) > 50


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("Two words. And three words? (Yes.) Version 0.4.3 is one.", [2, 3, 1, 4]),
        ("A line\nthat goes on\n\nand another paragraph", [5, 3]),
        ("- one item\n  of two lines\n- another\n1. a third\n", [5, 1, 2]),
        ("Run `hearth job get JOB -o out` and [look there](docs/a.md) - once", [6]),
        ("# A heading of words\n\n**A bold line?**\nText.\n\n| a | table |\n| --- | --- |\n", [1]),
        ("Before:\n\n```sh\nsome code. More code.\n```\n\n    indented code. More.\n\nafter\n", [1, 1]),
        ("Shown ![a picture. Of it](a.png) <!-- a comment. -->here", [2]),
    ],
)
def test_page__text__has_these_sentences(text: str, lengths: list[int]) -> None:
    assert prose.page(FIRST, text).lengths == lengths


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (of(17) * 9 + of(17), ""),
        (of(18) * 10, "18.0 words a sentence, at most 17"),
        (of(10) * 18 + of(29) * 2, ""),
        (of(10) * 18 + of(29) * 3, "9 of 10 within 29 words, at most 28"),
        (of(2) * 20 + of(45), ""),
        (of(2) * 20 + of(46), "a sentence of 46 words, at most 45"),
        ("It is built anew. ", ""),
        ("It is built anew. | Anew | in a table |", "'Anew' 2 times, at most 1: say again"),
        ("`anew` and `anew.ts` are names. So is `anew`.", ""),
    ],
)
def test_faults__first_pages__at_the_bounds_and_above(text: str, said: str) -> None:
    found = list(prose.faults(prose.page(FIRST, text)))
    assert (len(found) == 1 and said in found[0]) if said else found == []


def test_prose__other_pages__are_held_to_the_longest_sentence_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = folder(tmp_path, AUDIT="It stands there anew. It stands there anew. " + of(45))
    assert prose.main(["--root", str(root)]) == 0
    (root / "docs" / "AUDIT.md").write_text(of(46))
    assert prose.main(["--root", str(root)]) == 1
    assert "docs/AUDIT.md: a sentence of 46 words" in capsys.readouterr().err


def test_prose__longest__shows_the_sentences_to_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = folder(tmp_path, FAQ=of(29))
    assert prose.main(["--root", str(root), "--longest"]) == 1
    assert f"  29: {of(29).strip()}\n" in capsys.readouterr().out
