"""The forms in which the members of a panel ask for the same judgement.

They differ in what is written, not in wording: prompts that differ in wording alone give nearly the same scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dspy

from judgesmith.programs.active_critic.scoring import mean_score
from judgesmith.programs.answers.likely import LOWEST_MASS, share_of_words
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.answers.words import is_listed, said_word
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.openlgauge.annotation import AnnotationLayout, Focus
from judgesmith.programs.openlgauge.grounding import ground_errors
from judgesmith.programs.openlgauge.reading import LABELS
from judgesmith.programs.prompting.forms import Form, choice
from judgesmith.programs.prompting.layouts import (
    CriteriaLayout,
    Layout,
    OverallLayout,
    Reading,
)
from judgesmith.programs.prompting.predict import (
    Answer,
    Evaluator,
    JudgePredict,
    material,
)
from judgesmith.signatures.judging import (
    AnnotateErrors,
    AnswerQuestions,
    CompareWithReference,
    RateInWords,
    ScoreCriteria,
    ScoreOverall,
)
from judgesmith.signatures.values import CriterionScore, Item, Opinion

FormName = Literal["criteria", "percent", "errors", "words", "questions", "reference"]
#: How an output compares with its reference, worst first.
BESIDE = ("Much worse", "Worse", "Equal", "Better", "Much better")
#: From what hardly any output fails to what hardly any passes, so that the number of yeses is a score.
QUESTIONS = (
    "Is the output at least acceptable in {aspect}?",
    "Would most readers be content with it?",
    "Is it free of serious faults in this respect?",
    "Is it clearly better than what one usually gets?",
    "Would even a demanding expert leave it as it is?",
)
YES_NO = ("Yes", "No")
#: Where an answer names the number of a question.
_NUMBERED = re.compile(
    r"^[\W_]*(?:question\s*)?([1-9])\b[\W_]*(.*)$", re.IGNORECASE | re.MULTILINE
)
_RATING = re.compile(r"\brating\b\W*", re.IGNORECASE)


def of_aspect(inputs: Mapping[str, Any]) -> str:
    """Return the aspect of a prompt's question."""
    return str(inputs.get("aspect") or "quality")


class OfWords(Layout):
    """Base of answers in words. reading: the words as "said", or "expected" by their probabilities at their places."""

    def __init__(self, reading: Reading = "said") -> None:
        super().__init__()
        self.wants_logprobs = reading == "expected"

    def place(
        self, reply: Reply, start: int, words: Sequence[str], said: int
    ) -> tuple[float, bool]:
        """Return the place among words, and whether it lacks log-probabilities that it should have.

        Args:
            reply: The answer.
            start: Where the word stands in it.
            words: Those that it is one of.
            said: The place of the one that stands there.
        """
        if not self.wants_logprobs:
            return said, False
        place, mass = share_of_words(reply, start, words)
        return (place, False) if mass >= LOWEST_MASS else (said, True)


