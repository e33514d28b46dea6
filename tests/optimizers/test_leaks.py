"""The leak suite: no judge learns a row's label from a duplicate of the row, whatever the method and the optimizer.

A scripted model looks for the judged row, and for every duplicate of it, anywhere in the prompt but in the row's own
place, and gives their label if it finds one; otherwise it guesses. Its folding is its own, not the library's.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np
import pytest

import judgesmith as js
from judgesmith.datasets import duplicates
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.datasets.splits import holdout_split
from judgesmith.optimizers.examples import examples_of
from judgesmith.optimizers.registry import build_optimizer, optimizers
from judgesmith.optimizers.search.base import DemonstrationSearch
from judgesmith.optimizers.search.few_shot import LabeledFewShot
from judgesmith.programs.active_critic.critic import ActiveCritic, Variant
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import row_context
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Request
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.pointwise.geval import GEval
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.signatures.values import Criterion

KINDS = (
    "exact",
    "whitespace",
    "case",
    "one word changed",
    "same output",
    "same source",
)
CLARITY = Criterion("Clarity", "It is easy to follow.")


def critic(variant: Variant, lm: Any = None, **given: Any) -> Judge:
    return Judge(
        ActiveCritic(variant, explain="before", reading="said", **given), lm=lm
    )


METHODS: dict[str, Callable[[], Judge]] = {
    "active-critic, vanilla": lambda: critic("vanilla"),
    "active-critic, coarse": lambda: critic("coarse", criteria=[CLARITY], task="Rate."),
    "active-critic, fine": lambda: critic("fine", criteria=[CLARITY], task="Rate."),
    "openlgauge": lambda: Judge(OpeNLGauge("fluency")),
    "pairwise-direct": lambda: Judge(
        PairwiseDirectScorer("fluency", levels=2, samples=1)
    ),
    "g-eval": lambda: Judge(GEval("fluency", samples=1)),
    "direct": lambda: Judge(DirectScorer("fluency")),
    "pairs": lambda: Judge(PairS("fluency", samples=1)),
}
LEVELS = ("Unacceptable", "Poor", "Fair", "Good", "Excellent")


# Rows ----------------------------------------------------------------------------------------------------------------


def words(rng: random.Random, count: int) -> str:
    return " ".join(
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(count)
    )


def disguised(text: str, kind: str, rng: random.Random) -> str:
    if kind == "whitespace":
        return text.replace(" ", "\n", 1) + " \u00a0"
    if kind == "case":
        return text.upper()
    if kind == "one word changed":
        parts = text.split()
        parts[rng.randrange(len(parts))] = words(rng, 1)
        return " ".join(parts)
    return text


def rows_with_duplicates(documents: int = 50, seed: int = 0) -> list[Row]:
    """Twice as many documents of two rows each: every one, and a duplicate of it that is said to be another."""
    rng = random.Random(seed)
    rows = []
    for d in range(documents):
        kind = KINDS[d % len(KINDS)]
        source, outputs = words(rng, 15), [words(rng, 12) for _ in range(2)]
        scores = [rng.randint(1, 5) for _ in range(2)]
        other = (
            words(rng, 15) if kind == "same output" else disguised(source, kind, rng)
        )
        for copy, text in enumerate((source, other)):
            for n, output in enumerate(outputs):
                if copy:
                    output = (
                        words(rng, 12)
                        if kind == "same source"
                        else disguised(output, kind, rng)
                    )
                rows.append(
                    Row(
                        id=f"{d}.{copy}.{n}",
                        output=output,
                        source=text,
                        system=f"s{n}",
                        doc_id=f"d{d}.{copy}",
                        group=f"d{d}.{copy}",
                        scores={"overall": float(scores[n])},
                        line=len(rows) + 1,
                    )
                )
    return [rows[i] for i in rng.sample(range(len(rows)), len(rows))]


def labels_of(rows: list[Row]) -> Labels:
    merged = duplicates.merge(rows)
    return Labels(merged.applied(rows), "overall", (1.0, 5.0), origin="rows")


@cache
def two_hundred() -> Labels:
    labels = labels_of(rows_with_duplicates())
    assert len(labels) == 200
    return labels


def folded(text: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text).casefold())


# The model -----------------------------------------------------------------------------------------------------------


class Copier:
    """A model that copies a label wherever the prompt gives it away.

    leaks: the kind of each row that was. judged: the outputs that it was asked about.
    """

    def __init__(self, rows: list[Row]) -> None:
        self.judged: set[str] = set()
        self.leaks: Counter[str] = Counter()
        families: dict[str, set[str]] = {}
        self.of: dict[str, tuple[str, str, float]] = {}
        for row in rows:
            family = row.id.partition(".")[0]
            families.setdefault(family, set()).update(
                (folded(row.source), folded(row.output))
            )
            self.of[folded(row.output)] = (
                family,
                row.id.rpartition(".")[2],
                row.scores["overall"],
            )
        self.texts = {family: sorted(texts) for family, texts in families.items()}
        self.output = re.compile("|".join(self.of))

    async def send(self, request: Request) -> Reply:
        if "2 + 2 =" in request.messages[-1]["content"]:
            return Reply("4")
        count = sum(len(one["content"]) for one in request.messages) // 4
        return Reply(self.answer(request), prompt_tokens=count, completion_tokens=5)

    def answer(self, request: Request) -> str:
        system, last = (request.messages[i]["content"] for i in (0, -1))
        if "[[ ## " in system:
            (*_, name) = (
                n
                for n in re.findall(r"\[\[ ## (\w+) ## \]\]", system)
                if n != "completed"
            )
            said = f"Weigh what the output says, by rule {len(last) % 97}."
            return f"[[ ## {name} ## ]]\n{said}\n\n[[ ## completed ## ]]"
        if "Aim at about" in last:
            return f"Reference text {words(random.Random(last), 5)}, which is plain."
        if "numbered steps, one sentence each" in system:
            return "1. Read it.\n2. Rate it."
        score = self.score(request)
        if "Location:" in system:
            return f"No Error\n\nOverall: {LEVELS[score - 1]}\nReason: it will do"
        if "output 1" in system or "Output 1:" in last:
            return ("Worse", "Worse", "Similar", "Better", "Better")[score - 1]
        if "Clarity: " in system and "each criterion by itself" in system:
            return f"Clarity: It is so. Score: {score}"
        return (
            f"Score: {score}"
            if "one line" in system
            else f"Explanation: It will do.\nScore: {score}"
        )

    def score(self, request: Request) -> int:
        """The label, if the prompt shows it; else a guess that hangs on the row alone."""
        last = folded(request.messages[-1]["content"])
        match = self.output.search(last)
        if match is None:  # a text that this model wrote itself, or a perturbed one
            return random.Random(last).randint(1, 5)
        family, _, label = self.of[match[0]]
        self.judged.update(self.output.findall(last))
        elsewhere = folded("\n".join(m["content"] for m in request.messages[:-1]))
        if any(text in elsewhere for text in self.texts[family]):
            self.leaks[KINDS[int(family) % len(KINDS)]] += 1
            return round(label)
        return random.Random(match[0]).randint(1, 5)


def model_of(copier: Copier) -> LanguageModel:
    return LanguageModel(
        "test/copier",
        copier,
        identity="test",
        connection=Connection(cache=False, attempts=1),
    )


def small(name: str) -> DemonstrationSearch:
    known = optimizers.get(name).Options.model_fields
    return build_optimizer(
        name, {k: v for k, v in {"candidates": 1, "max_demos": 4}.items() if k in known}
    )


# Tests ---------------------------------------------------------------------------------------------------------------


def score_all(judge: Judge, rows: Iterable[Row]) -> None:
    """Score rows without their groups, as `score` knows none."""
    verdicts = list(
        judge.score_many([{"source": row.source, "output": row.output} for row in rows])
    )
    assert np.mean([verdict.failure is None for verdict in verdicts]) > 0.9


@pytest.mark.parametrize("optimizer", optimizers.names())
@pytest.mark.parametrize("method", METHODS)
def test_no_prompt_shows_a_duplicate_of_its_row(method: str, optimizer: str) -> None:
    labels = two_hundred()
    copier = Copier(list(labels.rows))
    judge = js.compile(
        METHODS[method](), labels, lm=model_of(copier), optimizer=small(optimizer)
    )
    assert copier.judged == set(copier.of)
    held = {prediction["id"] for prediction in judge.report.heldout_predictions}
    families = {row.id.partition(".")[0] for row in labels.rows if row.id in held}
    assert not families & {
        row.id.partition(".")[0] for row in labels.rows if row.id not in held
    }
    score_all(judge, [row for row in labels.rows if row.id in held])
    assert copier.leaks == {}


@pytest.mark.parametrize("leaky", [False, True])
def test_many_demonstrations_show_no_duplicate(
    leaky: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_with_duplicates()
    copier = Copier(rows)
    if (
        leaky
    ):  # the control: groups by names alone, and nothing that looks at what is sent
        monkeypatch.setattr(row_context, "check", lambda messages: None)
        monkeypatch.setattr(
            "judgesmith.datasets.records.merge_groups", lambda rows, share: tuple(rows)
        )
        monkeypatch.setattr(JudgePredict, "demos_for", everything_but_its_group)
    split = holdout_split(Labels(tuple(rows), "overall", (1.0, 5.0)), share=0.5)
    search = LabeledFewShot(max_demos=200)
    search.compile(
        critic("vanilla", lm=model_of(copier)), trainset=examples_of(split.train)
    )
    assert search.record is not None
    judge = search.record.tried[-1].program  # whatever the search would say of it
    score_all(judge, split.heldout.rows)
    assert set(copier.leaks) == (set(KINDS) if leaky else set())


def everything_but_its_group(self: Any, inputs: Any) -> Any:
    group = row_context.group()
    return [demo for demo in self.demos if group is None or demo["group"] != group]
