"""worker.runtimes.docker_images on a real engine: a stranger's registry costs time, disk and secrets of nobody."""

from __future__ import annotations

import base64
import json
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from hearth.base import peer
from tests.worker.runtimes.engines import BUSYBOX, HOST, MIB, fresh, rules, runtime_of
from tests.worker.runtimes.hostile_registry import SECRET, HostileRegistry, bomb, layer_of, serving
from worker.runtimes import docker_images as subject
from worker.runtimes.base import Level, RunRequest, RunResult, RunStatus, SandboxLimits
from worker.runtimes.docker_images import ImageRules

DIGEST = "sha256:" + "ab" * 32
engine = pytest.mark.docker


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    import docker

    runtime_of(rules())
    with docker.APIClient(base_url=HOST, version="auto") as client:
        yield client


def is_here(api: Any, image: str) -> bool:
    from docker.errors import NotFound

    try:
        api.inspect_image(image)
    except NotFound:
        return False
    return True


def soon(condition: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


# -- which registry ------------------------------------------------


@engine
@pytest.mark.parametrize(
    ("allowed", "spelled"), [(ImageRules().registries, "127.0.0.1"), (("*",), "127.0.0.1"), (("local*",), "localhost")]
)
def test_prepare__loopback_registry_that_is_not_named__never_asked(allowed: tuple[str, ...], spelled: str) -> None:
    """What a cheat gains: nothing. The engine is not sent to the provider's own services."""
    with serving(HostileRegistry(says=SECRET)) as registry:
        runtime = runtime_of(ImageRules(registries=allowed))
        refused = runtime.prepare(registry.image().replace("127.0.0.1", spelled))
        assert refused is not None and refused.status is RunStatus.IMAGE_MISSING, refused
        assert "docker.registries" in refused.detail
        assert registry.paths == []


@engine
@pytest.mark.parametrize("inside", ["127.0.0.1", "168.63.129.16", "64:ff9b::7f00:1"])
def test_prepare__registry_whose_public_name_leads_home__never_asked(
    monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    """The name server is the stranger's: a name that looks public has an address on loopback."""
    with serving(HostileRegistry(says=SECRET)) as registry:
        port = registry.host.rpartition(":")[2]
        found = [(2, 1, 6, "", ("8.8.8.8", int(port))), (2, 1, 6, "", (inside, int(port)))]
        monkeypatch.setattr(peer.socket, "getaddrinfo", lambda *_args, **_kinds: found)
        refused = runtime_of(rules("*")).prepare(f"rebound.example.com:{port}/x@{DIGEST}")
        assert refused is not None and refused.status is RunStatus.IMAGE_MISSING, refused
        assert registry.paths == []


@engine
def test_prepare__what_a_registry_says__is_logged_and_not_in_the_result() -> None:
    with serving(HostileRegistry(says=SECRET)) as registry, capture_logs() as logs:
        refused = runtime_of(rules(registry.host)).prepare(registry.image())
        assert registry.paths  # control: its name is written out, and it is asked
    assert refused is not None and refused.status is RunStatus.IMAGE_MISSING, refused
    assert SECRET not in refused.detail and "does not have it, or not for everybody" in refused.detail
    assert SECRET in json.dumps(logs)


@engine
def test_prepare__login_of_the_workers_user__is_not_sent(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. A job that names the provider's private image does not get it."""
    import docker

    with serving(HostileRegistry(asks_login=True)) as registry:
        login = base64.b64encode(b"provider:password").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.host: {"auth": login}}}))
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        refused = runtime_of(rules(registry.host)).prepare(registry.image())
        assert refused is not None and refused.status is RunStatus.IMAGE_MISSING, refused
        assert registry.paths and registry.logins == []
        # Control: the SDK's own pull sends it.
        with docker.APIClient(base_url=HOST, version="auto") as client, pytest.raises(docker.errors.APIError):
            client.pull(registry.image().partition("@")[0], tag=registry.image().partition("@")[2])
        assert registry.logins


# -- images that are bad in themselves ---


