"""A reader by a server of completions that gives the probabilities of the prompt's own tokens.

It needs `echo` with `logprobs`, as vLLM gives them and OpenAI's `/v1/completions` did. It gives no hidden states, nor
the entropy. llama.cpp's own server and Ollama give nothing for a prompt's tokens; their models can be read inside this
process (`EmbeddedReader`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import numpy as np

from judgesmith.errors import CallError, ModelError, OptionError
from judgesmith.programs.readings.passages import (
    PLAIN_TURNS,
    Chat,
    JinjaChat,
    Passage,
    Piece,
)
from judgesmith.programs.readings.reader import Ability, TokenReading, estimated_size

# A server cannot be told which marks are the template's own and which stand in a text: the latter are broken up.
_MARKS = re.compile(r"<(?=[|/]?\w+\|?>|\|)|\[(?=/?(?:INST|SYSTEM_PROMPT)\])")


#: What servers call the tokens that a model holds, in their list of models: vLLM's name, and others'.
_CONTEXT = ("max_model_len", "context_length", "max_context_length")
#: How servers say that a prompt is too long.
TOO_LONG = re.compile(
    r"context[ _](?:length|size|window)|maximum context|too (?:long|many tokens)",
    re.IGNORECASE,
)


class ServedReader:
    """Reads with a served model.

    Args:
        url: the server's address, up to and with `/v1`.
        model: the name under which it serves the model.
        key: sent as a bearer token.
    """

    def __init__(self, url: str, model: str, *, key: str = "") -> None:
        self.name = model
        # Such a server does not tell its chat template: the turns stand one below the other as plain text.
        self.chat: Chat = JinjaChat(PLAIN_TURNS)
        self._url = url.rstrip("/")
        self._client = httpx.Client(timeout=120.0)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.ability = Ability()

    def look(self) -> None:
        """Ask how many tokens the model holds, as vLLM and others tell: longer rows are then read in windows.

        Of a server that does not tell, the whole row is sent.
        """
        with contextlib.suppress(
            httpx.HTTPError, ValueError, TypeError, AttributeError, KeyError
        ):
            listed = self._client.get(
                f"{self._url}/models", headers=self._headers
            ).json()["data"]
            about: dict[str, Any] = next(
                (model for model in listed if model.get("id") == self.name), {}
            )
            declared = next(
                (about[key] for key in _CONTEXT if type(about.get(key)) is int), 0
            )
            self.ability = Ability(
                context=max(0, declared - 1)
            )  # one token is generated

    def size(self, pieces: Sequence[Piece]) -> int:
        """See `Reader`; estimated, since only the server has the tokens."""
        return estimated_size(pieces)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`.

        Raises: OptionError if layers are asked for; ModelError where the server does not give a prompt's probabilities;
        CallError for a call that failed.
        """
        if layers:
            raise OptionError(
                f"{self.name} is served, and a server does not give hidden states; read it in the process"
            )
        before = "".join(map(_written, passage.pieces[: passage.target]))
        target = _written(passage.pieces[passage.target])
        if not before:
            raise OptionError("a passage needs a text before its target")
        logp, ends = self._echoed(before, target)
        if not logp:
            raise ModelError(
                f"{self.name}: the server gave no token of the text that was to be read"
            )
        unknown = np.full(len(logp), np.nan, dtype=np.float32)
        return TokenReading(
            np.array(logp, dtype=np.float32), unknown, unknown, tuple(ends)
        )

    def _echoed(self, before: str, target: str) -> tuple[list[float], list[int]]:
        """Log p of the target's tokens, and where each ends in it."""
        reply = self._completion(
            {"prompt": before + target, "max_tokens": 1, "logprobs": 1, "echo": True}
        )
        try:
            numbers = reply["logprobs"]
            starts = numbers["text_offset"]
            values = numbers["token_logprobs"]
            words = numbers["tokens"]
            # A token across the border belongs to the text: most of its letters do, and it cannot be divided.
            at = [
                i
                for i, start in enumerate(starts)
                if start + len(words[i]) > len(before)
                and start < len(before) + len(target)
            ]
            logp = [float(values[i]) for i in at]
            ends = [
                min(starts[i] + len(words[i]) - len(before), len(target)) for i in at
            ]
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ModelError(
                f"{self.name}: the server does not echo the prompt's log-probabilities ({error!r}); few but vLLM do"
            ) from error
        return logp, ends

    def _completion(self, request: Mapping[str, Any]) -> dict[str, Any]:
        body = {"model": self.name, "temperature": 0, **request}
        try:
            answer = self._client.post(
                f"{self._url}/completions", json=body, headers=self._headers
            )
        except httpx.HTTPError as error:
            raise CallError(
                f"{self.name}: the server did not answer ({type(error).__name__})"
            ) from error
        if answer.status_code in (400, 413, 422) and TOO_LONG.search(answer.text):
            raise CallError(
                f"{self.name}: the row is longer than the model's context (HTTP {answer.status_code}: "
                f"{answer.text[:200]!r}); shorten its texts, or take a model with a longer context"
            )
        if answer.status_code in (400, 404, 405, 422):
            raise ModelError(
                f"{self.name}: the server refuses what readings need (HTTP {answer.status_code}: {answer.text[:200]!r})"
            )
        if answer.status_code != 200:
            raise CallError(
                f"{self.name}: the server answered HTTP {answer.status_code}"
            )
        try:
            reply = answer.json()
        except ValueError as error:
            raise CallError(f"{self.name}: the server's answer is no JSON") from error
        choices = reply.get("choices") if isinstance(reply, dict) else None
        if (
            not isinstance(choices, list)
            or not choices
            or not isinstance(choices[0], dict)
        ):
            raise CallError(f"{self.name}: the server's answer has no choices")
        return choices[0]


def _written(piece: Piece) -> str:
    return piece.text if piece.mark else _MARKS.sub(lambda m: m[0] + " ", piece.text)
