"""Ask whether a model learns a private rule from labelled examples: the control beside every study of examples.

A rule says which topic of a help desk's reply is good. Only examples with scores tell it. A model that does not take it
over cannot show what a search over examples is worth; one that does so follows turned-round scores as well.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, assert_never

import numpy as np
import yaml  # type: ignore[import-untyped,unused-ignore]

from judgesmith.agreement.differences import (
    Difference,
    Procedure,
    differences_within,
)
from judgesmith.agreement.resampling import Agreement, Measure
from judgesmith.errors import CallError
from judgesmith.programs.active_critic.scoring import OverallScorer, TaskContext
from judgesmith.programs.models import engine
from judgesmith.signatures.values import Item, Scale

if TYPE_CHECKING:
    from judgesmith.programs.models.lm import LanguageModel

Labels = Literal["right", "shuffled", "turned round"]
RULES: dict[str, dict[str, int]] = {
    "topic": {"bills": 1, "deliveries": 5},
    "topic3": {"bills": 1, "software": 3, "deliveries": 5},
}
TASK = TaskContext(
    "A customer wrote to a help desk, and the agent sent this reply. Rate the reply.",
    (),
    "",
)
SCALE = Scale(1, 5)
#: Rows that examples are drawn from, and rows that are judged.
POOL = 24
JUDGED = 36


class Reply(NamedTuple):
    """A reply with the score that the private rule gives it, on 1..5."""

    id: str
    output: str
    score: float


@dataclass(frozen=True)
class Cell:
    """Examples before each row: how many, with which scores, in which draw."""

    rule: str
    shown: int = 0
    labels: Labels = "right"
    draw: int = 0


class Progress(Protocol):
    """What is told of each judged row."""

    def step(
        self, title: str | None = None, *, there: bool = False, steps: int = 1
    ) -> None:
        """Count judged rows."""


def cells(sizes: Sequence[int], draws: int) -> list[Cell]:
    """Return what is asked: no example, growing sets, and the largest set with wrong scores.

    Args:
        sizes: Numbers of examples, the largest last.
        draws: Sets of each size.
    """
    most = sizes[-1]
    found = [Cell("topic")]
    found += [Cell("topic", size, draw=draw) for size in sizes for draw in range(draws)]
    wrong: tuple[Labels, ...] = ("turned round", "shuffled")
    found += [
        Cell("topic", most, labels, draw) for labels in wrong for draw in range(draws)
    ]
    found.append(Cell("topic3"))
    found += [Cell("topic3", most, draw=draw) for draw in range(draws)]
    return [*found, Cell("topic3", most, "turned round")]


def replies(rule: str) -> tuple[list[Reply], list[Reply]]:
    """Return replies to draw examples from, and replies to judge; both hold each topic equally often."""
    texts = _texts()
    scores = RULES[rule]
    rng = np.random.default_rng(3)
    parts: tuple[list[Reply], list[Reply]] = ([], [])
    for topic, score in scores.items():
        found = [
            Reply(f"{topic}-{place}", output, score)
            for place, output in enumerate(texts[topic])
        ]
        pooled = POOL // len(scores)
        parts[0].extend(found[:pooled])
        parts[1].extend(found[pooled : pooled + JUDGED // len(scores)])
    pool, judged = (
        [part[place] for place in rng.permutation(len(part))] for part in parts
    )
    return pool, judged


@cache
def _texts() -> dict[str, list[str]]:
    text = files(__package__).joinpath("control.yaml").read_text(encoding="utf-8")
    texts: dict[str, list[str]] = yaml.safe_load(text)
    return texts


def examples(cell: Cell) -> list[dict[str, Any]]:
    """Return a cell's examples as labelled demonstrations, each topic equally often."""
    pool, _ = replies(cell.rule)
    rng = np.random.default_rng([cell.draw, cell.shown, 11])
    drawn = [pool[place] for place in rng.permutation(len(pool))]
    by_score = {
        score: [one for one in drawn if one.score == score]
        for score in {one.score for one in pool}
    }
    share = math.ceil(cell.shown / len(by_score))
    picked = [one for ones in by_score.values() for one in ones[:share]][: cell.shown]
    picked = [picked[place] for place in rng.permutation(len(picked))]
    scores = _scores([one.score for one in picked], cell.labels, rng)
    return [
        {
            "output": one.output,
            "source": "",
            "score": SCALE.to_percent(score),
            "group": one.id,
            "augmented": False,
            "gold": True,
        }
        for one, score in zip(picked, scores, strict=True)
    ]


def _scores(
    scores: list[float], labels: Labels, rng: np.random.Generator
) -> list[float]:
    if labels == "right":
        return scores
    if labels == "turned round":
        return [SCALE.low + SCALE.high - score for score in scores]
    if labels == "shuffled":
        # Of many shuffles the one that says least of the rule, so that chance does not leave half of it.
        shuffles = [rng.permutation(scores) for _ in range(300)]
        least = min(shuffles, key=lambda one: abs(np.corrcoef(one, scores)[0, 1]))
        return [float(score) for score in least]
    assert_never(labels)


