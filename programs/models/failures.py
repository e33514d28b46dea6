"""Calls of a run that came to nothing, so that the same question is not put again in it.

Usable answers are kept on disk, others are not: a later run may get a better one. But a run that goes through its rows
many times, as cross-validation does, would ask a model that answers nothing again each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from judgesmith.errors import CallError
from judgesmith.programs.answers.reply import Reply


@dataclass(slots=True)
class Failures:
    """Unusable answers and failed calls, by request.

    closed: True if nothing may be asked any more, so that passing failures (a busy server) count too.
    """

    closed: bool = False
    _kept: dict[bytes, Reply | CallError] = field(default_factory=dict)

    def keep(self, key: bytes, failure: Reply | CallError) -> None:
        """Keep what a request came to."""
        self._kept[key] = failure

    def earlier(self, key: bytes) -> Reply | None:
        """Return the unusable answer that a request had; None where it is to be asked.

        Raises:
            CallError: If the call failed.
        """
        failure = self._kept.get(key)
        if not isinstance(failure, CallError):
            return failure
        if failure.lasting or self.closed:
            raise type(failure)(str(failure))
        return None
