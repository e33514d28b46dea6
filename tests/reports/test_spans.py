"""`judgesmith report`: what a scored file holds, the page that shows it, and the page in a real browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Browser, needs_browser
from hypothesis import given, settings
from hypothesis import strategies as st
from json_lines import write
from parsed import Page, check_that_nothing_runs

from judgesmith.conversation import rendered
from judgesmith.reports.rows import mean_of, pieces, read_scored, summarise
from judgesmith.reports.spans import PAGE, STILL, render
from judgesmith.running.plain import clean
from judgesmith.signatures.values import ErrorSpan

HOSTILE = (
    "</script><script>window.broken=1</script><!-- <img src=x onerror=window.broken=2> \"' onfocus=alert(1) "
    "</style></option>&lt;b&gt; {{ 7 * 7 }} \u2028 \x1b[31m \u202e"
)
#: Outputs in which characters, code points, UTF-16 units and bytes all differ, or that try to get out of their place.
HARD = {
    "script": HOSTILE,
    "emoji": "A 👩‍👩‍👧‍👦 family, 🏳️‍🌈, 👍🏽, 🇩🇪🇫🇷, 𝔘𝔫𝔦 and more",
    "arabic": "هذا نص فيه خطأ (one word) ثم ١٢٣ والنهاية.",
    "hebrew": "שלום עולם, 123 ו-English באמצע.",
    "combining": "Zu\u0308rich cafe\u0301 Z\u0351\u036b A\u030a नमस्ते เกี่ยว ﷽",
    "surrogates": "half \ud83d and \ude00, nul \x00, esc \x1b, over \u202e, isolate \u2066, line \u2028 end",
    "breaks": "\nfirst\r\nsecond\rthird\n\n\ttabbed   spaced \n",
    "long": " ".join(f"word{i} 🙂" for i in range(2000))[:20_000],
}


def unpacked(words: str) -> Any:
    """The data of a page, from the words of its script."""
    return json.loads(gzip.decompress(base64.b64decode(words)))


def error(
    output: str, start: int | None, end: int | None, **more: Any
) -> dict[str, Any]:
    text, how = (
        ("gone", "ungrounded") if start is None else (output[start:end], "exact")
    )
    found = {
        "text": text,
        "explanation": "because",
        "severity": 3,
        "start": start,
        "end": end,
        "how": how,
    }
    return found | {"annotators": [], "notes": []} | more


def row(identity: str, output: str = "some output", **verdict: Any) -> dict[str, Any]:
    said = {
        "score": 3.0,
        "explanation": "fine",
        "percent": 50.0,
        "criteria": {},
        "errors": [],
        "failure": None,
    }
    return {
        "id": identity,
        "source": f"source of {identity}",
        "output": output,
        "verdict": said | verdict,
    }


def hard_rows() -> list[dict[str, Any]]:
    made = []
    for name, output in HARD.items():
        n = len(output)
        cuts = [
            (0, 1),
            (2, 9),
            (5, 12),
            (n // 3, n // 2),
            (n // 3, n // 2),
            (n - 3, n),
            (n // 2, n // 2 + 1),
        ]
        errors = [error(output, *cut, severity=k % 5 + 1) for k, cut in enumerate(cuts)]
        made.append(row(name, output, errors=[*errors, error(output, None, None)]))
    return made


def page_of(tmp_path: Path, records: list[dict[str, Any]], **options: Any) -> str:
    return render(
        read_scored(write(tmp_path / "mine.scored.jsonl", records), **options)
    )


Mark = tuple[list[int], str]
_OUTPUT = re.compile(
    r'<article[^>]* id="([^"]*)".*?<div class="[^"]*\boutput\b[^"]*"[^>]*>(.*?)</div>',
    re.DOTALL,
)
_MARK = re.compile(r'<mark[^>]* data-e="([^"]*)"[^>]*>(.*?)</mark>', re.DOTALL)


def outputs_of(page: str) -> dict[str, tuple[str, list[Mark]]]:
    """For each row of static HTML the text and the marks of the output."""
    return {
        anchor: (
            html.unescape(re.sub("<[^>]*>", "", text)),
            [
                ([*map(int, numbers.split())], html.unescape(words))
                for numbers, words in _MARK.findall(text)
            ],
        )
        for anchor, text in _OUTPUT.findall(page)
    }


def marked(marks: list[Any], number: int) -> str:
    return "".join(words for numbers, words in marks if number in numbers)


def in_order(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The grounded errors of a row as the page numbers them."""
    found = [e for e in record["verdict"]["errors"] if e["start"] is not None]
    return sorted(found, key=lambda e: (e["start"], -e["end"]))


