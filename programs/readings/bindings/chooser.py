"""Answers by OpenVINO that are one of few texts: one pass over the prompt, and the probabilities of what comes next.

The texts that an answer may have are a tree of tokens. What all have in common goes through the model with the prompt;
where they part, the likeliest branch is taken. An answer such as `Score: 4` takes no pass of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Self

import numpy as np

from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models.choosing import choosers
from judgesmith.programs.models.transport import Choice, Request
from judgesmith.programs.readings.bindings.batches import Row
from judgesmith.programs.readings.bindings.opening import open_weights, openvino_way
from judgesmith.programs.readings.bindings.openvino_reader import OpenVinoReader
from judgesmith.programs.readings.bindings.vocabulary import Vocabulary
from judgesmith.programs.readings.passages import Piece
from judgesmith.programs.readings.reader import Floats

#: In place of a token: here a text ends.
_END = -1


@choosers.register
class OpenVinoChooser:
    """Answers with the reader of the same file, which is opened with the first request."""

    name = "openvino"
    about = "answers that are one of few texts, by OpenVINO"

    def __init__(self, path: Path, name: str, way: str, system_prompt: bool) -> None:
        self._path = path
        self._name = name
        self.way = way
        self.system_prompt = system_prompt

    @classmethod
    def of(cls, path: Path, name: str) -> Self | None:
        """See `choosers`."""
        way = openvino_way(path)
        return None if way is None else cls(path, name, *way)

    def answers(self, requests: Sequence[Request]) -> list[Reply | None]:
        """See `Chooser`. Left to the server are a prompt that is too long for the reader, and all in a forked child."""
        reader = open_weights(self._path, self._name).reader
        if not isinstance(reader, OpenVinoReader) or not reader.ours:
            return [None] * len(requests)
        under_way = [_Answer(reader, request) for request in requests]
        fitting = list(filter(attrgetter("fits"), under_way))
        together = [answer for answer in fitting if answer.at_once]
        logps = reader.following([answer.row for answer in together])
        for answer, logp in zip(together, logps, strict=True):
            answer.take(logp)
        # Of an answer in steps a row that is read alone keeps its beginning for the next step.
        for answer in fitting:
            while answer.reply is None:
                answer.take(reader.following([answer.row])[0])
        return [answer.reply for answer in under_way]


class _Answer:
    """An answer under way: `row` is to be read next, until there is a `reply`."""

    def __init__(self, reader: OpenVinoReader, request: Request) -> None:
        self._words = reader.words
        self._request = request
        messages = [
            (message["role"], message["content"]) for message in request.messages
        ]
        self._prompt = reader.prompt(messages)
        self._spoken = list[int]()
        self._choices = list[TokenChoice]()
        self.reply: Reply | None = None
        parts = [_branches(self._words, part) for part in request.choices]
        longest = sum(max(map(len, branches)) for branches in parts)
        self.fits = len(self._prompt) + longest <= reader.context
        #: Whether one look is enough, so that it may be read together with others.
        self.at_once = sum(map(_partings, parts)) <= 1
        self._steps = self._walk(parts)
        next(self._steps)

    @property
    def row(self) -> Row:
        """What was said so far, and the place of the last token before what was not looked at yet."""
        start = len(self._prompt) + len(self._choices) - 1
        return Row(self._prompt + self._spoken, start)

    def take(self, logp: Floats) -> None:
        """Continue with the log-probabilities at the row's places."""
        try:
            self._steps.send(logp)
        except StopIteration:
            self.reply = self._replied()

    def _walk(
        self, parts: Sequence[Sequence[Sequence[int]]]
    ) -> Generator[None, Floats, None]:
        """Through the trees of all parts, with a halt at each choice, and at the end of an answer without one."""
        for place, branches in enumerate(parts):
            after = [branch[0] for one in parts[place + 1 :][:1] for branch in one]
            depth = 0
            token = branches[0][0]
            while token != _END:
                nexts = list(dict.fromkeys(branch[depth] for branch in branches))
                if len(nexts) > 1:
                    token = self._chosen((yield), nexts, after or self._words.stops)
                else:
                    token = nexts[0]
                    self._spoken += [token] if token != _END else []
                branches = [branch for branch in branches if branch[depth] == token]
                depth += 1
        if not self._choices:
            self._tell((yield))

    def _chosen(self, logp: Floats, nexts: Sequence[int], ends: Sequence[int]) -> int:
        """The likeliest of some tokens, of which one may be an end. What was not looked at yet is told."""
        self._tell(logp[:-1])
        last = logp[-1]
        odds = {
            token: last[list(ends)].max() if token == _END else last[token]
            for token in nexts
        }
        token = max(nexts, key=odds.__getitem__)
        if token != _END:
            self._spoken.append(token)
            self._tell(logp[-1:])
        return token

    def _tell(self, logp: Floats) -> None:
        """Note the probabilities at the tokens that come next in the answer."""
        first = len(self._choices)
        count = self._request.top_logprobs
        for token, logps in zip(self._spoken[first:], logp, strict=False):
            listed = np.argpartition(-logps, min(count, len(logps) - 1))[:count]
            numbers = dict.fromkeys([*listed.tolist(), token])
            alternatives = [
                (self._words.text([each]), float(logps[each])) for each in numbers
            ]
            alternatives.sort(key=lambda pair: -pair[1])
            text = self._words.text([token])
            self._choices.append(TokenChoice(text, tuple(alternatives)))

    def _replied(self) -> Reply:
        words = self._words
        silent = [TokenChoice(words.text([token]), ()) for token in self._spoken]
        tokens = [*self._choices, *silent[len(self._choices) :]]
        return Reply(
            words.text(self._spoken),
            tuple(tokens) if self._request.top_logprobs else None,
            prompt_tokens=len(self._prompt),
            completion_tokens=len(self._spoken),
            finish="stop",
        )


def _branches(words: Vocabulary, part: Choice) -> list[tuple[int, ...]]:
    """The tokens of each text that a part may be, with its end."""
    lead, values = part
    branches = [(*words.tokens(Piece(lead + value)), _END) for value in values]
    return list(dict.fromkeys(branches))


def _partings(branches: Sequence[Sequence[int]]) -> int:
    """How often a choice has to be made: never, once, or (2) more often."""
    if len(branches) == 1:
        return 0
    shared = 0
    while len({branch[shared] for branch in branches}) == 1:
        shared += 1
    firsts = {branch[shared] for branch in branches}
    return 1 if len(firsts) == len(branches) else 2
