"""`judgesmith study` against a real server: every kind, the journal, what fails, and no held-out row in training."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from json_lines import lines
from patience import HANG
from tables import table

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.differences import paired_bootstrap
from judgesmith.agreement.resampling import Measure
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.errors import BudgetError, OptionError
from judgesmith.experiments.studies import run as running
from judgesmith.experiments.studies.analysis import resample, training_leads
from judgesmith.experiments.studies.config import (
    Arm,
    StudyRequest,
    changes,
    check_settings,
)
from judgesmith.experiments.studies.run import Cell, Study, draw
from judgesmith.figures import Drawing
from judgesmith.optimizers.search.prompts import Ended
from judgesmith.optimizers.search.through_dspy import DSPySearch, Enough
from judgesmith.running.journal import alone

FAST = (
    "--candidates",
    1,
    "--explain",
    "before",
    "--reading",
    "said",
    "--keep",
    1,
    "--max-demos",
    2,
)


@pytest.fixture
def fonts() -> None:
    """A test with this embeds the fonts of figures in PDF."""


@pytest.fixture(autouse=True)
def figures(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests look into no PDF, and cutting fonts to its letters takes a sixth of a study's time."""
    real = Drawing.write

    def write(self: Drawing, path: Path) -> None:
        if path.suffix == ".pdf":
            path.write_bytes(b"%PDF-1.4")
        else:
            real(self, path)

    if "fonts" not in request.fixturenames:
        monkeypatch.setattr(Drawing, "write", write)


@pytest.fixture
def study(cli: Any, server: Any, rows_file: Any, tmp_path: Path) -> Callable[..., Any]:
    """study("optimizers", …): 32 rows of 8 documents, half of them held out."""
    labels = rows_file(32)

    def run(kind: str, *arguments: object, lm: bool = True, fast: bool = True) -> Any:
        model = ("--lm", "openai/fake") if lm else ()
        return cli(
            "study",
            kind,
            labels,
            *model,
            "--api-base",
            server.base,
            "--scale",
            0,
            100,
            "-o",
            tmp_path / "out",
            *(FAST if fast else ()),
            *arguments,
        )

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


ONE = ("--arm", "none", "--seeds", 1, "--variant", "vanilla")


# Every kind ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "arguments", "cells"),
    [
        (
            "optimizers",
            (
                "--seeds",
                2,
                "--arm",
                "none",
                "--arm",
                "labeled-few-shot",
                "--arm",
                "random-search+racing",
            ),
            6,
        ),
        (
            "labels",
            ("--seeds", 2, "--arm", "none", "--variant", "vanilla"),
            4,
        ),  # 10 and all of 16, two seeds
        (
            "models",
            ("--seeds", 1, "--lm", "openai/other", "--variant", "vanilla"),
            4,
        ),  # two models, two arms
    ],
)
def test_every_kind_leaves_a_whole_folder(
    study: Any,
    fonts: None,
    folder: Path,
    kind: str,
    arguments: tuple[object, ...],
    cells: int,
) -> None:
    told = study(kind, *arguments, "--json").told
    assert (told["study"], told["cells"], told["done"], told["failures"]) == (
        kind,
        cells,
        cells,
        [],
    )
    assert {path.name for path in folder.iterdir()} == set(running.FILES)
    results = lines(folder / "results.jsonl")
    assert len(results) == cells
    assert all(record["status"] == "done" and record["calls"] > 0 for record in results)
    assert len(lines(folder / "predictions.jsonl")) == sum(
        record["heldout"] for record in results
    )
    assert sum(line["seeds"] for line in told["lines"]) == cells


