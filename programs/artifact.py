"""Saved judges: one JSON file, readable in a diff, that cannot choose an endpoint, a header or a class.

Reading takes only known keys, checks every type and size, and refuses other format versions by name. What a file says
is data: the program is picked from the registry of methods, and its options and what was fitted are checked by the
models that the method declares (`Options`, and `Fitted` where it learns).
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self

from dspy.utils.saving import get_dependency_versions
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import to_jsonable_python

from judgesmith import parts
from judgesmith.errors import ArtifactError, JudgesmithError
from judgesmith.programs.atomic import write_whole
from judgesmith.programs.capabilities import (
    Learns,
    connect_models,
    fitted_of,
    models_of,
)
from judgesmith.programs.contract import Contract, contracts_of
from judgesmith.programs.method import Method
from judgesmith.programs.models.lm import Connection, LanguageModel, Sampling
from judgesmith.programs.models.names import (
    ShownName,
    check_chosen,
    check_listed,
    recorded,
)
from judgesmith.programs.outcome import (
    BradleyTerry,
    Calibration,
    Decision,
    Outcome,
    Sureness,
)
from judgesmith.programs.pipeline import settle_demos
from judgesmith.programs.prompting.predict import JudgePredict
from judgesmith.programs.prompting.saved import (
    Part,
    SavedPredictor,
    Short,
    Text,
    saved_predictor,
    signature_hash,
)
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Criterion, Scale

FORMAT = "judgesmith.judge/1"
#: Of a file that holds what was fitted to a judge that could not be saved; a person reads it.
RECOVERY = "judgesmith.recovery/1"
LARGEST = 16 * 1024 * 1024
DEEPEST = 32
#: Values in a file: each may be an error of its own, and a million of them took a load 8 seconds.
MOST_VALUES = 250_000


class Held(Protocol):
    """The parts of a judge that are saved."""

    method: Method
    outcome: Outcome
    own_lm: LanguageModel | None
    provenance: dict[str, Any]
    report: Any


class Saved(Held, Protocol):
    """A judge that saves itself."""

    def save(self, path: str | Path) -> None:
        """Write the judge to a file."""


@dataclass
class Parts:
    """The parts of a judge, as a file gives them."""

    method: Method
    outcome: Outcome
    own_lm: LanguageModel | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    report: Any = None


# The file ------------------------------------------------------------------------------------------------------------


def checked(model: type[BaseModel], data: Any) -> Any:
    """Return JSON values as a model, with no text read as a number.

    Raises:
        ArtifactError: For values that do not fit.
    """
    try:
        return model.model_validate_json(json.dumps(data, allow_nan=False), strict=True)
    except (
        JudgesmithError,
        ValidationError,
        ValueError,
        TypeError,
        RecursionError,
    ) as error:
        raise ArtifactError(_first_problem(error)) from None


def _shape(**types: Any) -> Any:
    """A part of the provenance: what is read of it again has these types, whatever else stands in it."""
    fields: Any = {name: (kind | None, None) for name, kind in types.items()}
    return create_model(
        "Shape", __config__=ConfigDict(strict=True, allow_inf_nan=False), **fields
    )


_AGREEMENT = _shape(signature=str)
_TRIAL: Any = _shape(
    candidate=str,
    demos=int,
    objective=str,
    value=float,
    q=float,
    low=float,
    high=float,
    failed=int,
    rows=int,
    n=int,
    dropped=str,
)
_CONTRACT = _shape(
    columns=dict[str, str | list[str]],
    kind=str,
    scale=Annotated[list[float], Field(min_length=2, max_length=2)],
    aspect=str,
    model=str,
    fingerprint=str,
)
_PROVENANCE = _shape(
    contract=_CONTRACT,
    created=str,
    computed_by=str,
    seen=list[str],
    seen_texts=list[str],
    candidates=list[_TRIAL],
    heldout=_AGREEMENT,
    zero_shot=_AGREEMENT,
    objective=str,
    labels=_shape(
        rows=int, origin=str, aspect=str, fingerprint=str, columns=dict[str, str]
    ),
    selected=_shape(
        candidate=str,
        objective=str,
        value=float,
        corrected=float,
        q=float,
        q_corrected=float,
    ),
    cost=_shape(calls=int, prompt_tokens=int, completion_tokens=int),
    criteria_from=dict[str, list[_shape(row=str, text=str)]],  # type: ignore[misc]
    lineage=list[_shape(judge=str, created=str, labels=str, rows=int)],  # type: ignore[misc]
)


def _known_shapes(provenance: dict[str, Any]) -> dict[str, Any]:
    _PROVENANCE.model_validate(provenance)
    return provenance


History = Annotated[dict[str, Any], AfterValidator(_known_shapes)]


class SavedLM(Part):
    """A model's name and how answers are drawn; where it is, only the user says."""

    model: ShownName
    sampling: Sampling


