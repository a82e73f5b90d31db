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
from hearth.jobfile import as_data, dump_spec, load_spec, parse_spec
from hearth.jobfile.convert import FORMATS, convert, peer_of
from hearth.jobfile.convert.draft import NO_COUNTERPART, Draft, NotConvertible, size_of, words
from hearth.jobfile.convert.read import MAX_BYTES, Unreadable, read_documents
from hearth.protocol import gpu_tiers

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
        (AKASH, "nvidia:", "intel:", "workers offer nvidia or amd"),
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("services: [a]", "services is a list, not a mapping"),
        ("services: a", "services is text, not a mapping"),
        ("services: 3", "services is a number, not a mapping"),
        ("services:", "it describes 0 services"),
        ("services: {a: }", "services.a.image names no image"),
        ("services: {a: [b]}", "services.a is a list, not a mapping"),
        *(
            (f"services: {{a: {{image: x, {line}}}}}", f"services.a.{said}")
            for line, said in (
                ("image: [x]", "image is a list, not text"),
                ("ports: 80", "ports publishes ports"),
                ("network_mode: []", "network_mode is a list, not text"),
                ("volumes: {a: b}", "volumes is a mapping, not a list"),
                ("volumes: [[]]", "volumes[0] is a list, not text"),
                ("volumes: [{source: }]", "volumes[0].source is empty, not text"),
                ("working_dir: []", "working_dir is a list, not text"),
                ("environment: x", "environment is text, not a mapping or a list of K=V"),
                ("environment: [A=1, [b]]", "environment[1] is a list, not text"),
                ("environment: {A: [1]}", "environment.A is a list, not text"),
                ("command: {a: b}", "command is a mapping, not text or a list"),
                ("command: [a, [b]]", "command[1] is a list, not text"),
                ("env_file: [{file: a}]", "env_file[0].path is empty, not text"),
                ("deploy: true", "deploy is true or false, not a mapping"),
                ("deploy: {replicas: []}", "deploy.replicas is a list, not a whole number"),
                ("deploy: {resources: {limits: {cpus: []}}}", "deploy.resources.limits.cpus is a list, not text"),
                ("mem_limit: {}", "mem_limit is a mapping, not text"),
                ("gpus: {}", "gpus is a mapping, not a whole number"),
            )
        ),
    ],
)
def test_compose__part_of_a_wrong_type__is_named_with_what_it_is(text: str, said: str) -> None:
    error = refusal(text)
    assert (error.code, error.exit_code) == ("NOT_CONVERTIBLE", 2)
    assert "this is a Docker Compose file" in error.message and said in error.message


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
    ("service", "gpu"),
    [
        ("runtime: amd", {"count": 1, "vendor": "amd"}),
        ("runtime: nvidia", {"count": 1}),
        (
            "deploy: {resources: {reservations: {devices: [{driver: cdi, capabilities: [gpu],"
            " device_ids: ['amd.com/gpu=0', 'amd.com/gpu=1']}]}}}",
            {"count": 2, "vendor": "amd"},
        ),
        (
            "deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}",
            {"count": 1},
        ),
    ],
    ids=["runtime amd", "runtime nvidia", "CDI of AMD", "driver nvidia"],
)
def test_compose__whose_gpus__by_runtime_driver_or_device(service: str, gpu: dict[str, Any]) -> None:
    made = convert(f"services:\n  a:\n    image: rocm/pytorch\n    {service}\n".encode(), "compose.yaml")
    assert as_data(made.spec)["resources"]["gpu"] == gpu


def test_gpu__models_of_two_vendors__those_of_the_first_and_a_note() -> None:
    draft = Draft()
    draft.gpu(1, ["H100", "MI300X", "A100-80GB"], "gpu")
    assert draft.job["resources"]["gpu"]["tier"] == "a100-80gb"
    assert any("several vendors" in note.why for note in draft.notes)


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
        ("V100", 0, "v100"),
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


# ---- Compose: a command as text, and what it takes from a shell ----

BATCH = "services: {a: {image: x, network_mode: none, %s}}"


