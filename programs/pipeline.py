"""The way from a row to a verdict, in small steps that are read from bottom to top.

They are judging, failures as NaN, outcome, guard and explanation. Every judge takes this way, whatever its method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import dspy
from dspy.utils.exceptions import AdapterParseError

from judgesmith.errors import CallError, OptionError
from judgesmith.programs.capabilities import ranks_documents
from judgesmith.programs.models import row_context
from judgesmith.programs.models.as_dspy import Result, predictors_of
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.outcome import Outcome
from judgesmith.programs.prompting.layouts import SentencesLayout
from judgesmith.programs.prompting.predict import JudgePredict, material
from judgesmith.programs.prompting.suspicion import marked, screened, weighed
from judgesmith.rows import human_score
from judgesmith.signatures.judging import ExplainScore
from judgesmith.signatures.values import Item, Scale, Verdict
from judgesmith.trajectories.value import GONE, shown_share

#: The form of an explanation that is asked for after the score.
EXPLAIN = 'Answer with one or two short sentences that begin with "The output". Do not repeat the score or the texts.'
#: By how much a raw score may leave 0..100 and is cut; beyond, it is a failure.
ROUNDING = 1e-6


def called_with(
    source: str | None,
    output: str | None,
    context: str | None,
    reference: str | None,
    group: str | None,
    columns: Mapping[str, float] | None,
    row: Mapping[str, Any],
) -> Item:
    """Return the row of a call in DSPy's form.

    Args:
        source: The source.
        output: The judged text.
        context: Further material.
        reference: A good output.
        group: The document.
        columns: Numbers that the method weighs.
        row: The texts under other names that `judgesmith.rows` knows, and other columns of the row.
    """
    if not row:
        return Item(
            output or "", source or "", context, reference, group, columns or {}
        )
    texts = {
        "output": output,
        "source": source,
        "context": context,
        "reference": reference,
        "group": group,
    }
    return Item.of({name: text for name, text in texts.items() if text} | dict(row))


def as_prediction(verdict: Verdict) -> Result[Verdict]:
    """Return a verdict in DSPy's form."""
    return Result(
        verdict,
        score=verdict.score,
        percent=verdict.percent,
        explanation=verdict.explanation,
        criteria={name: c.score for name, c in verdict.criteria.items()},
        errors=list(verdict.errors),
        failure=verdict.failure,
    )


def told(method: Judging, item: Item, verdict: Verdict) -> Result[Verdict]:
    """Return a verdict in DSPy's form, with the number of demonstrations that its prompt left out, if any.

    Those are of the row itself, or of its document.
    """
    prediction = as_prediction(verdict)
    counts = [0]
    for predictor in method.taught():
        demos = predictor.demos
        counts.append(len(demos) - len(row_context.allowed(demos, item)))
    if left_out := max(counts):
        prediction.left_out = left_out
    return prediction


