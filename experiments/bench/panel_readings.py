"""Record what forms of a panel say of rows by the probabilities of their answers, without a generated answer.

    python experiments/bench/panel_readings.py SET -o FOLDER [--lm local/qwen2.5-1.5b] [--forms …] [--rows 500]
        [--seconds 280]

Forms are those of a panel whose answer is one of few texts, `digits` (as a direct judge asks where it has
probabilities), and `three`: the panel's criteria first, three of them, without explanations. A form's expected score is
that of its values by the model's probabilities; of several lines it is the mean, and each line follows the likeliest
answers to those before. The likeliest answer is kept, too: that is what a panel hears. Rows, order and files are as in
`panels.py`. `panel_readings_gains.py` says what is in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from judgesmith.experiments.bench.panels import (
    SETS,
    Table,
    arguments,
    kept_at,
    print_for,
)
from judgesmith.programs.active_critic.scoring import OverallScorer
from judgesmith.programs.aspects import known_aspect
from judgesmith.programs.models.lm import language_model
from judgesmith.programs.models.transport import Choice
from judgesmith.programs.openlgauge.annotation import Focus
from judgesmith.programs.openlgauge.reading import LABELS
from judgesmith.programs.panel.forms import Member
from judgesmith.programs.prompting.layouts import CriteriaLayout
from judgesmith.programs.prompting.predict import JudgePredict, material
from judgesmith.programs.readings.bindings.batches import Row
from judgesmith.programs.readings.bindings.opening import open_reader
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.head import Vector
from judgesmith.programs.readings.passages import Piece
from judgesmith.signatures.values import Criterion, Item

#: Rows that a form judges before the next form has its turn.
AT_ONCE = 32
FORMS = ("digits", "percent", "words", "questions", "three")
#: Criteria that an aspect consists of; written before any row was read.
THREE = {
    "wiki_da": (
        Criterion("nothing lost", "All that is essential in the original is said."),
        Criterion("nothing added", "It says nothing that the original does not say."),
        Criterion("nothing changed", "Names, numbers and relations are as they were."),
    ),
    "summeval": (
        Criterion("order", "The sentences come in a sensible order, linked well."),
        Criterion("references", "Pronouns and names refer to what was introduced."),
        Criterion("main ideas", "The main ideas are easy to make out, as a whole."),
    ),
}
#: An answer's share below which it is not looked at any further; and in place of a token: here a text ends.
LEAST = 0.1
END = -1


class Question(NamedTuple):
    """What a form asks of a row: a prompt, and parts of an answer that is one of few texts."""

    prompt: list[int]
    parts: tuple[Choice, ...]


@dataclass(frozen=True)
class Form:
    """A form that asks for an aspect."""

    predict: JudgePredict
    inputs: Callable[[Item], dict[str, Any]]

    def question(self, item: Item, reader: OpenVinoReader) -> Question:
        """Return the prompt of a row, and the answers that there may be."""
        inputs = self.inputs(item)
        messages = self.predict.messages(inputs)
        turns = [(message["role"], message["content"]) for message in messages]
        return Question(reader.prompt(turns), self.predict.layout.choices(inputs))


def form_of(name: str, set_: str) -> Form:
    """Return a form of a set's aspect."""
    aspect, task = known_aspect(SETS[set_].library)
    about = task.description if task else ""
    criteria: tuple[Criterion, ...] = (Criterion(aspect.name, aspect.definition),)
    if name in ("percent", "words", "questions"):
        member = Member(name)  # type: ignore[arg-type]
        focus = Focus(aspect.name, aspect.definition, about)
        return Form(member.predict, lambda item: member.inputs(item, focus, criteria))
    predict = OverallScorer("none", "expected").predict
    if name == "three":
        predict = Member("criteria").predict
        criteria = THREE[set_]
        predict.layout = CriteriaLayout("none", "expected")
    shared = {"task": about, "aspect": aspect.name, "criteria": criteria}
    return Form(predict, lambda item: {**shared, **material(item)})


def worth(values: Sequence[str]) -> Vector:
    """Return what the values of an answer stand for, in percent.

    >>> worth(("1", "2", "3", "4", "5")).tolist()
    [0.0, 25.0, 50.0, 75.0, 100.0]
    >>> worth(("Yes", "No")).tolist()
    [100.0, 0.0]
    """
    if values[0].isdigit():
        numbers = np.array(values, float)
        low = numbers.min()
        high = numbers.max()
        return np.asarray(100 * (numbers - low) / (high - low))
    steps = np.linspace(0, 100, len(values))
    return steps if tuple(values) == tuple(LABELS) else steps[::-1]


