"""A reader by a server of completions that says how likely the prompt's own tokens are.

- vllm: `prompt_logprobs` of vLLM's `/v1/completions`, with the tokens of its `/tokenize`.
- echo: `echo` with `logprobs`, as OpenAI's `/v1/completions` had it and many servers still do.

Neither gives hidden states, nor the entropy. llama.cpp's own server and Ollama say nothing of a prompt's tokens; their
models can be read inside this process (`EmbeddedReader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import numpy as np

from ....errors import CallError, ModelError, OptionError
from ..passages import PLAIN_TURNS, Chat, JinjaChat, Passage, Piece
from ..reader import Ability, TokenReading

# A server cannot be told which marks are the template's own and which stand in a text: the latter are broken up.
_MARKS = re.compile(r"<(?=[|/]?\w+\|?>|\|)|\[(?=/?(?:INST|SYSTEM_PROMPT)\])")


class ServedReader:
    """Reads with a served model.

    Args:
        url: the server's address, up to and with `/v1`.
        model: the name under which it serves the model.
        way: `vllm` or `echo`; see the module.
        key: sent as a bearer token.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        way: Literal["vllm", "echo"] = "vllm",
        key: str = "",
    ) -> None:
        self.name = model
        self.way = way
        # Such a server does not tell its chat template: the turns stand one below the other as plain text.
        self.chat: Chat = JinjaChat(PLAIN_TURNS)
        self.ability = Ability()
        self._url = url.rstrip("/")
        self._client = httpx.Client(timeout=120.0)
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def read(self, passage: Passage, *, layers: Sequence[int] = ()) -> TokenReading:
        """See `Reader`. Raises: OptionError if layers are asked for; ModelError where the server does not give a
        prompt's probabilities; CallError for a call that failed."""
        if layers:
            raise OptionError(
                f"{self.name} is served, and a server does not give hidden states; read it in the process"
            )
        before = "".join(map(_written, passage.pieces[: passage.target]))
        target = _written(passage.pieces[passage.target])
        if not before:
            raise OptionError("a passage needs a text before its target")
        logp, ends = self._by_tokens(before, target) if self.way == "vllm" else self._by_echo(before, target)
        if not logp:
            raise ModelError(f"{self.name}: the server gave no token of the text that was to be read")
        unknown = np.full(len(logp), np.nan, dtype=np.float32)
        return TokenReading(np.array(logp, dtype=np.float32), unknown, unknown, tuple(ends))

    def _by_tokens(self, before: str, target: str) -> tuple[list[float], list[int]]:
        first, own = (self._tokens(text) for text in (before, target))
        reply = self._completion({"prompt": [*first, *own], "max_tokens": 1, "prompt_logprobs": 0})
        with self._answering("gives no prompt_logprobs"):
            numbers = [reply["prompt_logprobs"][len(first) + i][str(token)] for i, token in enumerate(own)]
            logp = [float(number["logprob"]) for number in numbers]
            ends = np.cumsum([len(number.get("decoded_token") or "") for number in numbers]).tolist()
        return logp, ends

    def _by_echo(self, before: str, target: str) -> tuple[list[float], list[int]]:
        reply = self._completion({"prompt": before + target, "max_tokens": 1, "logprobs": 1, "echo": True})
        with self._answering("does not echo the prompt's log-probabilities; few do today"):
            numbers = reply["logprobs"]
            starts, values, words = numbers["text_offset"], numbers["token_logprobs"], numbers["tokens"]
            # A token across the border belongs to the text: most of its letters do, and it cannot be divided.
            at = [
                i
                for i, start in enumerate(starts)
                if start + len(words[i]) > len(before) and start < len(before) + len(target)
            ]
            logp = [float(values[i]) for i in at]
            ends = [min(starts[i] + len(words[i]) - len(before), len(target)) for i in at]
        return logp, ends

    @contextmanager
    def _answering(self, lack: str) -> Iterator[None]:
        """What an answer leaves out is the model's fault, as a ModelError that says what it lacks."""
        try:
            yield
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise ModelError(f"{self.name}: the server {lack} ({error!r})") from error

    def _tokens(self, text: str) -> list[int]:
        base = self._url.removesuffix("/v1")
        reply = self._post(f"{base}/tokenize", {"model": self.name, "prompt": text, "add_special_tokens": False})
        tokens = reply.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise ModelError(f"{self.name}: the server's /tokenize gives no tokens; read with way='echo'")
        return tokens

    def _completion(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        reply = self._post(f"{self._url}/completions", {"model": self.name, "temperature": 0, **asked})
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise CallError(f"{self.name}: the server's answer has no choices")
        return choices[0]

    def _post(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer = self._client.post(url, json=body, headers=self._headers)
        except httpx.HTTPError as error:
            raise CallError(f"{self.name}: the server did not answer ({type(error).__name__})") from error
        if answer.status_code in (400, 404, 405, 422):
            raise ModelError(
                f"{self.name}: the server refuses what readings need (HTTP {answer.status_code}: {answer.text[:200]!r})"
            )
        if answer.status_code != 200:
            raise CallError(f"{self.name}: the server answered HTTP {answer.status_code}")
        try:
            reply = answer.json()
        except ValueError as error:
            raise CallError(f"{self.name}: the server's answer is no JSON") from error
        if not isinstance(reply, dict):
            raise CallError(f"{self.name}: the server's answer is no JSON object")
        return reply


def _written(piece: Piece) -> str:
    return piece.text if piece.mark else _MARKS.sub(lambda m: m[0] + " ", piece.text)
