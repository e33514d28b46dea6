"""A judge in a few lines: a DSPy signature whose answer is a rating."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, overload

import dspy
from dspy.adapters.types.decision import Choice, Noul, Score, decision_type

from judgesmith.disarming import disarm
from judgesmith.errors import OptionError
from judgesmith.programs.aspects import aspects
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.outcome import Decision, Outcome
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Criterion, Item, Scale, Verdict

#: The method of a judge that one sentence makes.
OF_A_SENTENCE = "active-critic"
#: What a signature may ask for: the parts of a row.
GIVEN = ("source", "output", "context", "reference")


class SignatureMethod(Method):
    """A method that asks one `dspy.Predict` of its signature. Made by `judge`."""

    signature: Any
    rated: str

    def build(self) -> None:
        """Make the predictor of the signature."""
        self.predict = dspy.Predict(self.signature)

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Call the predictor and read its rating as a percent."""
        inputs = {
            name: disarm(getattr(item, name) or "")
            for name in self.signature.input_fields
        }
        # DSPy asks a backend of typed decisions, such as `TypeSafe`, in that one's own form.
        asks_itself = getattr(lm.dspy, "supports_decision_requests", False)
        prediction = await self.predict.acall(
            **inputs, lm=lm.dspy if asks_itself else lm
        )
        words = [
            str(prediction[name])
            for name in self.signature.output_fields
            if name != self.rated
        ]
        field = self.signature.output_fields[self.rated]
        fitted = self.rated in self.predict.fields
        percent = _percent(field, prediction[self.rated], fitted=fitted)
        return Verdict(percent=percent, explanation="\n".join(words))


@overload
def judge(
    sentence: str,
    /,
    *,
    lm: Any = None,
    pass_fail: bool = False,
    scale: tuple[float, float] = (1, 5),
) -> Judge: ...


@overload
def judge(
    kind: str, /, *, about: str, paper: str = ""
) -> Callable[[type[dspy.Signature]], type[SignatureMethod]]: ...


def judge(
    kind: str,
    /,
    *,
    about: str = "",
    paper: str = "",
    lm: Any = None,
    pass_fail: bool = False,
    scale: tuple[float, float] = (1, 5),
) -> Any:
    """Make a judge from one sentence, or, with `about`, a decorator that registers a method made from a signature.

    From a sentence (or an aspect's name: "politeness"), as in `js.judge("The reply is polite.",
    lm="openai/gpt-4o-mini")`: an Active-Critic judge with this criterion. Labels correct it: `js.compile(judge,
    labels)`.

    The signature's inputs are parts of a row: source, output, context, reference. One output is the rating: a `bool`, a
    `Literal` whose values go from worst to best, or a number with `ge` and `le`. It may be a decision of
    `dspy.experimental`, too: `Noul[…]`, `Score["poor", …, "excellent"]`, or a `Choice[…]` from worst to best. Its
    probabilities then give the score; once ReAnchor has fitted its threshold, cuts or weights, what it decides. Texts
    beside it are the explanation. A failed or unreadable answer is NaN with a reason, and no row sees its own document.

        @js.judge("printable", about="would an editor print it?")
        class Printable(dspy.Signature):
            '''Decide whether an editor would print the text.'''

            output: str = dspy.InputField()
            reason: str = dspy.OutputField()
            printed: Literal["no", "yes"] = dspy.OutputField()

        verdict = js.Judge(Printable(), lm="openai/gpt-4o-mini").score(output="…")

    Args:
        kind: The sentence or aspect; the method's name for a decorator.
        about: The method's description, one line.
        paper: The method's source.
        lm: The judge's model; by default DSPy's.
        pass_fail: True for a judge that decides, too.
        scale: The scale of scores.

    Raises:
        OptionError: For another input, and unless exactly one output is a rating.
    """
    if not about:
        method: Method = methods.get(OF_A_SENTENCE)(criteria=[worded(kind)])
        return Judge(
            method,
            lm=lm,
            outcome=simple_outcome(None if pass_fail else scale, pass_fail=pass_fail),
        )

    def made(signature: type[dspy.Signature]) -> type[SignatureMethod]:
        if others := set(signature.input_fields) - set(GIVEN):
            raise OptionError(
                f"{kind}: a row has no {sorted(others)[0]!r}; inputs are {', '.join(GIVEN)}"
            )
        rated = [
            name for name, field in signature.output_fields.items() if _is_rating(field)
        ]
        if len(rated) != 1:
            raise OptionError(
                f"{kind}: one output is the rating (a bool, a Literal, a number with ge and le, or a decision of "
                f"dspy.experimental); got {len(rated)}"
            )
        facts = {
            "kind": kind,
            "about": about,
            "paper": paper,
            "signature": signature,
            "rated": rated[0],
        }
        place = {"__module__": signature.__module__, "__doc__": signature.__doc__}
        return methods.register(
            type(signature.__name__, (SignatureMethod,), facts | place)
        )

    return made


