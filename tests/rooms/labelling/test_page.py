"""The page in a real browser, by keys alone: what a person does from the empty page to the labels."""

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, Tab, needs_browser
from json_lines import lines, write
from labelling import HOSTILE, Labelling, rows_to_label

pytestmark = needs_browser


@pytest.fixture
def running(spawn: Any, tmp_path: Path) -> Callable[..., Labelling]:
    return lambda rows, *arguments: Labelling(
        spawn(
            "label", rows, "--store", tmp_path / "s.sqlite", "--no-browser", *arguments
        )
    )


def begin(browser: Browser, at: Labelling, rater: str) -> Tab:
    tab = browser.tab(at.address)
    tab.look()
    tab.until("!document.getElementById('who').hidden")
    tab.type(rater)
    tab.press("Enter")
    tab.until("!document.getElementById('desk').hidden")
    return tab


def done(tab: Tab, count: int) -> None:
    tab.until(f"document.getElementById('count').textContent.startsWith('{count} of')")


def end(at: Labelling) -> None:
    """Ctrl-C."""
    at.process.send_signal(signal.SIGINT)
    assert at.process.wait() == 0


def status(tab: Tab) -> str:
    return str(tab.js("document.getElementById('status').textContent"))


def test_thirty_rows_by_two_raters_then_a_judge_and_ten_more(
    running: Any,
    browser: Browser,
    cli: Any,
    rows_file: Any,
    server: Any,
    tmp_path: Path,
) -> None:
    rows = rows_file(60, scored=False)
    (tmp_path / "guide.md").write_text(
        "# Quality\n\n5  says all of the source\n1  says nothing of it\n"
    )
    options = ("--guidelines", tmp_path / "guide.md", "--repeats", 0.1)
    at = running(rows, "--n", 30, *options)
    chance, scores = random.Random(0), dict[str, int]()
    for who, rater in enumerate(("Ada", "Bo")):
        tab = begin(browser, at, rater)
        for n in range(33):  # thirty rows, three of them again
            seen = at.next(rater)["unit"]
            first = scores.setdefault(seen["key"], 1 + n * 2 % 5)
            tab.press(
                str(min(5, max(1, first + who * chance.choice((0, 0, 0, 1, -2)))))
            )
            done(tab, n + 1)
            if (
                n == 15 and not who
            ):  # the process dies; the same command resumes, and so does the open tab
                os.kill(at.process.pid, signal.SIGKILL)
                at.process.wait()
                tab.press("3")
                tab.until(
                    "document.getElementById('alert').textContent.includes('Not saved yet')"
                )
                at = running(rows, "--n", 30, *options)
                done(tab, 17)
                tab.press("u")
                done(tab, 16)
                assert (
                    tab.js("document.querySelector('[aria-pressed=true]').textContent")
                    == "3"
                )
        assert "Every row has your answer" in tab.text()
    tab.press("d")
    tab.until("document.getElementById('agreement').open")
    text = tab.text()
    assert "Krippendorff" in text
    assert "Ada" in text
    assert "Rows that split the raters" in text
    export = tmp_path / "labels.jsonl"
    told = cli(
        "label",
        "--store",
        tmp_path / "s.sqlite",
        "--export-only",
        "--export",
        export,
        "--json",
    ).json
    assert (told["labels"], told["exported"]) == (60, 60)
    assert told["agreement"][0]["alpha"] > 0.3
    assert [one["twice"] for one in told["raters"]] == [3, 3]
    made = cli(
        "compile",
        export,
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "--candidates",
        2,
        "--json",
        "-o",
        tmp_path / "judge.json",
    )
    assert made.code == 0, made.err
    assert (tmp_path / "judge.json").exists(), made.err
    end(at)
    more = begin(browser, running(rows, "--n", 40, "--order", "suggest"), "Ada")
    more.until(
        "document.getElementById('count').textContent === '33 of 44'"
    )  # ten rows, and one of them again
    assert browser.errors == []


