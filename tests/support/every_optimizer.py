"""DSPy's optimizers on the evaluators and the methods alone, on every judge and on a parent program.

    python tests/support/every_optimizer.py    # writes the table

The table's cells in programs/DSPY.md are made of these runs.
"""

from __future__ import annotations

import io
import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import dspy
import numpy as np
import optuna
from dspy.experimental import ReAnchor
from dspy.teleprompt import (
    COPRO,
    SIMBA,
    AvatarOptimizer,
    BetterTogether,
    BootstrapFewShotWithOptuna,
    BootstrapFinetune,
    Ensemble,
    InferRules,
    KNNFewShot,
    MIPROv2,
)
from dspy.teleprompt.grpo import GRPO
from dspy.teleprompt.signature_opt import SignatureOptimizer
from judges import JUDGES, PROMPTED

import judgesmith as js
from judgesmith.errors import ArtifactError
from judgesmith.programs import loading
from judgesmith.programs.active_critic.scoring import MultiCriteriaScorer, OverallScorer
from judgesmith.programs.active_critic.task import Labelled, TaskInference
from judgesmith.programs.comparing.comparison import PairwiseComparer
from judgesmith.programs.comparing.synthesis import ReferenceWriter, Target
from judgesmith.programs.judge import Judge
from judgesmith.programs.openlgauge.annotation import (
    AnnotationLayout,
    Annotator,
    Focus,
    Supervisor,
)
from judgesmith.programs.prompting.predict import Evaluator
from judgesmith.signatures.values import Criterion, ErrorSpan
from judgesmith.testing.judges import obliging
from judgesmith.testing.scripted import scripted_models

PAGE = Path(__file__).resolve().parents[2] / "programs/DSPY.md"
BLOCK = re.compile(r"(<!-- optimizers -->\n).*?(<!-- /optimizers -->)", re.DOTALL)
CRITERIA = (Criterion("Clarity", "It is easy to follow."),)
WORDS = ("closed", "open", "painted", "flooded", "for rent", "too small")


def texts(number: int) -> dict[str, str]:
    word = WORDS[number % len(WORDS)]
    return {
        "source": f"Notice {number}: the hall is {word}.",
        "output": f"The hall is {word}, text {number}.",
    }


def rows(
    *, inputs: tuple[str, ...] = ("source", "output"), **more: Callable[[int], Any]
) -> list[dspy.Example]:
    """Six labelled rows, with the field names that people use."""
    made = [
        texts(n) | {name: value(n) for name, value in more.items()} for n in range(6)
    ]
    return [dspy.Example(**one).with_inputs(*inputs) for one in made]


def of_judge(kind: str) -> Subject:
    return Subject(lambda: JUDGES[kind](scale=js.Scale(1, 5)), rows(rating=rating))


def of_method(kind: str) -> Subject:
    """A method without a judge, as a user makes it."""
    return Subject(lambda: JUDGES[kind]().method, rows(rating=rating))


def rating(number: int) -> int:
    return 1 + number * 2 % 5


@dataclass(frozen=True)
class Subject:
    """What is compiled: how it is made, and the rows. scale: of their ratings, where it has to be told."""

    make: Callable[[], Any]
    rows: list[dspy.Example]
    scale: bool = True

    def made(self) -> Any:
        module = self.make()
        if self.scale and not isinstance(module, Judge):
            module.scale = js.Scale(1, 5)
        return module


