"""`judgesmith watch`: sentinel rows scored again, and what differs from the runs before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from judgesmith import parts
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.resampling import Measure, bootstrap_q
from judgesmith.datasets.row import OVERALL, Row
from judgesmith.datasets.sheet import Outputs
from judgesmith.errors import LabelsError, OptionError
from judgesmith.evaluating.sources import human_ratings, places
from judgesmith.parts import option
from judgesmith.programs.artifact import digest, fingerprint
from judgesmith.programs.judge import Judge
from judgesmith.rooms.watching import drift
from judgesmith.rooms.watching.drift import Finding
from judgesmith.rooms.watching.history import (
    Agreement,
    Run,
    TestedChange,
    append,
    epoch,
    read,
)
from judgesmith.running.console import Watch
from judgesmith.running.contracts import Asked, Held
from judgesmith.running.journal import alone
from judgesmith.running.plain import finite
from judgesmith.signatures.values import Item, Verdict
from judgesmith.tables import Column, Table
from judgesmith.wording import word_count

#: Last runs that are taken together, too, to find what changes slowly or by little.
WINDOW = 5
#: Tests of one look at the sentinel rows.
MOST_TESTS = 6
#: Reasons of failures that the history keeps of a run.
MOST_REASONS = 20


class WatchOptions(parts.Options):
    """Settings of the tests."""

    baseline: int = option(
        3,
        "Number of baseline runs. The first command makes all of them.",
        ge=2,
        le=50,
    )
    alpha: float = option(
        0.05,
        "Probability of at least one false alarm in `looks` runs, if rows vary independently.",
        gt=0,
        lt=1,
    )
    looks: int = option(365, "Number of runs that `alpha` covers.", ge=1)


@dataclass(frozen=True, slots=True)
class Sentinels:
    """The rows that are scored again and again. human: human ratings of an aspect, NaN where there is none."""

    rows: Sequence[Row]
    aspect: str | None
    human: Vector

    @classmethod
    def of(
        cls, file: Outputs, aspect: str | None, held: Sequence[Held] = ()
    ) -> Sentinels:
        """Return the sentinel rows of a file. held: what the judge was compiled from.

        Raises:
            OptionError: If human ratings answer another question than the judge's labels.
            LabelsError: If rows have equal ids or lack the aspect, if there are none, or if ratings cannot be read.
        """
        origin = file.origin
        rows = file.rows
        if not rows:
            raise LabelsError(f"{origin}: no rows in the file; name one with rows")
        places(origin, rows)
        aspects = file.aspects()
        if aspect is not None and aspect not in aspects:
            raise LabelsError(
                f"{origin}: no row has a human rating {aspect!r}; there are {', '.join(aspects) or 'none'}"
            )
        chosen = aspect
        if not chosen and OVERALL in aspects:
            chosen = OVERALL
        elif not chosen:
            chosen = aspects[0] if len(aspects) == 1 else None
        human = np.full(len(rows), np.nan)
        if chosen is not None:
            human, _, marks = human_ratings(file, chosen, chosen, aspects)
            Asked(file, chosen, marks, chosen=aspect is not None).keep(held)
        return cls(rows, chosen, human)

    @property
    def mark(self) -> str:
        """Changes with any text of any row."""
        return digest(
            [
                [row.id, row.output, row.source, row.context, row.reference]
                for row in self.rows
            ]
        )


@dataclass(frozen=True, slots=True)
class Look:
    """Result of a run.

    runs: the whole history, the newest run last.
    """

    runs: Sequence[Run]
    options: WatchOptions
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def run(self) -> Run:
        """The newest run."""
        return self.runs[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        run = self.run
        here = epoch(self.runs, run.judge, run.rows)
        base = [one for one in here if one.baseline]
        return {
            "alarm": bool(run.alarms),
            "alarms": run.alarms,
            "baseline": run.baseline,
            "judge": run.judge,
            "model": run.model,
            "runs": len(self.runs),
            "runs_since_baseline": len(here) - len(base),
            "threshold": run.threshold,
            "alpha": self.options.alpha,
            "looks": self.options.looks,
            "found": [one.model_dump() for one in run.found],
            "rows": len(run.ids),
            "failed": run.scores.count(None),
            "agreement": run.agreement and run.agreement.model_dump(),
            "notes": list(self.notes),
            "repeats": repeats(base),
        }


def look(
    judge: Judge,
    sentinels: Sentinels,
    history: Path,
    options: WatchOptions,
    *,
    restart: bool = False,
    watch: Watch | None = None,
) -> Look:
    """Score the sentinels and compare them with the baseline; a history without enough of one gets it now.

    The judge's model must answer afresh (`Connection(cache=False)`), or nothing can differ.

    Raises:
        LabelsError: If the history is broken.
        OptionError: If another process writes the history.
        ModelError: If the model cannot be used.
        OutageError: If it stops responding.
    """
    mark = fingerprint(judge)
    rows = sentinels.mark
    if judge.lm.connection.cache:
        raise OptionError(
            "connection: cached answers never change; watch a judge whose connection has cache=False"
        )
    with alone(history):
        runs = read(history)
        here = [] if restart else epoch(runs, mark, rows)
        if runs and not here and not restart:
            notes = _why_restart(runs[-1], mark, rows)
        else:
            notes = []
        missing = options.baseline - len(here)
        passes = max(1, missing)
        for number in range(passes):
            if watch is not None:
                watch.stage("scoring the sentinel rows", len(sentinels.rows))
            scored = _score(judge, mark, sentinels, watch)
            first = missing > 0 and not here and number == 0
            scored = scored.model_copy(
                update={"restart": first, "baseline": missing > 0}
            )
            if missing <= 0:
                scored = compared(scored, here, options)
            append(history, scored)
            here = [*here, scored]
            runs = [*runs, scored]
    fewest = _fewest_rows(options)
    if len(sentinels.rows) < fewest:
        few = f"{len(sentinels.rows)} sentinel rows are too few for an alarm, even if all of them change; give at least"
        notes = [*notes, f"{few} {fewest}, or a larger --baseline"]
    return Look(runs, options, notes)


def _fewest_rows(options: WatchOptions) -> int:
    """Return the number of changed rows that raises an alarm without noise.

    Each is the newest by chance once in all runs.
    """
    most = options.alpha / options.looks / MOST_TESTS
    return math.ceil(math.log(1 / most) / math.log(options.baseline + 1))


def _why_restart(last: Run, mark: str, rows: str) -> list[str]:
    if last.judge != mark:
        changed = f"another judge ({last.judge} before)"
    else:
        changed = "other sentinel rows"
    return [
        f"{changed}: a new baseline begins, and nothing is compared with what was before"
    ]


def _score(judge: Judge, mark: str, sentinels: Sentinels, watch: Watch | None) -> Run:
    scores = list[float]()
    words = list[float]()
    failures = dict[str, str]()
    verdicts = judge.score_many(map(Item.of, sentinels.rows), progress=False)
    for row, verdict in zip(sentinels.rows, verdicts, strict=True):
        scores.append(verdict.score)
        words.append(_words(verdict))
        if verdict.failure and len(failures) < MOST_REASONS:
            failures[row.id[:400]] = verdict.failure[:2000]
        if watch is not None:
            watch.step()
    return Run(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        judge=mark,
        model=judge.lm.name[:400],
        rows=sentinels.mark,
        ids=[row.id[:400] for row in sentinels.rows],
        scores=finite(scores),
        words=words,
        failures=failures,
        agreement=_agreement(sentinels, np.array(scores)),
    )


def _words(verdict: Verdict) -> int:
    """Return the number of words that the judge wrote on a row."""
    texts = [verdict.explanation, *(c.explanation for c in verdict.criteria.values())]
    texts += [error.explanation for error in verdict.errors]
    return sum(map(word_count, texts))


def _agreement(sentinels: Sentinels, scores: Vector) -> Agreement | None:
    both = ~(np.isnan(scores) | np.isnan(sentinels.human))
    if sentinels.aspect is None or not both.any():
        return None
    documents = [
        row.doc_id for row, there in zip(sentinels.rows, both, strict=True) if there
    ]
    measure = Measure(
        sentinels.human[both], documents=documents, coefficient="spearman"
    )
    interval = bootstrap_q(scores[both], measure, rounds=1000)
    value, low, high = finite([interval.value, interval.low, interval.high])
    return Agreement(
        aspect=sentinels.aspect, value=value, low=low, high=high, n=int(both.sum())
    )


def repeats(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return how often the judge contradicts itself in runs over the same rows (an A/A check).

    The share of rows with different scores, the standard deviation of a row's scores, and the rows that vary most. Rows
    that failed in a run are left out. None for fewer than two runs.
    """
    if len(runs) < 2:
        return None
    scores = np.stack([run.values() for run in runs])
    complete = ~np.isnan(scores).any(axis=0)
    ids = np.array(runs[0].ids, dtype=object)[complete]
    whole = scores[:, complete]
    spread = np.ptp(whole, axis=0)
    rows = [i for i in np.argsort(-spread, kind="stable")[:5] if spread[i] > 0]
    worst = [
        {"id": ids[i], "low": whole[:, i].min(), "high": whole[:, i].max()}
        for i in rows
    ]
    sd = np.sqrt(whole.var(axis=0, ddof=1).mean()) if complete.any() else np.nan
    result = {
        "runs": len(runs),
        "rows": int(complete.sum()),
        "differ": (spread > 0).mean() if complete.any() else np.nan,
    }
    return finite(result | {"sd": sd, "worst": worst})  # type: ignore[no-any-return]


