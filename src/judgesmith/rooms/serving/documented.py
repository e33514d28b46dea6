"""Answers in `/openapi.json`: their forms, and the status of each refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, RootModel, create_model
from pydantic.dataclasses import dataclass

from judgesmith.rows import ROLES
from judgesmith.signatures.values import Opinion, Verdict

NDJSON = "application/x-ndjson"


class Exactly(BaseModel):
    """A model without further fields."""

    model_config = ConfigDict(extra="forbid")


class Error(Exactly):
    """Reason for a missing answer."""

    code: str = Field(
        description="A word for programs, such as `busy` or `unknown_judge`."
    )
    message: str
    retry_after: int | None = Field(
        description="Seconds after which to send the request again; null: do not."
    )


class Problem(Exactly):
    """A request that was refused."""

    error: Error


class Counted(Exactly):
    """Calls of models for one row, and the tokens of those that were not in the cache."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int


class About(Exactly):
    """A judge of this server."""

    name: str
    kind: str
    fingerprint: str
    model: str
    agreement: str
    """With people, on rows held out of compiling; "" where none was measured with this model."""
    note: str
    """Says so, if the model is another than the one that was measured."""
    scale: tuple[float, float]
    ready: bool
    aspects: list[str]


class Health(Exactly):
    """The process lives."""

    status: str
    version: str


class Ready(Exactly):
    """State of the server.

    problems: by judge, why it cannot judge.
    """

    ready: bool
    stopping: bool
    problems: dict[str, str]


def _fields(of: type[BaseModel], *but: str) -> dict[str, Any]:
    return {
        name: (field.annotation, field)
        for name, field in of.model_fields.items()
        if name not in but
    }


_CODE: Any = (
    str | None,
    Field(None, description="A word for `failure`; absent where there is a score."),
)
_CONFIG = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_CONFIG)
class SentOpinion(Opinion):
    """Opinion of one annotator."""

    failure_code: str | None = None


_OPINIONS: Any = (
    Mapping[str, SentOpinion],
    Field({}, description="By annotator, where several judged."),
)
#: What is said of one aspect of several.
SentAspect: Any = create_model(
    "SentAspect",
    __config__=_CONFIG,
    __doc__="The verdict on one aspect, on a scale of its own.",
    **_fields(Verdict, "raw", "usage", "opinions", "aspects"),
    opinions=_OPINIONS,
    failure_code=_CODE,
)
#: A verdict as it is sent.
Answer: Any = create_model(
    "Answer",
    __config__=_CONFIG,
    __doc__="The verdict on one output. `score` is null where there is none; `failure` then says why.",
    **_fields(Verdict, "raw", "usage", "opinions", "aspects"),
    opinions=_OPINIONS,
    aspects=(
        Mapping[str, SentAspect],
        Field({}, description="By aspect, where the judge has several."),
    ),
    usage=(Counted, ...),
    failure_code=_CODE,
    judge=(str, Field(description="The judge's fingerprint.")),
    id=(
        str | int | None,
        Field(None, description="That of the row, where it had one."),
    ),
)
Line: Any = create_model(
    "Line",
    __base__=Answer,
    __doc__="A verdict on one of several rows.",
    index=(int, ...),
)


class Lost(Exactly):
    """A row of several that got no verdict."""

    index: int
    id: str | int | None = None
    error: Error
    judge: str


class AnyLine(RootModel[Line | Lost]):
    """Each line of the answer."""


class Documented(FastAPI):
    """An application whose lines of JSON are documented as such, and the names of rows' texts in its judges' labels.

    roles: by these names.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.roles: dict[str, str] = {}

    def openapi(self) -> dict[str, Any]:
        """Return the document of the application, made once."""
        document = super().openapi()
        for answer in (
            one["responses"]["200"]
            for by in document["paths"].values()
            for one in by.values()
        ):
            content = answer.get("content", {})
            if NDJSON in content:
                content[NDJSON] |= content.pop("application/json", {})
        for name in ("RowIn", "ScoreIn"):
            _name_roles(document["components"]["schemas"][name], self.roles)
        return document


_REASONS = {
    400: "The header `Host` is malformed.",
    401: "There is no key, or a wrong one.",
    403: "A page of another site sends this.",
    404: "There is no such judge.",
    408: "The body arrives too slowly.",
    409: "The judge is here in another version.",
    413: "The body is too long, or has too many rows.",
    415: "The body is not `application/json`.",
    421: "The server is not known under this `Host`.",
    422: "The body is not what is asked for.",
    429: "Too many rows wait, or too many long bodies arrive.",
    500: "The server failed.",
    503: "The judge's model does not answer, or the server is stopping.",
    504: "There was no verdict in time.",
}


def refusals(*but: int) -> dict[int | str, dict[str, Any]]:
    """Return the statuses with which a route may refuse a request, all `but` some."""
    return {
        status: {"model": Problem, "description": why}
        for status, why in _REASONS.items()
        if status not in but
    }


#: What no request that only reads can get.
OF_BODIES = (404, 408, 409, 413, 415, 422, 429, 503, 504)


def _name_roles(schema: dict[str, Any], roles: Mapping[str, str]) -> None:
    """Let a row's schema say which names are understood since the labels of a judge had them."""
    for name, role in roles.items():
        described = {
            "description": f"`{role}`, as the labels of a judge of this server call it."
        }
        alone = {"required": [name]}
        schema["properties"].setdefault(name, described)
        if role in ("output", "messages") and alone not in schema["anyOf"]:
            schema["anyOf"].append(alone)


def by_any_name(schema: dict[str, Any]) -> None:
    """Let a row's schema say that other names of its fields are understood, too."""
    own = schema["properties"]
    needed = []
    for role, tiers in ROLES.items():
        names = [name for tier in tiers for name in sorted(tier)]
        for name in names:
            own.setdefault(
                name,
                {
                    "description": f"Another name of `{role}`."
                    if role in own
                    else f"The row's {role}."
                },
            )
        needed += names if role in ("output", "messages") else []
    schema["required"] = [
        name for name in schema.get("required", ()) if name != "output"
    ]
    schema["anyOf"] = [{"required": [name]} for name in needed]
