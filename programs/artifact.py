"""Saved judges: one JSON file, readable in a diff, that cannot choose an endpoint, a header or a class.

Reading takes only known keys, checks every type and size, and refuses other format versions by name. What a file says
is data: the program is picked from the registry of judge methods, its options and what was fitted are checked by the
models that the method declares (`Judge.Options`, `Judge.Fitted`).
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import dspy
from dspy.predict.parameter import Parameter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from .. import parts
from ..errors import ArtifactError, JudgesmithError, OptionError
from ..mlflow.store import fetched, stored
from ..signatures.values import Criterion, Scale
from .atomic import write_whole
from .calibration import Calibration
from .decision import Decision
from .models.lm import Connection, LanguageModel, Sampling, language_model
from .models.names import ShownName, check_chosen, check_listed, recorded
from .preference import BradleyTerry
from .prompting.predict import JudgePredict
from .prompting.saved import Part, Percent, SavedPredictor, Short, Text, saved_predictor, signature_hash
from .registry import ensembles, judges
from .sureness import Sureness

if TYPE_CHECKING:
    from .judge import Judge

FORMAT = "judgesmith.judge/1"
LARGEST = 16 * 1024 * 1024
DEEPEST = 32


class _Scale(Part):
    low: float
    high: float


class _Criterion(Part):
    name: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    definition: Annotated[str, StringConstraints(max_length=2000)]


class _Sampling(Part):
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] | None = None


class _LM(Part):
    model: ShownName
    sampling: _Sampling


class _Program(Part):
    kind: Short
    options: dict[Short, Any]

    def method(self) -> type[Judge]:
        """Raises ArtifactError."""
        if self.kind not in judges:
            raise ArtifactError(f"unknown kind of judge {self.kind[:80]!r}; known: {', '.join(judges.names())}")
        found: type[Judge] = judges.get(self.kind)
        return found


class _Calibration(Part):
    percent: Annotated[list[float], Field(max_length=64)]
    score: Annotated[list[float], Field(max_length=64)]


class _Decision(Part):
    names: Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=64)]
    cuts: Annotated[list[float], Field(max_length=64)]
    binary: bool = False


class _Preference(Part):
    width: float
    tie: float


class _Sureness(Part):
    percent: Annotated[list[Percent], Field(min_length=1, max_length=64)]
    error: Annotated[list[float], Field(min_length=1, max_length=64)]
    coverage: Annotated[list[float], Field(min_length=1, max_length=64)]
    times: Annotated[list[float | None], Field(min_length=1, max_length=64)]
    rows: Annotated[int, Field(ge=1)]
    documents: Annotated[int, Field(ge=1)]


class _Method(Part):
    """What makes one judge; of an ensemble, one member. Keys beside these hold what was fitted: the kind of judge says
    which there are (`Judge.Fitted`)."""

    model_config = ConfigDict(extra="allow")

    program: _Program
    task: Text
    criteria: Annotated[list[_Criterion], Field(max_length=64)]
    signatures: dict[Short, Short]
    state: dict[Short, SavedPredictor]

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        fitted, kind = self.fitted(), self.program.method()
        if unknown := sorted(set(fitted) - set(kind.Fitted.model_fields)):
            raise ArtifactError(f"unknown key {unknown[0][:80]!r}: a {kind.kind} judge takes no {unknown[0][:80]}")
        strictly(kind.Fitted, fitted)
        return self

    def fitted(self) -> dict[str, Any]:
        """What was fitted, as `Judge.fitted` gave it."""
        return dict(self.model_extra or {})


class _Norm(Part):
    mean: Percent
    sd: Percent


class _Member(_Method):
    norm: _Norm


class _Ensemble(Part):
    """The file itself is the first member, `norm` is its."""

    norm: _Norm
    others: Annotated[list[_Member], Field(min_length=1, max_length=63)]


def strictly(model: type[parts.Options], data: Mapping[str, Any]) -> parts.Options:
    """JSON values checked as they stand: no text is read as a number. Raises ArtifactError."""
    try:
        return model.model_validate_json(json.dumps(data, allow_nan=False), strict=True)
    except OptionError as error:
        raise ArtifactError(f"the file's options do not fit: {_plain(str(error))}") from None
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(_first_problem(error)) from None


class _Said(BaseModel):
    """A part of the provenance: what is read of it again has these types, whatever else stands in it."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Agreement(_Said):
    signature: str | None = None