class WordsLayout(OfWords):
    """One of several words, worst first. question: what is asked, with `{aspect}`."""

    def __init__(
        self,
        reading: Reading = "said",
        words: Sequence[str] = LABELS,
        question: str = "How good is the output in {aspect}? Rate it in a word.",
    ) -> None:
        super().__init__(reading)
        self.words = tuple(words)
        self.question = question

    def form(self, inputs: Mapping[str, Any]) -> Form:
        """Return a choice of the rating's words."""
        return Form(choice("Rating", self.words, f"one of {', '.join(self.words)}"))

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the question and the form."""
        return f"{self.question.format(aspect=of_aspect(inputs))} Answer with one line:\n{self.form(inputs).shown()}"

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str | None:
        """Return the word of a demonstration's score, which is a whole answer."""
        return None if demo.get("turn") is False else self.example(demo)

    def example(self, demo: Mapping[str, Any]) -> str:
        """Return the word of an example's score."""
        place = math.floor(demo["score"] * (len(self.words) - 1) / 100.0 + 0.5)
        return f"Rating: {self.words[min(place, len(self.words) - 1)]}"

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        """Return the limit for one word."""
        return 16

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the word as a score."""
        text = reply.text
        start = match.end() if (match := _RATING.search(text)) else 0
        stated = text[start:]
        word = None if is_listed(stated, self.words) else said_word(stated, self.words)
        if word is None:
            return Read({}, problem=f"not one clear rating in: {text.strip()[:120]!r}")
        place, lacking = self.place(reply, start + word[1], self.words, word[0])
        percent = 100.0 * place / (len(self.words) - 1)
        notes = ("no log-probabilities at the word; it was taken",) if lacking else ()
        return Read(
            {"score": percent}, not self.form(inputs).fits(text.strip()), notes=notes
        )


class QuestionsLayout(OfWords):
    """Yes or no to questions that demand more and more; the share of yeses is the score."""

    def form(self, inputs: Mapping[str, Any]) -> Form:
        """Return a line with Yes or No for each question."""
        return Form(
            *(
                choice(str(number), YES_NO, "Yes or No")
                for number in range(1, len(QUESTIONS) + 1)
            )
        )

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the questions and the form."""
        questions = "\n".join(
            f"{number}. {text}" for number, text in enumerate(QUESTIONS, 1)
        )
        form = self.form(inputs)
        return f"{questions.format(aspect=of_aspect(inputs))}\n\nAnswer with {form.count()}:\n{form.shown()}"

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
        """Return as many Yes as a demonstration's score stands for."""
        passed = math.floor(demo["score"] * len(QUESTIONS) / 100.0 + 0.5)
        return self.form(inputs).written(
            *(YES_NO[number >= passed] for number in range(len(QUESTIONS)))
        )

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        """Return the limit for all answers."""
        return 40

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the share of Yes among the clear answers, at least half of the questions."""
        by_question: dict[int, dict[int, tuple[float, bool]]] = {}
        for match in _NUMBERED.finditer(reply.text):
            word = None if is_listed(match[2], YES_NO) else said_word(match[2], YES_NO)
            if word is not None and int(match[1]) <= len(QUESTIONS):
                place = self.place(reply, match.start(2) + word[1], YES_NO, word[0])
                by_question.setdefault(int(match[1]), {}).setdefault(word[0], place)
        clear = list[tuple[float, bool]]()
        for answers in by_question.values():
            clear += answers.values() if len(answers) == 1 else ()
        if 2 * len(clear) <= len(QUESTIONS):
            return Read(
                {},
                problem=f"fewer than half of the questions are answered in: {reply.text[:120]!r}",
            )
        notes = []
        if lost := len(QUESTIONS) - len(clear):
            notes.append(f"{lost} of {len(QUESTIONS)} questions were not answered")
        if any(lacking for _, lacking in clear):
            notes.append("no log-probabilities at an answer; its word was taken")
        fits = self.form(inputs).fits(reply.text)
        yes = len(clear) - sum(place for place, _ in clear)
        return Read({"score": 100.0 * yes / len(clear)}, not fits, notes=tuple(notes))


def _stated(values: Mapping[str, Any], item: Item) -> Opinion:
    return Opinion(values["score"])


def _by_criteria(values: Mapping[str, Any], item: Item) -> Opinion:
    scores: Mapping[str, CriterionScore] = values["criteria_scores"]
    reasons = (
        f"{name}: {score.explanation}"
        for name, score in scores.items()
        if score.explanation
    )
    return Opinion(mean_score(scores), explanation=" ".join(reasons))


def _by_errors(values: Mapping[str, Any], item: Item) -> Opinion:
    annotation = values["annotation"]
    errors = ground_errors(annotation.errors, item.output)
    return Opinion(values["percent"], values["label"], annotation.explanation, errors)


@dataclass(frozen=True, slots=True)
class MemberForm:
    """One form: the prompt, the answer, and what the answer says."""

    about: str
    signature: type[dspy.Signature]
    layout: Callable[[Reading], Layout]
    said: Callable[[Mapping[str, Any], Item], Opinion] = _stated
    needs_reference: bool = False


#: In the order in which members are taken.
FORMS: Mapping[FormName, MemberForm] = {
    "criteria": MemberForm(
        "explains and scores each criterion, 0-100 or, read by probabilities, 1-5; their mean",
        ScoreCriteria,
        lambda reading: CriteriaLayout("before", reading),
        _by_criteria,
    ),
    "percent": MemberForm(
        "states one number, 0-100 or, read by probabilities, 1-5",
        ScoreOverall,
        lambda reading: OverallLayout("none", reading),
    ),
    "errors": MemberForm(
        "lists errors, then one of five labels",
        AnnotateErrors,
        AnnotationLayout,
        _by_errors,
    ),
    "words": MemberForm("says one of five words", RateInWords, WordsLayout),
    "questions": MemberForm(
        "answers five yes/no questions", AnswerQuestions, QuestionsLayout
    ),
    "reference": MemberForm(
        "says how the output compares with the row's reference, in five degrees",
        CompareWithReference,
        lambda reading: WordsLayout(
            reading,
            BESIDE,
            "How does the output compare with the reference in {aspect}?",
        ),
        needs_reference=True,
    ),
}


class Member(Evaluator):
    """One call that asks for a judgement in one form; the models of a jury share it.

    reading: its likeliest answer counts ("said"), or the mean of its answers by their probabilities ("expected").
    """

    def __init__(self, form: FormName, reading: Reading = "said") -> None:
        super().__init__()
        self.form = form
        self.predict = JudgePredict(FORMS[form].signature, FORMS[form].layout(reading))

    def inputs(
        self, item: Item, focus: Focus, criteria: Sequence[Any]
    ) -> dict[str, Any]:
        """Return the inputs of the call for a row."""
        marks = (
            FORMS[self.form].said is _by_errors
        )  # its prompt has the definition with the aspect
        aspect = focus.described() if marks else focus.aspect
        texts = {
            "task": focus.task,
            "aspect": aspect,
            "criteria": tuple(criteria),
            "focus": focus,
        }
        return {**texts, **material(item)}

    async def judge(
        self, item: Item, focus: Focus, criteria: Sequence[Any], lm: LanguageModel
    ) -> Answer:
        """Ask for the member's answer.

        Raises:
            Unreadable: For an answer without a score.
            CallError: For a failed call.
        """
        return await self.answered(self.inputs(item, focus, criteria), lm)

    async def aforward(self, output: str = "", **call: Any) -> dspy.Prediction:
        """Return `percent` in [0, 100], explanation and errors.

        Args:
            output: The judged text.
            **call: Source, context, reference, task, aspect, criteria, focus, group, lm.

        Raises:
            Unreadable: For an answer without a score.
            CallError: For a failed call.
        """
        call.setdefault(
            "focus",
            Focus(
                str(call.get("aspect") or "quality"), task=str(call.get("task") or "")
            ),
        )
        return await self.predict.acall(output=output, **call)

    def opinion(self, answer: Answer, item: Item) -> Opinion:
        """Return an answer as an opinion."""
        return FORMS[self.form].said(answer.read.values, item)
