"""Templates of a project: what is written, what is left alone, and that each is a job file whose files are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hearth.base.errors import UsageError
from hearth.cli.__main__ import main
from hearth.jobfile import load_spec
from hearth.jobfile.wasm_module import check_module
from hearth.local import templates
from hearth.protocol.units import parse_size

FOLDER = Path(templates.__file__).parent


def test_names__folders_with_a_job__the_default_first() -> None:
    assert templates.names() == ["wasm", "array", "docker", "gpu"]
    assert templates.DEFAULT == "wasm"


@pytest.mark.parametrize("name", templates.names())
def test_write__each_template__its_files_beside_the_settings(name: str, tmp_path: Path) -> None:
    made = templates.write(tmp_path / "new", name, "devnet")
    source = {path.relative_to(FOLDER / name) for path in (FOLDER / name).rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "new") for path in made.written} == source | {Path("hearth.toml")}
    assert made.kept == ()
    for path in source:
        assert (tmp_path / "new" / path).read_bytes() == (FOLDER / name / path).read_bytes()
    assert 'network = "devnet"' in (tmp_path / "new" / "hearth.toml").read_text()


@pytest.mark.parametrize("name", templates.names())
def test_write__each_template__is_a_job_file_whose_sources_are_there(name: str, tmp_path: Path) -> None:
    templates.write(tmp_path, name, "devnet")
    spec = load_spec(tmp_path / "job.yaml").spec
    sources = [spec.module, spec.workdir, *(item.src for item in spec.inputs)]
    assert all((tmp_path / path).exists() for path in sources if path) and any(sources)
    assert (spec.resources.gpu.count > 0) == (name == "gpu")
    assert (spec.array.units > 1) == (name == "array")
    assert spec.price.max_rate is not None
    if spec.module is not None:
        check_module((tmp_path / spec.module).read_bytes(), parse_size(spec.resources.memory))
    else:
        assert spec.image is not None and ":" in spec.image and "@" not in spec.image


def test_write__file_that_exists__left_alone(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("mine")
    made = templates.write(tmp_path, "wasm", "devnet")
    assert made.kept == (tmp_path / "job.yaml",) and (tmp_path / "job.yaml").read_text() == "mine"
    assert tmp_path / "sum.wasm" in made.written


def test_write__dry_run__names_the_files_and_writes_none(tmp_path: Path) -> None:
    made = templates.write(tmp_path / "new", "docker", "devnet", dry_run=True)
    assert tmp_path / "new" / "work" / "main.py" in made.written
    assert not (tmp_path / "new").exists()


def test_write__what_an_installer_compiled__is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "templates" / "docker" / "work"
    (work / "__pycache__").mkdir(parents=True)
    (work / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"compiled")
    (work / "main.py").write_text("print()\n")
    (work.parent / "job.yaml").write_text("version: 1\n")
    monkeypatch.setattr(templates, "_HERE", tmp_path / "templates")
    made = templates.write(tmp_path / "new", "docker", "devnet")
    assert {path.name for path in made.written} == {"hearth.toml", "job.yaml", "main.py"}


def test_write__unknown_template__refused_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pipeline") as refused:
        templates.write(tmp_path, "pipeline", "devnet")
    assert refused.value.code == "NO_TEMPLATE" and "wasm, array, docker, gpu" in refused.value.hint
    assert list(tmp_path.iterdir()) == []


def test_init__template__report_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["template"] == "wasm"
    assert main(["init", "counted", "--template", "array", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["template"] == "array" and "counted/pi.wasm" in report["written"]
    assert main(["init", "--template", "pipeline", "--json"]) == 2
    assert "wasm" in json.loads(capsys.readouterr().out)["error"]["message"]
