"""Send requests to a model of Ollama by its client, which can set the size of the context for a prompt.

Ollama's OpenAI-style interface cannot, and cuts a prompt that is longer than its context without a word.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
import ollama

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.engine import PerLoop, at_exit
from judgesmith.programs.models.ollama import reaching
from judgesmith.programs.models.reaching import check_trusted
from judgesmith.programs.models.refusals import refuse
from judgesmith.programs.models.transport import (
    DENSE,
    TEMPLATE,
    Request,
    Unanswered,
    first_line,
    read_reply,
)
from judgesmith.programs.models.window import is_short_count

SMALLEST_CONTEXT = 4096
#: Bytes of UTF-8 to a token: hardly one has more.
SPARSE = 6
#: How Ollama refuses: "the input length exceeds the context length", "request (9 tokens) exceeds the … context size".
_TOO_LONG = re.compile(
    r"(?:\((?P<tokens>\d+) tokens\).*)?context (?:length|size|window)", re.IGNORECASE
)


class _Whole(ollama.AsyncClient):
    """The client, asking that no prompt be cut, for which `chat` has no argument. Ollama knows it since 0.12.6."""

    async def _request_raw(self, *args: Any, json: Any, **options: Any) -> Any:
        body = {**json, "truncate": False}
        return await super()._request_raw(*args, json=body, **options)  # type: ignore[no-untyped-call]


class ThroughOllama:
    """POST /api/chat.

    The context that is asked for doubles from 4096 tokens up to `longest`, what the model takes, and never shrinks,
    because with every other size the server loads the model again.
    """

    def __init__(self, host: str, model: str, longest: int, *, timeout: float) -> None:
        self.host = host
        self.model = model
        self.longest = longest
        self._timeout = timeout
        self._client = PerLoop(self._connected)
        self._context = SMALLEST_CONTEXT

    def _connected(self) -> ollama.AsyncClient:
        client = _Whole(self.host, **reaching(self.host, self._timeout))
        at_exit(client.close)
        return client

    async def send(self, request: Request) -> Reply:
        """Send a request with a context that holds the whole prompt."""
        try:
            return await self._whole(request)
        except ollama.ResponseError as error:
            answer = getattr(
                error.__context__, "response", None
            )  # the client itself drops the headers
            refuse(
                self.model,
                self.host,
                error.status_code,
                first_line(error),
                answer.headers if answer else {},
            )
        except (ConnectionError, httpx.TransportError) as error:
            check_trusted(self.model, error)
            raise Unanswered(
                f"the connection failed: {first_line(error)}", again=True, reached=False
            ) from None
        except (
            ValueError,
            TypeError,
            AttributeError,
        ) as error:  # what the client makes of JSON it does not expect
            raise Unanswered(
                f"the answer is not Ollama's: {first_line(error)}", again=True
            ) from None

    async def _whole(self, request: Request) -> Reply:
        """The answer to a prompt of which nothing was cut. Raises Unanswered where the model cannot hold it."""
        size = sum(len(message["content"].encode()) for message in request.messages)
        beside = TEMPLATE + request.max_tokens
        # no token is less than a byte
        expected = size // DENSE + beside
        most = size + beside
        tokens = f"some {size // 4:,} tokens (a quarter of its bytes)"
        context = 0
        while context < min(most, self.longest) and size // SPARSE < self.longest:
            power = 1 << (max(expected, 2 * context) - 1).bit_length()
            context = self._context = min(max(self._context, power), self.longest)
            try:
                reply = await self._asked(request, context)
                # A server that cuts all the same fills the context, or counts too few tokens for the prompt's bytes.
                full = reply.prompt_tokens + reply.completion_tokens >= context
                short = is_short_count(reply.prompt_tokens, request.messages)
                if not full and (expected <= context or not short):
                    return reply
            except ollama.ResponseError as error:
                if error.status_code == 400:
                    refused = _TOO_LONG.search(str(error))
                else:
                    refused = None
                if refused is None:
                    raise
                if refused["tokens"]:
                    tokens = f"{int(refused['tokens']):,} tokens"
        raise Unanswered(
            f"the prompt has {tokens}, which with an answer of up to {request.max_tokens:,} does not fit into the "
            f"{self.longest:,} that the model takes. Shorten the row's texts, show fewer demonstrations, or take a "
            "model with a longer context",
            again=False,
        )

    async def _asked(self, request: Request, context: int) -> Reply:
        """The answer within a context of that many tokens."""
        drawn = {
            "temperature": request.temperature,
            "top_p": 1.0,
            "seed": request.sample,
        }
        answer = await self._client().chat(
            self.model,
            request.messages,
            format=dict(request.schema) if request.schema else None,
            logprobs=request.top_logprobs > 0 or None,
            top_logprobs=request.top_logprobs or None,
            options=drawn | {"num_ctx": context, "num_predict": request.max_tokens},
        )
        listed = [token.model_dump() for token in answer.logprobs or ()]
        choice = {
            "message": {"content": answer.message.content},
            "finish_reason": answer.done_reason,
        }
        usage = {
            "prompt_tokens": answer.prompt_eval_count,
            "completion_tokens": answer.eval_count,
        }
        return read_reply(
            {"choices": [choice | {"logprobs": {"content": listed}}], "usage": usage}
        )
