"""MLflow, for who uses it: a compiled judge logged as a run, and a judge as a scorer of `mlflow.genai.evaluate`.

An extra. MLflow itself is imported on first use only; nothing is sent anywhere unless `--mlflow` or `mlflow_scorer`
asks for it, and then to the tracking store that MLflow's own settings name (MLFLOW_TRACKING_URI, else its local
default). What is logged stands in the judge's file or in the report of `compile --json`; no text of the labels
goes there beyond the demonstrations that the judge itself holds.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dspy

from judgesmith.datasets.exports.traces import Side, trace_input, trace_output
from judgesmith.errors import JudgesmithError, OptionError
from judgesmith.optimizers.report import AspectsReport, CompileReport
from judgesmith.programs import artifact, loading
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.rooms.mlflow.store import (
    CHECK,
    LOG,
    check_address,
    mlflow_part,
    patience,
    short,
)
from judgesmith.rows import as_text, context_of
from judgesmith.signatures.values import Verdict

#: What MLflow takes in one request, and of one parameter (older servers: 500 characters).
METRICS_AT_ONCE = 1000
PARAMS_AT_ONCE = 100
LONGEST_PARAM = 500
#: Aspects that a run's name names.
NAMED = 3
#: MLflow's default name of an expected answer, which counts as a reference.
EXPECTED = "expected_response"


def _without_addresses(text: str) -> str:
    return re.sub(r"\b\w+://[^\s'\")]+", "(address)", text)


# -- a compiled judge as a run


@dataclass(frozen=True, slots=True)
class Logged:
    """A logged run.

    error: why it could not be logged, or not wholly. run: None if not even the run was created. model: the address of
    the registered judge, if requested.
    """

    experiment: str
    run: str | None
    error: str | None = None
    model: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return plain JSON types."""
        return asdict(self)


class ExperimentLog:
    """An MLflow experiment that compiled judges are logged to, created if it does not exist.

    Raises:
        MissingExtraError: If MLflow is not installed.
        OptionError: If the tracking store cannot be reached or the experiment cannot be used: within seconds, before
            anything is spent on a judge.
    """

    def __init__(self, experiment: str, register: str | None = None) -> None:
        """register: NAME or NAME@ALIAS, where the judge is to be registered, too."""
        self.experiment = experiment.strip()
        self._name, at, self._alias = (register or "").partition("@")
        if register is not None and (
            not self._name.strip() or (at and not self._alias) or "/" in self._name
        ):
            raise OptionError(
                f"--register {register!r}: give NAME or NAME@ALIAS, without a slash"
            )
        if not self.experiment:
            raise OptionError("--mlflow: name the experiment to log to")
        self._entities = mlflow_part("mlflow.entities", "--mlflow")
        mlflow = mlflow_part("mlflow", "--mlflow")
        check_address()
        with patience(*CHECK):
            try:
                self._client = mlflow.MlflowClient()
                existing = self._client.get_experiment_by_name(self.experiment)
                deleted = existing is not None and existing.lifecycle_stage != "active"
                if existing:
                    self._id = existing.experiment_id
                else:
                    self._id = self._client.create_experiment(self.experiment)
            # Stores are databases, servers and plugins, each with exceptions of its own.
            except Exception as error:
                raise OptionError(
                    f"--mlflow {self.experiment}: MLflow's tracking store cannot be used; see MLFLOW_TRACKING_URI "
                    f"({short(error)})"
                ) from None
        if deleted:
            raise OptionError(
                f"--mlflow {self.experiment}: that experiment was deleted; name another, or restore it with "
                f"`mlflow experiments restore -x {self._id}`"
            )

    @classmethod
    def of(cls, experiment: str | None, register: str | None) -> ExperimentLog | None:
        """Return the log for --mlflow and --register; None if neither was given."""
        if experiment is None and register is None:
            return None
        return cls(
            experiment if experiment is not None else str(register).partition("@")[0],
            register,
        )

    def log(self, judge: Judge, report: CompileReport | AspectsReport) -> Logged:
        """Log one run: parameters, metrics, each candidate as a step, and as files the judge and the report.

        Of a judge of several aspects, the metrics' names begin with the aspect's.

        Never raises for the store: what went wrong is in the result's `error`.
        """
        run: str | None = None
        with patience(*LOG):
            try:
                now = int(time.time() * 1000)
                started = now - int(report.seconds * 1000)
                saved = artifact.to_dict(judge)
                data = report.to_dict()
                created = self._client.create_run(
                    self._id,
                    start_time=started,
                    tags=tags(judge, data),
                    run_name=run_name(saved),
                )
                run = str(created.info.run_id)
                try:
                    self._numbers(run, parameters(saved), figures(data), now)
                    self._files(run, judge, data)
                except BaseException:
                    with suppress(Exception):
                        self._client.set_terminated(run, status="FAILED")
                    raise
                self._client.set_terminated(run, status="FINISHED")
                model = self._register(run, judge, data) if self._name else None
            except Exception as error:  # whatever a store may raise: the judge is saved, and this is but its record
                return Logged(self.experiment, run, short(error))
        return Logged(self.experiment, run, model=model)

    def _register(self, run: str, judge: Judge, report: Mapping[str, Any]) -> str:
        """Return the next version of the registered model, whose files are the run's: judge.json, and no pickle.

        Its address, by alias where there is one.
        """
        if not self._client.search_registered_models(
            f"name = '{self._name}'", max_results=1
        ):
            self._client.create_registered_model(self._name)
        source = self._client.get_run(run).info.artifact_uri
        version = self._client.create_model_version(
            self._name, source, run_id=run, tags=tags(judge, report)
        )
        if not self._alias:
            return f"models:/{self._name}/{version.version}"
        self._client.set_registered_model_alias(
            self._name, self._alias, version.version
        )
        return f"models:/{self._name}@{self._alias}"

    def _numbers(
        self,
        run: str,
        params: Mapping[str, str],
        values: Sequence[tuple[str, float, int]],
        now: int,
    ) -> None:
        entities = self._entities
        listed = [entities.Param(name, value) for name, value in params.items()]
        for start in range(0, len(listed), PARAMS_AT_ONCE):
            self._client.log_batch(run, params=listed[start : start + PARAMS_AT_ONCE])
        points = [
            entities.Metric(name, value, now, step) for name, value, step in values
        ]
        for start in range(0, len(points), METRICS_AT_ONCE):
            self._client.log_batch(run, metrics=points[start : start + METRICS_AT_ONCE])

    def _files(self, run: str, judge: Judge, report: Mapping[str, Any]) -> None:
        self._client.log_text(run, artifact.dumps(judge), "judge.json")
        self._client.log_text(
            run, json.dumps(report, indent=2, ensure_ascii=False) + "\n", "report.json"
        )