class _Tried(_Said):
    candidate: str | None = None
    demos: int | None = None
    objective: str | None = None
    value: float | None = None
    q: float | None = None
    low: float | None = None
    high: float | None = None
    failed: int | None = None
    rows: int | None = None
    n: int | None = None
    dropped: str | None = None


class _Selected(_Said):
    candidate: str | None = None
    objective: str | None = None
    value: float | None = None
    corrected: float | None = None
    q: float | None = None
    q_corrected: float | None = None


class _Labels(_Said):
    rows: int | None = None
    origin: str | None = None
    aspect: str | None = None
    aspects: list[str] | None = None


class _Cost(_Said):
    calls: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Provenance(_Said):
    created: str | None = None
    seen: list[str] | None = None
    seen_texts: list[str] | None = None
    candidates: list[_Tried] | None = None
    heldout: _Agreement | None = None
    zero_shot: _Agreement | None = None
    objective: str | None = None
    selected: _Selected | None = None
    labels: _Labels | None = None
    cost: _Cost | None = None


def _known_shapes(provenance: dict[str, Any]) -> dict[str, Any]:
    _Provenance.model_validate(provenance)
    return provenance


class _Scoring(Part):
    """What is made of a judge's raw percent."""

    scale: _Scale
    calibration: _Calibration | None
    decision: _Decision | None = None
    preference: _Preference | None = None
    sureness: _Sureness | None = None

    def give(self, judge: Judge, scale: Scale) -> None:
        """Raises ArtifactError."""
        judge.scale = scale
        judge.calibration = None if self.calibration is None else _load_calibration(self.calibration, scale)
        found = self.decision
        judge.decision = None if found is None else Decision(tuple(found.names), tuple(found.cuts), found.binary)
        judge.preference = None if self.preference is None else BradleyTerry(**self.preference.model_dump())
        judge.sureness = None if self.sureness is None else Sureness.of(self.sureness.model_dump())


_History = Annotated[dict[str, Any], AfterValidator(_known_shapes)]


class _Whole(_Scoring, _Method):
    """A judge, without its model."""

    committee: _Ensemble | None = None
    provenance: _History

    def made(self) -> Judge:
        """Raises ArtifactError for an unknown kind, option or prompt form."""
        scale = _scale(self.scale)
        judge = _built(self, scale)
        if self.committee is not None:
            judge = _ensemble(judge, self.committee, scale)
        self.give(judge, judge.scale)
        judge.provenance = self.provenance
        return judge


class Artifact(Part):
    """What every file says."""

    format: Literal["judgesmith.judge/1"]
    lm: _LM | None
    provenance: _History

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Artifact:
        """A file's content, checked. Raises pydantic's ValidationError, ArtifactError."""
        schema = _AspectsArtifact if "aspects" in data else _JudgeArtifact
        return schema.model_validate(data)

    def made(self) -> Judge:
        raise NotImplementedError


class _JudgeArtifact(_Whole, Artifact):
    """The file of a judge."""

    model_config = _Method.model_config  # what was fitted is beside the other keys