def findings_table(findings: Sequence[TestedChange]) -> Table:
    """Return the results of a run's tests as a table."""
    numbers = (
        Column("before", ".3f"),
        Column("now", ".3f"),
        Column("n", "d"),
        Column("p", "p"),
    )
    table = Table(["what", *numbers, "alarm"])
    for one in findings:
        alarm = "alarm" if one.alarm else ""
        table.add(one.name, one.before, one.now, one.n, one.p, alarm, kind=alarm)
    return table


def summary(outcome: Look) -> str:
    """Return the newest run in one line."""
    run = outcome.run
    options = outcome.options
    text = f"{len(run.ids)} sentinel rows, {run.scores.count(None)} without a score"
    a = run.agreement
    if a is not None and a.value is not None:
        low, high = (np.nan if x is None else x for x in (a.low, a.high))
        text += f", Spearman with people {a.value:.2f} [{low:.2f}, {high:.2f}]"
    if run.baseline:
        base = [one for one in epoch(outcome.runs, run.judge, run.rows) if one.baseline]
        again = repeats(base)
        text += f". The baseline is there ({options.baseline} runs); from the next run on they are compared"
        if again is None or not again["rows"]:
            return f"{text}."
        text += f". In them {again['differ']:.0%} of the rows did not always get the same score (SD {again['sd']:.3g})"
        most = ", ".join(
            f"{one['id']} {one['low']:.3g} to {one['high']:.3g}"
            for one in again["worst"]
        )
        return f"{text}; most of all {most}." if most else f"{text}."
    sure = f"at most {options.alpha:.3g} chance of a false alarm in {options.looks} runs, if rows vary independently"
    if run.alarms:
        return f"ALARM: {'; '.join(run.alarms)} ({sure}). {text}."
    return f"Quiet: nothing differs from the baseline by more than chance ({sure}). {text}."


