"""DHP's tasks by preset: statistics of scripted judges on small sets, and whose perturbations a number rests on."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from json_lines import write
from without_nan import without_nan

from judgesmith import presets
from judgesmith.datasets.perturbations.dhp import TASKS, origin_of, task_of
from judgesmith.datasets.perturbations.registry import (
    PERTURBATIONS,
    Amounts,
    Degree,
    Perturbation,
    find_perturbations,
)
from judgesmith.rooms.discerning.judging import Subject, judge, missing
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.discerning.pairs import Book, make_pairs, read_texts
from judgesmith.rooms.discerning.rewriting import written_perturbations
from judgesmith.rooms.discerning.run import JudgeResult, analyse
from judgesmith.signatures.values import Verdict

DHP = [name for name in presets.names() if presets.kind(name) == "discern"]
TEXTS = 12
LN20 = math.log(20)


# Small sets ----------------------------------------------------------------------------------------------------------


def sentence(i: int, k: int) -> str:
    place, who = (
        ["Alder", "Birch", "Cedar", "Dover", "Elm", "Fir"][(i + k) % 6],
        ["Ann", "Ben", "Cleo"][(i * k) % 3],
    )
    return (
        f"In the town of {place} number {i}, {who} has watched {i * 7 + k + 3} grey herons beside the old mill for "
        f"{k + 2} weeks and {['counted', 'painted', 'followed', 'feared'][k % 4]} all of them"
    )


def rows(preset: str) -> list[dict[str, Any]]:
    """Rows as the preset's set has them; every text is long enough for its major perturbations."""
    made: list[dict[str, Any]] = []
    for i in range(TEXTS):
        text = " ".join(f"{sentence(i, k)}." for k in range(4))
        row: dict[str, Any] = {
            "id": f"r{i}",
            "doc_id": f"d{i}",
            "source": f"Source {i}.",
            "output": text,
        }
        if (
            preset == "dhp/summeval"
        ):  # outputs of systems; the reference with most sentences is the text
            row |= {
                "output": f"A bad summary {i}.",
                "reference": sentence(i, 9) + ".",
                "task": "summarization",
            }
        elif preset == "dhp/story":
            row |= {
                "output": f"{sentence(i, 1)}.",
                "wrong": f"Nobody came, and number {i} was sold.",
            }
        elif preset == "dhp/answer-equivalence":
            row |= {
                "output": sentence(i, 1) + " " + sentence(i, 2),
                "context": f"Passage {i}.",
            }
        made.append(row)
    return made


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder, found = tmp_path_factory.mktemp("sets"), {}
    for name in DHP:
        found[name] = write(folder / f"{name.replace('/', '-')}.jsonl", rows(name))
    references = [
        {
            "doc_id": f"d{i}",
            "references": [
                f"One. Two {i}.",
                " ".join(f"{sentence(i, k)}." for k in range(4)),
            ],
        }
        for i in range(TEXTS)
    ]
    write(folder / "dhp-summeval.references.jsonl", references)
    return found


#: With stand-ins for what a language model writes.
EVERY = {**PERTURBATIONS, **written_perturbations(None)}


def options(preset: str, **more: Any) -> DiscernOptions:
    given = {
        key: value
        for key, value in presets.read(preset).items()
        if key in DiscernOptions.model_fields
    }
    return DiscernOptions(**given | {"rounds": 0, "repeat": 1} | more)


#: A score by a metric, a text, and the names of the perturbations that it may come from; none for a good text.
Rule = Callable[[str, str, set[str]], float]


def perfect(metric: str, text: str, names: set[str]) -> float:
    return 2.0 if names else 5.0


