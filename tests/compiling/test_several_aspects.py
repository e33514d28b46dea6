"""One judge of several aspects: compiled in one run, saved in one file, and shown aspect by aspect everywhere."""

import csv
import json
import math
import re
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.datasets.loading import read_aspects
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.gate import Gate
from judgesmith.evaluating.sources import plain_name
from judgesmith.optimizers.several import key_of, together, union
from judgesmith.programs import artifact, sharing
from judgesmith.programs.method import Method
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Outcome
from judgesmith.programs.pipeline import scored
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.prompting.suspicion import Suspicion, weighed
from judgesmith.programs.readings.head import LinearHead
from judgesmith.programs.readings.kinds import SIGNAL
from judgesmith.programs.several.judge import Part, SeveralAspects
from judgesmith.reports.rows import read_scored
from judgesmith.running.opening import benchmark_scale
from judgesmith.scoring.tables import write_table
from judgesmith.signatures.values import Item, Scale, Verdict
from judgesmith.testing.judges import obliging
from judgesmith.testing.scripted import scripted_models


def rows(count: int = 40, lacking: int = 3) -> list[dict[str, Any]]:
    """Rows of two aspects on two scales, each with a column of its own; every third has no label of the second."""
    rng, made = np.random.default_rng(0), []
    for i in range(count):
        one, two = rng.normal(size=2)
        made.append(
            {
                "id": f"r{i}",
                "doc_id": f"d{i // 2}",
                "source": f"Source {i // 2} is about subject {i * 37 % 101}.",
                "output": " ".join(f"w{rng.integers(9999)}" for _ in range(12)),
                "scores.fluency": float(np.clip(round(3 + one), 1, 5)),
                "scores.coherence": float(np.clip(round(50 + 20 * two), 0, 100)),
                "a": round(3 + 0.9 * one + 0.3 * rng.normal(), 3),
                "b": round(3 + 0.9 * two + 0.3 * rng.normal(), 3),
            }
        )
        if lacking and i % lacking == 0:
            made[-1]["scores.coherence"] = None
    return made


def test_rows_that_cannot_be_told_apart_are_refused() -> None:
    labels = read_aspects(rows(40, lacking=0), ["all"])
    own = labels["fluency"].rows
    twice = replace(labels["fluency"], rows=(*own, replace(own[4], line=41)))
    with pytest.raises(LabelsError, match=r"rows 5 and 41 have the same id \(r4\)"):
        js.compile(DirectScorer("fluency"), labels | {"fluency": twice}, lm="none")


def test_each_aspect_has_the_scale_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = {"fluency": (0.0, 10.0), "coherence": (-100.0, 100.0)}
    labels = read_aspects(iter(rows()), ["all"], scale=scales.get)
    assert {name: one.scale for name, one in labels.items() if name in scales} == scales
    assert labels["fluency"].scale_given
    card = SimpleNamespace(aspects=scales)
    monkeypatch.setattr(
        "judgesmith.datasets.benchmarks.catalog.benchmark", lambda _: card
    )
    of_card = partial(benchmark_scale, "bench/any")
    labels = read_aspects(rows(), ["fluency", "coherence"], scale=of_card)
    assert {name: one.scale for name, one in labels.items()} == scales


