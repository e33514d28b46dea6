"""Answers of a model in this process that begin with fixed words, such as `Score: 4`.

Under a grammar llama.cpp takes the token that the model likes best of those allowed. So it spells "Score" as "S", "co"
and "re" where the model would have begun with other words, and the number then follows tokens that models hardly ever
see. Sent as the beginning of the answer, the words have their usual tokens, and take no pass each.
"""

from __future__ import annotations

from dataclasses import replace

from judgesmith.errors import ModelError
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models.refusals import Unanswered
from judgesmith.programs.models.transport import Request, Transport, quoted


class Begun:
    """A transport that sends the words that an answer begins with as its beginning."""

    def __init__(self, server: Transport) -> None:
        self._server = server
        self._refused = False

    async def send(self, request: Request) -> Reply:
        """Send a request, and return the whole answer.

        A model that begins every answer with its thoughts takes no beginning of another's; it is asked as before.
        """
        words = "" if self._refused else beginning_of(request)
        if not words:
            return await self._server.send(request)
        try:
            return _whole(await self._server.send(_begun(request, words)), words)
        except (ModelError, Unanswered) as error:
            if getattr(error, "again", False):
                raise
            plain = await self._server.send(request)
            self._refused = True
            return plain


def _begun(request: Request, words: str) -> Request:
    """Return a request whose answer has begun with some words."""
    ((lead, values),) = request.choices
    rests = [quoted((lead + value).removeprefix(words)) for value in values]
    message = {"role": "assistant", "content": words}
    return replace(
        request,
        messages=[*request.messages, message],
        grammar=f"root ::= {' | '.join(rests)}",
    )


def beginning_of(request: Request) -> str:
    """Return the words that the answer begins with, "" where it is free or has several parts.

    A space behind them is no part of them: it may be one of the next word's token.
    """
    last = request.messages[-1]["role"] if request.messages else ""
    if len(request.choices) != 1 or not request.grammar or last == "assistant":
        return ""
    return request.choices[0][0].rstrip()


def _whole(reply: Reply, words: str) -> Reply:
    """Return an answer with its beginning, which some servers repeat in its text and none in its tokens."""
    text = reply.text if reply.text.startswith(words) else words + reply.text
    tokens = reply.tokens
    if tokens is not None:
        tokens = (TokenChoice(words, ()), *tokens)
    return replace(reply, text=text, tokens=tokens)