def test_hostile_texts_stay_texts_and_two_tabs_lose_nothing(
    running: Any, browser: Browser, tmp_path: Path
) -> None:
    at = running(rows_to_label(tmp_path / "rows.jsonl"), "--aspect", "<i>faith</i>")
    name = '<b onclick="alert(3)">Zoë</b>'
    tab, other = begin(browser, at, name), begin(browser, at, name)
    other.press("2")
    done(other, 1)
    tab.press("5")
    tab.until("document.getElementById('alert').textContent.includes('another tab')")
    assert tab.js("document.querySelector('[aria-pressed=true]').textContent") == "2"
    assert tab.js("document.getElementById('place').textContent") == "Row 1 of 30"
    tab.press("5")  # seen, and changed on purpose
    tab.until("document.getElementById('place').textContent === 'Row 2 of 30'")
    tab.press("s")
    tab.until("document.getElementById('skipping').open")
    tab.press("2")
    done(tab, 2)
    tab.press("4")
    done(tab, 3)
    shown = tab.js("document.querySelector('.judged .text').textContent")
    assert shown == HOSTILE.replace("\u202e", "\ufffd").replace("\ud800", "\ufffd")
    assert (
        tab.js(
            "document.querySelectorAll('main script, main img, main b, header b, h1 i').length"
        )
        == 0
    )
    tab.press("1")
    done(tab, 4)
    tab.reload()
    done(tab, 4)  # who it is, and where, outlives a reload
    tab.js("location.hash = '#wrong'")
    tab.reload()
    tab.until("document.getElementById('alert').textContent.includes('token is wrong')")
    assert browser.errors == []
    answers = [
        (one["rater"], one["reason"])
        for one in at.http.get("/api/agreement", params={"rater": name}).json()[
            "skipped"
        ]
    ]
    assert answers == [(name, "The guidelines do not say")]


#: What a rater types into a skip dialog that has just opened: every letter is a key of the page, digits of a reason.
TYPED = [
    "not my product",
    "the wrong language",
    "UP: a duplicate",
    "2nd reply is missing",
]


@pytest.mark.parametrize("typed", TYPED)
@pytest.mark.parametrize("kind", ["binary", "scale"])
def test_what_is_typed_into_a_skip_dialog_is_the_reason(
    kind: str, typed: str, running: Any, browser: Browser, tmp_path: Path
) -> None:
    at = running(
        rows_to_label(tmp_path / "rows.jsonl"),
        *(("--kind", "binary") if kind == "binary" else ()),
    )
    tab = begin(browser, at, "Ada")
    tab.press("p" if kind == "binary" else "3")
    done(tab, 1)
    tab.press("s")
    tab.until("document.getElementById('skipping').open")
    for _ in range(3):  # the key is held down
        held = {"key": "s", "windowsVirtualKeyCode": 83, "autoRepeat": True}
        tab.call("Input.dispatchKeyEvent", type="keyDown", text="s", **held)
    tab.press(" ")
    assert tab.js("document.getElementById('reason').value") == ""
    tab.press(*typed)
    assert tab.js("document.getElementById('reason').value") == typed
    assert tab.js("document.getElementById('skipping').open")
    tab.press("Enter")
    done(tab, 2)
    told = at.http.get("/api/agreement", params={"rater": "Ada"}).json()
    assert [one["reason"] for one in told["skipped"]] == [typed]
    assert [(one["rated"], one["skipped"]) for one in told["raters"]] == [(1, 1)]
    for key, dialog in (("d", "agreement"), ("?", "keys")):
        tab.press(key)
        tab.until(f"document.getElementById('{dialog}').open")
        tab.press(" ", "u", "1", "p", "s")
        assert tab.js(f"document.getElementById('{dialog}').open")
        tab.press("Escape")
        tab.until(f"!document.getElementById('{dialog}').open")
    assert tab.js("document.getElementById('place').textContent") == "Row 3 of 30"
    assert browser.errors == []