class Program(Part):
    """The method of a judge."""

    kind: Short
    options: dict[Short, Any]

    def method(self) -> type[Method]:
        """Return the method's class.

        Raises:
            ArtifactError: For an unknown kind.
        """
        if self.kind not in methods:
            raise ArtifactError(
                f"unknown kind of judge {self.kind[:80]!r}; known: {', '.join(methods.names())}"
            )
        kind: type[Method] = methods.get(self.kind)
        return kind


class SavedMethod(Part):
    """A method of judging. Keys beside these hold what was fitted: the method says which there are (`Fitted`)."""

    model_config = ConfigDict(extra="allow")

    program: Program
    task: Text
    criteria: Annotated[list[Criterion], Field(max_length=64)]
    signatures: dict[Short, Short]
    state: dict[Short, SavedPredictor]

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kind = self.program.method()
        fits = _fitted_model(kind)
        if unknown := sorted(set(self.fitted) - set(fits.model_fields)):
            raise ArtifactError(
                f"unknown key {unknown[0][:80]!r}: a {kind.kind} judge takes no {unknown[0][:80]}"
            )
        checked(fits, self.fitted)
        return self

    @property
    def fitted(self) -> dict[str, Any]:
        """Return the fitted data, as `Learns.fitted` gave it."""
        return dict(self.model_extra or {})

    def plain(self) -> Method:
        """Return a method of these options, with fitted data and without demonstrations.

        Raises:
            ArtifactError: For options or data that do not fit.
        """
        kind = self.program.method()
        options = self.program.options
        if unknown := set(options) - set(kind().saved_options()):
            raise ArtifactError(
                f"unknown option {sorted(unknown)[0][:80]!r} for {self.program.kind}"
            )
        options = kind.Options.absent() | options
        checked(kind.Options, options)
        try:
            method = kind(**options, task=self.task, criteria=self.criteria)
            fitted = checked(_fitted_model(kind), self.fitted).model_dump(
                mode="json", exclude_none=True
            )
            if isinstance(method, Learns):
                for name, data in fitted.items():
                    method.load_fitted(name, data)
            check_listed(models_of(method))
        except (JudgesmithError, TypeError, ValueError, OverflowError) as error:
            raise ArtifactError(
                f"the file's options do not fit: {_first_problem(error)}"
            ) from None
        return method

    def built(self) -> Method:
        """Return `plain` with its demonstrations and instructions."""
        method = self.plain()
        steps = predictors(method)
        for name, predictor in steps.items():
            if (
                self.signatures.get(name) != signature_hash(predictor.signature)
                or name not in self.state
            ):
                raise ArtifactError(
                    f"{name} was compiled for other prompt fields; compile again with this version"
                )
        if extra := (set(self.state) | set(self.signatures)) - set(steps):
            raise ArtifactError(f"unknown predictor {sorted(extra)[0][:80]!r}")
        for name, predictor in steps.items():
            predictor.take(self.state[name])
        return method


def _fitted_model(kind: type[Method]) -> type[parts.Options]:
    """The model of what is fitted to a kind of method, without fields where it learns nothing."""
    fits: type[parts.Options] = getattr(kind, "Fitted", parts.Options)
    return fits


