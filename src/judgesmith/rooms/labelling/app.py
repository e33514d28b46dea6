"""The page and what it asks for, behind the gate of `running.private`."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from judgesmith.conversation import turns_in
from judgesmith.datasets.spans import SEVERITIES
from judgesmith.pages import stylesheet
from judgesmith.rooms.labelling.agreement import RaterAnswers, split_rows, summary
from judgesmith.rooms.labelling.order import sequence
from judgesmith.rooms.labelling.store import SETTLING, Answered, AnswerEvent, Store
from judgesmith.rooms.labelling.task import Task
from judgesmith.running.plain import clean, finite
from judgesmith.running.private import App, Gate

#: The page's own files: address -> file and content type.
FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
#: Why a row may be skipped; with the last, the rater writes a text.
REASONS = (
    "I cannot tell",
    "The guidelines do not say",
    "The text is broken",
    "Not my language or field",
    "Other",
)


def rater_name(name: str) -> str:
    """Return a rater's name in one line, without control characters.

    Raises:
        ValueError: If the name is empty.
    """
    clean_name = " ".join(clean(name).split())
    if not clean_name:
        raise ValueError("rater: the name is empty; give one")
    return clean_name


Rater = Annotated[str, Field(max_length=80), AfterValidator(rater_name)]


class Event(BaseModel):
    """A rater's action.

    after: the number of the answer that the page believes the row has. request: an id made by the page, the same when
    it sends again what may have been lost.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    action: Literal["answer", "skip", "undo"]
    rater: Rater
    request: str = Field(min_length=16, max_length=64)
    unit: str = Field("", max_length=64)
    turn: int = Field(0, ge=0, le=SETTLING)
    answer: dict[str, Any] | None = None
    reason: str = Field("", max_length=500)
    after: int | None = None


class Desk:
    """The rows of a store as raters see them."""

    def __init__(
        self,
        store: Store,
        task: Task,
        rater: str | None = None,
        decision: Callable[[], list[str]] = list,
        *,
        settling: bool = False,
    ) -> None:
        self.store = store
        self.task = task
        self.rater = rater
        self.decision = decision
        self.settling = settling
        self.units = store.units()
        self.shown = sequence(store.queue(), task.repeats)
        if settling:
            splits = split_rows(RaterAnswers.of(store, task))
            self.shown = [(key, SETTLING) for key in splits]

    def about(self) -> dict[str, Any]:
        """Return the title, task and guidelines for the page."""
        return {
            "title": clean(self.task.title),
            "kind": self.task.kind,
            "origin": clean(self.store.get("origin") or ""),
            "guidelines": clean(self.store.get("guidelines") or ""),
            "rater": self.rater,
            "settling": self.settling,
            "raters": [clean(name) for name in self.store.raters()],
            "reasons": REASONS,
            "takes_why": self.task.takes_why,
            "asks_why": self.task.why,
            "severities": {int(number): name for name, number in SEVERITIES.items()},
        }

    def next(self, rater: str) -> dict[str, Any]:
        """Return the first row that this rater, or whoever settles, has not dealt with, and how many there are."""
        own = {(one.unit, one.turn) for one in self.store.answers(rater)}
        own = {one for one in own if (one[1] == SETTLING) is self.settling}
        answered = own
        if self.settling:
            answered = {(one.unit, one.turn) for one in self.store.answers()}
        left = [one for one in self.shown if one not in answered]
        counts = {
            "done": len(self.shown) - len(left),
            "total": len(self.shown),
            "undo": bool(own),
        }
        return counts | {"unit": self.show(*left[0]) if left else None}

    def show(
        self, key: str, turn: int, answer: Any = None, after: int | None = None
    ) -> dict[str, Any]:
        """Return a unit as the page shows it: its texts, without who wrote them and what others said of them."""
        row = self.units[key].row
        if self._turned(key, turn):
            row = {**row, "output_a": row["output_b"], "output_b": row["output_a"]}
            answer = answer and _swapped(answer)
        names = ("source", "context", "reference", "output", "output_a", "output_b")
        texts = {name: clean(row[name]) for name in names if row.get(name)}
        return {
            "key": key,
            "turn": turn,
            "place": self.shown.index((key, turn)) + 1,
            "after": after,
            "answer": answer,
            "questions": [question.to_dict() for question in self.task.questions],
            "said": self._said(key) if turn == SETTLING else [],
            "texts": texts,
            "turns": {
                name: turns for name, text in texts.items() if (turns := turns_in(text))
            },
        }

    def _said(self, key: str) -> list[list[str]]:
        """Return what raters said of a unit, with their names."""
        answers = RaterAnswers.of(self.store, self.task)
        given = answers.first.get(key, {})
        return [[clean(name), clean(answers.shown(one))] for name, one in given.items()]

    def _turned(self, key: str, turn: int) -> bool:
        """Return whether the second of two outputs is shown as A; not where raters' answers stand beside.

        It is for half of the pairs, and for the others when they are shown again: a rater who prefers a place
        contradicts themselves.
        """
        if self.task.kind != "preference" or turn == SETTLING:
            return False
        return (int(key[:8], 16) + turn) % 2 == 1

    def take(self, event: Event) -> dict[str, Any]:
        """Keep a rater's answer and return the next row.

        Raises:
            ValueError: If the answer is invalid.
            Answered: If another answer counts.
        """
        if event.action == "undo":
            return self._undo(event)
        unit = self.units.get(event.unit)
        if unit is None or (event.unit, event.turn) not in self.shown:
            raise ValueError("there is no such row here; reload the page")
        if event.action == "skip":
            body: dict[str, Any] = {"reason": _reason(event)}
        else:
            body = self.task.read(unit, event.answer)
            body = _swapped(body) if self._turned(event.unit, event.turn) else body
        self.store.say(
            event.rater,
            event.unit,
            event.turn,
            event.action,
            body,
            after=event.after,
            request=event.request,
        )
        return self.next(event.rater)

    def _undo(self, event: Event) -> dict[str, Any]:
        undone = self.store.undo(event.rater, event.request, settling=self.settling)
        state = self.next(event.rater)
        if undone is None or (undone.unit, undone.turn) not in self.shown:
            return state
        standing = {
            (one.unit, one.turn): one.n for one in self.store.answers(event.rater)
        }
        after = standing.get((undone.unit, undone.turn))
        state["unit"] = self.show(undone.unit, undone.turn, undone.answer, after)
        return state

    def conflict(self, event: Event, standing: AnswerEvent | None) -> dict[str, Any]:
        """Return the stored answer, where another tab gave a different one meanwhile."""
        state = self.next(event.rater)
        if standing is not None:
            answer = standing.answer
            after = standing.n
        else:
            answer = None
            after = None
        return state | {"unit": self.show(event.unit, event.turn, answer, after)}