class Answers:
    """Scores by cell and row, in a file of JSON lines that is continued."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._scores: dict[tuple[Cell, str], float] = {}
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        for line in filter(None, lines):
            said = json.loads(line)
            score = math.nan if said["score"] is None else said["score"]
            self._scores[Cell(**said["cell"]), said["id"]] = score

    def left(self, cell: Cell) -> list[Reply]:
        """Return the replies that a cell was not asked for."""
        return [
            one for one in replies(cell.rule)[1] if (cell, one.id) not in self._scores
        ]

    def add(self, cell: Cell, reply: Reply, score: float) -> None:
        """Keep a score; NaN for none."""
        self._scores[cell, reply.id] = score
        said = {
            "cell": asdict(cell),
            "id": reply.id,
            "score": None if math.isnan(score) else score,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    def scores(self, cell: Cell) -> list[float]:
        """Return the scores of a cell's replies, in their order."""
        return [self._scores[cell, one.id] for one in replies(cell.rule)[1]]


def ask(lm: LanguageModel, cell: Cell, answers: Answers, progress: Progress) -> None:
    """Judge what is left of a cell, by expectation where the model gives log-probabilities."""
    scorer = OverallScorer("none", "expected")
    scorer.predict.demos = examples(cell)
    engine.run(_judged(scorer, lm, cell, answers, progress))


async def _judged(
    scorer: OverallScorer,
    lm: LanguageModel,
    cell: Cell,
    answers: Answers,
    progress: Progress,
) -> None:
    limit = asyncio.Semaphore(1 if lm.one_by_one else lm.concurrency)

    async def one(reply: Reply) -> None:
        async with limit:
            item = Item(reply.output, "", group=reply.id)
            try:
                answer = await scorer.ascore(item, TASK, lm)
                score = float(answer.read.values["score"])
            except CallError:
                score = math.nan
            answers.add(cell, reply, score)
            progress.step()

    await asyncio.gather(*(one(reply) for reply in answers.left(cell)))


@dataclass(frozen=True)
class Reached:
    """Agreement with the private rule: Q of each draw on all judged rows, and the rows without a score."""

    rule: str
    shown: int
    labels: Labels
    draws: list[float]
    failed: int


@dataclass(frozen=True)
class Verdict:
    """What a control says of a model: whether right scores beat none and turned-round ones, each by its interval."""

    passed: bool
    against_none: Difference
    against_turned: Difference
    shown: int

    def sentence(self, model: str) -> str:
        """Say whether examples can help this model."""
        found = f"{self.shown} examples change Q by {_said(self.against_none)}"
        if self.passed:
            return f"{model} learns a private rule from examples: {found}."
        return f"{model} does not learn a private rule from examples ({found}): do not expect examples to help it."


def table(asked: Sequence[Cell], answers: Answers) -> list[Reached]:
    """Return the agreement by rule, number of examples and kind of scores."""
    kinds = dict.fromkeys((one.rule, one.shown, one.labels) for one in asked)
    return [_reached(asked, answers, *kind) for kind in kinds]


def _reached(
    asked: Sequence[Cell], answers: Answers, rule: str, shown: int, labels: Labels
) -> Reached:
    draws = _draws(asked, answers, rule, shown, labels)
    values = Agreement.of(draws, _measure(rule)).values
    failed = sum(math.isnan(score) for draw in draws for score in draw)
    return Reached(rule, shown, labels, [float(value) for value in values], failed)


def _draws(
    asked: Sequence[Cell], answers: Answers, rule: str, shown: int, labels: Labels
) -> list[list[float]]:
    return [
        answers.scores(one)
        for one in asked
        if (one.rule, one.shown, one.labels) == (rule, shown, labels)
    ]


def _measure(rule: str) -> Measure:
    return Measure([one.score for one in replies(rule)[1]], documents=None)


def verdict(asked: Sequence[Cell], answers: Answers) -> Verdict:
    """Compare right scores with no example and with turned-round scores, on rule `topic`, Q averaged over draws."""
    shown = max(one.shown for one in asked)
    right = _draws(asked, answers, "topic", shown, "right")
    against_none = _lead(right, _draws(asked, answers, "topic", 0, "right"))
    turned = _draws(asked, answers, "topic", shown, "turned round")
    against_turned = _lead(right, turned)
    passed = _surely_ahead(against_none) and _surely_ahead(against_turned)
    return Verdict(passed, against_none, against_turned, shown)


def _surely_ahead(lead: Difference) -> bool:
    """Return True if a lead is beyond chance; one that is the same in every resample has no interval."""
    return lead.low > 0 or (_unchanging(lead) and lead.value > 0)


def _unchanging(lead: Difference) -> bool:
    return math.isnan(lead.low) and lead.error < 1e-9


def _said(lead: Difference) -> str:
    if _unchanging(lead):
        return f"{lead.value:+.2f} in every resample of rows"
    return f"{lead.value:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]"


def _lead(first: list[list[float]], second: list[list[float]]) -> Difference:
    """Compare the mean Q of draws; constant scores agree with nothing, so that theirs is 0."""
    varying = [draw for draw in second if np.nanstd(draw) > 0]
    agreement = Agreement.of([*first, *varying], _measure("topic"))
    weights = [1 / len(first)] * len(first) + [-1 / len(second)] * len(varying)
    procedure = Procedure(rounds=2000, confidence=0.95, seed=0)
    (lead,) = differences_within(agreement, np.array([weights]), procedure)
    return lead
