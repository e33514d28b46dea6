"""Bodies of requests and answers: rows, requests of several, judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import from_json

from judgesmith.errors import OptionError
from judgesmith.rooms.serving.documented import by_any_name
from judgesmith.rooms.serving.service import Refused, Service
from judgesmith.rows import Item, roles_of

#: Fields of a row at most, known ones or not.
MOST_FIELDS = 256
#: What every JSON library can write.
Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"an id is a text or a whole number, not {str(value).lower()}")
    return value


class RowIn(BaseModel):
    """An output to be judged, with what belongs to it.

    `judgesmith.rows` knows other names of these fields, such as `prompt`, `response` and `messages`.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=by_any_name)

    output: str = Field(description="The text to be judged.")
    source: str = Field("", description="What the output was made from.")
    context: str | None = None
    reference: str | None = None
    group: str | None = Field(
        None, description="The document: demonstrations of the same one are left out."
    )
    id: Annotated[str | Number | None, BeforeValidator(_no_truth)] = Field(
        None, description="Comes back with the verdict."
    )
    columns: dict[str, float | str | None] = Field(
        {}, description="Numbers that a judge with signals weighs, by name."
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, record: Any) -> Any:
        """Return a record by whatever names as these fields; what plays no role is left for pydantic to refuse."""
        if not isinstance(record, Mapping):
            return record
        if len(record) > MOST_FIELDS:
            raise ValueError(
                f"a row has at most {MOST_FIELDS} fields; this one has {len(record):,}"
            )
        own = {
            name: record[name]
            for name in ("id", "judge", "columns", "explain")
            if name in record
        }
        rest = {str(name): value for name, value in record.items() if name not in own}
        try:
            roles = roles_of(tuple(rest))
            read = Item.by_roles(rest, roles)
        except OptionError as error:
            raise ValueError(str(error)) from None
        fields = ("output", "source", "context", "reference", "group")
        texts = {name: getattr(read, name) for name in fields}
        if roles.keys().isdisjoint(("output", "messages")):
            del texts["output"], texts["source"]
        others = {n: cell for n, cell in rest.items() if n not in roles.values()}
        return others | texts | own

    def item(self) -> Item:
        """Return the row to judge."""
        return Item(
            self.output,
            self.source,
            self.context,
            self.reference,
            self.group,
            self.columns,
        )


class ScoreIn(RowIn):
    """One output, and which judge is to judge it."""

    judge: str | None = Field(
        None, description="NAME or NAME@FINGERPRINT; the first judge if not given."
    )
    explain: bool = Field(
        False,
        strict=True,
        description="Whether the model is to write why the output got its score, for one more call.",
    )


class ManyIn(BaseModel):
    """Several outputs."""

    model_config = ConfigDict(extra="forbid")

    rows: list[RowIn]
    judge: str | None = None


def read_body(content: bytes, service: Service) -> Any:
    """Return the JSON of a request, in its rows the names that the judge's labels had as the roles that they stand for.

    Raises Refused.
    """
    try:
        body = from_json(content)
    except ValueError as problem:
        raise Refused(
            422, "invalid", f"the body: malformed JSON: {problem}"[:400]
        ) from None
    if not isinstance(body, dict) or not isinstance(
        judge := body.get("judge"), str | None
    ):
        return body
    roles = service.find(judge).roles
    if isinstance(body.get("rows"), list):
        return body | {"rows": [_by_role(row, roles) for row in body["rows"]]}
    return _by_role(body, roles)


def _by_role(row: Any, roles: Mapping[str, str]) -> Any:
    """Return a row with its roles as names. A role that stands in it as such needs no other name."""
    if not isinstance(row, dict):
        return row
    other = {name: role for name, role in roles.items() if role not in row}
    return {other.get(name, name): value for name, value in row.items()}


def unreadable(problem: RequestValidationError | ValidationError) -> Refused:
    """Return the refusal of a request with an invalid body."""
    first = problem.errors()[0]
    where = (
        ".".join(str(part) for part in first["loc"] if part != "body")[:200]
        or "the body"
    )
    return Refused(422, "invalid", f"{where}: {first['msg']}"[:400])