class Asking:
    """Asks a model by one look at what comes next, or by as many as the tokens of an answer need."""

    def __init__(self, reader: OpenVinoReader) -> None:
        self.reader = reader

    def answered(self, question: Question) -> tuple[float, float, float]:
        """Return the expected percent, the likeliest answer's, and the least share of its answers' probability."""
        begun = question.prompt
        expected = []
        said = []
        mass = 1.0
        for place, (lead, values) in enumerate(question.parts):
            later = question.parts[place + 1 :][:1]
            ends = [self.tokens(lead + values[0])[0] for lead, values in later]
            texts = [self.tokens(lead + value) for value in values]
            shares = np.array(self.shares(begun, texts, ends or self.stops))
            percents = worth(values)
            likeliest = int(shares.argmax())
            expected.append(float(percents @ shares / shares.sum()))
            said.append(float(percents[likeliest]))
            mass = min(mass, float(shares.sum()))
            begun = begun + texts[likeliest]
        return float(np.mean(expected)), float(np.mean(said)), mass

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a part of an answer."""
        return self.reader.words.tokens(Piece(text))

    @property
    def stops(self) -> Sequence[int]:
        """Return the tokens that end an answer."""
        return self.reader.words.stops

    def shares(
        self, begun: list[int], texts: Sequence[list[int]], ends: Sequence[int]
    ) -> list[float]:
        """Return the probability of each text, after what the texts begin with in common."""
        shares = [0.0] * len(texts)
        columns = zip(*texts, strict=False)
        common = len(list(takewhile(lambda tokens: len(set(tokens)) == 1, columns)))

        def look(depth: int, places: list[int], share: float) -> None:
            prefix = texts[places[0]][:depth]
            row = Row(begun + prefix, len(begun) + depth - 1)
            (logp,) = self.reader.following([row])
            nexts: dict[int, list[int]] = {}
            for place in places:
                after = texts[place][depth : depth + 1] or [END]
                nexts.setdefault(after[0], []).append(place)
            for token, some in nexts.items():
                seen = logp[-1][list(ends)] if token == END else logp[-1][[token]]
                part = share * float(np.exp(seen).sum())
                if len(some) > 1 and part >= LEAST:
                    look(depth + 1, some, part)
                    continue
                for place in some:
                    shares[place] = part / len(some)

        look(common, list(range(len(texts))), 1.0)
        return shares


def ask(
    set_: str, forms: Sequence[str], asking: Asking, table: Table, count: int
) -> Iterator[str]:
    """Ask every form of a few rows after the other, and yield a line after each."""
    asked = SETS[set_]
    rows = asked.rows()[:count]
    for start in range(0, len(rows), AT_ONCE):
        block = rows[start : start + AT_ONCE]
        for name in forms:
            form = form_of(name, set_)
            left = table.left(set_, name, block)
            for row in left:
                used = time.process_time()
                question = form.question(asked.item(row), asking.reader)
                answer = answer_of(set_, name, row, asking.answered(question))
                seconds = round(time.process_time() - used, 3)
                table.add({**answer, "processor seconds": seconds})
            if left:
                yield f"{set_} {name}: {start + len(block)} of {len(rows)}"


def answer_of(
    set_: str, form: str, row: Mapping[str, Any], found: Sequence[float]
) -> dict[str, Any]:
    """Return an answer as the file has it."""
    numbers = [round(number, 4) for number in found]
    named = dict(zip(("percent", "said", "mass"), numbers, strict=True))
    return {"set": set_, "form": form, "id": row["id"], **named}


def main() -> None:
    """Ask until the time is over."""
    options = arguments(__doc__, forms=FORMS, rows=500)
    reader = open_reader(options.lm, language_model(options.lm)).reader
    if not isinstance(reader, OpenVinoReader):
        raise SystemExit(f"{options.lm} is not read by OpenVINO here")
    forms = options.forms.split(",")
    table = kept_at(options)
    lines = ask(options.set, forms, Asking(reader), table, options.rows)
    print_for(options.seconds, lines)


if __name__ == "__main__":
    main()
