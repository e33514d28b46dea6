"""A judge as the metric of a DSPy program, which `dspy.Evaluate` and DSPy's optimizers call."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import dspy

from judgesmith.errors import NoScoreError, OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.signatures.values import Item, Verdict

Failed: TypeAlias = Literal["mean", "raise"] | float


class JudgeMetric:
    """A judge as a metric: `js.as_metric(judge, …)`.

    metric(example, prediction) is a float in [0, 1], a bool while an optimizer bootstraps (trace is given), and a
    `dspy.Prediction` with score and feedback for GEPA (pred_name is given).

    fields: role -> field of the example or of the prediction; the output is the prediction's alone. threshold: the
    least score that passes while bootstrapping, in [0, 1]; None: the judge's own decision, or the middle of its scale.
    failed: the score of a row without one, see `as_metric`. Feedback has reasons: the judge's own, or, where a method
    gives a number alone, those that its model writes in one further call. Attributes: calls, failures (the reasons).
    """

    def __init__(
        self,
        judge: Judge,
        fields: Mapping[str, str | None],
        threshold: float | None,
        failed: Failed,
    ) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise OptionError(
                f"threshold is {threshold}; it lies between 0 and 1, whatever the judge's scale is"
            )
        if failed not in ("mean", "raise") and not (
            isinstance(failed, int | float) and 0 <= failed <= 1
        ):
            raise OptionError(
                f"failed is {failed!r}; it is 'mean', 'raise' or a number between 0 and 1"
            )
        self.judge = judge
        self.fields = dict(fields)
        self.threshold = threshold
        self.failed = failed
        self.calls = 0
        self.failures = list[str]()
        self._sum = 0.0
        self._lock = threading.Lock()  # dspy.Evaluate calls from several threads

    def __call__(
        self,
        example: Any,
        prediction: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        """Judge a prediction; see the class.

        Raises:
            NoScoreError: For a failed call, if `failed` is "raise".
            OptionError: For a missing field.
        """
        verdict = self._verdict(example, prediction, reasons=pred_name is not None)
        score = self._counted(verdict)
        if pred_name is not None:
            return dspy.Prediction(score=score, feedback=self._feedback(verdict))
        if trace is None:
            return score
        if (
            verdict.failure is not None
        ):  # nothing that was not judged becomes a demonstration
            return False
        if self.threshold is None and verdict.passed is not None:
            return verdict.passed
        return score >= (0.5 if self.threshold is None else self.threshold)

    def _verdict(self, example: Any, prediction: Any, *, reasons: bool) -> Verdict:
        """The judge's verdict on a prediction; one without a score where there is no output and `failed` is a number.

        What is judged is the prediction's alone: the example has the gold answer under the same name.
        """
        name = self.fields["output"]
        if name not in prediction.keys() or prediction[name] is None:  # noqa: SIM118  # a Prediction is no dict
            held = ", ".join(prediction.keys()) or "nothing"
            missing = f"the prediction has no {name!r} for the output; it has {held}"
            if isinstance(self.failed, str):
                raise OptionError(
                    f"{missing}. Name its field with as_metric(output=…), or say what such a row counts: failed=0"
                )
            return Verdict.failed(missing)
        texts = {
            role: self._text(role, named, example, prediction)
            for role, named in self.fields.items()
        }
        if not reasons:
            return self.judge.score(**texts)
        item = Item.of({role: text for role, text in texts.items() if text is not None})
        return engine.run(self.judge.verdict(item, explain=True))

    def _text(self, role: str, name: str | None, example: Any, prediction: Any) -> Any:
        if name is None:
            if role == "source" and hasattr(example, "inputs"):
                inputs = list(example.inputs().keys())
            else:
                inputs = []
            if len(inputs) > 1:
                raise OptionError(
                    f"the example has the inputs {', '.join(inputs)}; name one with as_metric(judge, source=…)"
                )
            return example[inputs[0]] if inputs else None
        sides = {"output": (prediction,), "context": (prediction, example)}.get(
            role, (example, prediction)
        )
        held = next((side for side in sides if name in side.keys()), None)  # noqa: SIM118  # an Example is no dict
        if held is None:
            fields = dict.fromkeys(field for side in sides for field, _ in side.items())
            names = ", ".join(fields)
            raise OptionError(
                f"neither example nor prediction has {name!r} for the {role}; there are {names}"
            )
        return held[name]

    def _counted(self, verdict: Verdict) -> float:
        with self._lock:
            self.calls += 1
            if verdict.failure is None:
                percent = self.judge.scale.to_percent(verdict.score)
                score = float(min(1.0, max(0.0, percent / 100)))
                self._sum += score
                return score
            self.failures.append(verdict.failure)
            if self.failed == "raise":
                raise NoScoreError(verdict.failure)
            if self.failed != "mean":
                return float(self.failed)
            scored = self.calls - len(self.failures)
            return self._sum / scored if scored else 0.5

    def _feedback(self, verdict: Verdict) -> str:
        if verdict.failure is not None:
            return f"The judge gave no score ({verdict.failure}); this says nothing of the output."
        lines = [
            f"Score {verdict.score:g} on a scale of {self.judge.scale}.",
            verdict.explanation,
        ]
        lines += [
            f"{name}: {c.score:g} of 100. {c.explanation}"
            for name, c in verdict.criteria.items()
            if not math.isnan(c.score)
        ]
        lines += [
            f"Error: {error.text!r}: {error.explanation}" for error in verdict.errors
        ]
        return "\n".join(line.strip() for line in lines if line.strip())


def as_metric(
    judge: Judge,
    *,
    output: str,
    source: str | None = None,
    context: str | None = None,
    reference: str | None = None,
    threshold: float | None = None,
    failed: Failed = "mean",
) -> JudgeMetric:
    """Return a judge as a metric for DSPy's `Evaluate` and optimizers; see `JudgeMetric`.

    For example `dspy.Evaluate(devset=…, metric=js.as_metric(judge, output="answer"))`. A prediction without the output
    counts the number of `failed`, and is an error without one.

    Args:
        judge: The judge.
        output: The field of the program's prediction that is judged.
        source: The field of its examples or predictions with the source; by default the example's only input.
        context: The field with the context.
        reference: The field with the reference.
        threshold: The score (0 to 1) from which an answer may become a demonstration.
        failed: The score of a failed call: the mean of the scores so far, which neither helps nor harms ("mean"), a
            number, or an error that DSPy counts as one of its own ("raise").
    """
    more = {
        role: name
        for role, name in (("context", context), ("reference", reference))
        if name
    }
    return JudgeMetric(
        judge, {"source": source, "output": output} | more, threshold, failed
    )
