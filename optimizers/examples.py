"""Rows as the optimizers see them: DSPy examples, their human scores in percent, and a judge's scores over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Self

import dspy
import numpy as np
from numpy.typing import NDArray

from judgesmith.agreement.differences import Difference, difference_within
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Objective, Rows
from judgesmith.datasets.duplicates import merge, shared
from judgesmith.datasets.loading import FEWEST
from judgesmith.datasets.orders import read_marks, refuse_unordered
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.errors import JudgesmithError, LabelsError, LeakError, OptionError
from judgesmith.programs import pipeline
from judgesmith.programs.capabilities import weigh_columns
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.price import listed_context
from judgesmith.programs.progress import Progress
from judgesmith.programs.prompting.suspicion import guarded
from judgesmith.programs.readings.bindings.columns import Column
from judgesmith.rows import human_score, source_key
from judgesmith.signatures.values import Item, Scale, Verdict
from judgesmith.tables import shortened

Vector = NDArray[np.float64]
#: Characters of people's reasons that a demonstration shows.
LONGEST_REASON = 400
#: Tokens of a prompt beside its rows, and of what a demonstration may say beside its texts.
BESIDE = 500
SAID = 60
#: Share of a model's context that demonstrations are planned for: their lengths are estimated.
PLANNED = 0.75


def scale_of(labels: Labels) -> Scale:
    """Return the scale of the labels' scores; optimizers take it from nowhere else."""
    return Scale(*labels.scale)


def examples_of(labels: Labels, judge: Judge | None = None) -> list[dspy.Example]:
    """Return one DSPy example for each row.

    Inputs are source, output, context and reference. `score` is the human's in percent [0, 100], `group` the rows that
    must stay on one side of a split, `document` and `system` the ids that agreement levels need, `why` the reasons that
    people gave, and `columns` the numbers that the judge weighs beside the texts.

    Args:
        labels: The rows and their scores.
        judge: The judge whose columns are read; None for texts alone.

    Raises:
        LabelsError: For a row that lacks one of the judge's columns.
    """
    scale = scale_of(labels)
    percents = [scale.to_percent(score) for score in labels.scores.tolist()]
    examples = rated(labels.rows, percents)
    for row, example in zip(labels.rows, examples, strict=True):
        if why := " / ".join(row.why(labels.aspect)):
            example["why"] = shortened(why, LONGEST_REASON)
        if who := row.raters.get(labels.aspect, ()):
            example["raters"] = tuple(who)
    if judge is not None and judge.method.columns():
        for row, example in zip(labels.rows, examples, strict=True):
            example["columns"] = tuple(numbers_of(judge, row, labels.origin).items())
    return examples


def numbers_of(judge: Judge, row: Row, origin: str) -> dict[str, float | str]:
    """Return the columns that a judge weighs beside a row's texts.

    Raises:
        LabelsError: With file and row, for a missing or unreadable column.
    """
    try:
        return pipeline.numbers_of(judge.method, row.columns)
    except OptionError as error:
        raise LabelsError(f"{origin}, row {row.line}: {error}") from None


def in_words(judge: Judge, labels: Labels) -> tuple[Judge, Labels]:
    """Return the judge with its worded signals on the scales of these words, and the labels with a note on each.

    Raises:
        LabelsError: For words whose order only the user knows.
    """
    columns = list(judge.method.columns())
    notes = list[str]()
    for place, column in enumerate(columns):
        if not math.isnan(column.worst):
            continue
        cells = [_cell_of(column, row, labels.origin) for row in labels.rows]
        marks = read_marks([column.name], cells, numbers=True)
        where = f"{labels.origin}, column {column.name!r}"
        refuse_unordered(where, column.name, marks, "--signal")
        if marks.values and not marks.levels:
            raise LabelsError(
                f"{where}: a signal is a number or a word; write {next(iter(marks.values))!r} as a number"
            )
        if marks.values:
            steps: list[list[str]] = []
            for level in marks.levels:
                words = [word for word, value in marks.values.items() if value == level]
                steps.append(words)
            columns[place] = column.in_words(steps)
            notes.append(f"{where}: the signal is read as {marks.shown(cells)}")
    if not notes:
        return judge, labels
    copied = judge.with_()
    weigh_columns(copied.method, columns)
    return copied, replace(labels, warnings=(*labels.warnings, *notes))