# Pieces of text ------------------------------------------------------------------------------------------------------


def found(start: int | None, end: int | None, severity: float = 3) -> ErrorSpan:
    return ErrorSpan(
        "", "", severity, start, end, "exact" if start is not None else "ungrounded"
    )


def test_overlapping_errors_cut_the_text_into_pieces() -> None:
    # 0 1 2 3 4 5: the first error covers bcd, the second cde; together b | cd | e
    cut = pieces("abcdef", [found(1, 4, 2), found(2, 5, 5)])
    assert [(p.text, p.errors, p.grade) for p in cut] == [
        ("a", (), 0),
        ("b", (0,), 2),
        ("cd", (0, 1), 5),
        ("e", (1,), 5),
        ("f", (), 0),
    ]
    assert [p.text for p in pieces("abc", [found(None, None)])] == [
        "abc"
    ]  # what was not found cuts nothing
    assert pieces("", []) == []


def test_a_piece_names_a_few_of_many_errors_and_counts_them_all() -> None:
    (piece,) = pieces("abc", [found(0, 3)] * 50)
    assert piece.errors == tuple(range(20))
    assert piece.covering == 50


@settings(deadline=None, max_examples=60)
@given(
    st.text(max_size=30),
    st.lists(st.tuples(st.integers(0, 29), st.integers(1, 30)), max_size=12),
)
def test_pieces_are_the_text_and_every_error_its_own_part(
    text: str, cuts: list[tuple[int, int]]
) -> None:
    errors = [found(a, b) for a, b in cuts if a < b <= len(text)]
    cut = pieces(text, errors)
    assert "".join(p.text for p in cut) == text
    for k, e in enumerate(errors):
        assert "".join(p.text for p in cut if k in p.errors) == text[e.start : e.end]


# Sums ----------------------------------------------------------------------------------------------------------------


def test_an_interval_takes_a_document_as_one_piece_of_evidence() -> None:
    # Mean of 1 1 3 3 is 2, deviations sum to -2 and 2 in the two documents: sqrt(2/1 * 8) / 4 = 1; t(0.975, 1) = 12.706
    mean = mean_of(np.array([1.0, 1.0, 3.0, 3.0]), ["a", "a", "b", "b"])
    assert mean.value == 2
    assert mean.n == 4
    assert mean.high - mean.value == pytest.approx(12.7062, abs=1e-4)
    # Four documents: the plain standard error sqrt(4/3 * 4) / 4 = 0.5774; t(0.975, 3) = 3.1824
    assert mean_of(np.array([1.0, 1.0, 3.0, 3.0]), list("abcd")).high == pytest.approx(
        2 + 3.1824 * 0.57735, abs=1e-4
    )
    # Failed rows are left out.
    assert mean_of(np.array([1.0, math.nan, 2.0]), ["a", "b", "b"])[0] == 1.5
    assert math.isnan(mean_of(np.array([math.nan]), ["a"]).value)
    assert math.isnan(mean_of(np.array([1.0, 2.0]), ["a", "a"]).low)


def test_summary(tmp_path: Path) -> None:
    output = "one two"
    errors = [
        error(output, 0, 3),
        error(output, None, None),
        error(output, None, None, how="omission"),
    ]
    made = [
        row("a", output, errors=errors),
        row("b", score=5.0),
        row("c", score=1.0, failure="cut off"),
    ]
    data = read_scored(write(tmp_path / "x.jsonl", made))
    assert math.isnan(data.rows[2].score)
    assert "No score: cut off" in render(data)
    found = summarise(data)
    assert (found["rows"], found["scored"], found["failures"]) == (3, 2, 1)
    assert found["mean_score"]["value"] == 4
    assert found["errors_per_row"] == 1.5
    assert (found["grounded"], found["omissions"], found["ungrounded"]) == (1, 1, 1)


def test_disagreement_is_a_distance_of_places(tmp_path: Path) -> None:
    made = [
        row(str(k), score=score) | {"score": human}
        for k, (score, human) in enumerate([(1, 9), (2, 5), (3, 1)])
    ]
    side = read_scored(write(tmp_path / "x.jsonl", made)).sides[0]
    assert side.gap.tolist() == [100, 0, 100]  # the judge's lowest is people's highest