def worded(sentence: str) -> Criterion:
    """Return the criterion that a sentence states, or an aspect's of the library.

    Raises:
        OptionError: For an unknown word.
    """
    words = " ".join(sentence.split())
    try:
        aspect = aspects().find(words)
    except OptionError:
        if len(words.split()) < 2:
            raise
        return Criterion(words[:80], words if len(words) > 80 else "")
    return Criterion(aspect.name, aspect.definition)


def simple_outcome(scale: tuple[float, float] | None, *, pass_fail: bool) -> Outcome:
    """Return the outcome of a judge without labels: a scale, by default 0 to 100.

    With `pass_fail` it decides between pass and fail in the middle of the scale.
    """
    if pass_fail:
        return Outcome(
            Scale(*(scale or (0, 1))),
            decision=Decision(("fail", "pass"), (50.0,), binary=True),
        )
    return Outcome() if scale is None else Outcome(Scale(*scale))


def _limits(field: Any) -> tuple[float, float] | None:
    """The lowest and the highest number that a field takes."""
    bounds = {
        name: getattr(m, name)
        for m in field.metadata
        for name in ("ge", "le")
        if hasattr(m, name)
    }
    return (bounds["ge"], bounds["le"]) if len(bounds) == 2 else None


def _is_rating(field: Any) -> bool:
    kind = field.annotation
    return (
        kind is bool
        or get_origin(kind) is Literal
        or (kind in (int, float) and _limits(field) is not None)
        or decision_type(field) is not None
    )


def _decided(value: Any, *, fitted: bool) -> float:
    """A decision of DSPy in [0, 100]: by its probabilities, or, with fitted parameters, as it was decided."""
    if isinstance(value, Noul):
        known = value.probability is not None and not fitted
        return 100.0 * float(value.probability if known else value.value)
    if isinstance(value, Score):
        by_level = fitted and value.level is not None
        place = float(value.level if by_level else value.value)
        return 100.0 * place / (len(value.criteria()) - 1)
    labels = [*value.criteria()]
    shares = {} if fitted else value.probabilities or {}
    if shares:
        places = [place * shares.get(label, 0.0) for place, label in enumerate(labels)]
        place = math.fsum(places) / math.fsum(shares.values())
    else:
        place = labels.index(str(value.value))
    return 100.0 * place / (len(labels) - 1)


def _percent(field: Any, value: Any, *, fitted: bool) -> float:
    """A rating in [0, 100]; NaN for None."""
    if value is None:
        return math.nan
    if isinstance(value, Noul | Score | Choice):
        return _decided(value, fitted=fitted)
    if field.annotation is bool:
        return 100.0 if value else 0.0
    if get_origin(field.annotation) is Literal:
        values = get_args(field.annotation)
        return 100.0 * values.index(value) / (len(values) - 1)
    low, high = _limits(field) or (0.0, 100.0)
    return 100.0 * (float(value) - low) / (high - low)
