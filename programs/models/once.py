"""Equal requests are sent once: their answer is taken from the disk, from this run, or from the call under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from judgesmith.errors import CallError
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.models.cache import CallCache
from judgesmith.programs.models.failures import Failures
from judgesmith.signatures.values import Usage

#: True if the caller can use a reply.
Readable = Callable[[Reply], bool]


async def ask_once(
    ask: Callable[[], Awaitable[tuple[Reply, Usage]]],
    key: Callable[[], bytes],
    *,
    cache: CallCache,
    failures: Failures,
    under_way: dict[bytes, asyncio.Future[Reply]],
    readable: Readable,
) -> tuple[Reply, Usage]:
    """Return the answer to a request, which is sent only if nobody has asked it.

    Equal requests at the same time share even an answer that cannot be read.

    Args:
        ask: Sends the request.
        key: Gives the request's key.
        cache: The answers on disk.
        failures: The unusable answers of this run.
        under_way: The calls under way, by their keys.
        readable: Whether the caller can use a reply; called at least once with the returned one.
    """
    asked = key()
    reply = thawed(cache.get(asked))
    if reply is not None and readable(reply):
        return reply, Usage(cached=1)
    reply = failures.earlier(asked)
    if reply is None:
        reply = await _shared(under_way, asked)
    if reply is not None:
        readable(reply)
        return reply, Usage(cached=1)
    promise: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    under_way[asked] = promise
    try:
        reply, usage = await ask()
        if not readable(reply):
            failures.keep(asked, reply)
        elif key() == asked:  # the environment may name another server by now
            cache.put(asked, frozen(reply))
        promise.set_result(reply)
        return reply, usage
    except Exception as error:
        if isinstance(error, CallError):
            failures.keep(asked, error)
        promise.set_exception(error)
        promise.exception()  # looked at, so that asyncio does not complain when no other caller waited
        raise
    except BaseException:
        promise.cancel()  # whoever waits asks for itself
        raise
    finally:
        del under_way[asked]


async def _shared(
    under_way: dict[bytes, asyncio.Future[Reply]], key: bytes
) -> Reply | None:
    """Return the answer of the call under way, or of the next one where that was cancelled; None if there is none."""
    while (first := under_way.get(key)) is not None:
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            # Otherwise we were cancelled, not the call that we wait for.
            if not first.cancelled():
                raise
    return None


def frozen(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON values."""
    kept: dict[str, Any] = {
        "text": reply.text,
        "usage": [
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.prefix_tokens,
            reply.written_tokens,
        ],
        "finish": reply.finish,
    }
    if reply.absent:
        kept["absent"] = reply.absent
    if reply.without:
        kept["without"] = list(reply.without)
    if reply.discount:
        kept["discount"] = reply.discount
    if reply.tokens is not None:
        kept["tokens"] = [
            [token.text, [list(pair) for pair in token.alternatives]]
            for token in reply.tokens
        ]
    return kept


def thawed(stored: Any) -> Reply | None:
    """Return a stored reply; None where there is none or it is damaged."""
    try:
        tokens = stored.get("tokens")
        prompt, completion, prefix, *written = stored["usage"]
        return Reply(
            stored["text"],
            None if tokens is None else tuple([_token(token) for token in tokens]),
            prompt,
            completion,
            prefix,
            stored["finish"],
            discount=float(stored.get("discount") or 0.0),
            absent=str(stored.get("absent") or ""),
            written_tokens=sum(written),  # earlier versions kept none
            without=tuple(stored.get("without") or ()),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _token(stored: Any) -> TokenChoice:
    """Return a stored token. Raises TypeError, ValueError for a damaged one."""
    text, alternatives = stored
    pairs = tuple([(alternative, logp) for alternative, logp in alternatives])
    return TokenChoice(text, pairs)
