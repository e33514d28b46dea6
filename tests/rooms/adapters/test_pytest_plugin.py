"""Gates for tests: bars, failed rows, agreement; the plug-in in a pytest of its own, with JUnit's file."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import judgesmith as js
from judgesmith.errors import LabelsError, OptionError
from judgesmith.rooms.adapters.asserting import Bar


@pytest.fixture
def judge(saved: dict[str, Any], server: Any) -> js.Judge:
    return js.load(saved["judge"], api_base=server.base)


def test_bars_are_of_the_mean_or_of_the_lower_end_of_its_interval(
    judge: js.Judge,
) -> None:
    outputs = [f"good {score}" for score in (40, 60, 80)]
    stated = js.assert_judged(outputs, judge=judge, at_least=["mean>=60", "min>=40"])
    assert (
        stated["rows"],
        stated["failed"],
        stated["mean"]["value"],
        stated["min"]["value"],
    ) == (3, 0, 60.0, 40.0)
    assert (
        0 <= stated["mean"]["low"] < 40 < 80 < stated["mean"]["high"] <= 100
    )  # three rows say little of a mean
    with pytest.raises(
        AssertionError, match=r"mean\.low>=60: mean 60\.000 \["
    ) as failed:
        js.assert_judged(outputs, judge=judge, at_least="mean.low>=60")
    assert "  row 1: 40: good 40 (It says 40.)" in str(failed.value)
    with pytest.raises(AssertionError, match="min>=50: min 40"):
        js.assert_judged(outputs, judge=judge, at_least="min>=50")


def test_a_baseline_is_compared_input_by_input(judge: js.Judge, tmp_path: Path) -> None:
    path = tmp_path / "scores.json"

    def rows(*less: int) -> list[dict[str, str]]:
        scores = [40 + n % 30 - (less[n % len(less)] if less else 0) for n in range(60)]
        return [
            {"source": f"text {n}", "output": f"good {score}"}
            for n, score in enumerate(scores)
        ]

    kept: dict[str, Any] = {"judge": judge, "baseline": path}
    with pytest.raises(OptionError, match="write it once with `pytest --write-base"):
        js.assert_judged(rows(), **kept)
    js.assert_judged(rows(), write_baseline=True, **kept)
    same = js.assert_judged(rows(), **kept)["since"]
    assert (same["difference"], same["p"], same["n"]) == (0, 1, 60)
    # Changes of 4 and -4 in turn: mean 0, SD 4, error 4 / 60 ** .5 = .52; t(59) at .001 and z at .9: 3.23 + 1.28
    noise = js.assert_judged(rows(4, -4), **kept)["since"]
    assert noise["difference"] == 0
    assert noise["finds"] == pytest.approx(4.52 * 4 / 59**0.5, rel=0.01)
    with pytest.raises(
        AssertionError, match=r"worse than the baseline: -3\.000 \["
    ) as failed:
        js.assert_judged(rows(7, -1), **kept)
    assert "a loss of 2." in str(failed.value)
    js.assert_judged(rows(7, -1), looks=10**9, **kept)  # its share of 5 % is smaller
    with pytest.raises(LabelsError, match="5 inputs have a score now and in the base"):
        js.assert_judged(rows()[:5], **kept)
    other = path.read_text(encoding="utf-8").replace('"judge": "', '"judge": "x')
    path.write_text(other, encoding="utf-8")
    with pytest.raises(OptionError, match="was scored by judge x"):
        js.assert_judged(rows(), **kept)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(OptionError, match="holds no scores"):
        js.assert_judged(rows(), **kept)
    with pytest.raises(OptionError, match="give baseline=FILE"):
        js.assert_judged(rows(), judge=judge)


def test_documents_are_drawn_whole(judge: js.Judge) -> None:
    rows = [
        {"source": f"s{n // 10}", "output": f"good {40 + 40 * (n // 10)}"}
        for n in range(20)
    ]
    stated = js.assert_judged(rows, judge=judge, at_least="mean>=60")
    assert 0 <= stated["mean"]["low"] < 1
    assert 99 < stated["mean"]["high"] <= 100
    alone = [row["output"] for row in rows]
    stated = js.assert_judged(alone, judge=judge, at_least="mean>=60")
    assert 45 < stated["mean"]["low"] < 55
    assert 65 < stated["mean"]["high"] < 75
    one = [row | {"source": "s"} for row in rows]
    with pytest.raises(AssertionError, match="no interval over one document"):
        js.assert_judged(one, judge=judge, at_least="mean.low>=1")


def test_a_row_without_a_score_fails_the_test_and_is_in_no_mean(
    judge: js.Judge,
) -> None:
    outputs = ["good 80", "bad", "good 90"]
    with pytest.raises(AssertionError, match="1 of 3 rows have no score") as failed:
        js.assert_judged(outputs, judge=judge, at_least="mean>=10")
    assert "row 2: no score: bad" in str(failed.value)
    assert (
        js.assert_judged(outputs, judge=judge, at_least="mean>=85", max_failed=1)[
            "mean"
        ]["value"]
        == 85.0
    )
    with pytest.raises(AssertionError, match="mean nan"):
        js.assert_judged(["bad"], judge=judge, at_least="mean>=10", max_failed=1)


def test_calls_are_kept(judge: js.Judge, server: Any) -> None:
    first = js.assert_judged(["good 80", "good 90"], judge=judge, at_least="mean>=10")
    asked = len(server.asks)
    second = js.assert_judged(["good 80", "good 90"], judge=judge, at_least="mean>=10")
    assert (first["calls"] >= 2, second["calls"], second["cached_calls"]) == (
        True,
        0,
        2,
    )
    assert len(server.asks) == asked


def test_what_makes_no_sense_is_refused(judge: js.Judge) -> None:
    for wrong in (
        "mean>3",
        "median>=3",
        "min.low>=1",
        "mean.high>=1",
        "mean>=x",
        "3.5",
    ):
        with pytest.raises(js.OptionError, match="is not of the form"):
            Bar.parse(wrong)
    with pytest.raises(js.OptionError, match="outputs: none given"):
        js.assert_judged([], judge=judge, at_least="mean>=1")
    with pytest.raises(js.OptionError, match="not compiled from pass and fail"):
        js.assert_judged(["good 1"], judge=judge, at_least="passed>=0.5")


def test_agreement_is_judged_by_the_lower_end_of_its_interval(
    server: Any, judge_file: Path, rows_file: Any
) -> None:
    noise = np.random.default_rng(0).normal(size=60) * 8

    def answer(ask: Any) -> str:
        if ask.step == "probe":
            return "4"
        row = int(ask.mark[1:])
        return f"Explanation: Fine.\nScore: {np.clip(round(row * 37 % 101 + noise[row]), 0, 100)}"

    server.answer = answer
    rows = rows_file(60)
    given: dict[str, Any] = {
        "judge": judge_file,
        "human": "score",
        "more": ("--api-base", server.base),
    }
    said: dict[str, object] = {}
    told = js.assert_agreement(
        rows,
        at_least="pooled.spearman>=0.8",
        record=lambda name, value: said.update({name: value}),
        **given,
    )
    (value,) = (v for name, v in said.items() if name.endswith("pooled.spearman.value"))
    (low,) = (v for name, v in said.items() if name.endswith("pooled.spearman.low"))
    assert told["gate"]["passed"]
    assert 0.8 <= low < value < 1  # type: ignore[operator]
    between = (low + value) / 2  # type: ignore[operator]
    with pytest.raises(AssertionError, match="but the lower end of its interval"):
        js.assert_agreement(rows, at_least=f"pooled.spearman>={between}", **given)
    with pytest.raises(js.OptionError, match="is not of the form"):
        js.assert_agreement(rows, at_least="likeness>=1", **given)


TESTS = """
import judgesmith as js

