"""Saved judges in `judgesmith check`: they judge the rows here and now, beside what was scored before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith.evaluating.sources import (
    Judged,
    own_categories,
    plain_name,
    some,
    speaking_of,
)
from judgesmith.optimizers.examples import numbers_of
from judgesmith.programs import artifact, loading
from judgesmith.programs.aspects import OVERALL as GENERAL
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.several.judge import scales_of
from judgesmith.running.console import Watch, duration, err
from judgesmith.running.estimates import SAMPLED, Estimate, estimate
from judgesmith.running.limits import Limits
from judgesmith.running.opening import open_judge, quiet
from judgesmith.running.plain import clean
from judgesmith.scoring.scoring import ScoreSummary
from judgesmith.signatures.values import Item, Scale, Verdict


@dataclass(frozen=True)
class LiveRun:
    """Usage and outcome of judging the rows with one saved judge."""

    judge: str
    artifact: Path
    model: str
    summary: ScoreSummary
    moved: str = ""
    """What is said of a model that was not measured before."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        data = self.summary.to_dict()
        del data[
            "resumed"
        ]  # nothing is written here; what was answered before is in cached_calls
        return {
            "judge": self.judge,
            "artifact": str(self.artifact),
            "model": self.model,
        } | data

    def __str__(self) -> str:
        s = self.summary
        return (
            f"{self.judge}: {s.rows} rows judged with {self.model}, {s.scored} scored, {s.failed} failed; "
            f"{s.calls:,} calls ({s.cached_calls:,} more came from the disk), "
            f"{s.prompt_tokens:,} + {s.completion_tokens:,} tokens, "
            f"{'price unknown' if s.cost is None else f'${s.cost:.4g}'}, {duration(s.seconds)}"
        )


def plan_live(joined: Judged, lm: str | None, where: Connection) -> Estimate:
    """Return the estimated cost of judging with the saved judges, without opening or calling a model."""
    total = Estimate(0, 0, 0, 0, 0.0, 0.0)
    for name, path in joined.live.items():
        read = artifact.read(path)
        judge = loading.build(read)
        rows = _rows_with_people(joined, list(_aspects(joined, name, judge)))
        sample = [joined.rows[i] for i in rows[:SAMPLED]]
        model = lm or (read.lm.model if read.lm else None)
        total += estimate(judge, model, len(rows), sample, where)
    return total


def judge_live(
    joined: Judged,
    lm: str | None,
    where: Connection,
    *,
    limits: Limits,
    quietly: bool = False,
) -> list[LiveRun]:
    """Let the saved judges that wait in `live` judge the rows; their scores take their places in `judges`.

    lm: a model instead of the one that each was compiled with. quietly: do not print the planned calls. A row that
    fails is NaN; its reason is in the run's summary.

    Raises:
        ArtifactError: If a judge's file is refused.
        OptionError: If no model is named.
        ModelError: If one cannot be used.
    """
    with quiet():
        waiting = _open_all(joined, lm, where)
        if not quietly:
            _announce(waiting)
        runs = []
        total = sum(len(judging.rows) for judging in waiting)
        with (
            limits.spending(*(judging.judge.lm for judging in waiting)),
            Watch("judging", total) as watch,
        ):
            for judging in waiting:
                path = joined.live[judging.name]
                rows = judging.rows
                watch.stage(f"judging with {path.name}", len(rows))
                summary = _judge_rows(joined, judging, watch, limits)
                own = judging.judge
                runs.append(
                    LiveRun(judging.name, path, own.lm.name, summary, own.moved)
                )
    joined.live = {}
    return runs


@dataclass(frozen=True, slots=True)
class _Judging:
    """A saved judge, the aspects of human ratings that it is compared with, and the places of its rows."""

    name: str
    judge: Judge
    aspects: Mapping[str, str | None]
    rows: Sequence[int]


def _open_all(joined: Judged, lm: str | None, where: Connection) -> list[_Judging]:
    """Open every judge and check its rows, before the first call is paid for."""
    opened = {name: open_judge(path, lm, where) for name, path in joined.live.items()}
    waiting = []
    for name, judge in opened.items():
        aspects = _aspects(joined, name, judge)
        rows = _rows_with_people(joined, list(aspects))
        for i in rows:
            numbers_of(judge, joined.rows[i], joined.origin)
        waiting.append(_Judging(name, judge, aspects, rows))
    return waiting