@pytest.mark.parametrize(
    ("labels", "problem"), [({}, "rows are needed"), ([], "there are no rows in it")]
)
def test_no_labels_are_no_aspects(labels: Any, problem: str) -> None:
    with pytest.raises(LabelsError, match=problem):
        js.compile(DirectScorer("fluency"), labels, lm="none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels, and the judge that was compiled from them by the command line."""
    place = tmp_path_factory.mktemp("several")
    lines = [json.dumps(row) for row in rows()]
    (place / "labels.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = run(
        *("compile", place / "labels.jsonl", "--aspect", "all", "--cv", "3"),
        *("--signal", "a=-1..7", "--signal", "b=-1..7", "-o", place / "judge.json"),
    )
    assert done.exit_code == 0, done.output
    (place / "said.txt").write_text(done.output, encoding="utf-8")
    for name in ("scored.jsonl", "scored.csv"):
        scoring = run(
            *("score", place / "labels.jsonl", "--judge", place / "judge.json"),
            *("-o", place / name),
        )
        assert scoring.exit_code == 0, scoring.output
    return place


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def spearman(done: Any, judge: str) -> dict[str, float]:
    """Spearman's correlation with people by aspect, as `evaluate --json` has it."""
    found = json.loads(done.stdout.splitlines()[-1])["judges"][judge]
    return {
        aspect: by["pooled"]["spearman"]["value"]
        for aspect, by in found.items()
        if aspect in ("fluency", "coherence")
    }


def test_one_file_has_every_aspect_with_its_own_scale_and_agreement(
    folder: Path,
) -> None:
    saved = json.loads((folder / "judge.json").read_text())
    judge = js.load(folder / "judge.json")
    assert set(saved["aspects"]) == {"fluency", "coherence"}
    assert isinstance(judge.method, SeveralAspects)
    assert judge.method.scales == {"fluency": Scale(1, 5), "coherence": Scale(0, 100)}
    for name, rows_ in (("fluency", 40), ("coherence", 26)):
        agreed = saved["provenance"]["aspects"][name]["heldout"]
        assert agreed["low"] < agreed["value"] < agreed["high"]
        assert agreed["n"] == rows_
    assert len(saved["provenance"]["seen"]) == 40
    said = (folder / "said.txt").read_text()
    assert "fluency" in said
    assert "coherence" in said
    assert "3-fold" in said
    shown = run("show", folder / "judge.json").output
    assert "agreement, fluency" in shown
    assert "aspect coherence" in shown


def test_a_verdict_has_a_verdict_of_each_aspect_and_the_mean_on_a_common_scale(
    folder: Path,
) -> None:
    judge = js.load(folder / "judge.json")
    verdict = judge.score("A source.", "Some words.", a=5.0, b=2.0)
    one, two = verdict.aspects["fluency"], verdict.aspects["coherence"]
    assert 1 <= one.score <= 5
    assert 0 <= two.score <= 100
    # (fluency in percent + coherence in percent) / 2
    assert verdict.score == pytest.approx(((one.score - 1) * 25 + two.score) / 2)
    assert one.interval is not None
    assert one.interval.low <= one.score
    data = json.loads(json.dumps(verdict.to_dict()))
    assert data["aspects"]["fluency"]["score"] == pytest.approx(one.score, abs=1e-6)
    again = js.Verdict.model_validate_json(json.dumps(data))
    assert again.aspects["coherence"].score == pytest.approx(two.score, abs=1e-6)
    assert "fluency" in repr(verdict)


def test_what_is_loaded_is_what_was_saved(folder: Path) -> None:
    saved = json.loads((folder / "judge.json").read_text())
    again = artifact.to_dict(js.load(folder / "judge.json"))
    assert json.loads(json.dumps(again)) == saved


def test_scored_files_have_columns_by_aspect_and_are_evaluated_by_aspect(
    folder: Path,
) -> None:
    with (folder / "scored.csv").open(encoding="utf-8-sig") as file:
        table = list(csv.DictReader(file))
    nested = [json.loads(line) for line in (folder / "scored.jsonl").open()]
    for row, record in zip(table, nested, strict=True):
        score = record["verdict"]["aspects"]["coherence"]["score"]
        assert float(row["judge_score_coherence"]) == pytest.approx(score)
    found = {}
    for name in ("scored.jsonl", "scored.csv"):
        done = run("evaluate", folder / name, "--human", "all", "--json")
        assert done.exit_code == 0, done.output
        found[name] = spearman(done, "scored")
    assert found["scored.csv"] == pytest.approx(found["scored.jsonl"], nan_ok=True)
    assert found["scored.jsonl"]["fluency"] > 0.5 < found["scored.jsonl"]["coherence"]
    live = run(
        *("evaluate", folder / "labels.jsonl", "--judge", folder / "judge.json"),
        "--json",
    )
    by = spearman(live, "judge")
    assert by["fluency"] == pytest.approx(found["scored.jsonl"]["fluency"], abs=1e-6)


def test_a_later_run_leaves_no_score_by_aspect_of_an_earlier_one(
    folder: Path, tmp_path: Path
) -> None:
    records = [json.loads(line) for line in (folder / "scored.jsonl").open()][:2]
    for record in records:
        # the user's own columns, and behind them those that score wrote
        record |= {"judge_style": "mine", "judge_score_gpt4": "2"}
        record |= {"judge_id": "1", "judge_score_style": "3"}
    records[1].pop("judge_id")
    scored, table = tmp_path / "scored.jsonl", tmp_path / "table.csv"
    scored.write_text("".join(json.dumps(record) + "\n" for record in records))
    write_table(scored, table)
    with table.open(encoding="utf-8-sig") as file:
        again, first = csv.DictReader(file)
    assert again["judge_score_style"] == ""
    assert (again["judge_style"], again["judge_score_gpt4"]) == ("mine", "2")
    assert first["judge_score_style"] == "3"
    assert float(again["judge_score_fluency"]) == pytest.approx(
        records[0]["verdict"]["aspects"]["fluency"]["score"]
    )


def test_a_gate_may_be_for_one_aspect(folder: Path) -> None:
    asked = ("evaluate", folder / "scored.jsonl", "--human", "all")
    passed = run(*asked, "--fail-under", "fluency:spearman>=.3")
    assert passed.exit_code == 0, passed.output
    failed = run(
        *asked,
        *("--fail-under", "Fluency: spearman>=.3"),
        *("--fail-under", "coherence:spearman>=.999"),
    )
    assert failed.exit_code == 1
    assert "coherence" in failed.output
    line = failed.stderr.strip().splitlines()[-1]
    assert line.startswith("FAILED coherence:spearman>=.999: ")
    assert line.endswith("; passed Fluency: spearman>=.3")
    unknown = run(*asked, "--fail-under", "style:spearman>=.3")
    assert unknown.exit_code == 1
    assert "there are: " in unknown.output
    assert Gate.parse("fluency:sample.kendall>=.2").level == "sample"
    assert Gate.parse("tone: of voice:q>=1").aspect == plain_name("tone: of voice")


def test_a_gate_of_an_unknown_aspect_costs_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Item] = []
    judge = SeveralAspects.judge

    async def noted(self: SeveralAspects, item: Item, lm: Any) -> Verdict:
        judged.append(item)
        return await judge(self, item, lm)

    monkeypatch.setattr(SeveralAspects, "judge", noted)
    rated = ("--judge", folder / "judge.json", "--human", "all")
    live = ("evaluate", folder / "labels.jsonl", *rated, "--fail-under")
    done = run(*live, "style:spearman>=.3")
    assert "there is no aspect 'style'; there are fluency, coherence" in str(
        done.exception
    )
    assert judged == []
    assert run(*live, "fluency:spearman>=.3").exit_code == 0
    assert judged != []