class Scoring(Part):
    """The `Outcome` that a judge's raw percent is mapped by, as saved."""

    scale: Scale
    calibration: Calibration | None
    decision: Decision | None = None
    preference: BradleyTerry | None = None
    sureness: Sureness | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        _ = self.outcome
        return self

    @property
    def outcome(self) -> Outcome:
        """Return the outcome.

        Raises:
            ArtifactError: For a calibration that leaves the scale.
        """
        return Outcome(**{name: getattr(self, name) for name in Scoring.model_fields})


class Metadata(Part):
    """The metadata that DSPy's own `load` expects in a file."""

    dependency_versions: dict[Short, Short]


class Artifact(Scoring, SavedMethod):
    """A whole file."""

    format: Literal["judgesmith.judge/1"]
    lm: SavedLM | None
    provenance: History
    metadata: Metadata | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Artifact:
        """Return a file's content, checked.

        Raises:
            ArtifactError: For content that does not fit.
        """
        artifact: Artifact = checked(cls, data)
        return artifact

    def to_dict(self) -> dict[str, Any]:
        """Return the file's content as JSON values."""
        return self.model_dump(mode="json")

    def parts(self) -> Parts:
        """Return the parts of the judge in a file.

        Raises:
            ArtifactError: For an unknown kind, option or prompt form.
        """
        return Parts(self.built(), self.outcome, None, self.provenance)

    @property
    def contract(self) -> Contract | None:
        """Return what its agreement rests on, which earlier versions wrote in parts; None without labels."""
        found = Contract.of(self.provenance)
        if found is None or "contract" in self.provenance:
            return found
        return found.completed(self.outcome, self.lm.model if self.lm else "")

    @property
    def contracts(self) -> list[Contract]:
        """Return the contracts of its aspects; of a judge of one that of it, if it was compiled from labels."""
        several = self.provenance.get("aspects")
        if isinstance(several, Mapping):
            return contracts_of(several.values())
        return [] if self.contract is None else [self.contract]


# Writing -------------------------------------------------------------------------------------------------------------


def predictors(method: Method) -> dict[str, JudgePredict]:
    """Return the method's own predictors by name."""
    return {
        name: p for name, p in method.named_predictors() if isinstance(p, JudgePredict)
    }