class Judging(Protocol):
    """What a method is, for the way from a row to a verdict; see `method.Method`."""

    kind: ClassVar[str]
    tells_by_numbers: ClassVar[bool]
    knowledge: Any

    @property
    def brief(self) -> bool:
        """Return True for answers of a word or a number."""

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Judge one output."""

    def without_own_document(
        self, item: Item, predictors: Sequence[Any] | None = None
    ) -> Self:
        """Return the method for a row."""

    def predictors(self) -> list[Any]:
        """Return its predictors."""

    def taught(self) -> list[JudgePredict]:
        """Return those that demonstrations are for."""

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a row as a demonstration."""

    def columns(self) -> tuple[Any, ...]:
        """Return the columns that it weighs."""

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages for a row."""


def ranked_only(method: Judging) -> Verdict | None:
    """Return why a method gives no score to a single output, as a verdict; None where it does."""
    if not ranks_documents(method):
        return None
    return Verdict.failed(
        f"{method.kind} ranks several outputs of a document against each other and gives no score to a single one; use "
        "score_many(rows), or a file"
    )


async def judge_row(
    method: Judging, outcome: Outcome, item: Item, lm: LanguageModel
) -> tuple[Verdict, Item]:
    """Judge one row: as it is, and without the sentences that address a judge, if there are such.

    The lower verdict counts. A row of which too little would be left is judged as it is.

    Args:
        method: The method.
        outcome: The outcome.
        item: The row.
        lm: A model that the method was prepared for.

    Returns:
        The verdict, and the row without those sentences.
    """
    if not item.output.strip():
        return Verdict.failed("the output is empty"), item
    safe, suspicion = await screened(item)
    verdict = await scored(method, outcome, item, lm)
    if suspicion is not None and (safe == item or not safe.output.strip()):
        verdict = marked(verdict, suspicion)
    elif suspicion is not None:
        without = await scored(method, outcome, safe, lm)
        verdict = weighed(verdict, without, suspicion, item.output)
    return _with_shares(item, verdict), safe


async def scored(
    method: Judging, outcome: Outcome, item: Item, lm: LanguageModel
) -> Verdict:
    """Judge a row as it stands; a failure is NaN with its reason."""
    verdict = await unmapped(method, outcome.scale, item, lm)
    return verdict if verdict.failure is not None else outcome(verdict, item)


async def unmapped(
    method: Judging, scale: Scale, item: Item, lm: LanguageModel
) -> Verdict:
    """Judge a row as it stands, its own document out of the prompt; a failure is NaN with its reason.

    The verdict has all calls that were made for it, and nothing yet of what an outcome makes of the percent.
    """
    predictors = predictors_of(method)
    settle_demos(method, scale, predictors)
    demos = [demo for predictor in predictors for demo in predictor.demos]
    with row_context.judging(item, demos) as calls:
        try:
            for_row = method.without_own_document(item, predictors)
            verdict = await for_row.judge(item, lm)
        except CallError as error:
            usage = calls.usage if calls.usages else getattr(error, "usage", None)
            return Verdict.failed(
                str(error), usage=usage, raw=getattr(error, "raw", ())
            )
        except AdapterParseError as error:
            raw = tuple(reply.text for reply in calls.replies)
            words = " ".join(str(error).split())[:200]
            return Verdict.failed(
                f"the answer cannot be read: {words}", usage=calls.usage, raw=raw
            )
    counted = calls.usage
    reported = verdict.usage
    if (
        counted.calls + counted.cached > reported.calls + reported.cached
    ):  # a method need not keep account
        raw = tuple(reply.text for reply in calls.replies)
        verdict = verdict.model_copy(update={"usage": counted, "raw": raw})
    failure = verdict.failure or _no_percent(verdict.percent)
    if failure is not None:
        return verdict.model_copy(update={"score": math.nan, "failure": failure})
    if 0.0 <= verdict.percent <= 100.0:
        return verdict
    percent = min(100.0, max(0.0, verdict.percent))
    return verdict.model_copy(update={"percent": percent})


async def explained(
    method: Judging,
    outcome: Outcome,
    safe: Item,
    verdict: Verdict,
    lm: LanguageModel,
    aspect: str,
) -> Verdict:
    """Add the model's reasons, written in one call, for the output's score.

    A verdict without a score, or with an explanation that a model wrote, stays unchanged. A failed call leaves a note.

    Args:
        method: The method.
        outcome: The outcome.
        safe: The row without sentences that address a judge.
        verdict: The verdict.
        lm: The model.
        aspect: The aspect of the score.
    """
    if verdict.failure is not None or (
        verdict.explanation and not method.tells_by_numbers
    ):
        return verdict
    low = outcome.scale.low
    high = outcome.scale.high
    score = (
        verdict.category
        or f"{verdict.score:.3g} on a scale from {low:g} (very poor) to {high:g} (excellent)"
    )
    knowledge = {
        "task": method.knowledge.description,
        "criteria": method.knowledge.criteria,
        "aspect": aspect,
    }
    predict = JudgePredict(
        ExplainScore, SentencesLayout("explanation", EXPLAIN, tokens=160)
    )
    try:
        answer = await predict.ask(lm, {**knowledge, **material(safe), "score": score})
    except CallError as error:
        return verdict.model_copy(
            update={"notes": (*verdict.notes, f"no written explanation: {error}")}
        )
    written = (
        f"Written by {lm.name} after the score: {answer.read.values['explanation']}"
    )
    more = {"usage": verdict.usage + answer.usage, "raw": (*verdict.raw, *answer.raw)}
    return verdict.model_copy(
        update={"explanation": f"{verdict.explanation}\n\n{written}".strip(), **more}
    )


def rows_at_once(
    method: Judging, lm: LanguageModel, concurrency: int | None = None
) -> int:
    """Return how many rows are best under way at once.

    The model limits its calls. Where that limit binds, a quarter more rows have their prompts ready: a call that ends
    is followed at once by another, instead of by the writing of its prompt.

    Args:
        method: The method that judges them.
        lm: Its model.
        concurrency: The caller's limit of rows.
    """
    # Measured on llama.cpp: for answers of a few tokens one call at a time is faster, since each slot would compute the
    # shared prompt for itself; for longer answers the slots' batching wins.
    best = 1 if method.brief and lm.one_by_one else lm.concurrency
    rows = concurrency or best
    return rows + lm.concurrency // 4 if rows >= lm.concurrency else rows


def numbers_of(method: Judging, record: Mapping[str, Any]) -> dict[str, float | str]:
    """Return a record's columns that the method weighs, by their names; NaN for an empty cell.

    Raises:
        OptionError: For a record that lacks one, or has neither a number nor a word of its scale in it.
    """
    return {column.name: column.kept(record) for column in method.columns()}


# Demonstrations ------------------------------------------------------------------------------------------------------


def settle_demos(
    method: Judging, scale: Scale, predictors: Sequence[dspy.Predict] | None = None
) -> None:
    """Bring demonstrations that DSPy's optimizers made into the form of `Method.demonstration`.

    DSPy gives raw rows, with people's score on the judge's scale, and steps of a trace.

    Args:
        method: The method.
        scale: The judge's scale.
        predictors: All of the method's, if they are at hand.

    Raises:
        OptionError: For a row without a human score, or with one that leaves the scale.
    """
    own = method.predictors() if predictors is None else predictors
    foreign = list(filter(_has_foreign, own))
    taught = list(map(id, method.taught())) if foreign else []
    for predictor in foreign:
        demos = predictor.demos if id(predictor) in taught else []
        shown = [_demonstrated(method, scale, demo, predictor) for demo in demos]
        predictor.demos = [demo for demo in shown if demo is not None]


def _has_foreign(predictor: dspy.Predict) -> bool:
    """Return whether a predictor has demonstrations that are not in this package's form."""
    if not isinstance(predictor, JudgePredict):
        return False
    return any("gold" not in demo for demo in predictor.demos)