def test_aspects_compare_the_criterion_or_the_score(tmp_path: Path) -> None:
    criteria = {"fluency": {"score": 80, "explanation": "reads well"}}
    made = [
        row(str(k), score=k, criteria=criteria) | {"scores": {"fluency": 4, "depth": k}}
        for k in range(3)
    ]
    data = read_scored(write(tmp_path / "x.jsonl", made))
    assert [side.name for side in data.sides] == ["", "fluency", "depth"]
    assert data.sides[1].score.tolist() == [80, 80, 80]
    assert data.sides[2].score.tolist() == [0, 1, 2]
    assert np.isnan(data.sides[0].human).all()
    assert "people scored 2 aspects" in data.notes[0]
    chosen = read_scored(tmp_path / "x.jsonl", human="depth")
    assert chosen.sides[0].human.tolist() == [0, 1, 2]
    assert not chosen.notes


def test_people_can_be_named_by_column_and_by_path(tmp_path: Path) -> None:
    made = [
        row(str(k)) | {"mine": f"{k}", "nested": {"deep": [k, k + 2]}} for k in range(3)
    ]
    path = write(tmp_path / "x.jsonl", made)
    assert read_scored(path, human="mine").sides[0].human.tolist() == [0, 1, 2]
    assert read_scored(path, human="nested.deep").sides[0].human.tolist() == [1, 2, 3]


# Input that may be anything ------------------------------------------------------------------------------------------

ODD = [None, True, 7, -1, "x", 1e300, [], [1], {}, {"score": "y"}]


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_verdict_of_any_shape_is_shown(tmp_path: Path, value: Any) -> None:
    names = (
        "score",
        "explanation",
        "criteria",
        "errors",
        "failure",
        "opinions",
        "spread",
        "notes",
    )
    page = page_of(tmp_path, [row(name, **{name: value}) for name in names])
    assert all(f'id="row-{name}"' in page for name in names)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (-1, 3),
        (0, 99),
        (2, 2),
        (3, 1),
        (True, 3),
        (0.0, 3.0),
        ("0", "3"),
        (None, 3),
        (1e400, 2),
    ],
)
def test_a_place_outside_the_text_is_no_place(
    tmp_path: Path, start: Any, end: Any
) -> None:
    path = write(
        tmp_path / "x.jsonl",
        [row("a", errors=[error("", None, None) | {"start": start, "end": end}])],
    )
    (only,) = read_scored(path).rows[0].verdict.errors
    assert (only.how, only.start, only.end) == ("ungrounded", None, None)


def test_other_words_than_the_text_has_are_said(tmp_path: Path) -> None:
    assert "quotes other words" in page_of(
        tmp_path, [row("a", "some text", errors=[error("", 0, 4, text="other")])]
    )


def test_the_csv_form_of_scores_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(
        "id,output,judge_score,judge_explanation,judge_failure\na,text,4.5,good,\nb,text,,,no answer\n"
    )
    first, second = read_scored(path).rows
    assert (first.score, first.verdict.explanation, second.verdict.failure) == (
        4.5,
        "good",
        "no answer",
    )


# The page ------------------------------------------------------------------------------------------------------------


def test_static_rows_have_their_spans(tmp_path: Path) -> None:
    records = hard_rows()
    shown = outputs_of(page_of(tmp_path, records))
    for record in records:
        (text, marks), output = shown[f"row-{record['id']}"], clean(record["output"])
        assert text == output
        for k, e in enumerate(in_order(record)):
            assert marked(marks, k) == output[e["start"] : e["end"]], (record["id"], k)


_SHADE = re.compile(r'<span class="u(\d)">(.*?)</span>', re.DOTALL)


def test_unexpected_words_are_shaded_and_every_character_is_there(
    tmp_path: Path,
) -> None:
    made = [
        row(name, text, details={"surprise": [[0, 2, 1], [2, 9, 3]]})
        for name, text in HARD.items()
    ]
    page = page_of(tmp_path, made)
    for part, (name, text) in zip(
        page.split('<article class="row"')[1:], HARD.items(), strict=True
    ):
        assert outputs_of(page)[f"row-{name}"] == (clean(text), [])
        found = [(grade, html.unescape(words)) for grade, words in _SHADE.findall(part)]
        assert found == [("1", clean(text)[:2]), ("3", clean(text)[2:9])]
    check_that_nothing_runs(Page(page))
    assert "typical output" in page
    assert "typical output" not in page_of(tmp_path, [row("plain")])