class _AspectsArtifact(Artifact):
    """The file of a judge of several aspects: a judge for each, all with one model."""

    aspects: Annotated[
        dict[Annotated[str, StringConstraints(min_length=1, max_length=80)], _Whole],
        Field(min_length=2, max_length=16),
    ]

    def made(self) -> Judge:
        members = {name: whole.made() for name, whole in self.aspects.items()}
        try:
            judge: Judge = ensembles.get("aspects")(members)
        except OptionError as error:
            raise ArtifactError(f"the file's aspects do not fit: {_plain(str(error))}") from None
        judge.provenance = self.provenance
        return judge


def predictors(judge: Judge) -> dict[str, JudgePredict]:
    return {name: p for name, p in judge.named_predictors() if isinstance(p, JudgePredict)}


def to_dict(judge: Judge) -> dict[str, Any]:
    """A judge as plain JSON values, in the file's order. Raises ArtifactError for what the file may not hold."""
    check_listed(judge.models())
    try:
        data = _dump(judge)
        Artifact.of(data)
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    except (JudgesmithError, ValidationError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(f"this judge cannot be saved: {_first_problem(error)}") from None
    if not _depth_within(data):
        raise ArtifactError(f"this judge cannot be saved: its provenance is nested deeper than {DEEPEST} levels")
    return data


def _dump(judge: Judge) -> dict[str, Any]:
    lm = judge.own_lm
    model = lm and {
        "model": recorded(lm.name),
        "sampling": {"temperature": float(lm.sampling.temperature), "max_tokens": lm.sampling.max_tokens},
    }
    if judge.by_aspect:
        aspects = {name: _dump_whole(member) for name, member in judge.by_aspect.items()}
        return {"format": FORMAT, "aspects": aspects, "lm": model, "provenance": judge.provenance}
    return {"format": FORMAT, **_dump_whole(judge, lm=model)}


def _dump_whole(judge: Judge, **model: Any) -> dict[str, Any]:
    """A judge, with its model or without."""
    (first, keeps), *others = judge.saved_as()
    method = _method(first)
    members = [{**kept, **_method(other)} for other, kept in others]
    return {
        **{name: method.pop(name) for name in ("program", "task", "criteria")},
        **_dump_scoring(judge),
        **model,
        **method,
        **({judge.kind: {**keeps, "others": members}} if others else {}),
        "provenance": judge.provenance,
    }


def _dump_scoring(judge: Judge) -> dict[str, Any]:
    calibration, decision, sureness = judge.calibration, judge.decision, judge.sureness
    data: dict[str, Any] = {
        "scale": {"low": float(judge.scale.low), "high": float(judge.scale.high)},
        "calibration": calibration and {"percent": list(calibration.percent), "score": list(calibration.score)},
    }
    if decision is not None:
        data["decision"] = {"names": list(decision.names), "cuts": list(decision.cuts), "binary": decision.binary}
    if judge.preference is not None:
        data["preference"] = asdict(judge.preference)
    if sureness is not None:
        data["sureness"] = sureness.to_dict()
    return data


def _method(judge: Judge) -> dict[str, Any]:
    found, left_out = predictors(judge), judge.chosen.left_out()
    for name, predictor in judge.named_predictors():
        if name not in found and predictor.demos:
            raise ArtifactError(
                f"{name} is a plain dspy.Predict, whose demonstrations a saved judge cannot hold; use a JudgePredict"
            )
    options = {name: value for name, value in judge.options().items() if name not in left_out}
    return {
        "program": {"kind": judge.kind, "options": options},
        "task": judge.knowledge.description,
        "criteria": [{"name": c.name, "definition": c.definition} for c in judge.knowledge.criteria],
        **judge.fitted(),
        "signatures": {name: signature_hash(p.signature) for name, p in found.items()},
        "state": {name: saved_predictor(p.signature, p.demos) for name, p in found.items()},
    }


def dumps(judge: Judge) -> str:
    return json.dumps(to_dict(judge), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def fingerprint(judge: Judge) -> str:
    """Twelve hex digits that change with anything that changes verdicts; dates and costs leave it alone. A judge that
    cannot be saved, since only this process has its models, has one, too."""
    return digest(_identity(judge, _dump(judge)))


def fingerprint_of(artifact: Artifact) -> str:
    """`fingerprint` of the judge in a file with the model that it was compiled with, which is not opened."""
    return digest(identity_of(artifact))


def identity_of(artifact: Artifact) -> dict[str, Any]:
    """What the fingerprint of the judge in a file is made from: everything but its provenance, every option said."""
    judge = build(artifact)
    return _identity(judge, _dump(judge) | {"lm": artifact.lm and artifact.lm.model_dump()})


def digest(data: Any) -> str:
    """Twelve hex digits of JSON values, whatever the order of their keys."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]


def _identity(judge: Judge, data: dict[str, Any]) -> dict[str, Any]:
    for whole in (data, *data.get("aspects", {}).values()):
        del whole["provenance"]
        # Weights of levels stood as text in the first files; what was half scored by these goes on.
        for member in (whole, *whole.get("committee", {}).get("others", ())):
            options = member["program"]["options"] if "program" in member else {}
            if "level_weights" in options:
                options["level_weights"] = " ".join(f"{w:.9g}" for w in options["level_weights"] or ())
    return data


def save(judge: Judge, path: str | Path) -> None:
    """Write to a temporary file beside `path`, then rename: a reader never sees half a judge. Raises ArtifactError for
    one that could not be read again."""
    text = dumps(judge)
    if (size := len(text.encode())) > LARGEST:
        raise ArtifactError(
            f"{path}: the judge would have {size:,} bytes and has at most {LARGEST:,}; take fewer or shorter "
            "demonstrations"
        )
    write_atomically(Path(path), text)


def write_atomically(path: Path, text: str) -> None:
    """`write_whole`, with an ArtifactError for what cannot be written."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise ArtifactError(f"{path} cannot be written: {error.strerror or error}") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse_constant(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return made


def _whole(digits: str) -> int:
    if len(digits) > 19 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"a whole number of {len(digits)} digits is too large")
    return int(digits)


def _depth_within(data: Any, most: int = DEEPEST) -> bool:
    level: list[Any] = [[data]]
    for _ in range(most + 1):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [value for values in inner for value in values if isinstance(value, dict | list | tuple)]
        if not level:
            return True
    return False


def _content(path: Path) -> str:
    """What stands in a regular file of at most LARGEST bytes. Devices and pipes are not read: they may have no end."""
    # A pipe would keep us waiting in open() for somebody who writes.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a regular file")
        if about.st_size > LARGEST:
            raise ArtifactError(f"{path.name}: {about.st_size:,} bytes; a judge has at most {LARGEST:,}")
        with os.fdopen(number, "rb", closefd=False) as file:
            content = file.read(LARGEST + 1)
    finally:
        os.close(number)
    if len(content) > LARGEST:  # of such files (in /proc, say) the size is not known
        raise ArtifactError(f"{path.name}: a judge has at most {LARGEST:,} bytes")
    return content.decode("utf-8")


def read(path: str | Path) -> Artifact:
    """Read and check a file, or one that MLflow holds (`models:/NAME@ALIAS`, `models:/NAME/VERSION`, `runs:/RUN_ID`).
    Raises ArtifactError, saying what is wrong with it."""
    if (address := stored(path)) is not None:
        with fetched(address) as file:
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
        json.dumps(data, ensure_ascii=False).encode()  # refuses half a surrogate pair, which could not be saved again
        if not _depth_within(data):
            raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    except FileNotFoundError:
        raise ArtifactError(f"{path}: no such file; `judgesmith compile LABELS -o {path.name}` makes one") from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{path.name} is not a judge: {_plain(str(error))}") from None
    if not isinstance(data, dict) or "format" not in data:
        raise ArtifactError(f'{path.name} is not a judge: it has no "format"')
    if data["format"] != FORMAT:
        raise ArtifactError(
            f"{path.name} has format {_plain(str(data['format']))[:60]!r}; this judgesmith reads {FORMAT!r}. "
            "Compile again, or install the version that wrote it"
        )
    try:
        return Artifact.of(data)
    except ValidationError as error:
        raise ArtifactError(f"{path.name}: {_first_problem(error)}") from None
    except ArtifactError as error:
        raise ArtifactError(f"{path.name}: {error}") from None


def build(artifact: Artifact, *, lm: LanguageModel | None = None) -> Judge:
    """A judge from a checked file. Raises ArtifactError for an unknown kind, option or prompt form."""
    judge = artifact.made()
    judge.own_lm = lm
    return judge


def _scale(saved: _Scale) -> Scale:
    try:
        return Scale(saved.low, saved.high)
    except OptionError as error:
        raise ArtifactError(f"the file's options do not fit: {error}") from None


def _ensemble(first: Judge, saved: _Ensemble, scale: Scale) -> Judge:
    members = [first, *(_built(member, scale) for member in saved.others)]
    norms = [(norm.mean, norm.sd) for norm in (saved.norm, *(member.norm for member in saved.others))]
    try:
        made: Judge = ensembles.get("committee").of(members, norms, scale)
    except OptionError as error:
        raise ArtifactError(f"the file's committee does not fit: {error}") from None
    return made


def _plain_judge(method: _Method, scale: Scale, criteria: Sequence[Criterion]) -> Judge:
    """A judge of these options, with what was fitted and without demonstrations. Raises ArtifactError."""
    kind, options = method.program.method(), method.program.options
    if unknown := set(options) - set(kind().options()):
        raise ArtifactError(f"unknown option {sorted(unknown)[0][:80]!r} for {method.program.kind}")
    strictly(kind.Options, options)
    try:
        judge = kind(**options, task=method.task, criteria=criteria, scale=scale)
        fitted = strictly(kind.Fitted, method.fitted()).model_dump(mode="json", exclude_none=True)
        for name, data in fitted.items():
            judge.load_fitted(name, data)
        check_listed(judge.models())
    except (JudgesmithError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(f"the file's options do not fit: {_plain(str(error))}") from None
    return judge


def _built(method: _Method, scale: Scale) -> Judge:
    judge = _plain_judge(method, scale, [Criterion(c.name, c.definition) for c in method.criteria])
    found = predictors(judge)
    for name, predictor in found.items():
        if method.signatures.get(name) != signature_hash(predictor.signature) or name not in method.state:
            raise ArtifactError(f"{name} was compiled for other prompt fields; compile again with this version")
    if extra := (set(method.state) | set(method.signatures)) - set(found):
        raise ArtifactError(f"unknown predictor {sorted(extra)[0][:80]!r}")
    for name, predictor in found.items():
        predictor.take(method.state[name])
    return judge


def _load_calibration(saved: _Calibration, scale: Scale) -> Calibration:
    made = Calibration(tuple(saved.percent), tuple(saved.score))
    slack = 1e-6 * (scale.high - scale.low)
    if made.percent[0] < 0 or made.percent[-1] > 100:
        raise ArtifactError("the calibration's percents leave 0..100")
    if made.score[0] < scale.low - slack or made.score[-1] > scale.high + slack:
        raise ArtifactError(f"the calibration's scores leave the scale {scale}")
    return made


def _take_over(mine: Any, made: Any) -> None:
    """Give a judge, or one of its evaluators, the settings of another; its predictors and their demonstrations stay."""
    for name, value in vars(made).items():
        if isinstance(value, JudgePredict):
            getattr(mine, name).layout = value.layout
        elif isinstance(value, dspy.Module):
            _take_over(getattr(mine, name), value)
        elif name not in _OWN and not isinstance(value, Parameter):
            mine.__dict__[name] = value


#: What a judge keeps when it takes the settings of another.
_OWN = ("callbacks", "history", "_language_model", "report")


class _Settings(_Scoring):
    """What a judge is beside its knowledge and its predictors, as a leaf of a DSPy program's state."""

    format: Literal["judgesmith.judge/1"]
    program: _Program
    fitted: dict[Short, Any]


def settings(judge: Judge) -> dict[str, Any]:
    """A judge's options, scale and what was fitted, as JSON values."""
    return {
        "format": FORMAT,
        "program": {"kind": judge.kind, "options": judge.options()},
        **_dump_scoring(judge),
        "fitted": judge.fitted(),
    }


def take_settings(judge: Judge, state: Mapping[str, Any]) -> None:
    """Give a judge what `settings` said of another, whose predictors have the same names. Raises ArtifactError."""
    try:
        data = _Settings.model_validate_json(json.dumps(state, allow_nan=False))
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(f"this is not a state of a judge: {_first_problem(error)}") from None
    if data.program.kind != judge.kind:
        raise ArtifactError(f"the state is that of a {data.program.kind[:80]} judge, and this is a {judge.kind} judge")
    scale = Scale(data.scale.low, data.scale.high)
    if judge.kind not in ensembles:
        known = judge.knowledge
        empty: dict[str, Any] = {"signatures": {}, "state": {}, "criteria": []}
        held = _Method(program=data.program, task=known.description, **empty, **data.fitted)
        made = _plain_judge(held, scale, known.criteria)
        if set(predictors(made)) != set(predictors(judge)):
            asked = {name: value for name, value in made.options().items() if judge.options().get(name) != value}
            given = ", ".join(f"{name}={value!r}" for name, value in asked.items())
            raise ArtifactError(f"the state is of a judge with other steps; make it with {given} and load again")
        _take_over(judge, made)
    data.give(judge, scale)


def load(
    path: str | Path,
    *,
    lm: str | LanguageModel | Any | None = None,
    api_base: str | None = None,
    connection: Connection | None = None,
) -> Judge:
    """Load a judge: from a file, or from MLflow's registry (`models:/NAME@ALIAS`, see `compile --register`). Without
    `lm` it uses the model it was compiled with, reached by this machine's own settings (environment, `connection`),
    never by anything in the file.

    api_base: where the model is, the same as `connection=Connection(api_base=…)`.

    Raises ArtifactError for a file that is not a judge, ModelError where the model cannot be used.
    """
    if api_base is not None:
        connection = replace(connection or Connection(), api_base=api_base)
    artifact = read(path)
    judge = build(artifact)  # all of the file is checked before a model is looked up, fetched or started
    if lm is None:
        lm = model_of(artifact, connection)
    if lm is not None:
        judge.own_lm = language_model(lm, sampling=sampling_of(artifact), connection=connection)
    connect(judge, connection)
    judge.located(Path(path))
    return judge


def model_of(artifact: Artifact, connection: Connection | None = None) -> str | None:
    """The model that a file asks for, if any. Raises ArtifactError where only the user may choose it."""
    if artifact.lm is None:
        return None
    check_chosen(artifact.lm.model, connection.api_base if connection else None)
    return artifact.lm.model


def sampling_of(artifact: Artifact) -> Sampling | None:
    return Sampling(artifact.lm.sampling.temperature, artifact.lm.sampling.max_tokens) if artifact.lm else None


def connect(judge: Judge, connection: Connection | None) -> None:
    """Say how a loaded judge's other models are reached. Raises ArtifactError where only the user may choose them."""
    for name in judge.models():
        check_chosen(name, connection.api_base if connection else None)
    judge.connect(connection)


def _first_problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        return _plain(f"{where[:120]}: {first['msg']}")
    return _plain(str(error))


def _plain(text: str, most: int = 300) -> str:
    """A message on one line, in which what a file says can do nothing to a terminal."""
    text = " ".join(text[: 4 * most].split())[:most]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