def test_what_was_tried_beside_the_search_is_told(
    study: Any, folder: Path, server: Any, fake: Any
) -> None:
    server.answer = fake.judging(lambda ask: len(ask.text) * 7 % 101)
    arms = ("vanilla+random-search", "fine+random-search")
    told = study(
        "optimizers", "--arm", arms[0], "--arm", arms[1], "--seeds", 1, "--json"
    ).told
    records = lines(folder / "results.jsonl")
    for record in records:
        names = [candidate["candidate"] for candidate in record["candidates"]]
        assert (names[0], record["selected"] in names) == ("zero-shot", True)
        assert {c["candidate"]: c["q"] for c in record["candidates"]}[
            record["selected"]
        ] == record["train_q"]
    alone, weighed = (record["tried"] for record in records)
    assert alone == []
    (outcome,) = weighed
    assert outcome.startswith("combination: ")
    (note,) = [note for note in told["notes"] if "combination" in note]
    assert note == f"{arms[1]}, all labels, seed 0: {outcome}"


#: How a search of DSPy may end before it has tried a candidate: what is raised where, and what is said.
ENDS: dict[str, tuple[BaseException, str, str]] = {
    "crashes": (
        RuntimeError("the proposals could not be read"),
        "_propose",
        "dspy:COPRO could not go on (RuntimeError: the proposals could not be read)",
    ),
    "tries nothing": (Ended(Enough()), "_propose", "dspy:COPRO ended at"),
    "has no budget": (BudgetError("used up"), "explore", "the budget ran out; 1 of"),
}


