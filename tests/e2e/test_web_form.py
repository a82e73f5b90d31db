"""The form of a job file, its draft and the file of a posted job, in a real browser on a real market."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hearth.jobfile import parse_spec
from tests.kit.browser import shoot, slow_processor, tab_to
from tests.kit.town import EXAMPLES, Town, town
from tests.kit.web_axe import keeps_nobody_out
from tests.kit.web_desk import OPEN, Desk, serve
from tests.kit.web_page import go
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
MODULE = EXAMPLES / "failing" / "failing.wasm"
DEAR = "Post it anyway, though no worker can take it"
TWICE = "Post a second job with this file"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("web")) as made:
        made.add_worker()
        yield made


def text(page: Page) -> str:
    """Return the job file as it stands."""
    return page.input_value("#job-file")


def formed(page: Page) -> None:
    """Wait until the form shows what the text says."""
    page.wait_for_selector("#job-form[aria-busy='false']")


def described(page: Page, field: str) -> str:
    """Return what a field of the form is said to be wrong for: by what describes it."""
    ids = page.get_attribute(f"#{field}", "aria-describedby") or ""
    return " ".join(page.inner_text(f"[id='{one}']") for one in ids.split() if one.endswith("-fault"))


def test_form__typed_faster_than_it_is_drawn__loses_no_key(desk: Desk[WebWallet]) -> None:
    """What is read of an older text comes late on a slow machine, and takes neither the keys nor the field's focus."""
    page, name = desk.page, "my job one, by a fast hand"
    page.goto(serve(desk.place))
    page.click("nav a[href='#/submit']")
    formed(page)
    slow_processor(page, 20)
    page.focus("#form-name")
    page.keyboard.type(name, delay=60)
    assert page.input_value("#form-name") == name
    assert page.evaluate("() => document.activeElement.id") == "form-name"
    page.wait_for_function("(name) => document.querySelector('#job-file').value.includes(name)", arg=name)


def test_form__while_its_first_text_is_read__is_closed_and_takes_no_change(desk: Desk[WebWallet]) -> None:
    """What was changed then would be lost: it would be one of a text that nobody has read."""
    page = desk.page
    page.goto(serve(desk.place))
    page.click("nav a[href='#/submit']")
    formed(page)
    page.fill("#form-name", "a draft to read")
    page.wait_for_function("() => Object.values(localStorage).some((one) => one.includes('a draft to read'))")
    page.add_init_script("""
      window.states = [];
      new MutationObserver(() => {
        const form = document.querySelector("#job-form");
        if (form) window.states.push(`busy ${form.ariaBusy}, closed ${form.disabled}`);
      }).observe(document, { subtree: true, childList: true, attributes: true });
    """)
    page.reload()
    formed(page)
    assert page.input_value("#form-name") == "a draft to read"
    states = page.evaluate("() => window.states")
    assert "busy true, closed true" in states and states[-1] == "busy false, closed false"
    assert "busy true, closed false" not in states


def test_form__by_the_keyboard_alone__posts_a_job(desk: Desk[WebWallet]) -> None:
    page, keys = desk.page, desk.page.keyboard
    page.goto(serve(desk.place))
    page.click("nav a[href='#/submit']")
    formed(page)
    tab_to(page, "#form-name")
    keys.insert_text("by the form")
    tab_to(page, "[aria-label='WebAssembly module: pick a file']")
    with page.expect_file_chooser() as chosen:
        keys.press("Space")
    chosen.value.set_files(MODULE)
    page.wait_for_selector("#form-module >> visible=true")
    tab_to(page, "#form-command-add")
    keys.press("Enter")
    page.wait_for_selector("#form-command-0:focus")
    keys.insert_text("no: 1e3 # ${X}")
    tab_to(page, "#form-resources-memory")
    keys.insert_text("64MiB")
    tab_to(page, "#form-limits-runtime")
    keys.insert_text("60s")
    tab_to(page, "#form-price-max_rate")
    keys.insert_text("0.01/h")
    page.wait_for_selector("#takers")
    shoot(page, "form")
    spec = parse_spec(text(page).encode()).spec
    assert (spec.name, spec.module, spec.command) == ("by the form", "failing.wasm", ["no: 1e3 # ${X}"])

    page.locator("button", has_text="Connect").focus()
    keys.press("Enter")
    page.locator("text=Put it all into my store").focus()
    keys.press("Enter")
    page.wait_for_selector("#there >> text=blocks are there, by your store")
    page.get_by_label(DEAR).focus()
    keys.press("Space")
    page.wait_for_selector("#sign:enabled")
    page.focus("#sign")
    keys.press("Enter")
    job = desk.posted()
    assert desk.place.hearth("job", "spec", job, "--json").json["command"] == ["no: 1e3 # ${X}"]
    # What was posted is no draft any more.
    go(page, "#/submit")
    assert text(page) == ""


