"""Acceptance, waiting and end of a server's rows: without HTTP, on the engine's loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from judgesmith.datasets.roles import unusual
from judgesmith.errors import JudgesmithError, ModelError, OptionError
from judgesmith.programs.artifact import fingerprint
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.pipeline import rows_at_once
from judgesmith.programs.several.judge import scales_of
from judgesmith.rooms.serving.metrics import Metrics
from judgesmith.rooms.serving.reasons import brief
from judgesmith.rows import ROLES
from judgesmith.signatures.values import Item, Verdict

#: Seconds between two looks at a model that does not answer.
LOOK_AGAIN = 5.0
NOT_TRIED = "the model has not been tried yet"
ELSEWHERE = "another process of this server cannot use the model"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a server.

    queue: rows accepted and not answered yet, at most. timeout: seconds from a row's acceptance to its verdict. grace:
    seconds that a stopping server gives to accepted rows. body: bytes of a request. arriving: bytes of all requests
    that are being read. rows: rows of a request. key_rows: rows of one key in a minute; None: without end.
    """

    queue: int = 4096
    timeout: float = 120.0
    grace: float = 30.0
    body: int = 8 * 1024 * 1024
    arriving: int = 128 * 1024 * 1024
    rows: int = 4096
    key_rows: float | None = None


