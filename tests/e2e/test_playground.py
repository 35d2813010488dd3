"""The playground in a real browser: what a person sees who types two quick messages."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from rejoinder.local.dev import bot_function
from rejoinder.settings import Settings
from rejoinder.system import SystemClock
from running_dev import Running, running
from stack import ROOT

pytestmark = pytest.mark.e2e

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""No browser of a test calls home, nor needs a display."""


@pytest.fixture
def desk() -> Iterator[Running]:
    """A debounce long enough to type in, the bot that calls back, and a lease that runs out within the test."""
    settings = Settings.from_environment(
        {"DEBOUNCE_MS": "1000", "LEASE_MS": "1000", "RENEW_MS": "300", "PER_ACCOUNT": '{"webhook:shop": {}}'}
    )
    with running(settings, SystemClock(), bot_function("callback:reply", ROOT / "examples"), 500) as desk:
        yield desk


@pytest.fixture
def page(desk: Running, tmp_path: Path) -> Iterator[Page]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on the path (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(str(tmp_path), executable_path=chromium, args=QUIET)
        page = context.pages[0]
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.goto(desk.server.url)
        expect(page.locator("#state")).to_have_text("live")
        yield page
        context.close()
    assert faults == []


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message").fill(text)
    page.keyboard.press("Enter")


def test_two_quick_messages_get_exactly_one_reply(page: Page, desk: Running) -> None:
    say(page, "my phone is 555 0134")
    say(page, "and my mail is ana@example.org")
    replies = page.locator("#log .bot:not(.typing)")
    expect(replies).to_have_count(1)
    expect(replies).to_contain_text("We will call 555 0134 and write to ana@example.org.")
    expect(page.locator("#log .person .note")).to_have_text(["Ana, answered by reply 1"] * 2)
    expect(page.locator("#owed")).to_have_text("0")
    desk.wrote("finish", "Finished")
    assert [(entry.fields["part"]["part"], entry.fields["part"]["parts"]) for entry in desk.replies] == [(1, 1)]


def test_the_classic_burst_shows_the_superseded_reply(page: Page) -> None:
    """The e-mail comes 3 s after the phone number, in mid-generation: the picture shows both attempts."""
    page.get_by_label("Bot thinks").fill("4")
    page.get_by_role("button", name="Phone, then e-mail").click()
    expect(page.get_by_role("img")).to_have_attribute(
        "aria-label", "2 messages, 2 generations, 1 superseded, 1 replies sent", timeout=20_000
    )


def test_a_crash_is_recovered_and_a_redelivery_ignored(page: Page) -> None:
    page.get_by_label("Bot thinks").fill("2")
    say(page, "hello")
    page.get_by_role("button", name="Crash generator").click()
    expect(page.get_by_role("cell", name="generator crashed")).to_be_visible()
    page.get_by_role("button", name="Redeliver last").click()
    expect(page.get_by_role("cell", name="Duplicate")).to_be_visible()
    expect(page.locator("#log .bot:not(.typing)")).to_have_count(1, timeout=15_000)
    expect(page.locator("#received")).to_have_text("1")


def test_a_group_of_two_on_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    page.get_by_role("combobox", name="Conversation").select_option(label="Group")
    say(page, "I am Ana")
    page.get_by_role("button", name="Ben").click()
    say(page, "and I am Ben")
    expect(page.locator("#log .person .note")).to_have_text(
        ["Ana, answered by reply 1", "Ben, answered by reply 1"], timeout=10_000
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_message_from_elsewhere_is_shown_and_a_reload_shows_it_again(page: Page, desk: Running) -> None:
    desk.write("m-1", "from a shell", conversation="c-7")
    expect(page.locator("#log .person .bubble")).to_have_text("from a shell")
    expect(page.locator("#log .bot:not(.typing)")).to_have_count(1)
    page.reload()
    expect(page.locator("#log .person .bubble")).to_have_text("from a shell")
    expect(page.locator("#log .bot:not(.typing)")).to_have_count(1)


def test_a_text_is_never_markup(page: Page) -> None:
    say(page, "<img src=x onerror=alert(1)>")
    expect(page.locator("#log .person .bubble")).to_have_text("<img src=x onerror=alert(1)>")
    assert page.locator("#log img").count() == 0


def test_a_person_takes_the_conversation_and_gives_it_back(page: Page) -> None:
    """Whatever is written meanwhile waits, and gets its one reply afterwards."""
    say(page, "hello")
    replies = page.locator("#log .bot:not(.typing)")
    expect(replies).to_have_count(1)
    page.get_by_role("button", name="Take over").click()
    expect(page.locator("#paused")).to_contain_text("until")
    say(page, "is anybody there?")
    expect(page.locator("#owed")).to_have_text("1")
    page.get_by_role("button", name="Give back").click()
    expect(page.locator("#paused")).to_have_text("no")
    expect(replies).to_have_count(2, timeout=10_000)


def test_another_account_is_written_to_where_its_conversation_is_shown(page: Page, desk: Running) -> None:
    page.get_by_role("combobox", name="Conversation").select_option(label="Ana, private, to shop")
    say(page, "is the shop open?")
    expect(page.locator("#log .bot:not(.typing)")).to_have_count(1)
    expect(page.locator("#marks")).to_have_text("no, no")
    assert desk.view("webhook:shop:ana")["row"]["received"] == 1
    assert desk.view("webhook:default:ana") == {"error": "no conversation webhook:default:ana"}