def _of_compose(line: str) -> tuple[dict[str, Any], dict[str, str]]:
    made = convert((BATCH % line).encode(), "compose.yml")
    return as_data(made.spec), {note.key: note.why for note in made.notes}


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("report --price $$5 --glob *.csv; --end", ["report", "--price", "$5", "--glob", "*.csv;", "--end"]),
        ('report --title "Costs & gains"', ["report", "--title", "Costs & gains"]),
        ("sh -c 'echo $$HOME | wc'", ["sh", "-c", "echo $HOME | wc"]),
        (r'''a\ b 'c\d' "e\\f" "g\nh" "\$$5"''', ["a b", r"c\d", r"e\f", "g\nh", "$5"]),
        ("a '' \"\" b''c", ["a", "", "", "bc"]),
        ("a `date +%s` $$(cat b)", ["a", "`date +%s`", "$(cat b)"]),
        ("  ", []),
        ("a\tb", ["a", "b"]),
        ("~/x #y", ["~/x", "#y"]),
        ("run ${WHAT:-this and} ${NOT-${OR:-that}} ${ON:+never}", ["run", "this", "and", "that"]),
        ("run ${WHAT} $WHAT", ["run", "${WHAT}", "$WHAT"]),
    ],
)
def test_compose__command_as_text__is_split_as_compose_does_and_read_by_no_shell(command: str, argv: list[str]) -> None:
    text = json.dumps(command)
    for line, rest in ((f"command: {text}", []), (f"entrypoint: {text}, command: z", ["z"])):
        made = convert((BATCH % line).encode(), "compose.yml")
        whys = " ".join(note.why for note in made.notes)
        assert as_data(made.spec).get("command", []) == [*argv, *rest]
        assert ("no shell reads ;" in whys) == (";" in command)
        assert ("not taken from your shell" in whys) == ("WHAT" in command)


@pytest.mark.parametrize(
    "command", ["pay $5", "a 'b", 'a "b', "a \\", "a (b)", "a b)", "${", "${A", "${A:-" * 40, "${5}"]
)
def test_compose__command_that_compose_refuses__is_refused(command: str) -> None:
    error = refusal(BATCH % f"command: {json.dumps(command)}")
    assert error.code == "NOT_CONVERTIBLE" and "services.a.command" in error.message


def test_compose__default_of_an_image__is_taken() -> None:
    assert as_data(convert(b"services: {a: {image: '${I:-x:1}', network_mode: none}}", "c.yml").spec)["image"] == "x:1"


@pytest.mark.parametrize(
    ("lines", "workdir", "inputs", "noted"),
    [
        ("working_dir: /job, volumes: ['./app:/job:ro']", "./app", [], {}),
        ("volumes: ['./app:/job:ro']", "./app", [], {}),
        ("working_dir: /app, volumes: ['./:/app']", "./", [], {"volumes[0]": "write to /out"}),
        ("working_dir: /app/, volumes: ['./d:/data:ro', './a:/app:ro']", "./a", [("./d", "/in/data")], {}),
        ("working_dir: /app/src, volumes: ['./a:/app:ro']", "./a", [], {"working_dir": "in /job, not /app/src"}),
        ("working_dir: /a/b, volumes: ['./a:/a:ro', './b:/a/b:ro']", "./b", [("./a", "/in/a")], {}),
        ("working_dir: /app, volumes: ['./a:/apple:ro']", None, [("./a", "/in/apple")], {"working_dir": ""}),
        ("working_dir: /app, volumes: ['~/a:/app', 'n:/app']", None, [], {"working_dir": "", "volumes[0]": "not"}),
        ("working_dir: /out, volumes: ['./o:/out']", None, [], {"working_dir": "not /out"}),
        (
            "working_dir: /job, volumes: ['./a:/job/lib:ro']",
            *(None, [("./a", "/in/job/lib")], {"volumes[0]": "not /job/lib: put it into the folder"}),
        ),
        ("volumes: ['./a:/in/a/:ro']", None, [("./a", "/in/a")], {}),
        ("volumes: ['./app:/job:ro', './.env:/job/.env:ro']", "./app", [], {"volumes[1]": "a secret (.env)"}),
        ("volumes: ['./.aws:/job:ro']", None, [], {"volumes[0]": "./.aws is not taken: it looks like a secret"}),
    ],
)  # fmt: skip
def test_compose__folder_that_it_starts_in__is_the_workdir(
    lines: str, workdir: str | None, inputs: list[tuple[str, str]], noted: dict[str, str]
) -> None:
    job, notes = _of_compose(lines)
    assert job.get("workdir") == workdir
    assert [(one["src"], one["dst"]) for one in job.get("inputs", [])] == inputs
    assert all(words in notes[f"services.a.{key}"] for key, words in noted.items())
    assert "working_dir" in noted or "services.a.working_dir" not in notes
    assert {f"services.a.{key}" for key in noted} <= set(notes)
    assert not any("not /in/a/" in why for why in notes.values())


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("gpus: all", 1),
        ("gpus: 2", 2),
        ("gpus: [{driver: nvidia, count: 3}]", 3),
        ("runtime: nvidia", 1),
        ("deploy: {resources: {reservations: {devices: [{count: -1, capabilities: [gpu]}]}}}", 1),
        ("deploy: {resources: {reservations: {devices: [{device_ids: ['0', '3'], capabilities: [gpu]}]}}}", 2),
        ("deploy: {resources: {reservations: {devices: [{count: 9, capabilities: [tpu]}]}}}", None),
        ("runtime: runc", None),
    ],
)
def test_compose__gpus_in_each_form__are_asked_for(line: str, gpus: int | None) -> None:
    job, notes = _of_compose(line)
    assert job.get("resources", {}).get("gpu", {}).get("count") == gpus
    assert ("services.a.runtime" in notes) == ("runc" in line)