def test_form__text_and_fields__say_the_same_and_what_is_wrong_with_it(desk: Desk[WebWallet]) -> None:
    page = desk.page
    desk.open()
    page.fill("#job-file", "name: a # mine\nimage: x\nresources: {gpu: 1xRTX4090, cpus: 2}\nlimits: {runtime: 1}\n")
    formed(page)
    assert page.input_value("#form-resources-gpu-tier") == "rtx-4090"
    page.wait_for_selector("[id='form-limits-runtime-fault']")
    assert "unit" in described(page, "form-limits-runtime")
    assert page.get_attribute("#form-limits-runtime", "aria-invalid") == "true"
    page.wait_for_selector("text=its comments and its layout are lost")
    page.fill("#form-limits-runtime", "5m")
    page.wait_for_selector("text=This is a job file")
    assert described(page, "form-limits-runtime") == "" and "# mine" not in text(page)
    assert parse_spec(text(page).encode()).spec.resources.gpu.tier == "rtx-4090"
    page.click("text=Back to the text as it was before the form")
    assert "# mine" in text(page)

    page.fill("#job-file", "name: [")
    page.wait_for_selector("#form-closed")
    assert page.is_disabled("#form-name") and "is not YAML" in page.inner_text("#form-closed")
    page.fill("#job-file", "image: x\n")
    formed(page)
    page.fill("#form-name", "b")
    # A list of mappings, a mapping, and the fields behind summaries.
    page.click("#form-inputs-add")
    page.fill("#form-inputs-0-src", "ipfs://bad")
    page.fill("#form-inputs-0-dst", "/elsewhere")
    page.wait_for_selector("[id='form-inputs-0-dst-fault']:has-text('/in')")
    assert "/in" in described(page, "form-inputs-0-dst")
    page.click("summary:has-text('More, rarely needed') >> nth=0")
    page.fill("#form-env-name", "MY_TOKEN")
    page.click("#form-env button:has-text('Add a variable')")
    page.wait_for_selector("#form-env-MY_TOKEN:focus")
    page.wait_for_selector("#form-env >> text=secret")
    keeps_nobody_out(page)