def test_errors_are_marked_by_keyboard_and_by_mouse(
    running: Any, browser: Browser, tmp_path: Path
) -> None:
    output = "The 👩‍👩‍👧 town paid ninety crowns."
    rows = write(
        tmp_path / "rows.jsonl",
        [{"id": "r", "source": "It paid 40.", "output": output}],
    )
    at = running(rows, "--kind", "spans", "--export", tmp_path / "truth.jsonl")
    tab = begin(browser, at, "Ada")
    tab.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")
    assert status(tab) == "ninety"
    tab.press("ArrowRight", shift=True)
    tab.press("4", "e")
    tab.type("it was 40")
    tab.press("Enter", "o", "2")
    assert (
        tab.js(
            "document.querySelector('mark').textContent + document.querySelectorAll('mark').length"
        )
        == "ninety3"
    )
    tab.reload()
    tab.until(
        "document.querySelectorAll('.marks li').length === 2"
    )  # what is not saved outlives a reload
    box = tab.js(
        "(r => [r.left, r.right, r.top + r.height / 2])([...document.querySelectorAll('#output span')]"
        ".find(s => s.textContent === 'town').getBoundingClientRect())"
    )
    for kind, x in (
        ("mousePressed", box[0] + 1),
        ("mouseMoved", box[1] - 1),
        ("mouseReleased", box[1] - 1),
    ):
        tab.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=box[2],
            button="left",
            buttons=1,
            clickCount=1,
        )
    tab.press("1")
    tab.until("document.querySelectorAll('.marks li').length === 3")
    tab.press("Enter")
    tab.until("!document.getElementById('end').hidden")
    end(at)
    (row,) = lines(tmp_path / "truth.jsonl")
    errors = row["errors"]
    assert [(e["text"], e["severity"], e["explanation"], e["how"]) for e in errors] == [
        ("town", 1, "", "exact"),
        ("ninety crowns", 4, "it was 40", "exact"),
        ("", 2, "", "omission"),
    ]
    assert all(output[e["start"] : e["end"]] == e["text"] for e in errors[:2])
    assert browser.errors == []


def test_pairs_by_keyboard(running: Any, browser: Browser, tmp_path: Path) -> None:
    at = running(rows_to_label(tmp_path / "rows.jsonl", 8), "--kind", "preference")
    tab = begin(browser, at, "Bo")
    for n, key in enumerate("abt"):
        tab.press(key)
        done(tab, n + 1)
    assert browser.errors == []


def test_reasons_several_aspects_and_bubbles_by_keyboard(
    running: Any, browser: Browser, tmp_path: Path
) -> None:
    chat = [
        {"role": "user", "content": "Hi <b>you</b>\nUser: no turn"},
        {"role": "assistant", "content": "Hm"},
    ]
    turns = [
        *chat,
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Nothing."},
    ]
    rows = write(
        tmp_path / "rows.jsonl", [{"id": f"r{n}", "messages": turns} for n in range(4)]
    )
    at = running(rows, "--export", tmp_path / "one.jsonl")
    tab = begin(browser, at, "Ada")
    found = "[...document.querySelectorAll('.turn')].map(t => [t.className, t.querySelector('p').textContent])"
    assert tab.js(found) == [
        ["turn user", "Hi <b>you</b>\nUser: no turn"],
        ["turn assistant", "Hm"],
        ["turn user", "And now?"],
    ]
    tab.press("w")
    tab.type("Says 4 times <i>nothing</i>")
    tab.press("Enter")  # leaves the field, as there is no score yet
    assert status(tab) == "Now the answer."
    tab.reload()
    tab.until(
        "document.querySelector('textarea')?.value === 'Says 4 times <i>nothing</i>'"
    )
    tab.press("2")
    done(tab, 1)
    tab.press("3")
    done(tab, 2)
    tab.press("u")
    done(tab, 1)
    tab.press("w", "A", "Enter")  # the answer is there, so that this saves
    done(tab, 2)
    end(at)
    kept = [(row["score (1-5)"], row["why"]) for row in lines(tmp_path / "one.jsonl")]
    assert kept == [(2, "Says 4 times <i>nothing</i>"), (3, "A")]
    (tmp_path / "s.sqlite").rename(tmp_path / "before.sqlite")
    at = running(
        rows,
        "--aspect",
        "tone",
        "--aspect",
        "help",
        "--why",
        "--export",
        tmp_path / "two.jsonl",
    )
    tab = begin(browser, at, "Bo")
    tab.press("4", "K", "Enter", "1", "Enter")
    done(tab, 1)
    end(at)
    (row,) = lines(tmp_path / "two.jsonl")
    assert (row["scores.tone (1-5)"], row["scores.help (1-5)"], row["why"]) == (
        4,
        1,
        {"tone": "K"},
    )
    assert browser.errors == []