class Refused(JudgesmithError):
    """A request that gets no verdict. `status` and `code` say why, `after` is when to come again, in seconds."""

    def __init__(
        self, status: int, code: str, message: str, after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.after = after


@dataclass(slots=True)
class Served:
    """A judge with its name, fingerprint and model.

    roles: of texts, by the names that its labels had for them. problem: why it cannot judge at the moment.
    """

    name: str
    judge: Judge
    lm: LanguageModel
    mark: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    problem: str | None = NOT_TRIED
    watcher: asyncio.Task[None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.mark = fingerprint(self.judge)
        held = self.judge.contract
        own = {} if held is None else unusual(held.columns)
        self.roles = {name: role for role, name in own.items() if role in ROLES}

    def about(self) -> dict[str, Any]:
        """Return its public description."""
        return {
            "name": self.name,
            "kind": self.judge.method.kind,
            "fingerprint": self.mark,
            "model": self.lm.name,
            "agreement": self.judge.stated_agreement,
            "note": self.judge.moved and f"{self.name} was {self.judge.moved}",
            "scale": [self.judge.scale.low, self.judge.scale.high],
            "ready": self.problem is None,
            "aspects": list(scales_of(self.judge.method))
            or [name for name in [self.judge.judges_aspect] if name],
        }


class Service:
    """Judges by name. All coroutines run on the engine's loop."""

    def __init__(self, judges: Mapping[str, Judge], bounds: Bounds) -> None:
        for name, judge in judges.items():
            if judge.whole_documents:
                raise OptionError(
                    f"{name}: a {judge.method.kind} judge ranks the outputs of a document; use `judgesmith score`"
                )
        self.bounds = bounds
        self.metrics = Metrics()
        self.judges = {
            name: Served(name, judge, judge.lm) for name, judge in judges.items()
        }
        self.waiting = 0
        self.stopping = False
        self._handing_back = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- beginning and end

    async def start(self) -> None:
        """Try the models, in the background: a server whose model is not there yet waits for it."""
        for served in self.judges.values():
            self._watch(served)

    def problems(self) -> dict[str, str]:
        """Return why judges cannot judge now, in words for clients: in this process, or in another of the server."""
        own = {
            served.name: brief(served.problem)[1]
            for served in self.judges.values()
            if served.problem is not None
        }
        return dict.fromkeys(self.metrics.unready() & set(self.judges), ELSEWHERE) | own

    def _watch(self, served: Served) -> None:
        self.metrics.ready.labels(served.name).set(0)
        if served.watcher is None or served.watcher.done():
            served.watcher = asyncio.ensure_future(self._until_ready(served))

    async def _until_ready(self, served: Served) -> None:
        while served.problem is not None:
            try:
                await served.judge.method.prepare(served.lm)
                if served.judge.method.cost().calls_per_row:
                    await served.lm.answers()
                served.problem = None
            except JudgesmithError as error:
                served.problem = str(error)
                await asyncio.sleep(LOOK_AGAIN)
            finally:
                self.metrics.ready.labels(served.name).set(served.problem is None)

    def stop(self) -> None:
        """Accept nothing any more; what was accepted has `grace` seconds, then it is handed back."""
        if not self.stopping:
            self.stopping = True
            asyncio.get_running_loop().call_later(self.bounds.grace, self.hand_back)

    def hand_back(self) -> None:
        """Answer what is not finished with 503, so that clients send it to another server."""
        self._handing_back = True
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """End the watchers."""
        for served in self.judges.values():
            if served.watcher is not None:
                served.watcher.cancel()
                with suppress(asyncio.CancelledError):
                    await served.watcher

    # -- judging

    def find(self, name: str | None) -> Served:
        """Return a judge by `NAME`, or `NAME@FINGERPRINT` for that version only; the first one without a name."""
        if name is None:
            return next(iter(self.judges.values()))
        plain, at, mark = name.partition("@")
        served = self.judges.get(plain)
        if served is None:
            raise Refused(
                404,
                "unknown_judge",
                f"there is no judge {plain[:80]!r}; there are {', '.join(self.judges)}",
            )
        if at and served.mark != mark:
            raise Refused(
                409,
                "other_version",
                f"{plain} is {served.mark} here, not {mark[:80]!r}",
            )
        return served

    def check_ready(self, served: Served) -> None:
        """Check that a judge can answer.

        Raises:
            Refused: If the server is stopping, or the judge's model does not answer.
        """
        if self.stopping:
            raise Refused(
                503, "stopping", "this server is stopping; send it to another one", 1
            )
        if served.problem is not None:
            why = brief(served.problem)[1]
            raise Refused(
                503,
                "not_ready",
                f"{served.name} cannot judge now: {why}",
                int(LOOK_AGAIN),
            )

    def accept(self, served: Served, rows: int) -> None:
        """Make room for rows, to be given back with `release`. Raises Refused."""
        self.check_ready(served)
        if rows > self.bounds.rows:
            raise Refused(
                413,
                "too_many_rows",
                f"{rows} rows; a request has at most {self.bounds.rows}",
            )
        if self.waiting + rows > self.bounds.queue:
            raise Refused(
                429,
                "busy",
                f"{self.waiting} rows wait, of at most {self.bounds.queue}; try again later",
                1,
            )
        self.waiting += rows
        self.metrics.queue.set(self.waiting)

    def release(self, rows: int) -> None:
        """Release the places of answered rows."""
        self.waiting -= rows
        self.metrics.queue.set(self.waiting)

    async def score(
        self, served: Served, item: Item, *, explain: bool = False
    ) -> Verdict:
        """Return the verdict on an accepted row; explain: with an explanation by its model. Raises Refused."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.bounds.timeout):
                verdict = await served.judge.verdict(item, served.lm, explain=explain)
        except TimeoutError:
            raise Refused(
                504, "timeout", f"no verdict within {self.bounds.timeout:g} s", 1
            ) from None
        except asyncio.CancelledError:
            if not self._handing_back:
                raise
            task.uncancel()
            raise Refused(
                503, "stopping", "this server stopped before the row was judged", 1
            ) from None
        except OptionError as error:
            raise Refused(
                422, "invalid", f"{error}; send it in the row's `columns`"
            ) from None
        except ModelError as error:
            served.problem = str(error)
            self._watch(served)
            raise Refused(503, "model", brief(str(error))[1], int(LOOK_AGAIN)) from None
        finally:
            self._tasks.discard(task)
        self.metrics.judged(
            served.name, served.lm.name, verdict, time.perf_counter() - started
        )
        return verdict

    async def score_many(
        self, served: Served, items: Sequence[Item]
    ) -> AsyncIterator[Verdict | Refused]:
        """Yield verdicts on accepted rows in their order, as they are there; a row that gets none says why."""

        async def one(item: Item) -> Verdict | Refused:
            try:
                return await self.score(served, item)
            except Refused as refused:
                return refused

        judged = engine.aordered_map(
            one, items, in_flight=rows_at_once(served.judge.method, served.lm)
        )
        async with aclosing(judged) as verdicts:
            async for verdict in verdicts:
                yield verdict