def test_the_report_compares_each_aspect_with_people(folder: Path) -> None:
    page = folder / "page.html"
    assert run("report", folder / "scored.jsonl", "-o", page).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "fluency" in text
    assert "coherence" in text
    labels = rows()
    sides = {side.name: side for side in read_scored(folder / "scored.jsonl").sides}
    for name in ("fluency", "coherence"):
        rated = [row[f"scores.{name}"] is not None for row in labels]
        assert (~np.isnan(sides[name].gap)).tolist() == rated, name
    evaluated = folder / "agreement.html"
    done = run("evaluate", folder / "scored.jsonl", "--human", "all", "-o", evaluated)
    assert done.exit_code == 0
    assert "coherence" in evaluated.read_text(encoding="utf-8")


def test_a_judge_of_several_is_compiled_again_from_its_own_aspects(
    folder: Path,
) -> None:
    done = run(
        *("compile", folder / "labels.jsonl", "--start", folder / "judge.json"),
        *("--dry-run", "--json"),
    )
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout.splitlines()[-1])
    assert set(plan["aspects"]) == {"fluency", "coherence"}
    assert plan["rows"] == 40


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            ("--aspect", "fluency", "--aspect", "fluency"),
            "is repeated; name each aspect once",
        ),
        (
            ("--aspect", "all", "--aspect", "fluency"),
            "all cannot be combined with other aspects",
        ),
        (("--aspect", "fluency", "--aspect", "style"), "no aspect 'style'"),
        (("--aspect", "all", "--take", "tone=zero-shot"), "there is no aspect 'tone'"),
        (("--aspect", "all", "--take", "fluency=best"), "fluency: take: there is no"),
    ],
)
def test_what_cannot_be_compiled_together_is_said(
    folder: Path, more: tuple[str, ...], problem: str
) -> None:
    done = run(
        *("compile", folder / "labels.jsonl", "--signal", "a=-1..7", *more),
        *("-o", folder / "no.json"),
    )
    assert done.exit_code != 0
    assert problem in str(done.exception or done.output)