def test_what_a_screen_reader_is_told(
    running: Any, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "guide.md").write_text("Say 5 where nothing is wrong.")
    at = running(
        rows_to_label(tmp_path / "rows.jsonl"), "--guidelines", tmp_path / "guide.md"
    )
    start = browser.tab(at.address)
    start.until("!document.getElementById('who').hidden")
    assert {
        ("heading", "Who is labelling?"),
        ("textbox", "Your name"),
        ("button", "Begin"),
    } <= set(start.names())
    tab = begin(browser, at, "Ada")
    names = set(tab.names())
    assert {
        ("heading", "Row 1 of 30"),
        ("region", "Source"),
        ("region", "Output"),
        ("complementary", "Guidelines"),
        ("group", "How good is the output? 1 is the worst, 5 the best."),
        *(("button", str(n)) for n in range(1, 6)),
        ("button", "Skip"),
        ("button", "Keys"),
        ("progressbar", "0 of 30"),
        ("form", "Your answer"),
    } <= {(role, name.strip()) for role, name in names}
    assert not [
        role
        for role, name in names
        if role in ("button", "textbox", "checkbox", "dialog") and not name.strip()
    ]
    tab.press("4")
    done(tab, 1)
    assert status(tab) == "Saved: 4. 29 left."  # in a live region
    assert tab.js("document.activeElement.textContent") == "Row 2 of 30"
    tab.press("?")
    tab.until("document.getElementById('keys').open")
    tab.press("Escape", "g")
    tab.until("document.getElementById('guidelines').hidden")
    # Everything is reached with Tab alone, and pressed with Enter; single keys can be turned off.
    tab.press("?")
    tab.js("document.getElementById('single').click()")
    tab.press("Escape", "3")
    for _ in range(40):
        tab.press("Tab")
        if tab.js("document.activeElement.getAttribute('aria-label')") == "2":
            break
    assert tab.js("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    done(tab, 1)
    tab.press("Enter")
    done(tab, 2)
    assert at.next("Ada")["unit"]["turn"] == 0
    assert status(tab) == "Saved: 2. 28 left."
    assert browser.errors == []


def test_the_page_says_when_the_labels_decide(
    running: Any, browser: Browser, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    made = []
    for n in range(60):
        texts = {"id": f"r{n}", "source": f"q {n * 7919}", "output": f"a {n * 104729}"}
        made.append(texts | {"gpt4": "fail" if n % 2 else "pass"})
    write(rows, made)
    gate = ("--kind", "binary", "--decide", "accuracy>=0.8", "--judge", "gpt4")
    at = running(rows, *gate)
    tab = begin(browser, at, "Ada")
    said = "document.getElementById('decision').textContent"
    tab.until(f"{said} === 'accuracy>=0.8 is open: there is no label yet'")
    for n in range(4):  # wrong whatever the judge said: 2 ** 4 = 16 > 10
        source = tab.js("document.querySelector('.part .text').textContent")
        number = int(str(source).split()[1]) // 7919
        tab.press("p" if number % 2 else "f")
        done(tab, n + 1)
    tab.until(f"{said}.startsWith('accuracy>=0.8 is not passed: 4 of 4 labels')")
    end(at)
    said_at_end = at.process.stdout.read()
    assert "accuracy>=0.8 is not passed: 4 of 4 labels that it counts" in said_at_end