@pytest.mark.parametrize("key", ["env_file", "shm_size", "profiles", "depends_on", "ulimits", "tmpfs", "tty", "build"])
def test_compose__key_without_a_counterpart__is_left_out_with_its_reason(key: str) -> None:
    assert _of_compose(f"{key}: [x]")[1][f"services.a.{key}"] not in ("", NO_COUNTERPART)


def test_compose__services_behind_a_profile__are_those_that_compose_does_not_start() -> None:
    text = "services: {a: {image: x, network_mode: none}, b: {image: y, profiles: [debug]}}"
    made = convert(text.encode(), "compose.yml")
    assert made.spec.image == "x" and made.notes[0].key == "services.b"
    assert "2 services (a, b)" in refusal(text.replace("image: x", "image: x, profiles: [c]")).message


# ---- what lies outside the file's folder ----


@pytest.mark.parametrize(
    "source",
    [
        *("~/.ssh", "~", "~root/.ssh", "/proc/self/environ", "/", "..", "../x", "./../x", "./a/../../x", "$HOME/x"),
        *("${HOME}/.aws", "./$DIR"),
    ],
)
def test_compose__mount_from_outside__is_listed_and_not_taken(source: str) -> None:
    for volume in (f"{source}:/data:ro", {"type": "bind", "source": source, "target": "/data"}):
        job, notes = _of_compose(f"volumes: [{json.dumps(volume)}]")
        assert "inputs" not in job and "is not taken: " in notes["services.a.volumes[0]"]


@pytest.mark.parametrize(
    "source", ["./.env", "prod.env", "./keys/id_rsa", "./.SSH", ".ssh/config", "./.git", "a/../.env"]
)
def test_convert__what_looks_like_a_secret__is_named_and_not_taken(source: str) -> None:
    """No job takes it, so that hearth check would refuse the job file for naming it."""
    job, notes = _of_compose(f"volumes: [{{type: bind, source: {source}, target: /data}}]")
    assert "inputs" not in job and f"{source} is not taken: it looks like a" in notes["services.a.volumes[0]"]
    task = {"run": "x", "resources": {"image_id": "docker:x"}, "file_mounts": {"/k": source}}
    made = convert(json.dumps(task).encode(), "task.json")
    assert "inputs" not in as_data(made.spec) and made.notes[0].key == "file_mounts./k"
    module = {"Tasks": [{"Name": "a", "Engine": {"Type": "wasm", "Params": {"EntryModule": source}}}]}
    assert "looks like a secret" in refusal(json.dumps(module)).message


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("command: [go, '--key=${API_KEY:-hunter2}']", "command[1]"),
        ("environment: {A: 'x${MY_TOKEN-hunter2}'}", "environment.A"),
        ("environment: {A: '${B:-${DB_PASSWORD:-hunter2}}'}", "environment.A"),
        ("environment: {A: '${SECRET:+hunter2}'}", "environment.A"),
        ("environment: ['DATABASE_URL=postgres://u:hunter2@h/db']", "environment.DATABASE_URL"),
        ("environment: {DB: '${DB:-postgres://u:hunter2@h/db}'}", "environment.DB"),
        ("volumes: [{type: bind, source: 'https://u:hunter2@h/x', target: /data}]", "volumes[0]"),
        ("volumes: [{type: bind, source: 'https://u:hunter2@h/$$x', target: /data}]", "volumes[0]"),
    ],
)
def test_compose__secret_inside_a_value__is_left_out_and_noted(line: str, where: str) -> None:
    job, notes = _of_compose(line)
    assert f"services.a.{where}" in notes and "hunter2" not in json.dumps([job, notes])