class Setting:
    """A preset with its texts and pairs, judged by rules."""

    def __init__(
        self,
        preset: str,
        path: Path,
        wanted: str = "paper",
        there: Mapping[str, Perturbation] = EVERY,
    ):
        self.how, self.there = options(preset), there
        self.texts = read_texts(str(path), options=self.how)
        self.chosen = find_perturbations([wanted], there, self.texts.task)
        self.pairs, self.left = [], []
        for one in make_pairs(
            self.chosen,
            self.texts,
            seed=0,
            amounts=Amounts(self.how.amount),
            language="en",
        ):
            (self.pairs if hasattr(one, "perturbed") else self.left).append(one)
        #: By source and text: an ending that is wrong for one story is the right one of another.
        self.names: dict[tuple[str, str], set[str]] = {
            (text.source, text.text): set() for text in self.texts.texts
        }
        for pair in self.pairs:
            self.names.setdefault((pair.source, pair.perturbed), set()).add(pair.name)

    def result(self, rule: Rule, weights: Any = None) -> JudgeResult:
        metrics = self.how.metric_names
        subject = Subject(
            "judge",
            {m: _Scorer(rule, m, self.names) for m in metrics},
            {m: m for m in metrics},
        )
        book = Book({}, list(self.pairs), list(self.left))
        judge(subject, missing(subject, book, self.texts.role, self.how), book)
        return analyse(subject, book, self.there, self.how, weights, self.texts.task)


class _Scorer:
    def __init__(
        self, rule: Rule, metric: str, names: Mapping[tuple[str, str], set[str]]
    ) -> None:
        self.rule, self.metric, self.names = rule, metric, names

    def score_many(self, rows: Any) -> Iterator[Verdict]:
        for row in rows:
            assert row.reference is None  # §3.2: nothing is judged with a reference
            score = self.rule(
                self.metric, row.output, self.names.get((row.source, row.output), set())
            )
            yield Verdict(score=score, percent=score)


@pytest.fixture(scope="module")
def setting(sets: Mapping[str, Path]) -> Callable[..., Setting]:
    @cache
    def made(preset: str, wanted: str = "paper", writer: bool = True) -> Setting:
        return Setting(preset, sets[preset], wanted, EVERY if writer else PERTURBATIONS)

    return made


def expected(preset: str) -> dict[str, str]:
    """Every perturbation of the paper for the preset's task, with its level."""
    found = {}
    for name, degrees in TASKS[options(preset).task()].perturbations.items():
        for degree in degrees:
            found[name if degree == "only" else f"{name}:{degree}"] = EVERY[name].level
    return found


# Statistics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", DHP)
def test_a_perfect_judge_reaches_the_most_that_the_texts_allow(
    preset: str, setting: Callable[..., Setting]
) -> None:
    made = setting(preset)
    found = made.result(perfect)
    # Every text loses: p = 2**-12 of each metric; without 1/M, M equal p become p / M.
    metrics = len(made.how.metrics)
    normalised, paper = (
        TEXTS * math.log(2) / LN20,
        (TEXTS * math.log(2) + math.log(metrics)) / LN20,
    )
    overall = found.overall["paper"]
    assert set(overall.names) == set(expected(preset))
    assert found.unmeasured == ()
    assert [overall.normalised.d_avg, overall.normalised.d_min] == pytest.approx(
        [normalised] * 2
    )
    assert [overall.paper.d_avg, overall.paper.d_min] == pytest.approx([paper] * 2)
    assert found.form == "paper"  # the preset asks for it
    assert {line.sees for line in found.of("degradation")} == {"yes"}
    assert overall.expert is not None
    assert overall.expert.undefined == 0
    assert overall.expert.d_avg == pytest.approx(
        normalised
    )  # weights that sum to 1 change nothing of equal p