def _demonstrated(
    method: Judging, scale: Scale, demo: Any, predictor: JudgePredict
) -> Any:
    """Return a demonstration as prompts show it; None for a step that gave nothing to show."""
    if "gold" in demo or demo.get("augmented"):
        return predictor.shown(demo)
    percent = scale.to_percent(human_score(demo))
    if not 0 <= percent <= 100:
        raise OptionError(
            f"people's score {human_score(demo):g} of a row is not on the judge's scale {scale}; make the judge with "
            "scale=js.Scale(lowest, highest)"
        )
    return method.demonstration(Item.of(demo), None) | {
        "score": percent,
        "augmented": False,
        "gold": True,
    }


def teach(method: Judging, demo: Mapping[str, Any]) -> None:
    """Show a demonstration, as `Method.demonstration` made it, in the prompts of what is taught."""
    for predictor in method.taught():
        predictor.demos.append({"augmented": False, "gold": True, **demo})


def previews(method: Judging, scale: Scale, item: Item) -> dict[str, list[Message]]:
    """Return the messages that each predictor would send for a row, by the predictor's name. Calls no model."""
    settle_demos(method, scale)
    with row_context.under(item):
        return method.prompts(item)


# A verdict's parts ---------------------------------------------------------------------------------------------------


def _no_percent(percent: float) -> str | None:
    """Return why this is no raw score; None for one in 0..100, but for rounding."""
    if math.isnan(percent):
        return "the judge gave no score"
    if -ROUNDING <= percent <= 100 + ROUNDING:
        return None
    return f"the judge gave {percent:g}, which is outside 0..100"


def _with_shares(item: Item, verdict: Verdict) -> Verdict:
    """Add the share of each trajectory that its text shows: long results of tools are cut there."""
    texts = {
        "source": item.source,
        "context": item.context or "",
        "output": item.output,
    }
    cut = {}
    for name, text in texts.items():
        if GONE in text and (share := shown_share(text)) < 1:
            cut[name] = share
    if not cut:
        return verdict
    shown = ", ".join(f"{share:.0%} of the {name}" for name, share in cut.items())
    note = (
        f"long results of tools and arguments are cut in their middle: {shown} is shown"
    )
    partly = {
        name: round(share * verdict.partly.get(name, 1.0), 4)
        for name, share in cut.items()
    }
    return verdict.model_copy(
        update={"notes": (*verdict.notes, note), "partly": {**verdict.partly, **partly}}
    )
