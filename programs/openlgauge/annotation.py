"""The two steps of OpeNLGauge: an annotator that marks errors, and a supervisor that merges what several marked.

Paper: "OpeNLGauge: An Explainable Metric for NLG Evaluation with Open-Weights LLMs" (§4, appendix E). Prompts are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import dspy

from judgesmith.disarming import disarm
from judgesmith.programs.answers.likely import share_of_words
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.openlgauge.reading import (
    LABELS,
    MOST,
    SEVERITIES,
    Annotation,
    FoundError,
    annotation_form,
    read_annotation,
)
from judgesmith.programs.prompting.forms import Blocks, Form, Line, choice, number
from judgesmith.programs.prompting.layouts import DIGITS, Layout, Reading
from judgesmith.programs.prompting.predict import (
    Answer,
    Call,
    Evaluator,
    JudgePredict,
    material,
)
from judgesmith.signatures.judging import AnnotateErrors, MergeAnnotations
from judgesmith.signatures.values import ErrorSpan, Item

#: Errors that a grammar allows unless told otherwise: the small models that need one go on and on where they may.
FORCED_MOST = 4
#: Tokens that an error in an answer may take, and all else in it.
OF_AN_ERROR = 180
OF_THE_REST = 180
Overall = Literal["labels", "integers"]
Severity = Literal["integers", "categories"]


@dataclass(frozen=True, slots=True)
class Focus:
    """The focus of annotation: task, aspect with its definition, meaning of the end labels, and exclusions.

    rules, steps: of this aspect, one a line; the steps stand in place of the general ones.
    """

    aspect: str
    definition: str = ""
    task: str = ""
    low: str = ""
    high: str = ""
    leave_aside: str = ""
    rules: str = ""
    steps: str = ""

    def described(self) -> str:
        """Return the aspect with its definition and exclusions."""
        aside = f"\nLeave aside: {self.leave_aside}." if self.leave_aside else ""
        return f"{self.aspect}{': ' if self.definition else ''}{self.definition}{aside}"


def _lines(text: str) -> list[str]:
    """The lines of a text that say something."""
    return [line.strip() for line in text.splitlines() if line.strip()]


class _ErrorsLayout(Layout):
    """Base: a list of errors. forced_most: errors at most where a grammar forces the form."""

    as_json = True

    def __init__(self, forced_most: int = FORCED_MOST) -> None:
        super().__init__()
        self.forced_most = forced_most

    @staticmethod
    def flawless(demo: Mapping[str, Any]) -> bool:
        """Return True if the best of five labels is nearest to its score: only then it has no error."""
        return bool(demo.get("score", 0) >= 87.5)

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        return OF_AN_ERROR * self.forced_most + OF_THE_REST


class AnnotationLayout(_ErrorsLayout):
    """Errors with place, explanation and severity in free text, then an overall label.

    overall, severity: labels or numbers (the paper's ablations 1–3; its own choice is labels overall and numbers for
    severity). rules: False leaves the rules out (ablation 4). reading: the label "said", or the "expected" one under
    the model's probabilities at its place.
    """

    def __init__(
        self,
        reading: Reading = "said",
        *,
        overall: Overall = "labels",
        severity: Severity = "integers",
        rules: bool = True,
        forced_most: int = FORCED_MOST,
    ) -> None:
        super().__init__(forced_most)
        self.reading = reading
        self.overall = overall
        self.severity = severity
        self.with_rules = rules
        self.wants_logprobs = reading == "expected"

    @property
    def labels(self) -> tuple[str, ...]:
        """From the worst to the best."""
        return LABELS if self.overall == "labels" else ("1", "2", "3", "4", "5")

    def percent(self, place: float) -> float:
        """Return a label's place between the worst (0) and the best (100)."""
        return 100.0 * place / (len(self.labels) - 1)

    def label_for(self, percent: float) -> str:
        """Return the label nearest to a percent."""
        return self.labels[
            min(
                len(self.labels) - 1,
                math.floor(percent * (len(self.labels) - 1) / 100.0 + 0.5),
            )
        ]

    def form(self, inputs: Mapping[str, Any]) -> Form:
        """Return the form of the answer: errors with place, explanation and severity, then the overall label."""
        if self.severity == "integers":
            whole = (
                "a whole number from 1 (hardly matters) to 5 (makes the output useless)"
            )
            severity = number(DIGITS, "Severity", whole)
        else:
            words = f"{', '.join(SEVERITIES)}: from what hardly matters to what makes the output useless"
            severity = choice("Severity", tuple(SEVERITIES), words)
        place = Line(
            "Location",
            "the words, copied from the output, or omission if something is missing",
            "place",
        )
        why = Line("Explanation", "one short sentence on what is wrong")
        return Form(
            Blocks("Error", (place, why, severity), self.forced_most, "No Error"),
            choice("Overall", self.labels, f"one of {', '.join(self.labels)}"),
            Line("Reason", "one short sentence"),
        )

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the rules and the form."""
        focus: Focus = inputs["focus"]
        worst = self.labels[0]
        best = self.labels[-1]
        low = f": {focus.low}" if focus.low else " (as bad as it can be)"
        high = f": {focus.high}" if focus.high else " (nothing is wrong)"
        parts = []
        if self.with_rules:
            aside = f" ({focus.leave_aside})" if focus.leave_aside else ""
            parts.append(
                "Rules:\n"
                "- Judge by the material alone; what you know from elsewhere does not count.\n"
                f"- Report nothing that is not about {focus.aspect}. Other faults{aside} do not count here.\n"
                f"- If there is no such error, write No Error, and the overall is {best}.\n"
                f"- An overall below {best} needs at least one error that explains it.\n"
                f"- One problem in one error; at most {MOST} errors, the worst ones."
                + "".join(f"\n- {rule}" for rule in _lines(focus.rules))
            )
        steps = _lines(focus.steps) or [
            "Read all of the material.",
            f"Go through the output and look for errors of {focus.aspect}.",
            "Copy the words of each error exactly as they stand in the output, say what is wrong, give a severity.",
            "Weigh the errors and choose the overall.",
        ]
        listed = "\n".join(f"{n}. {step}" for n, step in enumerate(steps, start=1))
        parts.append(f"Steps:\n{listed}")
        parts.append(
            f"Answer in this form, without any other text:\n{self.form(inputs).shown()}\n"
            f"where {worst} means{low}, and {best} means{high}."
        )
        return "\n\n".join(parts)

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str | None:
        """Return a demonstration's answer in the form; None for an incomplete one."""
        why = demo.get("explanation")
        errors = "No Error" if self.flawless(demo) else demo.get("annotation")
        if not why or not errors:
            return None
        return self.form(inputs).written(
            disarm(errors), self.label_for(demo["score"]), disarm(why)
        )

    def held(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return an annotation's parts, for a demonstration."""
        annotation: Annotation | None = step.get("annotation")
        if annotation is None:
            return {}
        if annotation.errors:
            errors = annotation_form(Annotation(annotation.errors))
        else:
            errors = ""
        return {
            "score": step.get("percent"),
            "annotation": errors,
            "explanation": annotation.explanation,
        }

    def example(self, demo: Mapping[str, Any]) -> str | None:
        """Return the overall label of an example."""
        return f"Overall: {self.label_for(demo['score'])}"

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the errors and the overall label from a reply."""
        parsed = read_annotation(
            reply.text, labels=self.labels, output=inputs.get("output") or ""
        )
        # "No Error" alone says by the rules which label was meant, if nothing can have been lost behind it.
        whole = reply.ending == "whole"
        implied = parsed.no_error and self.with_rules and whole
        label = parsed.label or (self.labels[-1] if implied else None)
        if label is None:
            cut = " (cut off at the token limit)" if reply.ending == "limit" else ""
            return Read({}, problem=f"{'; '.join(parsed.problems)}{cut}")
        percent = self.percent(self.labels.index(label))
        notes = list(parsed.problems)
        if self.reading == "expected":
            place, mass = share_of_words(reply, parsed.label_start, self.labels)
            if math.isnan(place):
                notes.append(
                    "no log-probabilities of labels at the label's place; the stated label was taken"
                )
            else:
                percent = self.percent(place)
                if mass < 0.5:
                    notes.append(
                        f"only {mass:.0%} of the probability was on the labels"
                    )
        return Read(
            {"annotation": parsed, "percent": percent, "label": label},
            parsed.repaired,
            notes=tuple(notes),
        )


class MergeLayout(_ErrorsLayout):
    """One list of errors out of several."""

    rates = False

    def form(self, inputs: Mapping[str, Any]) -> Form:
        """Return the form of the answer: merged errors."""
        place = Line("Location", "words of the output, or omission", "place")
        why = Line("Explanation", "what is wrong")
        return Form(
            Blocks(
                "Error",
                (place, why, number(DIGITS, "Severity", "1 to 5")),
                self.forced_most,
            )
        )

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the rules and the form."""
        return (
            "Rules:\n"
            "- Errors that describe the same problem at about the same words become one; take the best of their "
            "explanations together.\n"
            "- Different problems stay apart, even at the same words; so does the same problem at different places.\n"
            "- A location is one run of words, copied from the output and covering what was merged, with nothing "
            "beside it; or omission where something is missing.\n"
            "- The severity is the highest of those merged.\n"
            "- Add nothing that no annotator reported. Have as few errors as these rules allow, at most "
            f"{MOST}, the worst ones. No markdown.\n\n"
            f"Answer in this form, without any other text:\n{self.form(inputs).shown()}"
        )

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str | None:
        """Return a demonstration's merged errors; None for an incomplete one."""
        merged = demo.get("annotation")
        if merged and demo.get("annotations") and not self.flawless(demo):
            return disarm(merged)
        return None

    def held(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the merged errors, for a demonstration."""
        merged = step.get("merged")
        if merged:
            return {"annotation": annotation_form(Annotation(tuple(merged)))}
        return {}

    def labelled(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the merged errors of a labelled row with the reports, for a demonstration."""
        merged = row.get("merged")
        reported = row.get("reported")
        held = {"annotation": merged} if isinstance(merged, str) else self.held(row)
        return held | (
            {"annotations": _reports(map(error_list, reported.values()))}
            if reported
            else {}
        )

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the merged errors from a reply."""
        parsed = read_annotation(
            reply.text, output=inputs.get("output") or ""
        )  # a merged list has no overall label
        if not parsed.errors:
            return Read(
                {}, problem="; ".join(parsed.problems) or "no error in the merged list"
            )
        return Read({"merged": parsed.errors}, parsed.repaired, notes=parsed.problems)


class Annotator(Evaluator):
    """One call marks the errors of an output in one respect. Several annotators of an ensemble share it."""

    def __init__(self, layout: AnnotationLayout) -> None:
        super().__init__()
        self.predict = JudgePredict(AnnotateErrors, layout)

    def inputs(self, item: Item, focus: Focus) -> dict[str, Any]:
        """Return the inputs of the call for a row."""
        return {
            "task": focus.task,
            "aspect": focus.described(),
            "focus": focus,
            **material(item),
        }

    async def annotate(self, item: Item, focus: Focus, lm: LanguageModel) -> Answer:
        """Annotate the errors of a row.

        Raises:
            Unreadable: For an answer without an overall label.
            CallError: For a failed call.
        """
        call = {**material(item), "focus": focus}
        return await self.answered(self.inputs(item, focus), lm, call)

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        *,
        context: str | None = None,
        reference: str | None = None,
        focus: Focus,
        **call: Unpack[Call],
    ) -> dspy.Prediction:
        """Return `annotation` (the errors, not grounded yet), `label`, and `score` and `percent`, the same in [0, 100].

        Raises:
            Unreadable: For an answer without an overall label.
            CallError: For a failed call.
        """
        prediction = await self.predict.acall(
            **self.inputs(Item(output, source, context, reference), focus), **call
        )
        prediction.score = prediction.percent
        return prediction


class MergePredict(JudgePredict):
    """A predictor whose demonstrations hold each annotator's report beside that one's score.

    They do so as `criteria_scores`, or as the text of the prompt.
    """

    def demos_for(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the demonstrations, each with its reports as text."""
        return [
            {"annotations": _reported(demo), **demo}
            for demo in super().demos_for(inputs)
        ]


class Supervisor(Evaluator):
    """One call merges what several annotators found."""

    def __init__(self, layout: MergeLayout | None = None) -> None:
        super().__init__()
        self.predict = MergePredict(MergeAnnotations, layout or MergeLayout())

    def inputs(
        self, output: str, reported: Mapping[str, Sequence[ErrorSpan]]
    ) -> dict[str, Any]:
        """Return the inputs of the call: the output and the reports."""
        return {
            "output": output,
            "annotations": _reports(map(error_list, reported.values())),
        }

    async def merge(
        self,
        output: str,
        reported: Mapping[str, Sequence[ErrorSpan]],
        lm: LanguageModel,
    ) -> Answer:
        """Merge reports; `merged` of the answer are FoundErrors, not grounded yet.

        Raises:
            Unreadable: For an answer without errors.
            CallError: For a failed call.
        """
        call = {"output": output, "reported": reported}
        return await self.answered(self.inputs(output, reported), lm, call)

    async def aforward(
        self,
        output: str,
        reported: Mapping[str, Sequence[ErrorSpan]],
        **call: Unpack[Call],
    ) -> dspy.Prediction:
        """Return `merged`: the errors, not grounded yet.

        Args:
            output: The judged text.
            reported: Errors by annotator.
            **call: Group and lm.

        Raises:
            Unreadable: For an answer without errors.
            CallError: For a failed call.
        """
        return await self.predict.acall(**self.inputs(output, reported), **call)


def _reported(demo: Mapping[str, Any]) -> str:
    return _reports(
        report.explanation for report in (demo.get("criteria_scores") or {}).values()
    )


def _reports(lists: Iterable[str]) -> str:
    """Lists of errors with numbers in place of their annotators' names: which model said it must not weigh."""
    return "\n\n".join(
        f"Annotator {number}\n{errors}"
        for number, errors in enumerate(lists, 1)
        if errors
    )


def error_list(errors: Sequence[ErrorSpan]) -> str:
    """Errors in the form that answers have; "" where there are none."""
    result = tuple(
        FoundError(None if e.how == "omission" else e.text, e.explanation, e.severity)
        for e in errors
    )
    return annotation_form(Annotation(errors=result)) if result else ""