# Comparing -----------------------------------------------------------------------------------------------------------


def compared(run: Run, here: Sequence[Run], options: WatchOptions) -> Run:
    """Return the run with what the tests say of it. here: those before it, since the baseline began."""
    base = [one for one in here if one.baseline]
    recent = [*(one for one in here if not one.baseline), run][-WINDOW:]
    tests = list(_sentinels(base, recent))
    most = drift.threshold(tests, options.alpha, options.looks)
    result = [
        TestedChange(**finite(asdict(test)), alarm=bool(test.p <= most))
        for test in tests
    ]
    return run.model_copy(update={"found": result, "threshold": most})


def _sentinels(base: Sequence[Run], recent: Sequence[Run]) -> Iterator[Finding]:
    """Yield the tests of the newest run, and of the last runs together, which detect a small lasting shift."""
    runs = [*base, recent[-1]]
    scores = np.stack([one.values() for one in runs])
    yield from drift.same_rows("sentinels: scores", scores)
    if len(recent) > 1:
        together = np.stack([one.values() for one in (*base, *recent)])
        yield drift.moved(
            f"sentinels: scores of {len(recent)} runs moved", together, len(recent)
        )
    yield drift.more_failures(
        "sentinels: rows without a score", np.isnan(scores).astype(np.float64)
    )
    words = np.where(np.isnan(scores), np.nan, [one.words for one in runs])
    if np.nan_to_num(
        words
    ).any():  # of a judge that explains nothing there is no length
        yield from drift.same_rows("sentinels: lengths of explanations", words)