def run_name(saved: Mapping[str, Any]) -> str:
    """Return a run's name, such as "fluency, active-critic, random-search"."""
    provenance = saved["provenance"]
    several = list(provenance.get("aspects", ()))
    shown = " + ".join(several) or provenance["labels"]["aspect"]
    if len(several) > NAMED:
        shown = f"{len(several)} aspects"
    return f"{shown}, {saved['program']['kind']}, {provenance['optimizer']['name']}"


def tags(judge: Judge, report: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a run.

    The signatures show how both agreements were measured: level, rows, failures, seed.
    """
    result = {
        "mlflow.source.name": "judgesmith compile",
        "mlflow.source.type": "LOCAL",
        "judgesmith.judge": artifact.fingerprint(judge),
        "judgesmith.notes": str(len(report["notes"])),
    }
    for prefix, part in by_aspect(report).items():
        for measured in ("heldout", "zero_shot"):
            signature = str(part[measured]["signature"])
            result[f"judgesmith.{prefix}{measured}"] = signature
    return result


def by_aspect(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the report of each aspect by the beginning of its names; of a judge of one aspect that is "".

    MLflow allows letters, digits and a few signs. Two aspects that differ in other signs are told apart by a number.
    """
    if "aspects" not in report:
        return {"": report}
    result = dict[str, Mapping[str, Any]]()
    for name, part in report["aspects"].items():
        plain = chosen = re.sub(r"[^\w -]", "_", name)
        number = 1
        while f"{chosen}." in result:
            number += 1
            chosen = f"{plain}_{number}"
        result[f"{chosen}."] = part
    return result


def figures(report: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    """Return name, value and step of all numbers of a report, of each aspect's where it has several."""
    result = []
    for prefix, part in by_aspect(report).items():
        for name, value, step in (*metrics(part), *steps(part["candidates"])):
            result.append((f"{prefix}{name}", value, step))
    if "aspects" in report:
        result += _at_0({name: report[name] for name in ("seconds", *SPENT)})
    return result


def parameters(saved: Mapping[str, Any]) -> dict[str, str]:
    """Return a run's parameters, from the judge's file alone: what it cannot hold (keys, addresses), they cannot."""
    provenance = saved["provenance"]
    labels = provenance["labels"]
    options = saved["program"]["options"]
    first = next(iter(provenance.get("aspects", {"": provenance}).values()))
    chosen = {
        "method": saved["program"]["kind"],
        "option": {
            k: v
            for k, v in options.items()
            if v is None or isinstance(v, str | int | float)
        },
        "model": (saved["lm"] or {}).get("model"),
        "sampling": (saved["lm"] or {}).get("sampling"),
        "scale": f"{saved['scale']['low']:g} to {saved['scale']['high']:g}",
        "optimizer": provenance["optimizer"],
        "seed": provenance["seed"],
        "labels": {
            k: labels[k]
            for k in ("origin", "aspect", "fingerprint", "rows", "train", "heldout")
        },
        "folds": first["heldout"]["folds"],
        "version": provenance["versions"],
    }
    if "aspects" in provenance:
        chosen["aspects"] = ", ".join(provenance["aspects"])
    return {name: value[:LONGEST_PARAM] for name, value in _flat(chosen)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield (
                f"{prefix}{name}",
                value if isinstance(value, str) else json.dumps(value),
            )


#: Numbers of an agreement, of the chosen candidate, and of what a run took.
AGREED = ("value", "q", "low", "high", "n", "failed", "pearson", "spearman", "kendall")
SELECTED = ("value", "corrected", "q", "q_corrected", "demos")
SPENT = ("calls", "cached_calls", "tokens", "prompt_tokens", "completion_tokens")


def metrics(report: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    """Name, value and step (0) of a report's numbers. An undefined one is left out: MLflow draws NaN as 0."""
    result: dict[str, Any] = {"seconds": report["seconds"]}
    for part in ("heldout", "zero_shot"):
        result |= {f"{part}.{name}": report[part].get(name) for name in AGREED}
    for part in ("difference", "mean_absolute_error"):
        result |= {f"{part}.{name}": value for name, value in report[part].items()}
    selected = report["selected"]
    result |= {f"selected.{name}": selected.get(name) for name in SELECTED}
    result |= {name: report[name] for name in SPENT}
    return _at_0(result)


def _at_0(values: Mapping[str, Any]) -> list[tuple[str, float, int]]:
    return [(name, float(of), 0) for name, of in values.items() if _is_number(of)]


def steps(candidates: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, int]]:
    """Return the candidates' agreement on the training rows, one step each in the order in which they were tried.

    One that a race dropped is left out: its agreement is that of some of the rows, and no point of the same curve.
    """
    return [
        (f"candidate.{name}", float(candidate[name]), step)
        for step, candidate in enumerate(candidates)
        if not candidate.get("dropped")
        for name in ("value", "q", "low", "high", "failed")
        if _is_number(candidate.get(name))
    ]


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


# -- a judge as a scorer


def _not_mlflows() -> list[Any]:
    """Return DSPy's callbacks without MLflow's.

    While it evaluates it may trace every DSPy module; the judge's own calls would stand among the traces under
    evaluation.
    """
    return [
        one
        for one in dspy.settings.get("callbacks") or ()
        if not type(one).__module__.startswith("mlflow.")
    ]


def mlflow_scorer(
    judge: str | Path | Judge,
    *,
    lm: str | LanguageModel | Any | None = None,
    connection: Connection | None = None,
    name: str | None = None,
) -> Any:
    """Return a judge as a scorer for `mlflow.genai.evaluate(data=…, scorers=[…])`.

    The judged texts come from MLflow's arguments, a text as it is and anything else as JSON. source: the key "source"
    of `inputs`, or the only one beside the context. output: the text of `outputs` itself, its key "output", or the only
    one. context: the key "context" of `inputs`, if it is there. reference: the key "reference" of `expectations`, else
    "expected_response", if it is there. Data of another shape are for a scorer of your own, which calls the judge's
    `score`.

    Args:
        judge: a Judge, the file of a saved one, or one in MLflow ("models:/NAME@ALIAS", "runs:/RUN_ID").
        lm: language model in place of the judge's own, as for `load`.
        connection: address and limits of the model, as for `load`.
        name: name of the scorer and its feedback; by default the aspect that the judge was compiled for.

    Returns:
        A scorer whose every call gives one `mlflow.entities.Feedback`: value, the score on the judge's scale (a float);
        rationale, its explanation; metadata, the judge's fingerprint, its model, the scale, its agreement with people
        where it was compiled, scores by criterion. A row without a score has an `error` with the reason and the value
        None, never 0; MLflow leaves it out of the mean.

    Raises:
        MissingExtraError: If MLflow is not installed.
        OptionError: If the judge ranks the outputs of a document, and so cannot judge one alone.
        ArtifactError: If the file is not a judge.
        ModelError: If there is no model.
    """
    scorers = mlflow_part("mlflow.genai.scorers", "mlflow_scorer")
    entities = mlflow_part("mlflow.entities", "mlflow_scorer")
    opened = _open(judge, lm, connection)
    if opened.whole_documents:
        raise OptionError(
            f"a {opened.method.kind} judge scores the outputs of a document against each other; an MLflow scorer sees "
            "one alone"
        )
    title = name or artifact.labels_aspect(opened) or opened.method.kind
    about = about_judge(entities, opened, title)

    def score(inputs: Any = None, outputs: Any = None, expectations: Any = None) -> Any:
        sources = trace_input(inputs)
        answered = trace_output(outputs)
        try:
            with dspy.context(callbacks=_not_mlflows()):
                verdict = opened.score(
                    _clear(sources, "inputs", "source"),
                    _clear(answered, "outputs", "output"),
                    context=None
                    if sources.context is None
                    else context_of("context", sources.context),
                    reference=_reference(expectations),
                )
        except JudgesmithError as error:
            return entities.Feedback(
                error=_error(entities, type(error).__name__, str(error)), **about
            )
        return feedback(entities, about, verdict)

    return scorers.scorer(score, name=title)


def about_judge(entities: Any, judge: Judge, name: str) -> dict[str, Any]:
    """Return the fields that all feedback of a judge has: its name, the model as its source, and metadata."""
    source = entities.AssessmentSource(source_type="LLM_JUDGE", source_id=judge.lm.name)
    return {"name": name, "source": source, "metadata": loading.about_judge(judge)}


def feedback(entities: Any, about: Mapping[str, Any], verdict: Verdict) -> Any:
    """Return a verdict as MLflow's feedback: the score, or an error where there is none, and the explanation."""
    fields = {
        **about,
        "metadata": about["metadata"] | _details(verdict),
        "rationale": verdict.explanation or None,
    }
    if verdict.failure is not None or math.isnan(verdict.score):
        reason = verdict.failure or "the judge gave no score"
        return entities.Feedback(error=_error(entities, "NoScore", reason), **fields)
    return entities.Feedback(value=float(verdict.score), **fields)


def _open(judge: str | Path | Judge, lm: Any, connection: Connection | None) -> Judge:
    if isinstance(judge, Judge):
        if lm is None and connection is not None:
            raise OptionError(
                "connection is for a judge's file or for lm; this judge has its model already"
            )
        if lm is None:
            return judge
        return judge.with_(own_lm=language_model(lm, connection=connection))
    return loading.load(judge, lm=lm, connection=connection)


def _clear(side: Side, label: str, usual: str) -> str:
    """Return one side of a trace as text. Raises OptionError where several parts of it could be meant."""
    if side.parts:
        names = ", ".join(map(repr, side.parts[:8]))
        raise OptionError(
            f"{label} has several parts ({names}); call the one that is judged {usual!r}"
        )
    return as_text(side.value) or ""


def _reference(expectations: Any) -> str | None:
    expected = expectations if isinstance(expectations, Mapping) else {}
    return next(
        (as_text(expected[key]) for key in ("reference", EXPECTED) if key in expected),
        None,
    )


def _details(verdict: Verdict) -> dict[str, str]:
    """Return the metadata of a verdict beside score and explanation, as texts."""
    data = verdict.to_dict()
    criteria = {name: c["score"] for name, c in data["criteria"].items()}
    aspects = {name: of["score"] for name, of in data.get("aspects", {}).items()}
    result = dict[str, str]()
    for key, scores in {"criteria": criteria, "aspects": aspects}.items():
        if scores:
            result[key] = json.dumps(scores, ensure_ascii=False)
    if verdict.notes:
        result["notes"] = _without_addresses("; ".join(verdict.notes))
    return result


def _error(entities: Any, code: str, message: str) -> Any:
    return entities.AssessmentError(
        error_code=code, error_message=_without_addresses(message)
    )