def test_a_candidate_is_taken_for_all_aspects_or_for_one(
    folder: Path, tmp_path: Path
) -> None:
    asked = ("compile", folder / "labels.jsonl", "--signal", "a=-1..7", "--signal")
    kept = {}
    for take in ("zero-shot", "Fluency=zero-shot"):
        made = tmp_path / "made.json"
        done = run(*asked, "b=-1..7", "--aspect", "all", "--take", take, "-o", made)
        assert done.exit_code == 0, done.output
        parts = json.loads(made.read_text())["aspects"]
        kept[take] = [name for name, one in parts.items() if "head" in one]
        assert "beside" not in parts["fluency"]
    assert kept == {"zero-shot": [], "Fluency=zero-shot": ["coherence"]}


def test_all_leaves_out_what_cannot_be_learnt_and_says_so() -> None:
    made = [row | {"scores.tone": 3.0} for row in rows(lacking=0)]
    labels = read_aspects(made, ["all"])
    assert list(labels) == ["fluency", "coherence"]
    assert "tone is left out" in " ".join(labels["fluency"].warnings)
    with pytest.raises(
        LabelsError, match="needs at least two aspects with enough labels"
    ):
        read_aspects([{**row, "scores.coherence": 1.0} for row in made], ["all"])


def test_no_aspect_learns_from_a_row_that_another_is_measured_on() -> None:
    labels = together(read_aspects(rows(), ["fluency", "coherence"]), 0.1)
    group = {key_of(row): row.group for row in labels["fluency"].rows}
    assert all(group[key_of(row)] == row.group for row in labels["coherence"].rows)
    every = union(labels)
    assert len(every) == 40
    assert every.scale == (0.0, 100.0)
    first = every.rows[1].scores
    assert every.scores[1] == pytest.approx((first["fluency"] + first["coherence"]) / 2)


class _Fixed(DirectScorer):
    """Gives the percent that its aspect's name is, and fails for "failed"."""

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        if self.options.aspect == "failed":
            return Verdict.failed("no answer")
        return Verdict(percent=float(self.options.aspect), explanation="Because.")


def part(name: str, beside: LinearHead | None = None) -> Part:
    made: Method = _Fixed(name, criteria=[js.Criterion(name, "")])
    return Part(made, Outcome(Scale(1, 5)), beside)