@pytest.mark.parametrize("ends", ENDS)
def test_a_search_that_tried_nothing_is_no_tie(
    ends: str,
    study: Any,
    folder: Path,
    server: Any,
    fake: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.answer = fake.judging(lambda ask: len(ask.text) * 7 % 101)
    error, part, rest = ENDS[ends]

    def end(*_: Any) -> None:
        raise error

    monkeypatch.setattr(DSPySearch, part, end)
    said = f"no candidate was tried: {rest}"
    arms = ("--arm", "zero-shot", "--arm", "dspy:COPRO", "--seeds", 1)
    done = study("optimizers", *arms, "--json")
    assert done.code == 1
    (failed,) = done.json["failures"]
    assert failed["reason"].startswith(said)
    plain, crashed = done.json["lines"]
    assert (plain["seeds"], crashed["seeds"], crashed["q"]) == (1, 0, None)
    assert (crashed["minus_baseline"], crashed["minus_best"]) == (None, None)
    written = (folder / "tables.md").read_text()
    (row,) = [
        line
        for line in written.splitlines()
        if line.startswith("|") and "COPRO" in line
    ]
    assert "no candidate was tried" in row
    assert "0.00" not in row
    for name in ("study.html", "tables.tex"):
        assert "no candidate was tried" in (folder / name).read_text()
    (record,) = [
        one for one in lines(folder / "results.jsonl") if one["arm"] != "zero-shot"
    ]
    assert record["status"] == "failed"
    assert record["calls"] > 0  # zero-shot's, which was paid for


def test_an_optimizer_of_dspy_that_there_is_not_is_named(study: Any) -> None:
    study("optimizers", "--arm", "dspy:Nonsense").refused("Nonsense")


def test_every_record_that_a_run_writes_is_shown(
    study: Any, folder: Path, server: Any, fake: Any
) -> None:
    """What stands in results.jsonl and is read by nothing would be lost: a reason, a failure."""
    server.answer = fake.judging(lambda ask: len(ask.text) * 7 % 101)
    assert study("optimizers", "--arm", "random-search", "--seeds", 1).code == 0
    (record,) = lines(folder / "results.jsonl")
    place = Path(running.__file__).parent
    shown = "".join(
        (place / f"{name}.py").read_text()
        for name in ("analysis", "tables", "page", "running")
    )
    of_cell, of_agreement = (
        set(Cell._fields),
        {"value", "objective", "level", "n", "seed"},
    )
    unread = {
        name
        for name in record.keys() - of_cell - of_agreement
        if f'"{name}"' not in shown.replace("'", '"')
    }
    assert unread == set()


def test_a_crash_after_some_candidates_is_noted(
    study: Any, server: Any, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = fake.judging(lambda ask: len(ask.text) * 7 % 101)
    real = DSPySearch._propose

    def breaks(self: Any, *given: Any) -> Any:
        desk = given[1]
        desk.verdict(real(self, *given).judge, 0)
        raise RuntimeError("something new in DSPy")

    monkeypatch.setattr(DSPySearch, "_propose", breaks)
    arms = ("--arm", "zero-shot", "--arm", "dspy:LabeledFewShot", "--seeds", 1)
    told = study("optimizers", *arms, "--json").told
    assert any(
        "could not go on (RuntimeError: something new in DSPy)" in note
        for note in told["notes"]
    )


def test_how_candidates_did_on_training_rows_is_noted(
    study: Any, folder: Path, server: Any, fake: Any
) -> None:
    server.answer = fake.judging(lambda ask: len(ask.text) * 7 % 101)
    told = study(
        "optimizers", "--arm", "none", "--arm", "random-search", "--seeds", 2, "--json"
    ).told
    tried = [
        r["candidates"]
        for r in lines(folder / "results.jsonl")
        if r["arm"] == "random-search"
    ]
    leads = [one["q"] - each[0]["q"] for each in tried for one in each[1:]]
    assert len(leads) >= 6
    (note,) = [note for note in told["notes"] if "candidates less " in note]
    assert note.startswith("random-search, all labels: ")
    assert f"its {len(leads)} candidates" in note
    assert note.endswith(
        f"{sum(leads) / len(leads):+.2f} on average ({min(leads):+.2f} to {max(leads):+.2f})"
    )
    for record in tried:  # what a race drops leaves the better ones
        record[-1]["dropped"] = "behind"
    assert training_leads([{"candidates": record} for record in tried] + [{}]) == []


def test_two_processes_do_not_run_one_study(study: Any, folder: Path) -> None:
    with alone(folder, folder=True):
        study("optimizers", *ONE).refused("another process is writing there")
    assert study("optimizers", *ONE).code == 0
    assert {path.name for path in folder.iterdir()} == set(running.FILES)


def test_the_ablation_has_the_papers_arms(
    server: Any, fake: Any, study: Any, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text(
        "Charm: Whether it charms.\nWit: Whether it is witty.\n"
    )
    judging = fake.judging(lambda ask: len(ask.judged) % 101)

    def answer(ask: Any) -> Any:
        if ask.step == "criteria" and "Charm" in ask.text:
            return "Charm: It does. Score: 40\nWit: It has. Score: 60"
        return judging(ask)

    server.answer = answer
    told = study(
        "ablation",
        "--seeds",
        1,
        "--criteria",
        tmp_path / "own.txt",
        "--keep",
        3,
        "--json",
    ).told
    arms = [line["arm"] for line in told["lines"]]
    # Table 1, Table 4 (without McS-E is coarse), Figure 2, Figure 3
    assert arms == [
        "fine",
        "coarse",
        "vanilla",
        "fine+no-task",
        "fine+own-criteria",
        "fine+no-os-e",
        "fine+no-explanations",
        "coarse+no-explanations",
        "fine+no-search",
        "coarse+no-search",
        "fine+no-search+one-batch",
        "coarse+no-search+one-batch",
    ]
    calls = {line["arm"]: line["calls"] for line in told["lines"]}
    assert calls["fine+no-search"] < calls["fine"]
    assert calls["fine+no-search+one-batch"] < calls["fine+no-search"]
    assert calls["fine+no-os-e"] < calls["fine"]  # one call a row for two
    scored = [ask for ask in server.judged if ask.step == "criteria"]
    assert (
        0 < sum("Short texts are judged by" in ask.text for ask in scored) < len(scored)
    )  # the task, but no-task
    # own criteria are of that arm alone
    assert all("Charm" not in ask.text for ask in server.asks if "Accuracy" in ask.text)


# The journal ---------------------------------------------------------------------------------------------------------


def test_a_finished_study_asks_nothing_again_and_can_grow(
    server: Any, study: Any, folder: Path, cli: Any
) -> None:
    arms = ("--arm", "none", "--arm", "labeled-few-shot")
    done = study("optimizers", "--seeds", 2, *arms)
    assert done.code == 0
    assert (
        "Optimizers at the same budget: overall of rows.jsonl, openai/fake, 16 held-out rows, 2 seeds"
        in done.out
    )
    for part in (
        "− none",
        "− best",
        "labeled-few-shot",
        "note: Q = Pearson + Spearman",
    ):
        assert part in done.out
    assert "[1/4] none, seed 0: Q=" in done.err
    assert done.err.count("left\n") == 3  # nothing is left after the last
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    server.forget()
    again = study("optimizers", "--seeds", 2, *arms, "--json")
    assert (again.code, again.json["ran"], again.json["done"]) == (0, 0, 4)
    from_file = cli(
        "study",
        "optimizers",
        "--config",
        folder / "config.yaml",
        "-o",
        folder,
        "--json",
    )
    assert (from_file.code, from_file.json["ran"]) == (0, 0)
    assert server.asks == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    study("optimizers", "--seeds", 1, *arms).refused_at_once("seeds was 0, 1, is 0")
    grown = study(
        "optimizers", "--seeds", 3, *arms, "--arm", "vanilla+none", "--json"
    ).json
    assert (grown["cells"], grown["ran"]) == (9, 5)


def test_a_changed_study_is_refused_with_what_differs(
    study: Any, server: Any, rows_file: Any, folder: Path
) -> None:
    assert study("optimizers", *ONE).code == 0
    kept = (folder / "results.jsonl").read_bytes()
    server.forget()
    study("optimizers", *ONE, "--max-demos", 3).refused_at_once(
        "demos was 2, is 3", "--overwrite"
    )
    study("optimizers", *ONE, "--heldout", 0.25).refused_at_once(
        "heldout was 0.5, is 0.25"
    )
    study("optimizers", *ONE[2:], "--arm", "labeled-few-shot").refused_at_once(
        "arm 'none' is gone"
    )
    study("labels", *ONE).refused_at_once(
        "is of `judgesmith study optimizers`, not of `study labels`"
    )
    assert server.asks == []
    assert (folder / "results.jsonl").read_bytes() == kept
    done = study("optimizers", *ONE, "--max-demos", 3, "--overwrite", "--json")
    assert (done.code, done.json["ran"]) == (0, 1)
    rows_file(36)  # other labels under the same name
    study("optimizers", *ONE, "--max-demos", 3).refused_at_once(
        "the labels have changed"
    )


def test_half_lines_of_a_kill_are_taken_away(
    study: Any, folder: Path, server: Any
) -> None:
    assert study("optimizers", *ONE).code == 0
    whole = lines(folder / "predictions.jsonl")
    with (folder / "results.jsonl").open("a") as file:
        file.write('{"model": "openai/fake", "arm": "labe')
    with (folder / "predictions.jsonl").open(
        "a"
    ) as file:  # predictions of a cell whose record was not written
        file.write(json.dumps(whole[0] | {"arm": "labeled-few-shot"}) + '\n{"model": ')
    done = study("optimizers", *ONE, "--arm", "labeled-few-shot", "--json")
    assert (done.code, done.json["ran"], done.json["done"]) == (0, 1, 2)
    assert len(lines(folder / "results.jsonl")) == 2
    (line,) = [line for line in done.json["lines"] if line["arm"] == "labeled-few-shot"]
    assert line["heldout"] == 16
    server.forget()
    assert (
        study("optimizers", *ONE, "--arm", "labeled-few-shot", "--json").json["ran"]
        == 0
    )
    with (folder / "results.jsonl").open("a") as file:
        file.write("[1]\n")
    study("optimizers", *ONE, "--arm", "labeled-few-shot").refused_at_once(
        "results.jsonl, line 3: no JSON object"
    )


def test_ctrl_c_keeps_the_finished_cells(
    server: Any,
    fake: Any,
    spawn: Any,
    until: Any,
    rows_file: Any,
    folder: Path,
    study: Any,
) -> None:
    never, judging = asyncio.Event(), fake.judging(lambda ask: len(ask.judged) % 101)
    results = folder / "results.jsonl"
    server.answer = lambda ask: (
        never.wait() if results.exists() else judging(ask)
    )  # the second cell never ends
    started = spawn(
        "study",
        "optimizers",
        rows_file(32),
        "--lm",
        "openai/fake",
        "--api-base",
        server.base,
        "--scale",
        "0",
        "100",
        "-o",
        folder,
        *FAST,
        *ONE,
        "--arm",
        "labeled-few-shot",
    )
    until(
        lambda: (
            results.exists()
            and any(a.key not in server.answered for a in server.asks[-3:])
        )
    )
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=HANG)
    assert started.returncode == 130, said
    assert "Traceback" not in said
    assert [record["arm"] for record in lines(results)] == ["none"]
    server.answer = judging
    done = study("optimizers", *ONE, "--arm", "labeled-few-shot", "--json")
    assert (done.code, done.json["ran"], done.json["done"]) == (0, 1, 2)


# What fails ----------------------------------------------------------------------------------------------------------


def test_a_failing_arm_is_recorded_and_tried_again(study: Any, folder: Path) -> None:
    wrong = "vanilla+none+reading=expected"  # the server gives no log-probabilities
    arms = ("--arm", wrong, "--arm", "vanilla+none", "--seeds", 1)
    done = study("optimizers", *arms)
    assert (done.code, "gives no log-probabilities" in done.out) == (1, True)
    assert "## Failed" in (folder / "tables.md").read_text()
    again = study("optimizers", *arms, "--json")
    assert (again.code, again.json["ran"], again.json["done"]) == (1, 1, 1)
    (failure,) = again.json["failures"]
    assert failure["arm"] == wrong
    assert failure["reason"].startswith(
        "OptionError: openai/fake gives no log-probabilities"
    )
    (line,) = [line for line in again.json["lines"] if line["arm"] == wrong]
    assert (line["q"], line["seeds"]) == (None, 0)


def test_a_surprise_costs_one_cell_alone(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = running.run_cell

    def run_cell(study: Any, cell: Cell, *others: Any) -> Any:
        if cell.seed == 0:
            raise ZeroDivisionError("an optimizer's\nmistake")
        return whole(study, cell, *others)

    monkeypatch.setattr(running, "run_cell", run_cell)
    done = study(
        "optimizers", "--arm", "none", "--seeds", 2, "--variant", "vanilla", "--json"
    )
    assert done.code == 1
    assert [f["reason"] for f in done.json["failures"]] == [
        "ZeroDivisionError: an optimizer's mistake"
    ]
    assert done.json["lines"][0]["seeds"] == 1


def test_no_score_at_all_is_a_failure(server: Any, fake: Any, study: Any) -> None:
    server.answer = lambda ask: (
        "Not a chance." if ask.step == "score" else fake.sensible(ask)
    )
    done = study("optimizers", *ONE, "--json")
    assert done.code == 1
    assert "no held-out row got a score" in done.json["failures"][0]["reason"]


def test_a_budget_holds_for_every_cell(study: Any, folder: Path) -> None:
    arms = (
        "--arm",
        "vanilla+random-search+candidates=6",
        "--arm",
        "fine+none",
        "--seeds",
        1,
        "--max-calls",
        36,
    )
    done = study("optimizers", *arms, "--json", "--no-cache")
    assert done.code == 1
    search, fine = lines(folder / "results.jsonl")
    assert search["calls"] <= 36
    assert "the budget ran out" in search["stopped"]
    assert search["heldout_calls"] == 16  # held-out rows are no part of it
    assert fine["reason"].startswith(
        "BudgetError: the budget of 36 calls"
    )  # 2 calls a row of 16, and task inference


# Numbers -------------------------------------------------------------------------------------------------------------


def test_tables_agree_with_the_predictions(
    study: Any, folder: Path, server: Any, fake: Any
) -> None:
    # Demonstrations change what the judge says, so that arms differ.
    server.answer = fake.judging(
        lambda ask: (len(ask.judged) * 7 + 13 * len(ask.labels)) % 101
    )
    done = study("optimizers", *ONE, "--arm", "labeled-few-shot", "--json")
    first, second = lines(folder / "results.jsonl")
    assert (first["calls"], first["sent"]) == (16, 16)
    assert (second["calls"], second["sent"]) == (
        32,
        16,
    )  # charged for its zero-shot pass, which the disk answered
    assert any(
        "50%" in note or "33%" in note for note in done.json["notes"]
    )  # 16 of 48 calls
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for row in lines(folder / "predictions.jsonl"):
        by_arm.setdefault(row["arm"], []).append(row)
    people = np.array([row["human"] for row in by_arm["none"]])
    said = {
        arm: np.array([row["percent"] for row in rows]) for arm, rows in by_arm.items()
    }
    tables = (folder / "tables.md").read_text() + (folder / "tables.tex").read_text()
    for line in done.json["lines"]:
        q = CorrelationSum("pooled")(said[line["arm"]], people).q
        assert line["q"] == pytest.approx(q, abs=1e-6)
        assert (
            tables.count(f"{q:.3f}") >= 3
        )  # markdown twice (by seed, too), LaTeX once
    # one seed: nothing but the paired bootstrap of the two arms over groups
    measure = Measure(people, documents=[row["group"] for row in by_arm["none"]])
    gap = paired_bootstrap(said["labeled-few-shot"], said["none"], measure, seed=0)
    shown = done.json["lines"][1]["minus_baseline"]
    expected = {name: getattr(gap, name) for name in ("value", "low", "high", "p")}
    assert {name: shown[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_the_spread_over_seeds_is_told(
    study: Any, folder: Path, server: Any, fake: Any
) -> None:
    server.answer = fake.judging(lambda ask: len(ask.judged) % 101)
    done = study(
        "optimizers", "--arm", "none", "--seeds", 3, "--variant", "vanilla", "--json"
    )
    (line,) = done.json["lines"]
    by_seed = [record["spearman"] for record in lines(folder / "results.jsonl")]
    assert line["spread"]["spearman"] == pytest.approx(
        np.std(by_seed, ddof=1), abs=1e-3
    )
    text = (folder / "tables.md").read_text()
    assert "## Spread: mean ± standard deviation over seeds" in text
    assert f"{np.mean(by_seed):.3f} ± {np.std(by_seed, ddof=1):.3f}" in text
    study(
        "optimizers",
        "--arm",
        "none",
        "--seeds",
        1,
        "--variant",
        "vanilla",
        "-o",
        folder / "one",
    )
    assert "Spread" not in (folder / "one" / "tables.md").read_text()


def test_seeds_that_share_their_rows_are_not_more_evidence(rows_file: Any) -> None:
    config = StudyRequest(
        "optimizers", flags={"labels": str(rows_file(32)), "seeds": "2"}
    ).config()
    rng = np.random.default_rng(5)
    rows = [
        {
            "group": f"d{i // 2}",
            "system": None,
            "human": float(rng.random()),
            "percent": float(rng.random() * 100),
        }
        for i in range(24)
    ]
    cells = {Cell("m", "none", "all", seed): rows for seed in (0, 1)}
    drawn, documents = resample(cells, config, 400)
    one, other = drawn.values()
    assert documents == 12
    assert np.array_equal(
        one, other
    )  # so that their mean varies as much as one of them
    apart = [row | {"group": f"e{row['group']}"} for row in rows]
    drawn, documents = resample(
        {Cell("m", "none", "all", 0): rows, Cell("m", "none", "all", 1): apart},
        config,
        400,
    )
    assert documents == 24
    assert (
        np.mean(list(drawn.values()), axis=0).std() < 0.85 * one.std()
    )  # other documents: about 1 / sqrt(2)


# No leak -------------------------------------------------------------------------------------------------------------


def labels_of(groups: list[int]) -> Labels:
    rows = tuple(
        Row(
            id=f"r{i}",
            output=f"output {i}",
            source=f"source {g}",
            doc_id=f"d{g}",
            group=f"d{g}",
            scores={"overall": i % 5},
            line=i + 1,
        )
        for i, g in enumerate(groups)
    )
    return Labels(rows, "overall", (0.0, 4.0))


@given(
    groups=st.lists(st.integers(0, 9), min_size=24, max_size=60).filter(
        lambda g: len(set(g)) > 5
    ),
    seed=st.integers(0, 50),
    heldout=st.sampled_from([0.25, 0.5, 8.0]),
    level=st.sampled_from(["pooled", "sample"]),
)
@settings(deadline=None, max_examples=40)
def test_held_out_groups_are_never_learnt_from(
    groups: list[int], seed: int, heldout: float, level: Any
) -> None:
    labels = labels_of(groups)
    part = draw(labels, heldout, seed, level)
    pool = len(part.pool)
    sizes = [n for n in (4, 6, 9, pool) if n <= pool]
    trains = [part.train(n) for n in sizes]
    held = {row.group for row in part.heldout.rows}
    for size, train in zip(sizes, trains, strict=True):
        assert len(train) == size
        assert not held & {row.group for row in train.rows}
    for fewer, more in itertools.pairwise(trains):
        assert {row.id for row in fewer.rows} <= {row.id for row in more.rows}
    assert {r.id for r in part.train("all").rows} | {
        r.id for r in part.heldout.rows
    } == {r.id for r in labels.rows}
    again = draw(labels, heldout, seed, level)
    assert again.heldout.rows == part.heldout.rows
    assert again.order == part.order
    if level == "sample":  # all but the last group are whole
        taken = [part.pool.groups[i] for i in part.order[: sizes[-2]]]
        whole = [
            g
            for g in dict.fromkeys(taken)
            if taken.count(g) == part.pool.groups.count(g)
        ]
        assert len(whole) >= len(set(taken)) - 1


# Options -------------------------------------------------------------------------------------------------------------


def test_a_dry_run_asks_nothing_and_is_an_upper_bound(
    study: Any, server: Any, folder: Path
) -> None:
    arms = (
        "--arm",
        "none",
        "--arm",
        "random-search",
        "--arm",
        "fine+random-search",
        "--seeds",
        2,
    )
    planned = study("optimizers", *arms, "--dry-run", "--json").told
    assert server.asks == []
    assert not folder.exists()
    assert planned["cells"] == 6
    assert planned["parts"]["0"] == {"heldout": 16, "to_learn_from": 16}
    shown = study("optimizers", *arms, "--dry-run", lm=False).said
    assert "fine+random-search" in shown
    assert f"{planned['calls']:,}" in shown
    assert study("optimizers", *arms).code == 0
    at_most = {line["arm"]: line["calls"] / line["cells"] for line in planned["lines"]}
    for record in lines(folder / "results.jsonl"):
        assert record["calls"] + record["heldout_calls"] <= at_most[record["arm"]]


def test_flags_win_over_a_file(
    study: Any, folder: Path, tmp_path: Path, server: Any, cli: Any, rows_file: Any
) -> None:
    made = {
        "labels": str(rows_file(32)),
        "lm": "openai/fake",
        "api_base": server.base,
        "scale": [0, 100],
        "seeds": [3, 5],
        "variant": "vanilla",
        "explain": "before",
        "reading": "said",
        "output": str(folder),
        "baseline": "[red]a|b",
        "arms": [
            "none",
            {"name": "[red]a|b", "optimizer": "labeled-few-shot", "max_demos": 1},
        ],
    }
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(made))
    done = cli(
        "study",
        "optimizers",
        "--config",
        file,
        "--seeds",
        "4,",
        "--max-demos",
        3,
        "--json",
    )
    assert done.code == 0, done.err
    assert {record["seed"] for record in lines(folder / "results.jsonl")} == {4}
    saved = yaml.safe_load((folder / "config.yaml").read_text())
    assert (saved["seeds"], saved["max_demos"]) == ([4], 3)
    assert saved["arms"][1] == {
        "name": "[red]a|b",
        "optimizer": "labeled-few-shot",
        "max_demos": 1,
    }
    assert server.base not in (folder / "config.yaml").read_text()  # no address is kept
    assert "| &#91;red&#93;a&#124;b |" in (folder / "tables.md").read_text()
    shown = cli(
        "study", "optimizers", "--config", file, "--seeds", "4,", "--max-demos", 3
    )
    assert "[red]a|b" in shown.out


@pytest.mark.parametrize(("arguments", "part"), table(__file__, "wrong_settings"))
def test_a_wrong_option_is_one_line(
    study: Any, server: Any, folder: Path, arguments: Any, part: str
) -> None:
    study(
        "models" if "--optimizer" in arguments else "optimizers", *arguments, fast=False
    ).refused_at_once(part)
    assert server.asks == []
    assert not folder.exists()


def test_no_model_and_no_labels(study: Any, cli: Any) -> None:
    study("optimizers", lm=False).refused_at_once("no language model: give --lm")
    cli("study", "labels").refused_at_once("missing argument LABELS")


def test_sizes_can_be_repeated_or_listed_and_double_up_to_all(
    study: Any, rows_file: Any
) -> None:
    one_arm = (
        "--arm",
        "none",
        "--variant",
        "vanilla",
        "--seeds",
        "3,5",
        "--dry-run",
        "--json",
    )
    plans = [
        study("labels", *one_arm, *asked).json
        for asked in (("--train", 4, "--train", 8), ("--train", "4,8"))
    ]
    assert plans[0] == plans[1]
    assert [(line["train"], line["cells"]) for line in plans[0]["lines"]] == [
        (4, 2),
        (8, 2),
    ]
    flags = {"labels": str(rows_file(96)), "scale": (0, 100), "heldout": "0.25"}
    made = Study.prepare(StudyRequest("labels", flags=flags))
    assert made.config.train == (10, 20, 40, "all")  # of 72
    assert math.isclose(len(made.parts[0].heldout), 24)


def test_an_arm_adds_up_its_parts_and_settings_are_kept_as_the_declaration_makes_them() -> (
    None
):
    made = Arm.of(" fine+no-task+no-explanations+racing+max-demos=6 ", None)
    assert made.name == "fine+no-task+no-explanations+racing+max-demos=6"
    assert made.settings == {
        "variant": "fine",
        "use_task": False,
        "explain": "none",
        "racing": True,
        "max_demos": 6,
    }
    with pytest.raises(OptionError, match="needs a name"):
        Arm.of({"max_demos": 3}, None)
    given = {"racing": "yes", "variants": "fine,coarse", "objective": "auc"}
    assert check_settings(given, "an arm") == {
        "racing": True,
        "variants": ["fine", "coarse"],
        "objective": "auc",
    }


def test_what_an_older_version_did_not_have_is_no_change() -> None:
    new = StudyRequest("labels", flags={"labels": "x.csv"}).config()
    old = new.model_copy(
        update={"settings": {k: v for k, v in new.settings.items() if k != "racing"}}
    )
    assert changes(old, new) == []
    assert changes(
        new, new.model_copy(update={"settings": new.settings | {"racing": True}})
    ) == ["racing was False, is True"]