def teachable(labels: Labels) -> Labels:
    """Return the labels without rows that address a judge in a text or a person's reason, and a note on these.

    What is learnt from may be shown in every prompt, as a demonstration or to infer the task. A name of an aspect that
    addresses a judge is noted, too.

    Raises:
        LabelsError: If too few are left to learn from.
    """
    kept = list[int]()
    notes = list[str]()
    gone = list[tuple[int, str]]()
    first = ""
    for place, row in enumerate(labels.rows):
        if found := _addresses(row, labels.aspect):
            first = first or f"row {row.id}: {found}"
            gone.append((row.line, "it addresses a judge"))
        else:
            kept.append(place)
    if gone:
        notes.append(
            f"{len(gone)} of {len(labels)} labels are of rows that address a judge (first {first}). They are left "
            "out: nothing is learnt from them or measured on them"
        )
    if gone and len(kept) < FEWEST:
        raise LabelsError(
            f"{labels.origin}: {notes[0]}, and fewer than {FEWEST} labels remain; take those sentences out of the texts"
        )
    if guarded(Item(labels.aspect))[1] is not None:
        notes.append(
            f"the aspect is called {labels.aspect!r}, which addresses a judge and stands in every prompt; give its "
            "column another name"
        )
    if not notes:
        return labels
    account = labels.account
    if account is not None:
        skipped = tuple(sorted([*account.skipped, *gone]))
        left = account.labelled - len(gone)
        account = replace(account, labelled=left, skipped=skipped)
    warnings = (*labels.warnings, *notes)
    return replace(labels.subset(kept), warnings=warnings, account=account)


def _addresses(row: Row, aspect: str) -> str:
    """Return what in a row's texts, or in people's reasons for its score, addresses a judge; "" for nothing."""
    if (found := guarded(row)[1]) is not None:
        return str(found)
    found = guarded(Item("\n".join(row.why(aspect))))[1]
    return str(found or "").replace("the output", "a reason for its score", 1)


def without_addressing(judge: Judge, labels: Labels) -> tuple[Judge, Labels]:
    """Return a judge without demonstrations that address a judge, and the labels with a note on these.

    A judge that is compiled again shows its own in prompts, so that they are looked at as labels are (`teachable`).
    """
    copied = judge.with_()
    every = set[str]()
    gone = dict[str, str]()
    for predictor in copied.predictors():
        kept = []
        for demo in predictor.demos:
            key = row_key(str(demo.get("source")), str(demo.get("output")))
            every.add(key)
            why = _demo_addresses(demo)
            if why:
                gone[key] = why
            else:
                kept.append(demo)
        predictor.demos = kept
    if not gone:
        return judge, labels
    note = (
        f"{len(gone)} of {len(every)} demonstrations of the judge to start from address a judge (first "
        f"{next(iter(gone.values()))}). They are left out"
    )
    return copied, replace(labels, warnings=(*labels.warnings, note))


def _demo_addresses(demo: Mapping[str, Any]) -> str:
    """Return what in a demonstration addresses a judge; "" for nothing."""
    texts = ("output", "source", "context", "reference")
    output, source, context, reference = (str(demo.get(n) or "") for n in texts)
    found = guarded(Item(output, source, context or None, reference or None))[1]
    if found is not None:
        return str(found)
    others = [demo[name] for name in demo if name not in (*texts, "group")]
    found = guarded(Item("\n".join(_texts_in(others))))[1]
    return str(found or "").replace("the output", "what it says of the output", 1)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value of texts, lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in(list(value.values()))
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts_in(part)