def _announce(waiting: Sequence[_Judging]) -> None:
    """Print the number of calls, and the models."""
    calls = 0
    models: dict[str, None] = {}
    for judging in waiting:
        calls += len(judging.rows) * judging.judge.method.cost().calls_per_row
        models[judging.judge.lm.name] = None
    err.print(
        clean(f"at most {calls:,} calls to {', '.join(models)}; Ctrl-C loses nothing"),
        style="dim",
        markup=False,
    )


def _aspects(joined: Judged, name: str, judge: Judge) -> dict[str, str | None]:
    """Return the aspects of human ratings that a judge is compared with.

    Each has its name among those of a judge of several. They are those it was compiled for; if people rated no such
    aspect, all of them, with a note.
    """
    if several := scales_of(judge.method):
        return speaking_of(joined, name, list(several))
    compiled = judge.method.saved_options().get("aspect") or judge.judges_aspect
    same = [
        aspect for aspect in joined.human if plain_name(aspect) == plain_name(compiled)
    ]
    if compiled and compiled not in GENERAL and not same:
        joined.notes.append(
            f"{name} was compiled for {compiled!r}; it is compared with human ratings of {some(joined.human)} here"
        )
    return dict.fromkeys(same or joined.human)


def _rows_with_people(joined: Judged, aspects: Sequence[str]) -> list[int]:
    """Places of the rows that people scored for one of these aspects: of the others nothing could be learnt."""
    scores = np.array([joined.human[aspect] for aspect in aspects])
    return [int(i) for i in np.flatnonzero(~np.isnan(scores).all(axis=0))]


def _judge_rows(
    joined: Judged, judging: _Judging, watch: Watch, limits: Limits
) -> ScoreSummary:
    name = judging.name
    judge = judging.judge
    summary = ScoreSummary()
    verdicts = [Verdict.failed("") for _ in joined.rows]
    items = (Item.of(joined.rows[i]) for i in judging.rows)
    with summary.counting(judge.lm.meter):
        scored = judge.score_many(items, progress=False)
        for i, verdict in zip(judging.rows, scored, strict=True):
            verdicts[i] = verdict
            record = {"id": joined.rows[i].id, "verdict": verdict.to_dict()}
            summary.count(record | {"seen": i in joined.seen})
            watch.step()
            limits.check(
                summary.failed, summary.rows, verdict.failure, len(judging.rows)
            )
    joined.reasons[name] = [verdict.explanation for verdict in verdicts]
    for human, own in judging.aspects.items():
        scores = []
        categories = list[tuple[Any, Any]]()
        for verdict in verdicts:
            part = _on(verdict, own)
            scores.append(part.score)
            categories.append((part.category, part.passed))
        joined.judges[name][human] = np.array(scores)
        own_categories(joined, name, categories, [human])
    _note_scales(joined, name, judge, judging.aspects)
    return summary


def _on(verdict: Verdict, aspect: str | None) -> Verdict:
    """Return a verdict's part on an aspect; the whole verdict for None."""
    if aspect is None:
        return verdict
    return verdict.aspects.get(aspect, Verdict.failed(verdict.failure or "no score"))


def _note_scales(
    joined: Judged, name: str, judge: Judge, aspects: Mapping[str, str | None]
) -> None:
    """Note the aspects whose scores are on another scale than people's."""
    own = scales_of(judge.method)
    other = list[str]()
    ours = dict[str, None]()
    theirs = dict[str, None]()
    for human, aspect in aspects.items():
        scale = judge.scale if aspect is None else own[aspect]
        people = Scale(*joined.scales[human]) if human in joined.scales else scale
        if people != scale:
            other.append(human)
            ours[str(scale)] = theirs[str(people)] = None
    if not other:
        joined.on_scale.add(name)
        return
    joined.notes.append(
        f"{name} scores on {some(ours)}, human {some(other)} on {some(theirs)}: correlations do not depend "
        "on that, errors on the scale do; --scale LOW HIGH corrects a scale that was inferred wrongly"
    )