def bad_images() -> dict[str, HostileRegistry]:
    """Return registries of one image each that no engine can unpack or run."""
    within = tarfile.TarInfo("f").tobuf() + tarfile.TarInfo("f/no space left on device").tobuf() + bytes(1024)
    layer, unpacked = layer_of(tarfile.TarInfo("f").tobuf() + bytes(1024))
    no_tar, no_tar_unpacked = layer_of(b"no tar" * 1000)
    cut, cut_unpacked = layer_of(tarfile.TarInfo("f").tobuf()[:300])
    file, file_unpacked = layer_of(within)
    spoilt = layer[:-6] + bytes([layer[-6] ^ 255]) + layer[-5:]
    good = HostileRegistry(layer=layer, unpacked=unpacked)
    return {
        "no tar": HostileRegistry(layer=no_tar, unpacked=no_tar_unpacked),
        "cut off": HostileRegistry(layer=cut, unpacked=cut_unpacked),
        "gzip that is spoilt": replace(good, layer=spoilt),
        "a file that ends like a full disk": HostileRegistry(layer=file, unpacked=file_unpacked),
        "another diff_id": replace(good, unpacked="sha256:" + "11" * 32),
        "too many diff_ids": replace(good, changes={"rootfs": {"type": "layers", "diff_ids": [unpacked] * 2}}),
        "no rootfs": replace(good, changes={"rootfs": None}),
        "Windows": replace(good, changes={"os": "windows"}),
        "a system of its own": replace(good, changes={"os": "x509"}),
        "a configuration of another shape": replace(good, changes={"config": "toomanyrequests"}),
        "a configuration's type": replace(good, config_type="application/vnd.x509.thing+json"),
        "a layer's type": replace(good, layer_type="application/vnd.timeout.layer"),
    }


@engine
@pytest.mark.parametrize("what", bad_images())
def test_prepare__image_that_is_bad_in_itself__is_the_images_doing_at_the_first_try(api: Any, what: str) -> None:
    """What a cheat gains: nothing. Three of them, each fetched three times, would else look like a broken machine."""
    with serving(bad_images()[what]) as registry:
        refused = runtime_of(rules(registry.host)).prepare(registry.image())
        if refused is None:
            # A newer engine does not mind these, and has the image.
            assert what in ("gzip that is spoilt", "a layer's type") and is_here(api, registry.image())
            return
        assert refused.status is RunStatus.IMAGE_MISSING, refused
        assert "no image that this engine can unpack" in refused.detail and not is_here(api, registry.image())


@engine
def test_prepare__image_without_a_configuration_of_its_own__is_an_image_and_counted(api: Any, tmp_path: Path) -> None:
    layer, unpacked = bomb(MIB)
    ledger = tmp_path / "images.json"
    with serving(HostileRegistry(layer=layer, unpacked=unpacked, changes={"config": None})) as registry:
        runtime = runtime_of(rules(registry.host, ledger=ledger))
        assert runtime.prepare(registry.image()) is None
        assert json.loads(ledger.read_text())["images"][registry.image()]["bytes"] >= MIB
        folders = [tmp_path / name for name in ("job", "in", "out")]
        for folder in folders:
            folder.mkdir(mode=0o700)
        request = RunRequest("none", ("nothing",), *folders, SandboxLimits(60, 64 * MIB), image=registry.image())
        result = runtime.run(request, threading.Event())
        assert (result.status, result.exit_code) == (RunStatus.EXIT, 127), result
    api.remove_image(registry.image(), force=True)


