"""A `dspy.Predict` that formats, calls and parses through our engine, and keeps a row out of its own prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.dsp.utils.settings import main_thread_config

from ...errors import CallError
from ...likeness import same_output, same_row, same_source
from ...signatures.values import Usage
from ..models.engine import run
from ..models.lm import LanguageModel, language_model
from ..models.transport import Message, Reply, Request
from .layouts import Layout, Read
from .neighbours import Neighbours

#: What demonstrations carry beside the fields of a signature.
DEMO_MARKS = ("group", "score", "augmented", "gold")


class Unreadable(CallError):
    """The model answered twice and neither answer could be read."""

    def __init__(self, problem: str, raw: tuple[str, ...], usage: Usage) -> None:
        super().__init__(problem)
        self.raw = raw
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Answer:
    """A read answer with what it cost and the model's own words."""

    read: Read
    usage: Usage
    raw: tuple[str, ...]


class JudgePredict(dspy.Predict):  # type: ignore[misc]
    """One predictor of a judge: a signature, demonstrations, and the layout of its prompt and answer.

    DSPy's optimizers see an ordinary `Predict` (demos, signature, traces, state). Calls go through `ask`.
    """

    def __init__(self, signature: type[dspy.Signature], layout: Layout) -> None:
        super().__init__(signature)
        self.layout = layout

    def demos_for(self, inputs: Mapping[str, Any], group: str | None) -> list[Mapping[str, Any]]:
        """The demonstrations that stand in this row's prompt: none of its group, none with its output or its source or
        nearly these, and of a pool (`Neighbours`) those that are most like the row."""
        source, output = inputs.get("source") or "", inputs.get("output") or ""
        apart = [n for n, demo in enumerate(self.demos) if group is None or demo.get("group") != group]
        twins = {n for n in apart if same_source(self.demos[n].get("source") or "", source)}
        if len({self.demos[n].get("group") for n in twins}) > 1:
            twins = set()  # what several groups have as their source is no document but an instruction
        allowed = [n for n in apart if n not in twins and not _repeats(self.demos[n], source, output)]
        if isinstance(self.demos, Neighbours):
            return self.demos.nearest(inputs, allowed)
        return [self.demos[number] for number in allowed]

    def messages(self, inputs: Mapping[str, Any], *, group: str | None = None) -> list[Message]:
        """The very messages that a row sends."""
        made: list[Message] = self.layout.format(self.signature, self.demos_for(inputs, group), inputs)
        return made

    async def ask(
        self,
        lm: LanguageModel,
        inputs: Mapping[str, Any],
        *,
        group: str | None = None,
        usable: Callable[[Read], bool] = lambda _: True,
    ) -> Answer:
        """One call, and one more where the answer cannot be read. Raises Unreadable or CallError.

        usable: whether a read answer is of use to the caller. One that is not is returned all the same, but not kept:
        it must not be what the disk says for ever.
        """
        able = await lm.capabilities()
        layout = self.layout
        messages = self.messages(inputs, group=group)
        if not able.system_prompt:
            messages = _without_system(messages)
        used: list[Usage] = []
        raw: list[str] = []
        shape: dict[str, Any] = {
            "max_tokens": min(layout.max_tokens(inputs), lm.sampling.max_tokens or 1_000_000),
            "temperature": lm.sampling.temperature,
            "top_logprobs": 20 if layout.wants_logprobs and able.logprobs else 0,
            "grammar": layout.grammar(inputs) if able.grammar else None,
            "schema": layout.schema(inputs) if able.json_schema and not able.grammar else None,
        }

        async def asked(messages: list[Message]) -> Read:
            reads: list[Read] = []

            def readable(reply: Reply) -> bool:
                reads.append(layout.read(reply, inputs))
                return reads[-1].problem is None and usable(reads[-1])

            reply = await lm.complete(Request(messages, **shape), meter=used.append, readable=readable)
            raw.append(reply.text)
            return reads[-1]

        read = await asked(messages)
        if read.problem is not None:
            again: list[Message] = [
                *messages,
                {"role": "assistant", "content": raw[0] or "(no answer)"},
                {"role": "user", "content": f"That answer could not be read. {layout.rules(inputs)}"},
            ]
            second = await asked(again)
            if second.problem is not None:
                raise Unreadable(f"{second.problem} (asked twice)", tuple(raw), sum(used, Usage()))
            read = Read(second.values, second.repaired, notes=(*second.notes, "answered at the second request"))
        trace = dspy.settings.trace
        # The list that is there without `dspy.context(trace=…)` has no reader, and would keep every row in memory.
        if trace is not None and trace is not main_thread_config["trace"]:
            trace.append((self, dict(inputs), dspy.Prediction(**read.values)))
        return Answer(read, sum(used, Usage()), tuple(raw))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        lm = language_model(self.lm or dspy.settings.lm)
        answer = await self.ask(lm, inputs)
        return dspy.Prediction(**answer.read.values)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        return run(self.aforward(**inputs))


def _repeats(demo: Mapping[str, Any], source: str, output: str) -> bool:
    """Whether a demonstration shows the judged row, or its output as another text."""
    others = (demo.get(name) or "" for name in ("reference", "other"))
    return same_row(demo.get("source") or "", demo.get("output") or "", source, output) or any(
        same_output(text, output) for text in others
    )


def _without_system(messages: list[Message]) -> list[Message]:
    """For models whose chat template has no system role: its text leads the first user turn."""
    system, first, *rest = messages
    return [{"role": "user", "content": f"{system['content']}\n\n{first['content']}"}, *rest]
