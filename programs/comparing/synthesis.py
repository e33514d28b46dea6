"""The reference writer: N outputs of rising quality for a document and an aspect, to compare other outputs with.

The worst and the best are written first, then each one in between from its nearest neighbours, halving. A text that
fails a check (empty, like a neighbour, about itself) is written again a few times; then its level is
left out.

Source: "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too" (§2.1). Prompts are ours.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import dspy

from judgesmith.disarming import disarm
from judgesmith.likeness import folded
from judgesmith.programs.answers import reading
from judgesmith.programs.answers.reading import Read
from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.comparing.comparison import sampled
from judgesmith.programs.models.as_dspy import Result, value_of
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.prompting.layouts import Layout, block
from judgesmith.programs.prompting.predict import (
    Evaluator,
    JudgePredict,
    Unreadable,
    called,
)
from judgesmith.signatures.values import Item, Usage
from judgesmith.signatures.writing import WriteReference

#: Raise it with any change of the prompts here: references of another version are written again.
PROMPT_VERSION = 1
FEWEST = 2
MOST = 9
#: How often one level is written at most, and the temperature of all writings but the first.
WRITINGS = 3
AGAIN = 0.7


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of task.

    It has a name for its output, a usual length in words (0: about that of the source), a flag for the language of the
    source, and further requirements.
    """

    noun: str
    words: int
    form: str = ""
    same_language: bool = True


#: By the task's name in the library of aspects.
FAMILIES: dict[str, Family] = {
    "summarization": Family(
        "summary", 60, "Tell the content itself, do not say what the text is about."
    ),
    "dialogue": Family(
        "reply", 25, "It is the next turn of the dialogue, in the tone of the dialogue."
    ),
    "story": Family(
        "story", 150, "Tell the story in one paragraph and bring it to an end."
    ),
    "question-answering": Family("answer", 30, "It answers the question."),
    "data-to-text": Family(
        "text", 30, "Put the data into running sentences.", same_language=False
    ),
    "simplification": Family("simplified text", 0, "It stands in for the source."),
    "translation": Family(
        "translation",
        0,
        "It is in the language that the task asks for.",
        same_language=False,
    ),
    "general": Family("text", 80),
}


@dataclass(frozen=True, slots=True)
class Target:
    """The target of references.

    family: a name in FAMILIES. aspect: its name; definition, low, high: its meaning, and descriptions of the lowest and
    the highest quality. words: the length aimed at; 0 takes the family's.
    """

    family: str = "general"
    task: str = ""
    aspect: str = "quality"
    definition: str = ""
    low: str = ""
    high: str = ""
    words: int = 0
    levels: int = 5

    def described(self) -> str:
        """Return the aspect with its definition."""
        return f"{self.aspect}: {self.definition}" if self.definition else self.aspect

    def length(self, source: str) -> int:
        """Words to aim at for a source."""
        usual = FAMILIES[self.family].words or max(5, min(400, word_count(source)))
        return self.words or usual

    def fingerprint(self, instructions: str, demos: Sequence[Any] = ()) -> str:
        """Twelve hex digits that change with all that a prompt says beside the document."""
        shown = (repr(demos),) if demos else ()
        parts = (
            PROMPT_VERSION,
            " ".join(instructions.split()),
            self.family,
            self.task,
            self.aspect,
            self.definition,
            self.low,
            self.high,
            self.words,
            *shown,
        )
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class ReferenceSet:
    """Graded outputs of one document.

    outputs: by level, 1 (worst) to `levels` (best), in this order; left_out: levels that could not be written, with
    reasons.
    """

    levels: int
    outputs: Mapping[int, str]
    left_out: Mapping[int, str]