def to_dict(judge: Held) -> dict[str, Any]:
    """Return a judge as plain JSON values, in the file's order.

    Raises:
        ArtifactError: For content that the file may not hold.
    """
    check_listed(models_of(judge.method))
    try:
        data = _dump(judge) | {
            "metadata": {"dependency_versions": get_dependency_versions()}
        }
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
        Artifact.of(data)
    except (JudgesmithError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(
            f"this judge cannot be saved: {_first_problem(error)}"
        ) from None
    if problem := _too_much(data):
        raise ArtifactError(f"this judge cannot be saved: its provenance {problem}")
    return data


def _dump(judge: Held) -> dict[str, Any]:
    lm = judge.own_lm
    model = lm and {
        "model": recorded(lm.name),
        "sampling": to_jsonable_python(lm.sampling),
    }
    identity = method_of(judge)
    return {
        "format": FORMAT,
        **{name: identity.pop(name) for name in ("program", "task", "criteria")},
        **scoring(judge),
        "lm": model,
        **identity,
        "provenance": judge.provenance,
    }


def scoring(judge: Held) -> dict[str, Any]:
    """Return a judge's outcome as JSON values, without absent parts."""
    values = {
        name: to_jsonable_python(getattr(judge.outcome, name))
        for name in Scoring.model_fields
    }
    sure = values["sureness"]
    for name in ("seen", "words"):
        if sure is not None and sure[name] is None:  # as earlier versions saved it
            del sure[name]
    return {
        name: v
        for name, v in values.items()
        if v is not None or Scoring.model_fields[name].is_required()
    }


def method_of(judge: Held) -> dict[str, Any]:
    """Return a judge's method as `SavedMethod` reads it."""
    if "forward" in vars(judge):
        raise ArtifactError(
            "its `forward` was replaced (KNNFewShot does so), which a file cannot hold"
        )
    method = judge.method
    settle_demos(method, judge.outcome.scale)
    steps = predictors(method)
    left_out = method.options.left_out()
    for name, predictor in method.named_predictors():
        if name not in steps and (predictor.demos or predictor.fields):
            raise ArtifactError(
                f"{name} is a plain dspy.Predict, whose demonstrations and fitted decisions a saved judge cannot hold; "
                "use a JudgePredict, or save the method as DSPy does, judge.method.save('method.json')"
            )
    return {
        "program": {
            "kind": method.kind,
            "options": {
                n: v for n, v in method.saved_options().items() if n not in left_out
            },
        },
        "task": method.knowledge.description,
        "criteria": to_jsonable_python(method.knowledge.criteria),
        **fitted_of(method),
        "signatures": {name: signature_hash(p.signature) for name, p in steps.items()},
        "state": {
            name: saved_predictor(p.signature, p.demos) for name, p in steps.items()
        },
    }


def dumps(judge: Held) -> str:
    """Return the text of a judge's file."""
    return (
        json.dumps(to_dict(judge), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def fingerprint(judge: Held) -> str:
    """Twelve hex digits that change with anything that changes verdicts; dates and costs leave it alone.

    A judge that cannot be saved, since only this process has its models, has one, too.
    """
    return digest(_identity(_dump(judge)))


def labels_aspect(judge: Held) -> str:
    """Return the name that the labels of a compiled judge give its scores, "" for one that was not compiled."""
    labels = judge.provenance.get("labels")
    aspect = labels.get("aspect") if isinstance(labels, Mapping) else None
    return aspect if isinstance(aspect, str) else ""


def identity_of(artifact: Artifact) -> Any:
    """Return the values that a fingerprint is made from: everything but the provenance, with every option."""
    return _identity(_dump(artifact.parts()) | {"lm": to_jsonable_python(artifact.lm)})


def digest(data: Any) -> str:
    """Twelve hex digits of JSON values, whatever the order of their keys."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]


def _identity(data: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in data.items()
        if name not in ("provenance", "metadata")
    }


def save(judge: Held, path: str | Path) -> None:
    """Write to a temporary file beside `path`, then rename: a reader never sees half a judge.

    Raises:
        ArtifactError: For a judge that could not be read again.
    """
    text = dumps(judge)
    if (size := len(text.encode())) > LARGEST:
        raise ArtifactError(
            f"{path}: the judge would have {size:,} bytes and has at most {LARGEST:,}; take fewer or shorter "
            "demonstrations"
        )
    try:
        write_whole(Path(path), text)
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror or error}"
        ) from None


def refuse_unsavable(judge: Held) -> None:
    """Check, before anything is spent on it, that a file can hold the judge, whatever its model.

    Raises:
        ArtifactError: For content that a file cannot hold.
    """
    try:
        data = _dump(judge)
        size = len(json.dumps(data, allow_nan=False, ensure_ascii=False).encode())
        Artifact.of(data)
    except (JudgesmithError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(
            f"the compiled judge could not be saved: {_first_problem(error)}"
        ) from None
    if size > LARGEST:
        raise ArtifactError(
            f"the compiled judge could not be saved: with marks of all its rows it would have {size:,} bytes and more, "
            f"and a judge has at most {LARGEST:,}; compile from fewer rows"
        )


def save_or_keep(judge: Saved, path: Path) -> None:
    """Save a judge that took long to make; if that fails, keep the fitted data elsewhere.

    That is a file beside `path`, or in the folder of temporary files, which the message names.

    Raises:
        ArtifactError: If it could not be saved, with the place of the kept data.
    """
    try:
        judge.save(path)
    except ArtifactError as error:
        recovery = _keep(_remains(judge) | {"problem": str(error)}, path)
        raise ArtifactError(
            f"{error}; all that was fitted is kept in {recovery}, and finished calls and readings are on disk, where "
            "the same command takes them from"
        ) from None


def _keep(remains: Mapping[str, Any], path: Path) -> Path:
    """Write a recovery file beside `path`, or where files are temporary; its path. Raises OSError."""
    text = json.dumps({"format": RECOVERY, **remains}, indent=2, allow_nan=False)
    recovery = path.with_name(f"{path.stem}.recovery.json")
    try:
        write_whole(recovery, f"{text}\n")
    except OSError:
        recovery = Path(tempfile.mkdtemp()) / recovery.name
        write_whole(recovery, f"{text}\n")
    return recovery


def _remains(judge: Held) -> dict[str, Any]:
    """A judge as far as it can be written down, whether or not it could be read again."""
    method = judge.method
    pieces: dict[str, Callable[[], Any]] = {
        "kind": lambda: method.kind,
        "options": method.saved_options,
        "knowledge": lambda: {
            "task": method.knowledge.description,
            "criteria": method.knowledge.criteria,
        },
        "scoring": lambda: scoring(judge),
        "fitted": lambda: fitted_of(method),
        "state": lambda: {
            name: saved_predictor(p.signature, p.demos)
            for name, p in predictors(method).items()
        },
        "provenance": lambda: judge.provenance,
        "report": lambda: judge.report and judge.report.to_dict(),
    }
    remains: dict[str, Any] = {}
    for name, piece in pieces.items():
        try:
            remains[name] = to_jsonable_python(
                piece(), inf_nan_mode="null", serialize_unknown=True
            )
        except Exception as error:  # one piece that cannot be written leaves the others
            remains[name] = f"not kept: {_first_problem(error)}"
    return remains


# Reading -------------------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse_constant(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return values


def _whole(digits: str) -> int:
    if len(digits) > 19 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"a whole number of {len(digits)} digits is too large")
    return int(digits)


def _too_much(data: Any) -> str | None:
    """Return a message for values nested too deep or too many, each of which may be wrong; otherwise None."""
    level: list[Any] = [[data]]
    count = 0
    for _ in range(DEEPEST + 1):
        count += sum(map(len, level))
        if count > MOST_VALUES:
            return f"holds more than {MOST_VALUES:,} values"
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [
            value
            for values in inner
            for value in values
            if isinstance(value, dict | list | tuple)
        ]
        if not level:
            return None
    return f"is nested deeper than {DEEPEST} levels"


def _content(path: Path) -> str:
    """Return the text of a regular file of at most LARGEST bytes.

    Devices and pipes are not read: they may have no end.
    """
    # A pipe would keep us waiting in open() for somebody who writes.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file")
        if about.st_size > LARGEST:
            raise ArtifactError(
                f"{path.name}: {about.st_size:,} bytes; a judge has at most {LARGEST:,}"
            )
        with os.fdopen(number, "rb", closefd=False) as file:
            content = file.read(LARGEST + 1)
    finally:
        os.close(number)
    if len(content) > LARGEST:  # of such files (in /proc, say) the size is not known
        raise ArtifactError(f"{path.name}: a judge has at most {LARGEST:,} bytes")
    return content.decode("utf-8")


def read(path: str | Path) -> Artifact:
    """Read and check a file, or one in a store (MLflow: `models:/NAME@ALIAS`, `models:/NAME/VERSION`, `runs:/RUN_ID`).

    Raises:
        ArtifactError: For a missing or wrong file, with the problem.
    """
    if re.match(r"[a-z]{2,}:/", str(path)):
        for point in parts.offers("judgesmith.stores"):
            store = point.load()
            if (address := store.stored(path)) is not None:
                with store.fetched(address) as file:
                    return _read(file)
    return _read(Path(path))


def _read(path: Path) -> Artifact:
    try:
        data = json.loads(
            _content(path),
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique,
        )
        json.dumps(
            data, ensure_ascii=False
        ).encode()  # refuses half a surrogate pair, which could not be saved again
        if problem := _too_much(data):
            raise ValueError(f"it {problem}")
    except FileNotFoundError:
        raise ArtifactError(
            f"{path}: no such file; `judgesmith compile LABELS -o {path.name}` makes one"
        ) from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{path.name} is not a judge: {_first_problem(error)}"
        ) from None
    if not isinstance(data, dict) or "format" not in data:
        raise ArtifactError(f'{path.name} is not a judge: it has no "format"')
    if data["format"] != FORMAT:
        raise ArtifactError(
            f"{path.name} has format {_one_line(str(data['format']))[:60]!r}; this judgesmith reads {FORMAT!r}. "
            "Compile again, or install the version that wrote it"
        )
    try:
        return Artifact.of(data)
    except ArtifactError as error:
        raise ArtifactError(f"{path.name}: {error}") from None


# A judge inside another DSPy program ---------------------------------------------------------------------------------


class Settings(Scoring):
    """A judge beside its knowledge and its predictors, as a leaf of a DSPy program's state."""

    format: Literal["judgesmith.judge/1"]
    program: Program
    fitted: dict[Short, Any]


def settings(judge: Held) -> dict[str, Any]:
    """Return a judge's options, scale and fitted data, as JSON values."""
    method = judge.method
    program = {"kind": method.kind, "options": method.saved_options()}
    return {
        "format": FORMAT,
        "program": program,
        **scoring(judge),
        "fitted": fitted_of(method),
    }


def with_settings(method: Method, state: Mapping[str, Any]) -> tuple[Method, Outcome]:
    """Return the method and the outcome with another judge's `settings`.

    Predictors and knowledge are those of this method, which are to have the same names.

    Raises:
        ArtifactError: For settings that do not fit.
    """
    try:
        data: Settings = checked(Settings, state)
    except ArtifactError as error:
        raise ArtifactError(f"this is not a state of a judge: {error}") from None
    if data.program.kind != method.kind:
        raise ArtifactError(
            f"the state is that of a {data.program.kind[:80]} judge, and this is a {method.kind} judge"
        )
    knowledge = method.knowledge
    empty: dict[str, Any] = {"signatures": {}, "state": {}}
    held = SavedMethod(
        program=data.program,
        task=knowledge.description,
        criteria=[],
        **empty,
        **data.fitted,
    )
    held.criteria.extend(knowledge.criteria)
    new = held.plain()
    steps = predictors(new)
    own = predictors(method)
    if set(steps) != set(own):
        wanted = {
            n: value
            for n, value in new.saved_options().items()
            if method.saved_options().get(n) != value
        }
        options = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
        raise ArtifactError(
            f"the state is of a judge with other steps; make it with {options} and load again"
        )
    new.adopt(own)
    new.knowledge = knowledge
    return new, data.outcome


# Other models --------------------------------------------------------------------------------------------------------


def model_of(artifact: Artifact, connection: Connection | None = None) -> str | None:
    """Return the model that a file names, if any.

    Raises:
        ArtifactError: For a model that only the user may choose.
    """
    if artifact.lm is None:
        return None
    check_chosen(artifact.lm.model, connection.api_base if connection else None)
    return artifact.lm.model


def sampling_of(artifact: Artifact) -> Sampling | None:
    """Return the sampling options that a file has for its model, if any."""
    return artifact.lm.sampling if artifact.lm else None


def connect(method: Method, connection: Connection | None) -> None:
    """Set the connection of a loaded method's other models.

    Raises:
        ArtifactError: For models that only the user may choose.
    """
    for name in models_of(method):
        check_chosen(name, connection.api_base if connection else None)
    connect_models(method, connection)


def _first_problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        return _one_line(f"{where[:120]}: {first['msg']}")
    return _one_line(str(error))


def _one_line(text: str, most: int = 300) -> str:
    """A message on one line, in which what a file says can do nothing to a terminal."""
    text = " ".join(text[: 4 * most].split())[:most]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
