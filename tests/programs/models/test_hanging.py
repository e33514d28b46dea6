"""Calls that hang, without a model."""

import asyncio
from typing import Any

import pytest

from judgesmith.programs.models.hanging import Sends, Usual


class Impatient(Usual):
    """As if answers took no time so far."""

    patience = 0.0  # type: ignore[assignment]


def test_a_call_that_is_cancelled_after_its_second_send_leaves_no_error() -> None:
    errors: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(context)
        )
        sends = Sends(asyncio.Event().wait, Impatient(), asyncio.Semaphore(1), None, 3)
        call = asyncio.ensure_future(sends.answer())
        while sends.count < 2:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(0.01)

    asyncio.run(main())
    assert errors == []