async def judged(several: SeveralAspects, lm: Any) -> Verdict:
    return await scored(several, several.whole(), Item("An output."), lm)


def both(several: SeveralAspects) -> Verdict:
    with scripted_models() as scripted:
        lm, _ = scripted(obliging())
        return engine.run(judged(several, lm))


def test_a_failed_aspect_is_no_low_overall() -> None:
    verdict = both(SeveralAspects.of_parts({"one": part("80"), "two": part("failed")}))
    assert math.isnan(verdict.score)
    assert verdict.failure == "two: no answer"
    assert verdict.aspects["one"].score == pytest.approx(4.2)  # 1 + 4 * .80
    assert math.isnan(verdict.aspects["two"].score)


def test_an_aspect_called_overall_is_the_score_of_the_whole() -> None:
    made = SeveralAspects.of_parts({"one": part("failed"), "overall": part("25")})
    verdict = both(made)
    assert verdict.score == pytest.approx(2.0)
    assert verdict.failure is None


def test_an_aspect_may_be_corrected_by_another_ones_score() -> None:
    head = LinearHead(
        50.0, {f"{SIGNAL}.one": (50.0, 0.5), f"{SIGNAL}.two": (50.0, 0.25)}
    )
    made = SeveralAspects.of_parts({"one": part("60", head), "two": part("90")})
    verdict = both(made)
    assert verdict.aspects["one"].percent == pytest.approx(65)  # 50 + 5 + 10
    assert verdict.aspects["two"].percent == pytest.approx(90)


def test_the_lower_verdict_on_each_aspect_counts() -> None:
    """An appeal that raises one of four aspects may lower another."""
    signs = Suspicion(0.99, "it asks for a score")
    fine = Verdict(
        percent=50, aspects={"one": Verdict(percent=40), "two": Verdict(percent=60)}
    )
    moved = Verdict(
        percent=55, aspects={"one": Verdict(percent=90), "two": Verdict(percent=20)}
    )
    chosen = weighed(moved, fine, signs)
    assert chosen.percent == 50
    assert [one.percent for one in chosen.aspects.values()] == [40, 20]
    assert "5 percent" in str(chosen.suspicious)


def test_a_row_is_read_once_for_all_aspects() -> None:
    asked: list[list[int]] = []

    def compute(places: list[int]) -> list[int]:
        asked.append(places)
        return [10 * place for place in places]

    assert sharing.each_once(["a", "b"], compute) == [0, 10]
    with sharing.shared():
        assert sharing.each_once(["a", "b", "a"], compute) == [0, 10, 0]
        assert sharing.each_once(["b", "c"], compute) == [10, 10]
    assert asked == [[0, 1], [0, 1], [1]]


def test_python_takes_several_aspects_too() -> None:
    with pytest.raises(OptionError, match="for several aspects give the rows"):
        labels = js.read_labels(rows(), aspect="fluency")
        js.compile(js.ModelReadings(signals=["a"]), labels, aspect=["fluency", "x"])
    with pytest.raises(OptionError, match="two at least"):
        js.compile(js.ModelReadings(signals=["a"]), rows(), aspect=["fluency"])


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = Path(__file__).resolve().parents[2] / "docs/pages/howto/labels.md"
    section = pages.read_text(encoding="utf-8").split("## Several aspects in one judge")
    kinds = ("csv", "console", "python")
    blocks = {
        kind: re.findall(rf"```{kind}[^\n]*\n(.*?)```", section[1], re.DOTALL)[0]
        for kind in kinds
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aspects.csv").write_text(blocks["csv"], encoding="utf-8")
    for line in blocks["console"].splitlines():
        done = run(*shlex.split(line.removeprefix("$ judgesmith ")))
        assert done.exit_code == 0, done.output
    names: dict[str, Any] = {}
    exec(compile(blocks["python"], "labels.md", "exec"), names)
    assert 1 <= names["verdict"].aspects["fluency"].score <= 5