@pytest.mark.parametrize(
    "surprise",
    [
        3,
        {"a": 1},
        [
            None,
            ["0", "3", "1"],
            [True, 3, 1],
            [0, 3, 1.0],
            [0, 3, 4],
            [3, 3, 1],
            [4, 99, 1],
        ],
    ],
)
def test_shading_of_another_shape_is_left_out_and_errors_come_first(
    tmp_path: Path, surprise: Any
) -> None:
    good = [[0, 4, 2], [2, 6, 1]]
    details = [
        surprise,
        [*surprise, *good] if isinstance(surprise, list) else good,
        good,
    ]
    made = [
        row(
            str(k),
            errors=[error("some output", 5, 11)] * (k == 2),
            details={"surprise": of},
        )
        for k, of in enumerate(details)
    ]
    parts = page_of(tmp_path, made).split('<article class="row"')[1:4]
    assert [_SHADE.findall(part) for part in parts] == [
        [],
        [("2", "some")],
        [],
    ]
    assert "<mark" in parts[2]


_FOLD = re.compile(
    r'<details class="([^"]*)"( open)?><summary.*?>(\d+)</span> <bdi>(.*?)</bdi>(.*?)</summary>'
)


def test_turns_are_folded_and_a_result_stands_in_its_call(tmp_path: Path) -> None:
    calls = [
        {"id": name, "function": {"name": name, "arguments": "{}"}} for name in "fgh"
    ]
    told = {"f": HOSTILE * 9, "h": "Error: gone"}
    run = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": calls},
        *(
            {"role": "tool", "tool_call_id": name, "content": said}
            for name, said in reversed(told.items())
        ),
        {"role": "assistant", "content": "Done.\n" * 200},
    ]
    text = rendered(run) or ""
    marks = [error(text, at, at + 7) for at in map(text.index, ("calls g", "Done.\n "))]
    page = page_of(
        tmp_path, [row("a", run, errors=marks), row("b", run) | {"judged_turn": 3}]
    )
    check_that_nothing_runs(Page(page))
    bad = ' <strong class="warn">error</strong>'
    assert re.findall(r'judged" open>.*?</summary>', page) == [
        'judged" open><summary data-peek="{}"><span class="no">3</span> <bdi>Assistant calls g (2)</bdi>'
        " <strong>judged</strong></summary>"
    ]
    page = page[: page.index('id="row-b"')]
    assert _FOLD.findall(page) == [
        ("turn user", " open", "1", "User", ""),
        ("turn assistant call", " open", "2", "Assistant calls f (1)", ""),
        ("turn tool", "", "6", "Tool f (1)", ""),
        ("turn assistant call", " open", "3", "Assistant calls g (2)", ""),
        ("turn assistant call", " open", "4", "Assistant calls h (3)", bad),
        ("turn tool", " open", "5", "Tool h (3)", bad),
        ("turn assistant", " open", "7", "Assistant", ""),
    ]
    assert page.count("</details></details>") == 2
    assert "\n  Done." not in page
    assert (
        'Assistant <mark class="g3" tabindex="0" data-e="0" data-n="1">calls g</mark> (2): {}'
        in page
    )