def writing_order(levels: int) -> list[int]:
    """Return the worst level, the best, then always the middle between two that exist: 1, 5, 3, 2, 4.

    For one level it is the best alone.
    """
    order = sorted({1, levels})
    gaps = [(1, levels)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return order


class WritingLayout(Layout):
    """A text and nothing else. What is asked for stands last, so that all levels of a document share what is before."""

    rates = False

    def rules(self, inputs: Mapping[str, Any]) -> str:
        """Return the rules for the answer, by the family of the task."""
        family = FAMILIES[inputs["target"].family]
        if family.same_language:
            language = " Write in the language of the source."
        else:
            language = ""
        return (
            f"Answer with the {family.noun} alone: no heading, no quotation marks, no remark before or after it, "
            f"not a word about its quality. {family.form}{language}"
        )

    def _material(self, fields: Sequence[str], values: Mapping[str, Any]) -> str:
        target: Target = values["target"]
        noun = FAMILIES[target.family].noun
        name = target.aspect
        parts = [
            block(field, str(values[field]))
            for field in ("source", "context")
            if values.get(field)
        ]
        if values.get("worse") and values.get("better"):
            parts += [f"Worse {noun}:\n{block('output', values['worse'])}"]
            parts += [f"Better {noun}:\n{block('output', values['better'])}"]
            request = (
                f"Write a new {noun} whose {name} lies half-way between these two: clearly better than the worse one, "
                "clearly not as good as the better one. Do not copy either of them."
            )
        elif "level" not in values:
            request = (
                f"Write a {noun} whose {name} is at {values['score']:.0f}, from 0, as bad as it can be, to 100, as "
                "good as it can be."
            )
        elif values["level"] < target.levels:
            quality = f", such that {target.low}" if target.low else ""
            request = f"Write a {noun} whose {name} is as bad as it can be{quality}. It must still be a {noun}."
        else:
            quality = f", such that {target.high}" if target.high else ""
            request = f"Write a {noun} whose {name} is as good as it can be{quality}."
        parts.append(
            f"{request} Aim at about {target.length(values.get('source') or '')} words."
        )
        if values.get("fault"):
            parts.append(
                f"This one was refused, because {values['fault']}:\n{block('output', values['refused'])}\n"
                "Write another one without this fault."
            )
        return "\n".join(parts)

    def held(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the level that a text was written for, as a percent."""
        level = step.get("level")
        target = step.get("target")
        if level is None or target is None:
            return {}
        return {"score": 100.0 * (level - 1) / max(1, target.levels - 1)}

    def labelled(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the level of a row's output, as a percent; nothing for a row of no level."""
        return self.held(row)

    def answer(self, demo: Mapping[str, Any], inputs: Mapping[str, Any]) -> str | None:
        """Return the output of a demonstration whose quality is known."""
        if demo.get("score") is None or not demo.get("output"):
            return None
        return disarm(demo["output"])

    def max_tokens(self, inputs: Mapping[str, Any]) -> int:
        """Return the limit of tokens, from the length aimed at."""
        return 80 + 4 * int(inputs["target"].length(inputs.get("source") or ""))

    def extract(self, reply: Reply, inputs: Mapping[str, Any]) -> Read:
        """Read the text, cut after its last whole sentence if the answer was cut off."""
        text = bare(reply.text)
        if reply.ending != "whole":  # as if it had ended with its last whole sentence
            ended = re.match(r"[\s\S]*[.!?。！？।؟]", text)
            text = ended[0] if ended else text
        return Read({"output": text})


class Written(NamedTuple):
    """The references of a document, and what writing them cost."""

    references: ReferenceSet
    usage: Usage


class WritingPredict(JudgePredict):
    """Shows outputs of known quality as answers to the request for that quality."""

    judges = False

    def demos_for(self, inputs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the demonstrations, each as if it had been asked for with this target."""
        target = inputs["target"]
        return [{**demo, "target": target} for demo in super().demos_for(inputs)]


class ReferenceWriter(Evaluator):
    """Writes the graded outputs of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = WritingPredict(WriteReference, WritingLayout())

    def inputs(
        self, item: Item, target: Target, level: int, **more: Any
    ) -> dict[str, Any]:
        """Return the inputs of the call for one level."""
        return {
            "task": target.task,
            "aspect": target.described(),
            "source": item.source,
            "context": item.context,
            "target": target,
            "level": level,
            **more,
        }

    async def awrite(self, item: Item, target: Target, lm: LanguageModel) -> Written:
        """Write all levels of one document; return them with their cost.

        Raises:
            Unreadable: With `usage`, if the worst or the best could not be written: nothing lies between one text.
        """
        texts = {"source": item.source, "context": item.context, "group": item.group}
        return value_of(await self.acall(**texts, target=target, lm=lm), Written)

    async def aforward(
        self,
        source: str = "",
        *,
        context: str | None = None,
        target: Target,
        group: str | None = None,
        lm: str | LanguageModel | Any | None = None,
    ) -> dspy.Prediction:
        """Return `outputs`: texts by level, and `left_out`: the reasons for missing ones.

        Raises:
            Unreadable: As `awrite`.
        """
        item = Item("", source, context, None, group)
        model = called(lm if lm is not None else self.predict.lm)
        outputs: dict[int, str] = {}
        left_out: dict[int, str] = {}
        usage = Usage()
        for level in writing_order(target.levels):
            below = max((n for n in outputs if n < level), default=None)
            above = min((n for n in outputs if n > level), default=None)
            if below and above:
                between = {"worse": outputs[below], "better": outputs[above]}
            else:
                between = {}
            text, fault, cost = await self._written(
                item, target, level, list(outputs.values()), between, model
            )
            usage += cost
            if fault is None:
                outputs[level] = text
            elif not between:
                problem = f"{model.name} could not write reference {level} of {target.levels}: {fault}"
                raise Unreadable(problem, (text,), usage)
            else:
                left_out[level] = fault
        outputs = dict(sorted(outputs.items()))
        left_out = dict(sorted(left_out.items()))
        written = Written(ReferenceSet(target.levels, outputs, left_out), usage)
        return Result(written, outputs=outputs, left_out=left_out)

    async def _written(
        self,
        item: Item,
        target: Target,
        level: int,
        others: Sequence[str],
        between: Mapping[str, str],
        lm: LanguageModel,
    ) -> tuple[str, str | None, Usage]:
        """A text, what is wrong with it (None: nothing), and the cost.

        All other levels count as neighbours: two equal texts at any two levels would tell nothing.
        """
        usage = Usage()
        text = ""
        fault = None
        again: dict[str, str] = {}
        for number in range(WRITINGS):
            if number == 0:
                writer = lm
            else:
                writer = sampled(lm, number, max(AGAIN, lm.sampling.temperature))
            answer = await self.predict.ask(
                writer,
                self.inputs(item, target, level, **between, **again),
                usable=lambda read: fault_of(read.values["output"], others) is None,
            )
            usage += answer.usage
            text = answer.read.values["output"]
            fault = fault_of(text, others)
            if fault is None:
                return text, None, usage
            again = {"fault": fault, "refused": text[:2000] or "(nothing)"}
        return text, f"{fault} (written {WRITINGS} times)", usage


def length_guide(outputs: Iterable[str]) -> int:
    """Return the median length in words of systems' outputs, for `Target.words`; 0 without any."""
    counts = [word_count(text) for text in outputs if text.strip()]
    return min(2000, max(3, round(statistics.median(counts)))) if counts else 0


# Checks --------------------------------------------------------------------------------------------------------------

_OPENING = re.compile(
    r"^\W*(?:(?:sure|certainly|of course|okay|ok|absolutely)\b[\W_]*)?(?:here(?:['’]s|\s+is|\s+are)|below\s+is|"
    r"the\s+following\s+is|this\s+is)\b[^\n:]{0,120}\b(?:summary|reply|response|story|answer|text|version|translation|"
    r"output|example|simplification)\b(?P<end>[^\n:.!?]{0,120}:)?",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\W*(?:(?:the|a|my|new|worst|best|bad|good|worse|better|possible|intermediate|simplified|example)\s+){0,4}"
    r"(?:summary|reply|response|story|answer|text|translation|output)\b[^\w\n]{0,4}:[*_]*\s*",
    re.IGNORECASE,
)
_ABOUT_ITSELF = re.compile(
    r"\b(?:worst|best)\s+possible\s+(?:summary|reply|response|story|answer|text|translation|output)|"
    r"\bas an ai\b|\bI(?:['’]m| am)? (?:sorry, but I )?(?:cannot|can['’]t|unable to) (?:write|provide|create|assist)|"
    r"\bthis (?:summary|reply|response|story|answer|text|translation) is (?:deliberately|intentionally|written to)\b",
    re.IGNORECASE,
)


def bare(text: str) -> str:
    """Return a model's text without its wrapping.

    That is thoughts, tags, a code fence, an announcement, a label, and quotation marks.
    """
    if tagged := re.search(r"<output>\s*+(?=\w)", text):
        text = re.split(r"</?output>", text[tagged.end() :], maxsplit=1)[0]
    text = re.sub(r"^```\w*|```$|</?output>", "", text.strip()).strip()
    announced = _OPENING.match(text)
    if announced and announced["end"]:
        text = text[announced.end() :].lstrip("*_ \n")
    return reading.bare(_LABEL.sub("", text))


def fault_of(text: str, others: Iterable[str]) -> str | None:
    """Why a text can be no reference, as a clause; None where nothing was found."""
    if not re.search(r"\w", text):
        return "it is empty"
    if any(folded(text).key == folded(other).key for other in others):
        return "it is the same as one that exists"
    if _repeats(text):
        return "it repeats itself over and over"
    if _OPENING.match(text):
        return "it announces itself instead of only being there"
    if _ABOUT_ITSELF.search(text):
        return "it speaks of itself or of the request"
    return None


def _repeats(text: str) -> bool:
    """Return True if the same five words in a row stand there four times (letters, in scripts without spaces).

    Small models write such loops.
    """
    parts: Sequence[str] = text.casefold().split()
    size = 5
    if 20 * len(parts) < len(text):
        parts = text
        size = 15
    runs = Counter(tuple(parts[i : i + size]) for i in range(len(parts) - size + 1))
    return max(runs.values(), default=0) >= 4


def word_count(text: str) -> int:
    """Words between spaces; where a script has none, about half its letters (East Asian)."""
    return (
        len(text.split()) + len(re.findall("[\u3040-\u30ff\u3400-\u9fff]", text)) // 2
    )