def test_skypilot_and_bacalhau__url_with_a_password__is_not_taken() -> None:
    url = "https://u:hunter2@h/x"
    task = {"run": "x", "resources": {"image_id": "docker:x"}, "file_mounts": {"/k": url}, "envs": {"A": url}}
    made = convert(json.dumps(task).encode(), "task.json")
    assert {"envs.A", "file_mounts./k"} <= {note.key for note in made.notes}
    assert "hunter2" not in str((as_data(made.spec), made.notes))
    module = {"Tasks": [{"Name": "a", "Engine": {"Type": "wasm", "Params": {"EntryModule": url}}}]}
    message = refusal(json.dumps(module)).message
    assert "has a password" in message and "hunter2" not in message


@pytest.mark.parametrize(
    ("line", "named"),
    [("env_file: .env", ".env"), ("env_file: [a.env, {path: ./b.env, required: false}]", "a.env, ./b.env")],
)
def test_compose__files_of_variables__are_named_as_not_read(line: str, named: str) -> None:
    job, notes = _of_compose(line)
    assert notes["services.a.env_file"].startswith(f"{named} is not read: ") and "env" not in job


def test_compose__whole_folder__is_taken_with_a_warning() -> None:
    job, _ = _of_compose("volumes: ['.:/data', './a/../b:/b']")
    assert [one["src"] for one in job["inputs"]] == [".", "./a/../b"]
    made = convert((BATCH % "volumes: ['.:/data']").encode(), "compose.yml")
    assert any("its hidden files too" in note.why for note in made.notes)


def test_skypilot_and_bacalhau__paths_outside__are_not_taken() -> None:
    text = SKYPILOT.replace("workdir: ./src", "workdir: ~/src")
    assert text != SKYPILOT
    made = convert((text + "\n").encode(), "task.yaml")
    assert "workdir" not in as_data(made.spec) and any("~/src is not taken" in note.why for note in made.notes)
    task = {"image_id": "docker:x"}
    mounts = {"/k": "~/.ssh", "/l": "/etc", "/m": "./m"}
    made = convert(json.dumps({"run": "x", "resources": task, "file_mounts": mounts}).encode(), "task.json")
    assert [one["src"] for one in as_data(made.spec)["inputs"]] == ["./m"]
    assert {note.key for note in made.notes if "is not taken" in note.why} == {"file_mounts./k", "file_mounts./l"}
    engine = {"Type": "wasm", "Params": {"EntryModule": "/home/me/x.wasm"}}
    error = refusal(json.dumps({"Tasks": [{"Name": "a", "Engine": engine}]}))
    assert "/home/me/x.wasm lies outside" in error.message


# ---- a GPU's memory by its name ----


@pytest.mark.parametrize(
    ("model", "named", "asked"),
    [
        *(("l4", 24, 22), ("t4", 16, 15), ("a10", 24, 22), ("a40", 48, 45), ("l40", 48, 45), ("l40s", 48, 45)),
        *(
            ("b200", 192, 180),
            ("h100", 80, 80),
            ("rtx4090", 24, 24),
            ("l4", 16, 16),
            ("h100", 94, 94),
            ("rtx3080", 12, 12),
        ),
        *(("a100", 80, 80), ("a100", 40, 40)),
    ],
)
def test_gpu__memory_of_a_named_model__is_what_such_a_card_offers(model: str, named: int, asked: int) -> None:
    draft = Draft()
    draft.gpu(1, [model], "gpu", named << 30)
    assert draft.job["resources"]["gpu"]["vram"] == f"{asked}GiB"
    assert bool(draft.notes) == (named != asked)


