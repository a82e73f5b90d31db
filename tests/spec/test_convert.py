"""Files of other systems: each is known by name, and what one container without a network asks becomes a job file.

tests/data/peers holds a file of every kind, written for these tests in the systems' public formats; expected/ holds the
job and the notes, or the refusal, that each must give.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import SpecError
from hearth.cli.__main__ import main
from hearth.spec import as_data, dump_spec, load_spec, parse_spec
from hearth.spec.convert import FORMATS, convert, peer_of
from hearth.spec.convert.draft import Draft, NotConvertible, size_of, words
from hearth.spec.convert.read import MAX_BYTES, Unreadable, read_documents

PEERS = Path(__file__).resolve().parents[1] / "data" / "peers"
FILES = sorted(path for path in PEERS.iterdir() if path.is_file())
EXPECTED = {path.name: json.loads((PEERS / "expected" / f"{path.name}.json").read_text()) for path in FILES}
CONVERTED = [path for path in FILES if "job" in EXPECTED[path.name]]
REFUSED = [path for path in FILES if "refused" in EXPECTED[path.name]]
AKASH, BACALHAU, COMPOSE, NOSANA, SKYPILOT = (
    (PEERS / name).read_text()
    for name in (
        "akash-train.yaml",
        "bacalhau-docker.yaml",
        "compose-batch.yaml",
        "nosana-train.json",
        "skypilot-train.yaml",
    )
)


def _id(path: Path) -> str:
    return path.stem


def refusal(text: str) -> SpecError:
    with pytest.raises(SpecError) as refused:
        convert(text.encode(), "peer.yaml")
    return refused.value


def test_files__every_kind__is_here() -> None:
    assert len(FILES) == 16 and len(CONVERTED) == 6
    kinds = {expected["format"] for expected in EXPECTED.values()}
    assert kinds == {one.name for one in FORMATS} - {"bacalhau-old"}


# ---- what is converted ----


@pytest.mark.parametrize("path", CONVERTED, ids=_id)
def test_convert__one_container__each_field_as_expected(path: Path) -> None:
    made = convert(path.read_bytes(), path.name)
    expected = EXPECTED[path.name]
    assert made.format.name == expected["format"]
    job = as_data(made.spec)
    for key in {**job, **expected["job"]}:
        assert job.get(key) == expected["job"].get(key), key
    assert {note.key: note.why for note in made.notes} == expected["notes"]
    assert len(made.notes) == len(expected["notes"])


@pytest.mark.parametrize("path", CONVERTED, ids=_id)
def test_convert__its_text__is_a_job_file_that_reads_back_equal(path: Path, tmp_path: Path) -> None:
    made = convert(path.read_bytes(), path.name)
    file = tmp_path / "job.yaml"
    file.write_text(dump_spec(made.spec))
    assert load_spec(file).spec == made.spec
    assert peer_of(file.read_bytes()) is None


# ---- what is refused, and by which name ----


@pytest.mark.parametrize("path", REFUSED, ids=_id)
def test_convert__more_than_one_container_or_a_network__refused_by_name(path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        convert(path.read_bytes(), path.name)
    error = refused.value
    assert (error.code, error.exit_code, error.message) == ("NOT_CONVERTIBLE", 2, EXPECTED[path.name]["refused"])
    assert error.details["format"] == EXPECTED[path.name]["format"]


@pytest.mark.parametrize("path", FILES, ids=_id)
def test_load_spec__file_of_another_system__named_and_nothing_else_suggested(path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load_spec(path)
    error = refused.value
    found = next(one for one in FORMATS if one.name == EXPECTED[path.name]["format"])
    assert (error.code, error.exit_code) == ("PEER_FORMAT", 2)
    assert error.message == f"{path}: this is {found.called}, not a Hearth job file"
    assert "did you mean" not in error.hint and "price" not in error.hint
    assert (f"hearth convert {path}" in error.hint) == (found.convert is not None)


@pytest.mark.parametrize(
    "text",
    [
        "limit: {runtime: 10s}\nimage: x\n",
        "run: true\nimage: python\nenvs: {A: b}\n",
        "resources: {cpus: 1}\nname: x\n",
        "services\n",
        "- a\n",
        "",
        "a: [",
        "name: x\nsetup: pip install\nmodule: a.wasm\n",
    ],
)
def test_peer_of__a_job_file_with_a_mistake_or_no_job_file__none(text: str) -> None:
    assert peer_of(text.encode()) is None


def test_parse_spec__job_file_with_a_mistake__keeps_its_own_refusal() -> None:
    with pytest.raises(SpecError) as refused:
        parse_spec(b"image: python\nlimit: {runtime: 10s}\n")
    assert refused.value.code == "UNKNOWN_KEY" and "did you mean" in refused.value.hint


def test_convert__text_of_no_known_system__refused() -> None:
    for text, word in (("image: python\n", "no file of a system"), ("a: [", "neither"), ("", "no file of a system")):
        error = refusal(text)
        assert (error.code, error.exit_code) == ("UNKNOWN_FORMAT", 2) and word in error.message


OLD = '{"APIVersion": "V1beta1", "Spec": {"Engine": "Docker"}}'


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (AKASH, "count: 1", "count: 3", "several instances"),
        (AKASH, "nvidia:", "amd:", "workers offer those of nvidia"),
        (AKASH, "image: ghcr.io/acme/trainer:1.4.2", "images: x", "names no image"),
        (AKASH, "ghcr.io/acme/trainer:1.4.2", '"not an image"', "no image reference"),
        (AKASH, "size: 32Gi", "size: much", "is no size"),
        (BACALHAU, "Type: batch", "Type: service", "its type is service"),
        (BACALHAU, "Type: docker", "Type: pyodide", "Engine.Type is pyodide"),
        (BACALHAU, "Count: 4", "Count: many", "no whole number"),
        (COMPOSE, "network_mode: none", "network_mode: host", "network_mode is host"),
        (COMPOSE, "network_mode: none", 'ports: ["80:80"]', "publishes ports"),
        (COMPOSE, "blender/blender:4.2", "blender/blender:${TAG}", "holds a variable"),
        (COMPOSE, "image: blender/blender:4.2", "build: .", "push the image"),
        (COMPOSE, "    deploy:\n", "    deploy:\n      replicas: 2\n", "several containers"),
        (NOSANA, '"cmd"', '"expose": [{"port": 80}], "cmd"', "serves a port"),
        (SKYPILOT, "num_nodes: 1", "num_nodes: 2", "several machines"),
        (SKYPILOT, "  use_spot: true\n", "  ports: 8080\n", "opens ports"),
        (SKYPILOT, "image_id: docker:", "image_id: ", "names no container"),
        (SKYPILOT, "{A100: 1, L40S: 1}", "{A100: 1, L40S: 4}", "different numbers"),
        (SKYPILOT, "workdir: ./src", "workdir: {url: https://example.org/x.git}", "clone the repository"),
        (SKYPILOT, "name: finetune", "name: finetune\n---\nname: second", "holds 2 documents"),
        (OLD, "", "", "cannot be converted"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and "\n" not in value else "file",
)  # fmt: skip
def test_convert__what_a_job_cannot_be__refused_with_the_reason(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    assert message in refusal(text.replace(old, new, 1)).message


def test_convert__cid_that_is_none__the_specs_own_refusal() -> None:
    assert refusal(BACALHAU.replace("QmeZRGhe4PmjctYVSVHuEiA9oSXnqmYa4kQubSHgWbjv72", "Qmnonsense")).code == "BAD_CID"


# ---- single values ----


@pytest.mark.parametrize(
    ("value", "plain", "decimal", "size"),
    [
        ("512Mi", 1, True, 512 << 20),
        ("1.5Gi", 1, True, 1536 << 20),
        ("4GB", 1, True, 3815 << 20),  # 4 * 10^9 bytes are 3814.7 MiB
        ("128Mb", 1, True, 123 << 20),
        ("6g", 1, False, 6 << 30),
        ("1gb", 1, False, 1 << 30),
        (16, 1 << 30, False, 16 << 30),
        ("16+", 1 << 30, False, 16 << 30),
        ("1", 1, True, 1 << 20),
    ],
)
def test_size_of__each_systems_spelling__whole_mib_never_less(value: Any, plain: int, decimal: bool, size: int) -> None:
    assert size_of(value, "memory", plain=plain, decimal=decimal) == size


@pytest.mark.parametrize("value", ["", "much", "-1", "1e9", "1 2", None, [], "9" * 13])
def test_size_of__no_size__refused(value: Any) -> None:
    with pytest.raises(NotConvertible):
        size_of(value, "memory")


@pytest.mark.parametrize(
    ("model", "vram", "tier"),
    [
        ("rtx4090", 0, "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", 0, "rtx-4090"),
        ("A100", 0, "a100-40gb"),
        ("a100", 80 << 30, "a100-80gb"),
        ("A100-80GB", 0, "a100-80gb"),
        ("H100", 0, "h100"),
        ("tesla-t4", 0, "t4"),
        ("V100", 0, None),
        ("A100", 200 << 30, None),
        ("", 0, None),
    ],
)
def test_gpu__model_in_any_spelling__tier_or_a_note(model: str, vram: int, tier: str | None) -> None:
    draft = Draft()
    draft.gpu(2, [model], "gpu", vram)
    assert draft.job["resources"]["gpu"].get("tier") == tier
    assert draft.job["resources"]["gpu"]["count"] == 2
    assert bool(draft.notes) == (tier is None)


@pytest.mark.parametrize(
    ("value", "command"),
    [
        (None, []),
        ("python3 a.py --x 'y z'", ["python3", "a.py", "--x", "y z"]),
        ("a | b", ["sh", "-c", "a | b"]),
        (["a", 1, True], ["a", "1", "true"]),
    ],
)
def test_words__text_or_list__a_command(value: Any, command: list[str]) -> None:
    assert words(value, "cmd") == command


# ---- the reader ----


def test_read_documents__aliases_and_merges__as_yaml_means_them() -> None:
    text = "a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\nc: *x\nd: [1.50, '2', no, 2020-01-01]\n---\nsecond: true\n"
    assert read_documents(text.encode()) == [
        {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}, "c": {"k": 1, "l": 2}, "d": ["1.50", "2", "no", "2020-01-01"]},
        {"second": True},
    ]


def test_read_documents__bombs__answered_at_once() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 60)]
    begun = time.process_time()
    assert len(read_documents("\n".join(lines).encode())[0]) == 60
    for text in ("[" * 100_000, "{" * 100_000, '{"a":' * 100_000, "- " * 100_000, "&a [*a]", "*a", "a: !!python/x 1"):
        try:
            read_documents(text.encode())
        except Unreadable as error:
            assert str(error)
    with pytest.raises(Unreadable, match="bytes"):
        read_documents(b"a" * (MAX_BYTES + 1))
    with pytest.raises(Unreadable, match="UTF-8"):
        read_documents(b"\xff")
    for text in (r'{"a": ["\ud800"]}', r'{"\udfff": 1}', r'a: "\ud800"', r'"\ud800": 1'):
        with pytest.raises(Unreadable, match="surrogate"):
            read_documents(text.encode())
    assert read_documents(rb'a: "\ud83d\ude00"') == read_documents(rb'{"a": "\ud83d\ude00"}') == [{"a": "\U0001f600"}]
    assert read_documents(b'{"a": Infinity}') == [{"a": "Infinity"}]
    assert time.process_time() - begun < 10


KEYS = st.sampled_from(
    sorted({"services", "web", "image", "deployment", "profiles", "ops", "type", "args", "run", "resources", "Tasks"})
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every (container, key) of plain values."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            _places(value[key], found)
    return found


@given(data=st.data())
def test_convert__a_file_with_a_part_replaced__is_a_job_or_a_refusal(data: st.DataObject) -> None:
    document = read_documents(data.draw(st.sampled_from(CONVERTED)).read_bytes())[0]
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(_places(document, [])))
        container[key] = data.draw(VALUES)
    raw = json.dumps(document).encode()
    try:
        made = convert(raw, "peer.json")
    except SpecError as refused:
        assert refused.message and refused.exit_code in (2, 9)
    else:
        assert parse_spec(dump_spec(made.spec).encode()).spec == made.spec


@given(raw=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_peer_of__any_bytes__answers(raw: bytes) -> None:
    found = peer_of(raw)
    assert found is None or found in FORMATS


# ---- the command ----


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_hearth_convert__stdout_is_the_job_and_stderr_the_notes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = PEERS / "akash-train.yaml"
    assert main(["convert", str(path)]) == 0
    said = capsys.readouterr()
    assert parse_spec(said.out.encode()).spec == convert(path.read_bytes(), path.name).spec
    assert said.err.splitlines() == [f"{key}: {why}" for key, why in EXPECTED[path.name]["notes"].items()]


def test_hearth_convert__json__format_job_and_notes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(PEERS / "compose-batch.yaml"), "--json"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    expected = EXPECTED["compose-batch.yaml"]
    assert set(report) == {"schema", "format", "job", "notes"}
    assert (report["schema"], report["format"], report["job"]) == ("hearth.convert/1", "compose", expected["job"])
    assert {note["key"]: note["why"] for note in report["notes"]} == expected["notes"]
    assert said.err == ""


def test_hearth_convert__output__written_once_and_never_over_a_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["convert", str(PEERS / "nosana-train.json"), "-o", "job.yaml"]
    assert main([*command, "--dry-run"]) == 0
    assert "would write job.yaml" in capsys.readouterr().out and not (home / "job.yaml").exists()
    assert main(command) == 0
    assert load_spec(home / "job.yaml").spec.name == "whisper-transcribe"
    (home / "job.yaml").write_text("mine")
    assert main([*command, "--json"]) == 2
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"]["code"] == "FILE_EXISTS"
    assert (home / "job.yaml").read_text() == "mine"


def test_hearth_check__file_of_another_system__exit_2_with_the_next_command(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = PEERS / "akash-web.yaml"
    for command in ("check", "submit"):
        assert main([command, str(path), "--json"]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert "this is an Akash SDL file" in error["message"] and f"hearth convert {path}" in error["hint"]


def test_hearth_convert__no_such_file__exit_7(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "gone.yaml", "--json"]) == 7
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "NO_SPEC_FILE"