@engine
def test_prepare__worker_that_fails_once_an_image_is_there__does_not_keep_it(
    api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it fails by: an image that is kept and not counted is bytes that docker.keep_images never sees."""
    image, ledger = fresh(api), tmp_path / "images.json"
    with monkeypatch.context() as faulty:
        faulty.setattr(subject, "refuse_image", lambda facts, version: facts["no such key"])
        with pytest.raises(KeyError):
            runtime_of(rules(ledger=ledger)).prepare(image)
    assert not is_here(api, image) and json.loads(ledger.read_text())["images"] == {}


@engine
def test_prepare__image_whose_size_a_killed_worker_did_not_note__is_counted_at_its_next_use(
    api: Any, tmp_path: Path
) -> None:
    image, ledger = fresh(api), tmp_path / "images.json"
    assert runtime_of(rules(ledger=ledger)).prepare(image) is None
    noted = json.loads(ledger.read_text())
    size = noted["images"][image]["bytes"]
    noted["images"][image]["bytes"] = 0
    ledger.write_text(json.dumps(noted))
    assert runtime_of(rules(ledger=ledger)).prepare(image) is None
    assert json.loads(ledger.read_text())["images"][image]["bytes"] == size > 0
    api.remove_image(image)


@engine
@pytest.mark.parametrize("name", ["maint/certificate", "certificate", "x509/toomanyrequests"])
def test_prepare__image_that_is_nowhere_and_is_called_like_a_fault__is_missing(name: str) -> None:
    refused = runtime_of(rules()).prepare(f"{BUSYBOX.partition('/')[0]}/{name}@{DIGEST}")
    assert refused is not None and refused.status is RunStatus.IMAGE_MISSING, refused
    assert "does not have it" in refused.detail


# -- how long, how much ------------------------------------------------


@engine
@pytest.mark.parametrize("stalls", [True, False], ids=["manifest", "layer"])
def test_prepare__stopped_while_a_registry_stalls__returns_at_once_and_the_engine_hangs_up(stalls: bool) -> None:
    with serving(HostileRegistry(layer=b"x", claims=MIB, stalls=stalls)) as registry:
        cancel = threading.Event()
        results: list[RunResult | None] = []
        runtime = runtime_of(rules(registry.host))
        thread = threading.Thread(
            target=lambda: results.append(runtime.prepare(registry.image(), cancel=cancel)), daemon=True
        )
        thread.start()
        assert registry.dripping.wait(30)
        cancel.set()
        thread.join(5)
        assert results and results[0] is not None and results[0].status is RunStatus.CANCELLED, results
        assert stalls or registry.cut_off.wait(20)


@engine
def test_prepare__image_that_drips_past_its_lease__given_back_in_time_and_the_engine_hangs_up() -> None:
    """What a cheat gains: nothing. An image too slow for its lease costs no worker stake: it is declined in time."""
    with serving(HostileRegistry(layer=b"x", claims=MIB)) as registry:
        began = time.monotonic()
        refused = runtime_of(rules(registry.host)).prepare(registry.image(), began + 1.5)
        assert refused is not None and refused.status is RunStatus.BAD_INPUT, refused
        assert "not pulled in the time" in refused.detail
        assert time.monotonic() - began < 30
        assert registry.cut_off.wait(20)


@engine
def test_prepare__layer_that_says_how_large_it_is__refused_after_its_first_bytes() -> None:
    with serving(HostileRegistry(layer=b"x", claims=1 << 40)) as registry:
        refused = runtime_of(rules(registry.host, max_bytes=64 << 30)).prepare(registry.image())
        assert refused is not None and refused.status is RunStatus.BAD_INPUT, refused
        assert "1TiB" in refused.detail and "docker.max_image" in refused.detail
        assert registry.cut_off.wait(20)


@engine
def test_prepare__small_on_the_wire_and_large_on_disk__refused_and_gone(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "DISK_FACTOR", 1_000)  # this disk has other users, and the image is small
    layer, unpacked = bomb(24 * MIB)
    assert len(layer) < MIB // 4
    with serving(HostileRegistry(layer=layer, unpacked=unpacked)) as registry:
        refused = runtime_of(rules(registry.host, max_bytes=16 * MIB)).prepare(registry.image())
        assert refused is not None and refused.status is RunStatus.BAD_INPUT, refused
        assert "24MiB" in refused.detail and not is_here(api, registry.image())
        # Control: with room for it, it is an image like any other.
        roomy = runtime_of(rules(registry.host, max_bytes=32 * MIB))
        assert roomy.prepare(registry.image()) is None and is_here(api, registry.image())
        api.remove_image(registry.image())


@engine
def test_prepare__bomb_that_unpacks_without_end__stopped_by_the_disk_while_it_unpacks(api: Any) -> None:
    layer, _ = bomb(1 << 30)
    with serving(HostileRegistry(layer=layer)) as registry:
        refused = runtime_of(rules(registry.host, max_bytes=16 * MIB)).prepare(registry.image())
        assert refused is not None and refused.status is RunStatus.BAD_INPUT, refused
        assert "docker.max_image" in refused.detail and not is_here(api, registry.image())


@engine
def test_prepare__disk_with_less_than_its_reserve__asks_nobody() -> None:
    with serving(HostileRegistry()) as registry:
        runtime = runtime_of(replace(rules(registry.host), reserve_bytes=1 << 60))
        refused = runtime.prepare(registry.image())
        assert refused is not None and refused.status is RunStatus.BROKEN, refused
        assert "storage.reserve" in refused.detail and registry.paths == []


# -- what is kept ------------------------------------------------


@engine
def test_prepare__more_than_is_kept__least_recently_used_goes_across_a_restart(api: Any, tmp_path: Path) -> None:
    images = [fresh(api) for _ in range(3)]
    own = fresh(api)
    api.pull(own.partition("@")[0], tag=own.partition("@")[2])  # the provider's
    size = int(api.inspect_image(own)["Size"])
    wanted = rules(keep_bytes=2 * size + size // 2, ledger=tmp_path / "images.json")
    first = runtime_of(wanted)
    assert first.prepare(own) is None
    assert first.prepare(images[0]) is None and first.prepare(images[1]) is None
    assert first.prepare(images[0]) is None  # now the older one is images[1]
    second = runtime_of(wanted)
    assert second.prepare(images[2]) is None
    assert [is_here(api, image) for image in (*images, own, BUSYBOX)] == [True, False, True, True, True]
    assert set(json.loads((tmp_path / "images.json").read_text())["images"]) == {images[0], images[2]}
    for image in (images[0], images[2], own):
        api.remove_image(image)


@engine
def test_prepare__image_that_a_unit_needs__is_not_removed_for_another(api: Any, tmp_path: Path) -> None:
    needed, other = fresh(api), fresh(api)
    images = subject.Images(rules(keep_bytes=1, ledger=tmp_path / "images.json"))
    with images.held(needed):
        for image in (needed, other):
            name, _, digest = image.partition("@")
            assert images.ready(api, name, digest, time.monotonic() + 60, threading.Event()) is None
        assert is_here(api, needed)
    third = fresh(api)
    name, _, digest = third.partition("@")
    assert images.ready(api, name, digest, time.monotonic() + 60, threading.Event()) is None
    assert [is_here(api, image) for image in (needed, other, third)] == [False, False, True]
    api.remove_image(third)


@engine
def test_prepare__unreadable_ledger__begun_anew_and_its_images_stay(api: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "images.json"
    ledger.write_text('{"images": [1]')
    image = fresh(api)
    assert runtime_of(rules(keep_bytes=1, ledger=ledger)).prepare(image) is None
    assert set(json.loads(ledger.read_text())["images"]) == {image} and is_here(api, BUSYBOX)
    api.remove_image(image)


# -- words ------------------------------------------------


def test_look_at_disk__engines_folder__seen_or_not(tmp_path: Path) -> None:
    assert subject.look_at_disk({"DockerRootDir": str(tmp_path)}).level is Level.PASS
    for info in ({"DockerRootDir": str(tmp_path / "none")}, {}):
        row = subject.look_at_disk(info)
        assert row.level is Level.WARN and row.fix


def test_refuse_image__ld_preload_in_its_environment__refused() -> None:
    def facts(*env: str) -> dict[str, Any]:
        return {"Config": {"Env": list(env)}}

    assert subject.refuse_image(facts("PATH=/bin", "LD_LIBRARY_PATH=/cuda", "NVIDIA_VISIBLE_DEVICES=all")) is None
    for name in ("LD_PRELOAD", "LD_AUDIT"):
        refused = subject.refuse_image(facts(f"{name}=/proc/self/cwd/x.so"))
        assert refused is not None and refused.status is RunStatus.IMAGE_MISSING and name in refused.detail
    assert subject.refuse_image({"Config": {"Env": None}}) is None


@pytest.mark.parametrize(
    ("image", "machine", "said"),
    [
        (("linux", "amd64"), ("linux", "amd64"), ""),
        (("linux", "arm64"), ("linux", "amd64"), "the image is for linux/arm64, and this machine is linux/amd64"),
        (("windows", "amd64"), ("linux", "amd64"), "windows/amd64"),
        (("", ""), ("linux", "amd64"), ""),
        (("linux", "amd64"), ("", ""), ""),
    ],
)
def test_refuse_image__of_another_machine__named(image: tuple[str, str], machine: tuple[str, str], said: str) -> None:
    """An engine starts it all the same: its program ends at once by an error, which is paid as the program's own."""
    facts = dict(zip(("Os", "Architecture"), image, strict=True))
    refused = subject.refuse_image(facts, dict(zip(("Os", "Arch"), machine, strict=True)))
    assert (refused is None) is (said == "")
    assert refused is None or (refused.status is RunStatus.IMAGE_MISSING and said in refused.detail)


UNPACKED = "failed to register layer: Error processing tar file("


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        ("manifest for x not found: manifest unknown", RunStatus.IMAGE_MISSING, "does not have it"),
        ("no matching manifest for linux/arm64/v8 in the manifest list", RunStatus.IMAGE_MISSING, "than linux/arm64,"),
        ("no match for platform in manifest: linux/amd64: not found", RunStatus.IMAGE_MISSING, "other platforms than"),
        ("pull access denied for x, repository does not exist", RunStatus.IMAGE_MISSING, "does not have it"),
        ("Get https://r/v2/: dial tcp: connect: connection refused", RunStatus.BROKEN, "does not answer"),
        ("Get https://r/v2/: dial tcp: lookup r: no such host", RunStatus.BROKEN, "does not answer"),
        ("toomanyrequests: You have reached your pull rate limit", RunStatus.BROKEN, "limits how often"),
        ("x509: certificate signed by unknown authority", RunStatus.BROKEN, "TLS"),
        ("write /var/lib/docker/tmp/x: no space left on device", RunStatus.BROKEN, "disk is full"),
        ("read tcp 10.0.0.5:40412->1.2.3.4:443: connection reset by peer", RunStatus.BROKEN, "does not answer"),
        ("received unexpected HTTP status: 404 Gone", RunStatus.IMAGE_MISSING, "does not have it"),
        (f"{UNPACKED}exit status 1): write /x: input/output error", RunStatus.BROKEN, "the worker's log"),
        (f"{UNPACKED}exit status 1): write /x: no space left on device", RunStatus.BROKEN, "disk is full"),
        (f"{UNPACKED}exit status 1): open /no space left on device/x: file exists", RunStatus.IMAGE_MISSING, "unpack"),
        (f"{UNPACKED}signal: killed): ", RunStatus.BROKEN, "the worker's log"),
        ("something that no engine has said yet", RunStatus.BROKEN, "the worker's log"),
    ],
)
def test_name_pull_failure__what_an_engine_said__a_sentence_of_ours(said: str, status: RunStatus, why: str) -> None:
    with capture_logs() as logs:
        result = subject.name_pull_failure("x@sha256:00", said)
    assert result.status is status and why in result.detail and said not in result.detail
    assert logs[0]["engine"] == said


