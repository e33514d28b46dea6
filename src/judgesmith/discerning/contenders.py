"""The judges that `judgesmith discern` names: saved ones, metrics, and methods that judge a task's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..programs.artifact import fingerprint
from ..programs.judge import Judge
from ..programs.metrics import PREFIX, reference_metric
from ..programs.models.lm import Connection
from ..programs.registry import judges
from ..running.opening import open_judge, open_model
from ..signatures.values import Scale
from .options import DiscernOptions
from .pairs import Contender

__all__ = ["names_judge", "open_contenders"]


def names_judge(text: str) -> bool:
    """Whether an argument names a judge, and not good texts."""
    target = _named(text)[2]
    return "=" in text or target.startswith(PREFIX) or target.endswith(".json") or _method(target) is not None


def _method(target: str) -> str | None:
    """The method of METHOD or METHOD@MODEL, unless a file has that name."""
    name = target.partition("@")[0]
    return name if name in judges.names() and not Path(target).exists() else None


def _named(text: str) -> tuple[str, str, str]:
    """The parts of NAME=FILE; a metric's options may have signs of their own."""
    if text.startswith(PREFIX):
        return "", "", text
    given, equals, target = text.partition(f"={PREFIX}")
    return (given, "=", PREFIX + target) if equals else text.rpartition("=")


def open_contenders(
    names: Sequence[str], lm: str | None, where: Connection, how: DiscernOptions, *, brief: bool = False
) -> list[Contender]:
    """The judges that were named, checked before the first call; `brief` ones stop after the score where they can.
    Raises OptionError, ArtifactError, ModelError."""
    result: dict[str, dict[str, Any]] = {}
    for text in names:
        given, equals, target = _named(text)
        name, slash, metric = given.strip().partition("/")
        if equals and (not name or (slash and not metric.strip())):
            raise OptionError(f"judge {text!r} is not of the form FILE, NAME=FILE or NAME/METRIC=FILE")
        is_metric = target.startswith(PREFIX)
        scorers: dict[str, Any]
        if is_metric:
            scorer = reference_metric(target)
            scorers, marks = {"score": scorer}, {"score": f"{PREFIX}{scorer.name}:{scorer.description}"}
        elif (method := _method(target)) is not None and not slash:
            scorers = dict(_of_method(method, target, lm, where, how))
            marks = {key: _mark(scorer, brief) for key, scorer in scorers.items()}
        else:
            saved = open_judge(Path(target), lm, where)
            _check(saved, target)
            scorers, marks = {"score": saved}, {"score": _mark(saved, brief)}
        name = name or (target if is_metric or _method(target) else Path(target).stem)
        entry = result.setdefault(name, {"scorers": {}, "marks": {}, "against_reference": is_metric})
        keys = {metric: "score"} if metric else {key: key for key in scorers}
        if keys.keys() & entry["scorers"].keys() or entry["against_reference"] != is_metric:
            raise OptionError(f"judge {name!r} is named twice; tell them apart with NAME=FILE or NAME/METRIC=FILE")
        entry["scorers"] |= {key: scorers[of] for key, of in keys.items()}
        entry["marks"] |= {key: marks[of] for key, of in keys.items()}
    return [Contender(name, **entry) for name, entry in result.items()]


def _of_method(
    method: str, target: str, lm: str | None, where: Connection, how: DiscernOptions
) -> list[tuple[str, Judge]]:
    """A judge of each of the task's metrics, by a method that needs no labels."""
    if not how.metrics:
        raise OptionError(
            f"{target}: a method judges the metrics of a task; name them with --preset (dhp/summeval, …) or --metrics "
            "TASK/ASPECT, or name the file of a saved judge"
        )
    model = open_model(target.partition("@")[2] or lm, where)
    made = []
    for metric, name in zip(how.metrics, how.metric_names, strict=True):
        judge = judges.get(method).from_options({}, labels_aspect=None, library_aspect=metric)
        judge.scale = Scale(*how.scale)
        judge.set_lm(model)
        _check(judge, target)
        made.append((name, judge))
    return made


def _check(judge: Judge, target: str) -> None:
    if judge.whole_documents:
        raise OptionError(
            f"{target}: a {judge.kind} judge ranks the outputs of a document against each other; here each text is "
            "judged by itself"
        )


def _mark(judge: Judge, brief: bool) -> str:
    made = f"{fingerprint(judge)}:{judge.lm.name}"
    judge.set_brief(brief)
    return made