def test_every_text_is_escaped_wherever_it_stands(tmp_path: Path) -> None:
    made = [
        row(
            f"{HOSTILE} {k}",
            f"{HOSTILE} {k}",
            explanation=HOSTILE,
            failure=None if k else HOSTILE,
            notes=[HOSTILE],
            score=k,
            criteria={HOSTILE: {"score": 1, "explanation": HOSTILE}},
            spread=0.5,
            errors=[
                error(
                    HOSTILE,
                    0,
                    9,
                    explanation=HOSTILE,
                    annotators=[HOSTILE],
                    notes=[HOSTILE],
                    how=HOSTILE,
                )
            ],
            opinions={
                HOSTILE: {
                    "percent": 1,
                    "label": HOSTILE,
                    "explanation": HOSTILE,
                    "errors": [error(HOSTILE, 0, 2)],
                    "outlier": True,
                    "failure": HOSTILE if k else None,
                }
            },
        )
        | {
            "source": HOSTILE,
            "context": HOSTILE,
            "reference": HOSTILE,
            "system": f"{HOSTILE} {k % 2}",
            HOSTILE: k,
            "aspect": HOSTILE,
            "scores": {HOSTILE: k},
        }
        for k in range(4)
    ]
    data = read_scored(write(tmp_path / "x.jsonl", made), human=HOSTILE)
    text = render(data)
    page = Page(text)
    check_that_nothing_runs(page)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 2
    assert tags.count("style") == 1
    assert all(
        "<" not in (value or "")
        for _, name, value in page.attributes
        if name not in ("id", "content")
    )
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert (
        '</script><script>window.broken=1</script><!-- <img src=x onerror=window.broken=2> "'
        in page.text
    )
    (kind, words), (_, script) = page.scripts
    assert kind["type"] == "application/gzip"
    assert unpacked(words)["failed"] == [
        1,
        0,
        0,
        0,
    ]
    assert re.fullmatch("[A-Za-z0-9+/=]+", words)
    assert "broken" not in script