def _cell_of(column: Column, row: Row, origin: str) -> Any:
    try:
        return column.cell(row.columns)
    except OptionError as error:
        raise LabelsError(f"{origin}, row {row.line}: {error}") from None


def rated(rows: Sequence[Row], percents: Iterable[float]) -> list[dspy.Example]:
    """Rows with human ratings in percent, in the form that demonstrations have."""
    return [
        dspy.Example(
            source=row.source,
            output=row.output,
            context=row.context,
            reference=row.reference,
            score=percent,
            group=row.group,
            document=row.doc_id,
            system=row.system,
            augmented=False,
            gold=True,
        ).with_inputs("source", "output", "context", "reference")
        for row, percent in zip(rows, percents, strict=True)
    ]


def as_rated(examples: Sequence[Any], scale: Scale) -> list[dspy.Example]:
    """Return a user's examples in the form of `rated`; those already in it are kept.

    The texts and the human score may have any of their names, the score is on this scale; rows of the same source, or
    of nearly the same texts, share a group.

    Raises:
        OptionError: Naming the row, for unreadable texts or scores, and for a score off the scale.
    """
    if all("gold" in example for example in examples):
        return list(examples)
    rows = list[Row]()
    percents = list[float]()
    for number, example in enumerate(examples, start=1):
        try:
            item = Item.of(example)
            human = human_score(example)
        except JudgesmithError as error:
            raise OptionError(f"row {number}: {error}") from None
        percents.append(scale.to_percent(human))
        if not 0 <= percents[-1] <= 100:
            raise OptionError(
                f"row {number}: people's score {human:g} is not on the judge's scale {scale}; make the judge with "
                "scale=js.Scale(lowest, highest)"
            )
        group = item.group or source_key(item.source or item.output)
        system = example.get("system")
        texts = item.output, item.source, item.context, item.reference
        rows.append(
            Row(*texts, id=str(number), system=system, doc_id=group, group=group)
        )
    return rated(merge(rows).applied(rows), percents)


def item_of(example: dspy.Example) -> Item:
    """Return the texts of a row that a judge sees."""
    context, reference, group = (
        example.get(name) for name in ("context", "reference", "group")
    )
    columns = dict(example.get("columns") or ())
    return Item(
        example.output, example.get("source") or "", context, reference, group, columns
    )