@pytest.mark.parametrize(
    ("preset", "blind"), [(preset, name) for preset in DHP for name in expected(preset)]
)
def test_what_a_judge_is_blind_to_is_its_worst(
    preset: str, blind: str, setting: Callable[..., Setting]
) -> None:
    made = setting(preset)
    found = made.result(lambda metric, text, names: 2.0 if names - {blind} else 5.0)
    metrics, levels = len(made.how.metrics), expected(preset)
    best = (TEXTS * math.log(2) + math.log(metrics)) / LN20
    least = math.log(metrics) / LN20  # p = 1 of each metric; without 1/M that is 1 / M
    summary, normalised = (
        found.overall["paper"].paper,
        found.overall["paper"].normalised,
    )
    assert (summary.worst, normalised.worst, normalised.d_min) == (blind, blind, 0.0)
    assert summary.d_min == pytest.approx(least)
    # Levels weigh the same, and perturbations within a level.
    of_level = [name for name, level in levels.items() if level == levels[blind]]
    lost = (best - least) / len(of_level) / len(set(levels.values()))
    assert summary.d_avg == pytest.approx(best - lost)
    assert [line.name for line in found.of("degradation") if line.sees == "no"] == [
        blind
    ]
    assert f"blind to {blind}" in found.conclusion()


def test_what_a_judge_sees_rests_on_the_normalised_p(
    setting: Callable[..., Setting],
) -> None:
    made = setting("dhp/summeval")

    def one_metric(metric: str, text: str, names: set[str]) -> float:
        """Nine of twelve texts lose in coherence by as much as the other three gain; the other metrics see nothing."""
        if metric != "coherence" or not names:
            return 3.0
        return (
            2.0 if int(text.partition("number ")[2].partition(",")[0] or 0) < 9 else 4.0
        )

    found = made.result(one_metric)
    # p = P(9 or more of 12 heads) = 299 / 4096 = .073; printed p = 1 / (1/.073 + 3) = .060, with 1/M .24
    (line,) = [x for x in found.of("degradation") if x.name == "rewrite-lm:minor"]
    p = 1 / ((4096 / 299 + 3) / 4)
    assert line.test.d_normalised == pytest.approx(-math.log(p) / LN20)
    assert line.test.d == pytest.approx(-math.log(p / 4) / LN20)
    assert line.test.p < 4 * line.test.p == pytest.approx(p)
    assert line.sees == "no"
    assert line.p_holm > p


# Whose perturbations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", DHP)
def test_the_papers_numbers_do_not_change_with_what_is_beside(
    preset: str, setting: Callable[..., Setting]
) -> None:
    alone, mixed = setting(preset), setting(preset, "all")

    # Half of the scores are drawn, so that Holm's correction has something to correct.
    def rule(metric: str, text: str, names: set[str]) -> float:
        return float(len(text) % 5) + (random.Random(f"{metric}{text}").random() > 0.5)

    one, other = alone.result(rule), mixed.result(rule)
    assert without_nan(other.overall["paper"]) == without_nan(one.overall["paper"])
    assert without_nan(other.of("degradation", "paper")) == without_nan(
        one.of("degradation", "paper")
    )
    assert other.overall["ours"].names
    assert other.overall["stand-in"].names
    assert "numbers:minor" in other.overall["ours"].names


def test_whose_a_perturbation_of_a_task_is() -> None:
    for name, degree, task, origin in (
        ("word-deletion", "minor", "translation", "paper"),
        ("word-deletion", "minor", "summarization", "ours"),
        ("typos", "minor", "story", "paper"),
        ("typos", "major", "story", "ours"),  # endings have one degree
        ("entities-rules", "minor", "answer", "stand-in"),
    ):
        assert origin_of(PERTURBATIONS[name], cast(Degree, degree), task) == origin


@pytest.mark.parametrize("preset", DHP)
def test_without_writer_the_paper_has_no_d_for_what_a_model_made(
    preset: str, setting: Callable[..., Setting]
) -> None:
    made = setting(preset, "paper", False)
    found = made.result(perfect)
    written = {
        name for name in expected(preset) if name.partition(":")[0].endswith("-lm")
    }
    assert set(found.unmeasured) == written
    assert written
    assert not any(
        name.partition(":")[0].endswith("-rules")
        for name in found.overall["paper"].names
    )
    assert {
        line.origin
        for line in found.of("degradation")
        if line.name.partition(":")[0].endswith("-rules")
    } <= {"stand-in"}
    assert "without entities-lm" in found.coverage()