def test_the_policy_names_the_one_script_that_may_run(tmp_path: Path) -> None:
    page = Page(page_of(tmp_path, [row("a")]))
    (policy,) = [
        value
        for tag, name, value in page.attributes
        if tag == "meta" and (value or "").startswith("default")
    ]
    script = page.scripts[-1][1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_rows_beyond_the_first_are_data_and_texts_stand_once(tmp_path: Path) -> None:
    shared = "a source that many rows share " * 20
    made = [row(f"r{k}") | {"source": shared} for k in range(3 * PAGE)]
    text = page_of(tmp_path, made)
    page = Page(text)
    data = unpacked(page.scripts[0][1])
    assert [tag for tag, _ in page.tags].count("article") == STILL
    assert len(data["html"]) == 3 * PAGE
    assert text.count(shared) == STILL
    assert data["texts"] == [shared]
    assert f"The first {STILL} of {3 * PAGE} rows" in page.text


def test_equal_ids_have_anchors_of_their_own(tmp_path: Path) -> None:
    data = read_scored(
        write(tmp_path / "x.jsonl", [row("a b"), row("a b"), row("a b~2"), row("a\nb")])
    )
    anchors = [shown.anchor for shown in data.rows]
    assert len(set(anchors)) == 4
    assert anchors[:2] == ["row-a_b", "row-a_b~2"]


def test_a_judge_without_spans_has_no_empty_columns_for_them(tmp_path: Path) -> None:
    criteria = {"fluency": {"score": 80, "explanation": "reads well"}}
    text = page_of(
        tmp_path,
        [row(str(k), criteria=criteria) | {"system": f"s{k % 2}"} for k in range(6)],
    )
    assert "reads well" in text
    assert "Systems" in text
    assert "errors a row" not in text
    assert 'name="severity"' not in text
    assert "<mark" not in text.split("<script")[0]


def test_opinions_mark_the_outlier(tmp_path: Path) -> None:
    opinions = {
        name: {"percent": 10, "label": "Poor", "outlier": name == "b"}
        for name in ("a", "b")
    }
    page = page_of(tmp_path, [row("x", opinions=opinions, spread=0.4)]).split(
        "<script"
    )[0]
    assert "2 annotators, 1 outlier" in page
    assert page.count("its errors were set aside</span>") == 1
    assert "spread by 0.4" in page


def test_an_annotator_names_the_errors_of_the_row_by_number(tmp_path: Path) -> None:
    output = "one two three"
    first, second = error(output, 0, 3), error(output, 4, 7, explanation="another")
    opinions = {
        "a": {"percent": 10, "errors": [second | {"annotators": []}, first]},
        "b": {"percent": 20, "errors": [first | {"severity": 5}]},
    }
    made = row(
        "x", output, errors=[first | {"annotators": ["a"]}, second], opinions=opinions
    )
    views = (
        page_of(tmp_path, [made]).split("<script")[0].split('<div class="view">')[1:]
    )
    assert "<p>Errors 1, 2.</p>" in views[0]
    assert "<li" not in views[0]
    assert "<p>Error" not in views[1]
    assert "severity 5" in views[1]


def test_colours_can_be_read_in_light_and_dark(tmp_path: Path) -> None:
    page = page_of(tmp_path, [row("a")])
    style = page[page.index("<style>") : page.index("</style>")]

    def luminance(colour: str) -> float:
        wide = colour if len(colour) == 6 else "".join(c * 2 for c in colour)
        parts = [int(wide[k : k + 2], 16) / 255 for k in (0, 2, 4)]
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    colours: list[dict[str, str]] = [{}, {}]
    for block in re.findall(
        r"(@media \(prefers-color-scheme: dark\) \{ )?:root \{([^}]*)\}", style
    ):
        colours[bool(block[0])] |= dict(
            re.findall(r"--(\w+): #([0-9a-f]{3,6})", block[1])
        )
    assert set(colours[0]) == set(colours[1]) > {"g0", "g5", "ink", "page"}
    for scheme in colours:
        shades = [
            f"{kind}{k}"
            for kind, most in (("g", 6), ("u", 4))
            for k in range(kind == "u", most)
        ]
        pairs = [("ink", ground) for ground in ("page", "soft", *shades)]
        pairs += [
            (ink, ground)
            for ink in ("dim", "warn", "accent")
            for ground in ("page", "soft")
        ]
        for ink, ground in [*pairs, ("page", "accent")]:  # WCAG AA asks for 4.5
            light, dark = sorted(
                (luminance(scheme[ink]), luminance(scheme[ground])), reverse=True
            )
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


def test_the_worst_disagreement_comes_first_without_scripts_too(tmp_path: Path) -> None:
    made = [row(f"r{k}", score=k % 5 + 1) | {"score": k % 5 + 1} for k in range(40)]
    made[33]["verdict"]["score"], made[33]["score"] = 1, 5
    text = page_of(tmp_path, made)
    assert re.findall(r'<article class="row" id="([^"]*)"', text)[0] == "row-r33"
    assert text.index("worst disagreement first") < text.index("of the file")


def test_a_suspicious_output_is_flagged_and_can_be_filtered(tmp_path: Path) -> None:
    made = [row("a", suspicious=HOSTILE), row("b") | {"defer": True}, row("c")]
    text = page_of(tmp_path, made)
    assert "<strong>Suspicious:</strong>" in text
    assert "1 suspicious" in text
    assert re.findall(
        r'<option value="(\d)">(left to a person|suspicious|used to compile the judge)<',
        text,
    ) == [
        ("1", "left to a person"),
        ("2", "suspicious"),
    ]
    assert unpacked(Page(text).scripts[0][1])["flags"] == [2, 1, 0]


def test_intervals_end_where_the_scale_ends_and_bars_are_in_proportion(
    tmp_path: Path,
) -> None:
    made = [
        row(f"{k}", score=5 if k else 4, interval={"low": 3.0, "high": 5.8})
        for k in range(5)
    ]
    text = page_of(tmp_path, made)
    page = text.split("<script")[0]
    assert "[3, 5]" in page
    assert "5.8" not in page
    assert not [end for end in re.findall(r", (\d\.\d+)\]", page) if float(end) > 5]
    assert (
        '80%<span class="track" aria-hidden="true"><i style="width:80.0%">' in page
    )  # four of five rows


# The command ---------------------------------------------------------------------------------------------------------


def test_report_writes_one_file(cli: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "mine.scored.jsonl", hard_rows())
    assert "rows: 8" in cli("report", path).out
    assert (tmp_path / "mine.scored.html").exists()
    said = cli("report", path, "-o", tmp_path / "new" / "r.html", "--json").json
    text = (tmp_path / "new" / "r.html").read_text(encoding="utf-8")
    assert said["rows"] == 8
    assert said["bytes"] == len(text.encode())
    assert said["grounded"] == 56


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        ('{"id": 1, "output": "a"}\n', [], "x.jsonl: no row has a verdict"),
        (
            '{"id": 1, "output": "a", "verdict": {}}\n',
            ["--human", "nope"],
            "no column or aspect 'nope'",
        ),
        (
            '{"id": 1, "output": "a", "verdict": {}, "h": "so"}\n',
            ["--human", "h"],
            "words of no known scale",
        ),
        ('{"id": 1, "output": "a", "verdict": {}}\n', ["-o", "x.pdf"], "name it .html"),
        (
            '{"id": 1, "output": "a", "verdict": {}}\n',
            ["-o", "same.html"],
            "is another file of this command",
        ),
        (
            '{"id": 1, "output": "a", "verdict": {}}\n',
            ["-o", "x.jsonl/r.html"],
            "cannot be written",
        ),
        (None, [], "no such file"),
    ],
)
def test_what_cannot_be_read_or_written_is_said_in_one_line(
    cli: Any,
    tmp_path: Path,
    monkeypatch: Any,
    content: str | None,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path("x.jsonl").write_text(content)
        Path("same.html").symlink_to("x.jsonl")
    done = cli("report", "x.jsonl", *arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert says in done.err
    assert not Path("x.html").exists()


# In a browser --------------------------------------------------------------------------------------------------------

_LIVE = (
    "location.protocol === 'file:' && document.documentElement?.className === 'live'"
)


def in_browser(
    browser: Browser, page: Path, *steps: str, fragment: str = ""
) -> list[Any]:
    """Return the values of JavaScript expressions, one after the other, in an open page without a network.

    Promises are awaited.
    """
    tab = browser.tab("about:blank")
    tab.call("Network.enable")
    tab.call(
        "Network.emulateNetworkConditions",
        offline=True,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )
    tab.call("Page.navigate", url=page.as_uri() + fragment)
    tab.until(_LIVE)
    return [tab.js(step) for step in steps]


_ROWS = """Array.from(document.querySelectorAll(".row"), (row) => ({ id: row.id,
  text: row.querySelector(".output").textContent,
  marks: Array.from(row.querySelectorAll(".output mark"), (m) => [m.dataset.e.split(" ").map(Number), m.textContent]),
}))"""
_IDS = 'Array.from(document.querySelectorAll(".row h3"), (title) => title.textContent)'
_SET = """new Promise((done) => { const form = document.getElementById("controls"); form.reset();
  setTimeout(() => { Object.entries(%s).forEach(([name, value]) => { const field = form.elements[name];
    if (field.type === "checkbox") field.checked = value; else field.value = value; });
  form.dispatchEvent(new Event("input"));
  setTimeout(() => done(IDS), 250); }, 20); })""".replace("IDS", _IDS)


@needs_browser
def test_marks_in_a_browser_are_the_code_points_of_their_errors(
    browser: Browser, tmp_path: Path
) -> None:
    records = hard_rows()
    many = "".join(f"w{k} " for k in range(3000))
    cuts = [(k * 7 % 9000, k * 7 % 9000 + k % 50 + 1) for k in range(5000)]
    records.append(row("many", many, errors=[error(many, a, b) for a, b in cuts]))
    path = tmp_path / "r.html"
    path.write_text(page_of(tmp_path, records), encoding="utf-8")
    shown, live, broken = in_browser(
        browser,
        path,
        _ROWS,
        'document.documentElement.className === "live"',
        "String(window.broken)",
    )
    assert live is True  # the page's script ran under its policy
    assert broken == "undefined"  # and no other
    assert [r["id"] for r in shown] == [f"row-{r['id']}" for r in records]
    for record, there in zip(records, shown, strict=True):
        output = clean(record["output"])
        assert there["text"] == output
        for k, e in enumerate(in_order(record)):
            if record["id"] != "many" or k % 100 == 0:
                assert marked(there["marks"], k) == output[e["start"] : e["end"]], (
                    record["id"],
                    k,
                )


@needs_browser
def test_rows_are_filtered_sorted_reached_and_explained_in_a_browser(
    browser: Browser, tmp_path: Path
) -> None:
    output = "wrong word here"
    made = []
    for k in range(70):
        failed = (
            {"score": None, "failure": "no answer"} if k == 5 else {"score": k % 7 + 1}
        )
        errors = [
            error(output, 0, 5, severity=1 + k % 5, explanation=f"reason {k}")
        ] * (k % 3)
        criteria = {"fluency": {"score": k, "explanation": ""}} if k < 10 else {}
        more = {"system": f"s{k % 2}", "score": 70 - k, "source": f"<b>{k}</b>"}
        made.append(
            row(f"id {k}", output, errors=errors, criteria=criteria, **failed) | more
        )
    path = tmp_path / "r.html"
    path.write_text(page_of(tmp_path, made), encoding="utf-8")

    def asked(**controls: Any) -> str:
        return _SET % json.dumps(controls)

    (
        first,
        worst,
        failed,
        words,
        system,
        severe,
        low,
        apart,
        fluent,
        gap,
        next_page,
        fold,
        tip,
        gone,
    ) = in_browser(
        browser,
        path,
        _IDS,
        asked(),
        asked(failed=True),
        asked(text="REASON 44"),
        asked(system="1", sort="id"),
        asked(severity="5", sort=""),
        asked(low="7", high="7", sort=""),
        asked(apart="90", sort="gap"),
        asked(aspect="1", sort="high"),
        asked(sort="errors"),
        f"document.querySelectorAll('[data-step]')[1].click(), {_IDS}",
        """(() => { const fold = document.querySelector("details[data-t]"); fold.open = true;
          return fold.lastElementChild.textContent; })()""",
        """(() => { const mark = document.querySelector("#rows mark"); mark.focus();
          return [document.getElementById("tip").innerText, mark.getAttribute("aria-describedby")]; })()""",
        """(() => { dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
          return document.getElementById("tip").hidden; })()""",
        fragment="#row-id_60",
    )
    assert len(first) == 25
    assert "id 60" in first
    assert worst[:2] == [
        "id 0",
        "id 69",
    ]  # people's best, the judge's worst; and the other way round
    assert failed == ["id 5"]
    assert words == ["id 44"]
    assert system == [f"id {k}" for k in range(1, 51, 2)]  # 25 of the 35 odd ones
    assert severe == [f"id {k}" for k in range(70) if k % 5 == 4 and k % 3]
    assert low == [f"id {k}" for k in range(70) if k % 7 == 6]
    assert apart
    assert set(apart) <= {f"id {k}" for k in (*range(8), *range(62, 70))}
    assert fluent == [f"id {k}" for k in (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)]
    two = [f"id {k}" for k in range(70) if k % 3 == 2]
    assert gap[:23] == two
    assert gap[23:] == ["id 1", "id 4"]
    assert next_page[0] == "id 7"
    assert fold.startswith("<b>")
    assert "severity" in tip[0]
    assert "reason" in tip[0]
    assert tip[1] == "tip"
    assert gone is True


@needs_browser
def test_rows_are_reached_by_keys(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(
        page_of(tmp_path, [row(f"r{k}") for k in range(PAGE + 2)]), encoding="utf-8"
    )
    key = """(() => { const on = document.activeElement ?? document.body;
      on.dispatchEvent(new KeyboardEvent("keydown", { key: %r, bubbles: true, cancelable: true }));
      return document.activeElement.id || document.activeElement.name || ""; })()"""
    keys = ["j", "j", "k", "n", "k", "/", "j"]
    found = in_browser(browser, path, *(key % k for k in keys))
    assert found[:6] == [
        "row-r0",
        "row-r1",
        "row-r0",
        f"row-r{PAGE}",
        f"row-r{PAGE - 1}",
        "text",
    ]
    assert found[6] == "text"  # a letter that is typed is not a command


def test_a_pair_is_one_row_with_both_texts_and_both_winners(tmp_path: Path) -> None:
    def verdict(chance: float, winner: str) -> dict[str, Any]:
        return {
            "score": chance,
            "category": winner,
            "details": {"a": {"score": 3.0}, "b": {"score": 2.0}},
        }

    rows = [
        {
            "id": f"p{k}",
            "question": f"Question {k}?",
            "output_a": f"Text one {k}",
            "output_b": f"{HOSTILE} {k}",
            "winner": "aabt"[k % 4].replace("t", "tie"),
            "verdict": verdict(0.9 - k / 20, "ab"[k % 2]),
        }
        for k in range(8)
    ]
    data = read_scored(write(tmp_path / "ab.jsonl", rows))
    assert [shown.row.id for shown in data.rows] == [f"p{k}" for k in range(8)]
    assert (
        summarise(data)["agreement"]["value"] == 0.25
    )  # a of a, b of a, a of b, b of a tie: 2 of 8
    page = render(data)
    check_that_nothing_runs(Page(page))
    card = page[page.index('id="row-p1"') :]
    card = card[: card.index("</article>")]
    assert "Text one 1" in card
    assert html.escape(HOSTILE)[:40] in card
    assert "the judge prefers <strong>B" in card
    assert "people prefer <strong>A" in card
    assert "in <strong>25%" in page
    without = [
        {name: value for name, value in row.items() if name != "winner"} for row in rows
    ]
    assert len(read_scored(write(tmp_path / "new.jsonl", without)).rows) == 8