def test_good(assert_judged):
    stated = assert_judged(["good 40", "good 80"], judge=js.load({judge!r}, api_base={base!r}), at_least="mean>=60")
    assert stated["failed"] == 0

def test_bad(assert_judged):
    assert_judged(["good 40"], judge=js.load({judge!r}, api_base={base!r}), at_least="mean>=60")
"""


def test_the_plug_in_in_a_pytest_of_its_own(
    judge: js.Judge, judge_file: Path, server: Any, tmp_path: Path
) -> None:
    (tmp_path / "test_outputs.py").write_text(
        TESTS.format(judge=str(judge_file), base=server.base)
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--junitxml=junit.xml",
            "test_outputs.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OPENAI_API_KEY": "none"},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "mean>=60: mean 40.000" in done.stdout
    good, bad = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    properties = {p.get("name"): p.get("value") for p in good.iter("property")}
    assert (properties["judgesmith.mean.value"], properties["judgesmith.rows"]) == (
        "60.0",
        "2",
    )
    assert properties["judgesmith.model"] == "openai/fake"
    assert [
        p.get("value")
        for p in bad.iter("property")
        if p.get("name") == "judgesmith.mean.value"
    ] == ["40.0"]


def test_the_plug_in_costs_nothing_before_it_is_used() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import judgesmith.rooms.adapters.pytest_plugin; "
        "print(sorted(n for n in set(sys.modules) - before if n.partition('.')[0] not in ('judgesmith',)"
        " and n.partition('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
