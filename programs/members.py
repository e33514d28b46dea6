"""Judges that are made of other judges: what holds for them whatever they make of their members' verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..signatures.values import Item, Usage, Verdict
from .capabilities import passages_of
from .judge import Judge
from .models.lm import Connection, LanguageModel
from .models.transport import Message
from .prompting.predict import JudgePredict


class OfMembers(Judge):
    """The base. `members` judge every output, all by the model of the whole; a subclass says what their `names` are and
    what comes of their verdicts (`ajudge`)."""

    members: list[Judge]

    def names(self) -> list[str]:
        """What the members are called, in their order."""
        raise NotImplementedError

    # -- what is passed on

    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for m in self.members for name in m.models()))

    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for m in self.members for name in m.reads()))

    def connect(self, connection: Connection | None) -> None:
        for member in self.members:
            member.connect(connection)

    def taught(self) -> list[JudgePredict]:
        return [predictor for m in self.members for predictor in m.taught()]

    def stops_early(self) -> bool:
        return any(m.stops_early() for m in self.members)

    def calls_per_row(self) -> int:
        return sum(m.calls_per_row() for m in self.members)

    def passages(self) -> frozenset[Any]:
        """The passages that are read of each row."""
        return frozenset().union(*map(passages_of, self.members))

    @property
    def brief(self) -> bool:
        return all(m.brief for m in self.members)

    def set_brief(self, on: bool) -> None:
        for member in self.members:
            member.set_brief(on)

    async def prepare(self, lm: LanguageModel) -> None:
        for member in self.members:
            await member.prepare(lm)

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        return self.members[0].demonstration(item, verdict)

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        return {
            f"{name}: {part}": messages
            for name, member in zip(self.names(), self.members, strict=True)
            for part, messages in member.previews(item).items()
        }

    # -- judging

    async def heard(self, item: Item, lm: LanguageModel) -> dict[str, Verdict]:
        """Every member's verdict by its name; one whose call failed says why."""
        if lm.embedded:  # the rows under way fill its slots; more at once would push prompts out of its cache
            return {name: await m.averdict(item, lm) for name, m in zip(self.names(), self.members, strict=True)}
        # All are waited for: what a used-up budget ends must not go on in the background.
        got = await asyncio.gather(*(m.averdict(item, lm) for m in self.members), return_exceptions=True)
        for error in got:
            if isinstance(error, BaseException):
                raise error
        return {name: v for name, v in zip(self.names(), got, strict=True) if isinstance(v, Verdict)}

    def joined(self, heard: Mapping[str, Verdict]) -> dict[str, Any]:
        """What the members' verdicts cost, and the models' texts, for the verdict that is made of them."""
        return {
            "usage": sum((v.usage for v in heard.values()), Usage()),
            "raw": tuple(text for v in heard.values() for text in v.raw),
            "repaired": any(v.repaired for v in heard.values()),
        }