def test_gpu__every_model_of_the_table__is_taken_by_itself_at_the_memory_of_its_name() -> None:
    for model in (model for vendor in gpu_tiers.VENDORS.values() for model in vendor.models):
        nominal = next(size for size in range(model.vram_gib, 1000) if size % 2 == 0 or size == model.vram_gib)
        draft = Draft()
        draft.gpu(1, [model.slug], "gpu", nominal << 30)
        need = draft.job["resources"]["gpu"]
        assert need["tier"] == model.slug and need["vram"] == f"{model.vram_gib}GiB", model.slug


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
    for text in ("services: &a\n  a: *a", "&a [*a]", "services: {a: &a {image: x, b: {<<: *a}}}", "a: [&b {c: [*b]}]"):
        with pytest.raises(Unreadable, match=r"refers to itself: \*[ab] stands inside"):
            read_documents(text.encode())
        assert "refers to itself" in refusal(text).message and peer_of(text.encode()) is None
    # What aliases name counts for the depth, or a few of them would be deeper than the stack.
    deep = ["services: {a: {image: x, b0: &a0 x"]
    deep += [f"b{n}: &a{n} {'[' * 50}*a{n - 1}{']' * 50}" for n in range(1, 100)]
    with pytest.raises(Unreadable, match="nested deeper"):
        read_documents((", ".join(deep) + "}}").encode())
    with pytest.raises(Unreadable, match="bytes"):
        read_documents(b"a" * (MAX_BYTES + 1))
    with pytest.raises(Unreadable, match="UTF-8"):
        read_documents(b"\xff")
    for text in (r'{"a": ["\ud800"]}', r'{"\udfff": 1}', r'a: "\ud800"', r'"\ud800": 1'):
        with pytest.raises(Unreadable, match="surrogate"):
            read_documents(text.encode())
    assert read_documents(rb'a: "\ud83d\ude00"') == read_documents(rb'{"a": "\ud83d\ude00"}') == [{"a": "\U0001f600"}]
    assert read_documents(b'{"a": Infinity}') == [{"a": "Infinity"}]
    services = ["services: {a: {image: x, b0: &a0 [x]", *(line.replace("a", "b", 1) for line in lines[1:])]
    assert convert((", ".join(services) + "}}").encode(), "c.yml").spec.image == "x"
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
    document = read_documents(data.draw(st.sampled_from(FILES)).read_bytes())[0]
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


SERVICE_KEYS = st.sampled_from(
    (
        *("image", "entrypoint", "command", "environment", "env_file", "network_mode", "volumes", "deploy", "ports"),
        *("cpus", "mem_limit", "gpus", "runtime", "working_dir", "profiles", "scale", "build"),
    )
)
WRONG = st.sampled_from(("", "x", "./a:/b", "${A", "$$", 0, 3, True, None, [], {}, [[]], [{}], {"a": None}, {"x": []}))
DEPLOY_KEYS = st.sampled_from(("resources", "limits", "reservations", "devices", "replicas", "cpus", "count", "path"))


@given(
    service=st.dictionaries(
        SERVICE_KEYS,
        st.recursive(WRONG, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(DEPLOY_KEYS, inner)),
    )
)
def test_convert__a_malformed_service__is_a_job_or_a_refusal_that_names_its_place(service: dict[str, Any]) -> None:
    try:
        made = convert(json.dumps({"services": {"a": {"image": "x", **service}}}).encode(), "compose.json")
    except SpecError as refused:
        assert refused.exit_code == 2
        assert refused.code != "NOT_CONVERTIBLE" or "services.a." in refused.message
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
    assert main([*command[:-1], "no folder/x"]) == 9
    assert "next: mkdir -p 'no folder'\n" in capsys.readouterr().err
    assert main([*command[:-1], "-"]) == 0
    said = capsys.readouterr().out
    assert parse_spec(said.encode()).spec.name == "whisper-transcribe" and not (home / "-").exists()


@pytest.mark.parametrize(
    ("output", "workdir", "outside"),
    [
        *(("job.yaml", "./app", False), ("app/job.yaml", ".", True), ("other/job.yaml", "../app", True)),
        *(("../job.yaml", "here/app", False), ("link/job.yaml", "../../here/app", True)),
    ],
)
def test_hearth_convert__output_in_another_folder__names_the_same_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    output: str,
    workdir: str,
    outside: bool,
) -> None:
    here = tmp_path / "here"
    for folder in (here / "app", here / "data", here / "other", tmp_path / "far" / "away"):
        folder.mkdir(parents=True)
    (here / "link").symlink_to("../far/away")
    (here / "c.yml").write_text(BATCH % "volumes: ['./app:/job:ro', './data:/data:ro']")
    monkeypatch.chdir(here)
    assert main(["convert", "c.yml"]) == 0 and "paths count" not in capsys.readouterr().err
    assert main(["convert", "-o", output, "c.yml"]) == 0
    job = load_spec(Path(output)).spec
    assert job.workdir == workdir
    assert ((Path(output).parent / job.workdir).resolve(), (Path(output).parent / job.inputs[0].src).resolve()) == (
        here / "app",
        here / "data",
    )
    assert ("--allow-outside" in capsys.readouterr().err) == outside
    monkeypatch.chdir(tmp_path)
    assert main(["convert", "here/c.yml"]) == 0 and "paths count from here: " in capsys.readouterr().err


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