class Parent(dspy.Module):  # type: ignore[misc]
    """A program of a user's own with an evaluator and a judge in it."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = OverallScorer("before", "said")
        self.scorer.scale = js.Scale(1, 5)
        self.judge = js.Judge(js.DirectScorer("fluency"), scale=js.Scale(1, 5))

    def forward(self, source: str, output: str) -> dspy.Prediction:
        first = self.scorer(source=source, output=output)
        return dspy.Prediction(
            score=first.score + self.judge(source=source, output=output).percent
        )


def reported(number: int) -> dict[str, tuple[ErrorSpan, ...]]:
    return {
        name: (ErrorSpan(f"text {number}", f"It is {name}.", 3.0),)
        for name in ("dull", "vague")
    }


def labelled(number: int) -> list[Labelled]:
    return [Labelled(**texts(number + place), score=20.0 * place) for place in range(5)]


def better_or_worse(number: int) -> str:
    return ("better", "worse")[number % 2]


FOCUS = Focus("fluency", "It reads well.")
EVALUATORS: dict[str, Subject] = {
    "overall scorer": Subject(
        lambda: OverallScorer("before", "said"), rows(rating=rating)
    ),
    "criteria scorer": Subject(
        lambda: MultiCriteriaScorer("before", "said"),
        rows(
            rating=rating,
            criteria=lambda _: CRITERIA,
            inputs=("source", "output", "criteria"),
        ),
    ),
    "annotator": Subject(
        lambda: Annotator(AnnotationLayout()),
        rows(
            rating=rating, focus=lambda _: FOCUS, inputs=("source", "output", "focus")
        ),
    ),
    "comparer": Subject(
        PairwiseComparer,
        rows(
            other=lambda n: f"Another hall, {n}.",
            winner=better_or_worse,
            inputs=("source", "output", "other"),
        ),
    ),
    "supervisor": Subject(
        Supervisor, rows(reported=reported, inputs=("output", "reported")), scale=False
    ),
    "task inference": Subject(
        TaskInference,
        rows(
            examples=labelled,
            description=lambda _: "Notices about halls are judged.",
            inputs=("examples",),
        ),
        scale=False,
    ),
    "reference writer": Subject(
        ReferenceWriter,
        rows(
            rating=rating,
            target=lambda _: Target(levels=1, words=9),
            level=lambda _: 1,
            inputs=("source", "target"),
        ),
        scale=False,
    ),
    "a parent program": Subject(Parent, rows(rating=rating), scale=False),
}


class Seen:
    """A metric that any prediction satisfies, and those best whose prompts showed most demonstrations.

    So a search chooses a program that has some. It reads the last prompt that was sent, and on several threads that may
    be another row's: every search runs on one.
    """

    requests: ClassVar[list[Any]] = []

    def __call__(
        self,
        gold: Any,
        prediction: Any,
        trace: Any = None,
        name: Any = None,
        steps: Any = None,
    ) -> float:
        latest = shown_in(self.requests[-1]) if self.requests else 0
        return 0.5 + min(latest, 5) / 10


good = Seen()


def nearest(texts_: list[str]) -> Any:
    return np.array([[len(text), sum(map(ord, text)) % 97] for text in texts_], float)


def mipro(subject: Subject, module: Any, lm: Any) -> Any:
    search = MIPROv2(
        good,
        prompt_model=lm,
        task_model=lm,
        auto=None,
        num_candidates=4,
        max_bootstrapped_demos=2,
        max_labeled_demos=2,
        num_threads=1,
    )
    return search.compile(
        module,
        trainset=subject.rows,
        valset=subject.rows,
        num_trials=8,
        minibatch=False,
    )


def gepa(subject: Subject, module: Any, lm: Any) -> Any:
    search = dspy.GEPA(
        good,
        max_metric_calls=14,
        reflection_minibatch_size=2,
        reflection_lm=lm,
        num_threads=1,
    )
    return search.compile(module, trainset=subject.rows, valset=subject.rows)


def simba(subject: Subject, module: Any, lm: Any) -> Any:
    search = SIMBA(
        metric=good,
        bsize=3,
        num_candidates=2,
        max_steps=1,
        max_demos=1,
        prompt_model=lm,
        num_threads=1,
    )
    return search.compile(module, trainset=subject.rows, seed=0)


def copro(subject: Subject, module: Any, lm: Any) -> Any:
    search = COPRO(prompt_model=lm, metric=good, breadth=2, depth=1)
    return search.compile(
        module,
        trainset=subject.rows,
        eval_kwargs={"num_threads": 1, "display_progress": False},
    )


def together(subject: Subject, module: Any, lm: Any) -> Any:
    module.set_lm(lm)
    with dspy.context(experimental=True):
        search = BetterTogether(good, p=dspy.BootstrapFewShot(good))
        return search.compile(
            module,
            trainset=subject.rows,
            valset=subject.rows,
            strategy="p",
            num_threads=1,
            seed=0,
        )


def finetune(subject: Subject, module: Any, lm: Any) -> Any:
    return BootstrapFinetune(good, num_threads=1).compile(module, trainset=subject.rows)


def grpo(subject: Subject, module: Any, lm: Any) -> Any:
    return GRPO(good, num_threads=1, exclude_demos=True).compile(
        module, trainset=subject.rows
    )


def signature_optimizer(subject: Subject, module: Any, lm: Any) -> Any:
    search = SignatureOptimizer(prompt_model=lm, metric=good, breadth=2, depth=1)
    return search.compile(
        module,
        devset=subject.rows,
        eval_kwargs={"num_threads": 1, "display_progress": False},
    )


def with_optuna(subject: Subject, module: Any, lm: Any) -> Any:
    search = BootstrapFewShotWithOptuna(
        good, num_candidate_programs=2, max_bootstrapped_demos=2, num_threads=1
    )
    sampler = optuna.samplers.TPESampler(seed=0)  # DSPy gives it none
    create = partial(optuna.create_study, sampler=sampler)
    with patch.object(optuna, "create_study", create):
        return search.compile(
            module, max_demos=2, trainset=subject.rows, valset=subject.rows
        )


def infer_rules(subject: Subject, module: Any, lm: Any) -> Any:
    search = InferRules(num_candidates=1, num_rules=2, num_threads=1, metric=good)
    return search.compile(module, trainset=subject.rows, valset=subject.rows)


def reanchor(subject: Subject, module: Any, lm: Any) -> Any:
    search = ReAnchor(good, num_threads=1, require_cache=False)
    return search.compile(module, trainset=subject.rows)


def avatar(subject: Subject, module: Any, lm: Any) -> Any:
    return AvatarOptimizer(metric=good).compile(module, trainset=subject.rows)


def ensemble(subject: Subject, module: Any, lm: Any) -> Any:
    """Of two programs, the second with demonstrations."""
    shown = dspy.LabeledFewShot(k=2).compile(module.deepcopy(), trainset=subject.rows)
    return Ensemble(reduce_fn=lambda outputs: outputs[-1]).compile([module, shown])


OPTIMIZERS: dict[str, Callable[[Subject, Any, Any], Any]] = {
    "LabeledFewShot": lambda s, module, lm: dspy.LabeledFewShot().compile(
        module, trainset=s.rows
    ),
    "BootstrapFewShot": lambda s, module, lm: dspy.BootstrapFewShot(good).compile(
        module, trainset=s.rows
    ),
    "BootstrapFewShotWithRandomSearch": lambda s, module, lm: (
        dspy.BootstrapFewShotWithRandomSearch(
            good, num_candidate_programs=2, num_threads=1
        ).compile(module, trainset=s.rows)
    ),
    "MIPROv2": mipro,
    "COPRO": copro,
    "SIMBA": simba,
    "GEPA": gepa,
    "KNNFewShot": lambda s, module, lm: KNNFewShot(
        2, s.rows, dspy.Embedder(nearest), metric=good
    ).compile(module),
    "Ensemble": ensemble,
    "BetterTogether": together,
    "BootstrapFewShotWithOptuna": with_optuna,
    "InferRules": infer_rules,
    "SignatureOptimizer": signature_optimizer,
    "ReAnchor": reanchor,
    "BootstrapFinetune": finetune,
    "GRPO": grpo,
    "AvatarOptimizer": avatar,
}
#: Those that give demonstrations.
SHOWING = (
    *(
        "LabeledFewShot",
        "BootstrapFewShot",
        "BootstrapFewShotWithRandomSearch",
        "MIPROv2",
        "KNNFewShot",
        "Ensemble",
    ),
    *("BetterTogether", "BootstrapFewShotWithOptuna", "InferRules"),
)


def answer() -> Callable[[Any], str]:
    """A model that gives every prompt the form of its answer; a score depends on the whole prompt."""
    oblige = obliging()

    def said(request: Any) -> str:
        system = request.messages[0]["content"]
        if "compare two outputs" in system:
            return "Better"
        if "on each criterion by itself" in system:
            named = re.search(r"^(.+): <one short sentence>", system, re.MULTILINE)
            return f"{named[1] if named else 'Clarity'}: It is clear.\nScore: {digit(request)}0"
        if "Make one list" in system or "make one list" in system:
            return 'Error 1\nLocation: "text"\nExplanation: It is dull.\nSeverity: 3'
        if "errors of one kind" in system:
            return 'Error 1\nLocation: "text"\nExplanation: It is dull.\nSeverity: 3\n\nOverall: Fair\nReason: So.'
        if "Answer in JSON" in system:
            return '{"criteria": [{"name": "Truth", "definition": "It is true."}]}'
        if not request.grammar and "Your output fields are" not in system:
            return f"A plain text, number {digit(request)}."
        return re.sub(r"(Score: )\d+", rf"\g<1>{digit(request)}", oblige(request))

    def digit(request: Any) -> int:
        return (
            1
            + sum(sum(map(ord, message["content"])) for message in request.messages) % 5
        )

    return said


def shown_in(request: Any) -> int:
    """Demonstrations in a prompt: turns before the last, and examples in the system message."""
    turns = sum(message["role"] == "assistant" for message in request.messages)
    return turns + sum(
        message["content"].count("<example>") for message in request.messages
    )


@dataclass(frozen=True)
class Cell:
    """What came out. shown: most demonstrations in a prompt that was sent; problem: one line, where it cannot work."""

    shown: int = 0
    saved: bool = True
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return "no"
        return f"{self.shown}" + ("" if self.saved else ", not saved")


@contextmanager
def quiet() -> Iterator[None]:
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(previous)


def outputs_of(module: Any, subject: Subject) -> list[Any]:
    if getattr(module, "whole_documents", False):
        return [
            {"score": str(verdict.score)} for verdict in module.score_many(subject.rows)
        ]
    return [
        {name: str(value) for name, value in module(**row.inputs()).items()}
        for row in subject.rows[:3]
    ]


def cell(subject: Subject, optimizer: str) -> Cell:
    """Compile, call, save, load, and call again. Raises AssertionError where the loaded module gives other outputs."""
    with (
        scripted_models() as scripted,
        tempfile.TemporaryDirectory() as folder,
        quiet(),
    ):
        lm, transport = scripted(answer(), grammar=True)
        Seen.requests = transport.requests
        with dspy.context(lm=lm):
            module = subject.made()
            try:
                made = OPTIMIZERS[optimizer](subject, module, lm)
            except Exception as error:
                return Cell(problem=" ".join(str(error).split()))
            transport.requests.clear()
            mine = outputs_of(made, subject)
            shown = max(map(shown_in, transport.requests), default=0)
            if "forward" in vars(made) and not isinstance(made, Evaluator | Judge):
                return Cell(
                    shown, saved=False
                )  # DSPy saves a user's own program without what KNNFewShot put in it
            path = Path(folder) / "module.json"
            try:
                made.save(path)
            except ArtifactError:
                return Cell(shown, saved=False)
            if type(made) is not type(module):
                return Cell(shown, saved=False)
            again = subject.made()
            if isinstance(again, Judge):
                again = loading.load(path, lm=lm)
            else:
                again.load(path)
            assert outputs_of(again, subject) == mine
            return Cell(shown)


def table(cells: dict[tuple[str, str], Cell]) -> str:
    """The table of the page: subjects × optimizers."""
    head = ["", *OPTIMIZERS]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for subject in SUBJECTS:
        lines.append(
            f"| {subject} | "
            + " | ".join(str(cells[subject, one]) for one in OPTIMIZERS)
            + " |"
        )
    return "\n".join(lines) + "\n"


@cache
def found(subject: str, optimizer: str) -> Cell:
    """The cell of the table."""
    kind = subject.removeprefix(METHOD)
    make = of_judge if kind == subject else of_method
    module = EVALUATORS.get(subject) or make(kind)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return cell(module, optimizer)


SUBJECTS = [*EVALUATORS, *PROMPTED]
#: Before the kind of a method that no judge holds.
METHOD = "method "


def with_table(text: str) -> str:
    """The page with its table."""
    cells = {
        (subject, one): found(subject, one)
        for subject in SUBJECTS
        for one in OPTIMIZERS
    }
    return BLOCK.sub(lambda block: f"{block[1]}\n{table(cells)}\n{block[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