def row_key(source: str, output: str) -> str:
    """Twelve hex digits by which a row that a judge was compiled from can be known again."""
    return sha256(
        f"{len(source)}:{source}{output}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:12]


def humans(examples: Sequence[dspy.Example]) -> Vector:
    """Return the human scores in percent, shape (rows,)."""
    return np.array([e.score for e in examples], dtype=float)


def documents(examples: Sequence[dspy.Example]) -> list[str]:
    """Return the document id of each row."""
    return [e.document for e in examples]


def raters(examples: Sequence[dspy.Example]) -> tuple[tuple[str, ...], ...]:
    """Return who rated each row; () for all where nobody is named."""
    every = tuple(tuple(e.get("raters") or ()) for e in examples)
    return every if any(every) else ()


def groups(examples: Sequence[dspy.Example]) -> list[str]:
    """Return the group of each row; rows of one group never stand on both sides of a split."""
    return [e.group for e in examples]


def rows_of(examples: Sequence[dspy.Example]) -> Rows:
    """Return the rows as objectives see them."""
    systems = [e.system for e in examples]
    return Rows(
        humans(examples),
        documents(examples),
        groups(examples),
        systems if all(systems) else None,
    )


def refuse_overlap(
    train: Sequence[dspy.Example], other: Sequence[dspy.Example], sides: str
) -> None:
    """Check that two sets of rows share no group and no text, by the rule of `datasets.duplicates`.

    Raises:
        LeakError: For a group or a text on both sides.
    """
    names = {e.group for e in train} & {e.group for e in other}
    if names:
        raise LeakError(
            f"group {sorted(names)[0]!r} is in the training rows and in {sides}; split by whole groups"
        )
    met = shared(list(map(_row, train)), list(map(_row, other)))
    if met:
        raise LeakError(
            f"row {met[0].other + 1} of {sides} has the same {met[0].common} as training row {met[0].one + 1}, or "
            "nearly the same; remove one"
        )


def _row(example: dspy.Example) -> Row:
    return Row(
        example.output,
        example.source or "",
        id="",
        doc_id=example.document,
        group=example.group,
    )


@dataclass(frozen=True, slots=True)
class Scored:
    """A judge's verdicts over rows, with the raw percents (NaN where it failed)."""

    verdicts: tuple[Verdict, ...]
    percents: Vector

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> Self:
        """Return verdicts with their percents, NaN for failed ones."""
        return cls(tuple(verdicts), percents_of(verdicts))

    @property
    def failed(self) -> int:
        """Return the number of rows without a score."""
        return int(np.isnan(self.percents).sum())


def percents_of(verdicts: Iterable[Verdict]) -> Vector:
    """Raw percents, NaN where the judge failed."""
    return np.array(
        [math.nan if v.failure else v.percent for v in verdicts], dtype=float
    )


def score_rows(
    judge: Judge,
    examples: Sequence[dspy.Example],
    progress: Progress,
    concurrency: int | None = None,
) -> Scored:
    """Judge every row without its own group in the prompt; a failed row is NaN.

    Raises:
        BudgetError: When the budget ends before the last row.
        ModelError: When the model cannot be reached or used.
    """
    verdicts = []
    for verdict in judge.score_many(
        [item_of(e) for e in examples], concurrency=concurrency, progress=False
    ):
        verdicts.append(verdict)
        progress.step()
    return Scored.of(verdicts)


def agreement(
    percents: Vector,
    examples: Sequence[dspy.Example],
    *,
    objective: Objective,
    seed: int,
    rounds: int = 2000,
    new_systems: bool = False,
) -> AgreementValue:
    """Return an objective's value on these rows with its interval."""
    rows = rows_of(examples)
    return AgreementValue.of(
        percents, rows, objective, seed=seed, rounds=rounds, new_systems=new_systems
    )


def difference(
    one: Vector,
    other: Vector,
    examples: Sequence[dspy.Example],
    *,
    objective: Objective,
    seed: int,
    rounds: int = 2000,
    new_systems: bool = False,
) -> Difference:
    """Return the objective of `one` minus that of `other`, with interval and p, both on the same resamples.

    Args:
        one: Scores in percent, shape (rows,).
        other: Scores of the other judge for the same rows.
        examples: The rows with their human scores.
        objective: The measure of agreement.
        seed: Seed of the resamples.
        rounds: Number of resamples.
        new_systems: True if the result is to hold for other systems, too, which then are resampled.
    """
    rows = rows_of(examples)
    both = [one, other]
    others = objective.on_other_systems(both, rows) if new_systems else None
    return difference_within(
        objective.resampled(both, rows), rounds=rounds, seed=seed, others=others
    )


def clearly(gap: Difference, sure: float) -> bool:
    """Return True if the first is ahead with a probability of `sure` or more.

    Its p is two-sided, and NaN where the comparison is undefined, which is no clear win either.
    """
    return bool(gap.value > 0 and gap.p / 2 <= 1 - sure)


def row_tokens(rows: Iterable[Item]) -> int:
    """Return the tokens of a row's texts, about."""
    lengths = list[int]()
    for row in rows:
        texts = (row.source, row.output, row.context, row.reference)
        lengths.append(sum(len(text or "") for text in texts))
    return int(np.mean(lengths) / 3.5) + 20


def room_for(lm: LanguageModel | str | None, rows: Iterable[Item]) -> int | None:
    """Return the demonstrations that a prompt of a model holds beside a row; None if its context is not known."""
    if lm is None:
        return None
    context = lm.context if isinstance(lm, LanguageModel) else listed_context(lm)
    if context is None:
        return None
    tokens = row_tokens(rows)
    left = PLANNED * context - BESIDE - tokens
    return max(1, int(left / (tokens + SAID)))