def _swapped(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer on two outputs, as one on the same in the other order."""
    return answer | {
        "preference": {"a": "b", "b": "a"}.get(answer["preference"], "tie")
    }


def _reason(event: Event) -> str:
    reason = " ".join(clean(event.reason).split())
    if not reason:
        raise ValueError("give a reason for the skip")
    return reason


def _cleaned(value: Any) -> Any:
    """Return all texts of a JSON value for a page."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(name): _cleaned(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return value


def application(desk: Desk, port: int) -> App:
    """Return the ASGI application at a port of this machine."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    for path, (name, kind) in FILES.items():
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        text = f"{stylesheet()}\n{text}" if kind == "text/css" else text
        app.add_api_route(path, _file(text, kind), methods=["GET"])

    @app.get("/api/task")
    async def task() -> Response:
        return _json(desk.about())

    @app.get("/api/next")
    async def next_row(rater: Rater) -> Response:
        return _json(desk.next(rater))

    @app.get("/api/agreement")
    async def agreement(rater: Rater) -> Response:
        answers = RaterAnswers.of(desk.store, desk.task)
        names = desk.store.raters()
        if desk.settling:
            return _json(_cleaned(summary(answers, names)))
        blind = desk.next(rater)["unit"] is not None
        return _json(_cleaned(summary(answers, names, rater, blind=blind)))

    @app.get("/api/decision")
    async def decision() -> Response:
        return _json({"decision": list(map(clean, desk.decision()))})

    @app.post("/api/events")
    async def events(event: Event) -> Response:
        try:
            return _json(desk.take(event))
        except Answered as conflict:
            return _json(
                desk.conflict(event, conflict.standing)
                | {"error": f"Not saved: {conflict}."},
                409,
            )
        except ValueError as error:
            return _json({"error": str(error)}, 422)
        except sqlite3.Error as error:
            return _json(
                {
                    "error": f"Not saved: {desk.store.path.name} cannot be written ({error})."
                },
                503,
            )

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        return _json({"error": clean(f"{first['loc'][-1]}: {first['msg']}")[:300]}, 422)

    return Gate(app, desk.store.token, port)


def _file(text: str, kind: str) -> Callable[[], Awaitable[Response]]:
    async def answer() -> Response:
        return Response(text, media_type=kind)

    return answer


def _json(data: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(finite(data), status)