NAMED = [
    ("r.example/maint/certificate", "manifest for {} not found: manifest unknown", RunStatus.IMAGE_MISSING),
    ("certificate", "manifest for {} not found: manifest unknown", RunStatus.IMAGE_MISSING),
    ("library/x509", "pull access denied for x509, repository does not exist", RunStatus.IMAGE_MISSING),
    ("docker.io/library/toomanyrequests", "{}: not found", RunStatus.IMAGE_MISSING),
    (
        "r.example/x/tls",
        'Get "https://r.example/v2/x/tls/manifests/1": no basic auth credentials',
        RunStatus.IMAGE_MISSING,
    ),
    (
        "denied.example/a",
        "Get https://denied.example/v2/: dial tcp: lookup denied.example: i/o timeout",
        RunStatus.BROKEN,
    ),
    ("a/denied", 'Get "https://auth.docker.io/token?scope=a%2Fdenied%3Apull": EOF', RunStatus.BROKEN),
    (f"a/{'ab' * 32}certificate", "manifest for {} not found: manifest unknown", RunStatus.IMAGE_MISSING),
    # What is taken out leaves the engine's own words.
    ("denied", "pull access denied for {}, repository may require login", RunStatus.IMAGE_MISSING),
    ("e", "manifest for {} not found: manifest unknown", RunStatus.IMAGE_MISSING),
    ("t/e", "manifest for {} not found: manifest unknown", RunStatus.IMAGE_MISSING),
]


@pytest.mark.parametrize(("name", "said", "status"), NAMED)
def test_name_pull_failure__image_that_is_called_like_a_fault__is_judged_without_its_name(
    name: str, said: str, status: RunStatus
) -> None:
    reference = f"{name}@sha256:{'404' * 21}0"
    assert subject.name_pull_failure(reference, said.format(reference)).status is status