def test_tasks_of_data_are_the_papers_or_treated_as_summaries() -> None:
    names = {
        "translation de-en": "translation",
        "question answering": "answer",
        "question-answering": "answer",
        "story completion": "story",
        "story": "summarization",
        "data-to-text": "summarization",
        "": "summarization",
    }
    assert {name: task_of(name) for name in names} == names


# Texts ---------------------------------------------------------------------------------------------------------------


def test_the_reference_with_most_sentences_is_taken(
    setting: Callable[..., Setting],
) -> None:
    made = setting("dhp/summeval")
    assert made.texts.role == "reference"
    assert {text.text.count(".") for text in made.texts.texts} == {
        4
    }  # not the row's own reference of one sentence
    assert all(len(text.references) == 2 for text in made.texts.texts)


def test_outputs_are_taken_although_there_are_references(tmp_path: Path) -> None:
    made = [
        {
            "id": str(i),
            "source": f"s{i}",
            "output": sentence(i, 1),
            "reference": sentence(i, 2),
        }
        for i in range(3)
    ]
    path = write(tmp_path / "mt.jsonl", made)
    assert read_texts(str(path)).role == "reference"
    found = read_texts(str(path), options=DiscernOptions(good="output"))
    assert [text.text for text in found.texts] == [sentence(i, 1) for i in range(3)]
    assert found.texts[0].references == (sentence(0, 2),)


def test_texts_that_are_long_enough_go_before_longer_ones_that_are_not(
    tmp_path: Path,
) -> None:
    lengths = [10, 50, 90, 30, 70]
    path = write(
        tmp_path / "texts.jsonl", ({"id": str(n), "output": "x" * n} for n in lengths)
    )
    found = read_texts(str(path), n=2, options=DiscernOptions(longer_than=60))
    assert [(t.id, found.notes) for t in found.texts] == [("90", ()), ("70", ())]
    filled = read_texts(str(path), n=4, options=DiscernOptions(longer_than=60))
    assert [t.id for t in filled.texts] == ["50", "90", "30", "70"]  # the file's order
    assert filled.notes == (
        "2 texts have more than 60 characters; the others of these 4 are the next longest, down to 30",
    )
    # exceeding 70 characters is more than 70
    assert [
        t.id
        for t in read_texts(
            str(path), n=1, options=DiscernOptions(longer_than=70)
        ).texts
    ] == ["90"]


def test_metrics_of_the_tasks_are_aspects_of_the_library() -> None:
    from judgesmith.programs.aspects import aspects

    for metric in {
        metric for of_paper in TASKS.values() for metric in of_paper.metrics
    }:
        assert aspects().find(metric).task == metric.partition("/")[0]


# The real sets -------------------------------------------------------------------------------------------------------

DATA = os.environ.get("JUDGESMITH_DATA")


@pytest.mark.skipif(not DATA, reason="JUDGESMITH_DATA names no folder with the sets")
@pytest.mark.parametrize(
    ("preset", "characters", "words", "shortest"),
    [
        ("dhp/summeval", 340.4, 58.3, 1),
        ("dhp/sumpubmed", 768.3, 112.5, 601),
        ("dhp/answer-equivalence", 125.4, 19.5, 106),
        ("dhp/wmt22-de-en", 414.4, 71.7, 301),
        ("dhp/wmt22-zh-en", 420.2, 65.7, 301),
    ],
)
def test_texts_of_the_real_sets(
    preset: str, characters: float, words: float, shortest: int
) -> None:
    found = presets.read(preset)
    texts = [
        text.text
        for text in read_texts(
            found["texts"], n=found["n"], options=options(preset)
        ).texts
    ]
    assert len(texts) == 100
    assert min(map(len, texts)) >= shortest
    assert round(sum(map(len, texts)) / 100, 1) == characters
    assert round(sum(len(text.split()) for text in texts) / 100, 1) == words