def test_form__what_is_picked__is_for_its_field_and_its_file_alone(desk: Desk[WebWallet], tmp_path: Path) -> None:
    page = desk.page
    for folder in ("jan", "feb"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.csv").write_text(folder)
    desk.open()
    page.fill("#job-file", OPEN.format(name="two", deadline="1h") + "inputs: [{dst: /in/jan}, {dst: /in/feb}]\n")
    page.wait_for_selector("#form-inputs-1-src:enabled")
    for field, (folder, word) in enumerate((("jan", "data.csv"), ("feb", "data-2.csv"))):
        page.get_by_label("What: pick a file").nth(field).set_input_files(tmp_path / folder / "data.csv")
        page.wait_for_function(f"() => document.querySelector('#form-inputs-{field}-src').value === '{word}'")
    page.locator("li", has_text="data-2.csv").locator("code").wait_for()
    page.locator("li", has_text="data.csv").locator("code").wait_for()
    assert len(set(page.locator("li:has-text('.csv') code").all_inner_texts())) == 2

    # A file that is opened asks for each anew, whatever words it uses.
    (tmp_path / "job.yaml").write_text(text(page))
    page.get_by_label("Open", exact=True).set_input_files(tmp_path / "job.yaml")
    page.wait_for_selector("#missing >> text=data-2.csv")
    assert page.locator("li:has-text('.csv') code").count() == 0


def test_draft__over_a_reload__is_there_until_it_is_discarded_or_forgotten(desk: Desk[WebWallet]) -> None:
    page = desk.page
    desk.open()
    wanted = OPEN.format(name="draft", deadline="1h")
    page.fill("#job-file", wanted)
    page.wait_for_selector("#draft >> text=keeps the text until it is posted")
    page.reload()
    page.wait_for_selector("text=This is a job file")
    formed(page)
    assert text(page) == wanted and page.input_value("#form-name") == "draft"
    page.click("text=Discard it")
    page.reload()
    formed(page)
    assert text(page) == ""

    page.fill("#job-file", wanted)
    go(page, "#/about")
    page.click("text=Forget what this page has stored")
    page.wait_for_function("() => Object.keys(localStorage).length === 0")
    go(page, "#/submit")
    assert text(page) == ""


def test_draft__a_browser_that_keeps_nothing__says_so_and_goes_on(desk: Desk[WebWallet]) -> None:
    page = desk.page
    desk.open()
    page.evaluate(
        "() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; }"
    )
    page.fill("#job-file", OPEN.format(name="full", deadline="1h"))
    page.wait_for_selector("#draft >> text=Not kept by this browser: it stores nothing for this page")
    page.wait_for_selector("text=This is a job file")


def test_boxes__stand_only_where_they_apply__and_come_back_without_their_ticks(desk: Desk[WebWallet]) -> None:
    page = desk.page
    desk.open()
    desk.write(OPEN.format(name="boxes", deadline="1h"), module=MODULE)
    desk.connect()
    desk.bring()
    assert page.get_by_label(TWICE).count() == 0
    page.get_by_label(DEAR).check()
    formed(page)
    page.fill("#form-price-max_rate", "0.70/h")
    page.get_by_label(DEAR).wait_for(state="detached")
    page.fill("#form-price-max_rate", "0.01/h")
    page.get_by_label(DEAR).wait_for()
    assert not page.get_by_label(DEAR).is_checked()
    desk.sign()
    # The first one is of its plan, and stood there before. Until the second comes, what is journalled was read too.
    desk.alert("PRICE_TOO_LOW", before=1)
    assert page.get_by_label(TWICE).count() == 0
    desk.anyway()
    desk.sign()
    first = desk.posted()

    desk.ready("boxes")
    page.get_by_label(TWICE).check()
    desk.sign()
    assert desk.posted() != first


def test_rerun__a_posted_job__is_a_file_of_the_same_document(desk: Desk[WebWallet]) -> None:
    page = desk.page
    desk.ready("rerun me")
    desk.sign()
    job = desk.posted()
    posted = desk.place.client.jobs.reads.look(job).posted
    # An empty editor takes it at once; a draft stays until its reader says otherwise.
    page.goto("about:blank")
    page.goto(serve(desk.place).split("#")[0] + f"#/submit/{job}@{posted.log.block_number}")
    page.wait_for_selector("text=This is the file of job")
    page.wait_for_selector("#spec-digest")
    assert page.inner_text("#spec-digest") == "0x" + posted.terms.spec.hex()
    assert page.get_attribute("#escrow data", "value") == str(desk.place.client.jobs.show(job)["escrow"])
    # What a link wrote is no draft until it is changed.
    page.wait_for_selector("#draft >> text=keeps it once you change it")
    assert not page.evaluate("Object.keys(localStorage).some((name) => name.includes('draft'))")
    formed(page)
    page.fill("#form-name", "another")
    page.wait_for_function(f"() => document.querySelector('#spec-digest').innerText !== '0x{posted.terms.spec.hex()}'")
    page.reload()
    page.wait_for_selector("text=A draft of yours stands below")
    formed(page)
    assert page.input_value("#form-name") == "another"
    shoot(page, "rerun")
    page.click("text=Put the file of the job in its place")
    formed(page)
    assert 'name: "rerun me"' in text(page)

    # What is changed makes a new job, whose data are in the store already.
    page.fill("#form-name", "changed")
    page.wait_for_function(
        f"() => ![undefined, '0x{posted.terms.spec.hex()}'].includes(document.querySelector('#spec-digest')?.innerText)"
    )
    desk.connect()
    desk.bring()
    desk.anyway()
    desk.sign()
    assert desk.posted() != job
    # A job that is none is a sentence.
    go(page, "#/submit/0x12")
    desk.alert("BAD_ID")
