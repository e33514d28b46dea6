"""Gates for tests: `assert_judged` on a judge's scores of outputs, `assert_agreement` on its agreement with people.

Both are fixtures of judgesmith's pytest plug-in, too, which record their numbers for JUnit (`--junitxml`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesmith.agreement.paired import LOOKS
from judgesmith.errors import OptionError

if TYPE_CHECKING:
    from judgesmith.programs.judge import Judge
    from judgesmith.programs.models.lm import Connection
    from judgesmith.signatures.values import Item, Scale, Verdict

STATISTICS = ("mean", "passed", "min")
ROUNDS = 2000
CONFIDENCE = 0.95
#: Rows that a failed assertion shows, and characters of each.
SHOWN = 3
WIDTH = 100

Record = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Bar:
    """`mean>=3.5`, or `mean.low>=3.5` for the lower end of the mean's interval."""

    statistic: str
    low: bool
    least: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Bar:
        """Parse a bar such as `mean>=3.5`.

        Raises:
            OptionError: If the text has another form.
        """
        left, sign, right = text.partition(">=")
        statistic, dot, end = left.strip().partition(".")
        try:
            least = float(right)
        except ValueError:
            least = math.nan
        no_interval = statistic == "min" and dot
        if (
            not sign
            or statistic not in STATISTICS
            or (dot and end != "low")
            or no_interval
            or math.isnan(least)
        ):
            raise OptionError(
                f"at_least={text!r} is not of the form mean>=NUMBER, passed>=SHARE or min>=NUMBER; mean.low and "
                f"passed.low are the lower ends of {CONFIDENCE:.0%} intervals"
            )
        return cls(statistic, bool(dot), least, text.strip())


def assert_judged(
    outputs: Any,
    *,
    judge: str | Path | Judge,
    at_least: str | Sequence[str] = (),
    baseline: str | Path | None = None,
    looks: int = LOOKS,
    write_baseline: bool = False,
    lm: Any = None,
    connection: Connection | None = None,
    max_failed: int = 0,
    seed: int = 0,
    record: Record | None = None,
) -> dict[str, Any]:
    """Assert that a saved judge's scores are no worse than before, or above a bar.

    `assert_judged(outputs, judge="judge.json", baseline="scores.json")` compares with the scores of an earlier commit
    on the same inputs, input by input. In `looks` commits that change nothing it fails with a probability of 5 % at
    most. A bar, `at_least="mean>=3.5"`, has no such error rate: a mean above it fails by chance, commit after commit.
    Calls are cached on disk: the same outputs cost no second call.

    Args:
        outputs: texts; rows as `Judge.score_many` takes them (dicts with source, output …, a DataFrame); or a file of
            rows.
        judge: a saved judge's file, or a judge.
        at_least: one bar or several. `mean>=3.5` is of the scores on the judge's scale, `passed>=0.9` of the share that
            a judge of pass and fail lets pass (people may pass fewer: `judgesmith check --fail-under 'rate>=0.9'` is of
            people's share, by some labels), `min>=2` of the lowest score; `mean.low` and `passed.low` are the lower
            end of a 95 % bootstrap interval over documents (rows of one group, or of one source).
        baseline: file of the scores of an earlier commit, which `pytest --write-baselines` writes.
        looks: number of commits that share the error of 5 %.
        write_baseline: write the baseline, and compare with nothing.
        lm: language model in place of the judge's own.
        connection: address and limits of the model.
        max_failed: rows that may have no score; they are in no mean.
        seed: seed of the interval.
        record: called with names and values, as pytest's `record_property`.

    Returns:
        {judge, model, rows, failed, calls, cached_calls, note, and value, low, high of each statistic}. note: "" unless
            the model is another than the judge's agreement was measured with. With a baseline also `since`: difference,
            low, high, p, level, n, and `finds`, the size of a loss that is found in 90 %.

    Raises:
        AssertionError: If the scores are worse than the baseline's or a bar is missed, with the reasons and the lowest
            rows.
        OptionError: If there are no outputs, a bar has another form, or the baseline is not there or of another judge.
        LabelsError: If the rows cannot be read, or too few inputs are those of the baseline.
        ArtifactError: If the judge cannot be loaded.
        ModelError: If its model cannot be opened.
    """
    __tracebackhide__ = True
    from judgesmith.programs import artifact, loading
    from judgesmith.programs.judge import Judge
    from judgesmith.rooms.adapters.baselines import Scores

    bars = [
        Bar.parse(bar)
        for bar in ([at_least] if isinstance(at_least, str) else at_least)
    ]
    if isinstance(judge, Judge):
        opened = judge
    else:
        opened = loading.load(judge, lm=lm, connection=connection)
    items = list(_items(outputs, opened))
    if not items:
        raise OptionError("outputs: none given; pass texts, rows or a file")
    if not bars and baseline is None:
        raise OptionError(
            "give baseline=FILE, to compare with an earlier commit, or at_least=…, such as mean>=3.5"
        )
    before = opened.lm.meter.usage
    verdicts = list(opened.score_many(items))
    spent = opened.lm.meter.usage - before
    present = [
        (item, verdict)
        for item, verdict in zip(items, verdicts, strict=True)
        if verdict.failure is None
    ]
    result: dict[str, Any] = {
        "judge": artifact.fingerprint(opened),
        "model": opened.lm.name,
        "note": opened.moved and f"the judge was {opened.moved}",
        "rows": len(items),
        "failed": len(items) - len(present),
        "calls": spent.calls,
        "cached_calls": spent.cached,
    }
    for name in dict.fromkeys(bar.statistic for bar in bars):
        result[name] = _statistic(name, present, opened.scale, seed)
    worse = []
    if baseline is not None:
        scores = [v.score if v.failure is None else math.nan for v in verdicts]
        now = Scores.of(result["judge"], result["model"], items, scores)
        path = Path(baseline)
        if write_baseline:
            now.write(path)
        else:
            change = now.since(Scores.read(path), items, looks)
            result["since"] = asdict(change)
            worse = [f"worse than the baseline: {change}"] if change.worse else []
    _record(result, record)
    reasons = [
        f"{result['failed']} of {len(items)} rows have no score (at most {max_failed} may), the first: {v.failure}"
        for v in [v for v in verdicts if v.failure is not None][:1]
        if result["failed"] > max_failed
    ]
    reasons += worse
    reasons += [reason for bar in bars for reason in _below(bar, result)]
    if reasons and result["note"]:
        reasons.append(result["note"])
    if reasons:
        raise AssertionError(
            "\n".join(map(_line, [*reasons, *_lowest(items, verdicts)]))
        )
    return result


def assert_agreement(
    rows: str | Path,
    *,
    at_least: str,
    judge: str | Path | None = None,
    human: str | None = None,
    unseen: bool = True,
    more: Sequence[str] = (),
    record: Record | None = None,
) -> dict[str, Any]:
    """Assert a judge's agreement with people: `assert_agreement("labels.csv", at_least="spearman>=0.4")`.

    The bar is held against the lower end of the interval, as by `judgesmith check --fail-under`. Calls are cached on
    disk.

    Args:
        rows: a file with human ratings, an output of `judgesmith score`, or bench/NAME.
        at_least: [LEVEL.]COEFFICIENT>=NUMBER.
        judge: a saved judge, which judges the rows now, or a column of scores; found if not given.
        human: column of human ratings; by default those that the judge was compiled from, else found.
        unseen: leave out the rows that the judge was compiled from, on which agreement says little.
        more: further arguments of `judgesmith check`.
        record: called with names and values, as pytest's `record_property`.

    Returns:
        The object that `judgesmith check --json` prints.

    Raises:
        AssertionError: If the bar is missed, with the gate's reasons.
        JudgesmithError: If `judgesmith check` would fail.
    """
    __tracebackhide__ = True
    import contextlib
    import io
    import json

    from judgesmith.cli.main import app

    options = [("--judge", judge), ("--human", human), ("--fail-under", at_least)]
    words = [
        word
        for name, value in options
        if value is not None
        for word in (name, str(value))
    ]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        words += ["--unseen"] if unseen and "--unseen" not in more else []
        app(["check", str(rows), "--json", *words, *more], standalone_mode=False)
    data: dict[str, Any] = json.loads(output.getvalue())
    _record(data["judges"], record)
    if not data["gate"]["passed"]:
        raise AssertionError("\n".join(map(_line, data["gate"]["reasons"])))
    return data


def _items(outputs: Any, judge: Judge) -> Iterator[Item]:
    """Yield texts or rows as items; rows by the columns that the judge was compiled from, where they have these."""
    from judgesmith.datasets.formats import open_table
    from judgesmith.datasets.loading import iter_rows
    from judgesmith.datasets.roles import unusual
    from judgesmith.datasets.tables import is_table, table_records
    from judgesmith.rows import rows_of
    from judgesmith.signatures.values import Item

    if isinstance(outputs, str | Path):
        names: Any = next(open_table(Path(outputs)).records, {})
        rows: Any = Path(outputs)
    else:
        rows = outputs if is_table(outputs) else list(outputs)
        if is_table(rows) or all(isinstance(r, Mapping) for r in rows):
            names = next(table_records(rows), {})
        else:
            names = {}
    held = judge.contract
    roles = {} if held is None else unusual(held.texts_in(names))
    if roles or isinstance(rows, Path):
        yield from (Item.of(row) for row, _ in iter_rows(rows, columns=roles))
    else:
        yield from (
            Item(row) if isinstance(row, str) else Item.of(row) for row in rows_of(rows)
        )


def _statistic(
    name: str, judged: Sequence[tuple[Item, Verdict]], scale: Scale, seed: int
) -> dict[str, float]:
    """Return value, low and high; NaN if there are none."""
    if name == "passed" and any(verdict.passed is None for _, verdict in judged):
        raise OptionError(
            "passed: this judge was not compiled from pass and fail; give mean>=… or min>=…"
        )
    values = [float(v.passed or 0) if name == "passed" else v.score for _, v in judged]
    if not values:
        return {"value": math.nan, "low": math.nan, "high": math.nan}
    if name == "min":
        return {"value": min(values), "low": math.nan, "high": math.nan}
    groups = [item.group or item.source or n for n, (item, _) in enumerate(judged)]
    low, high = _interval(values, groups, None if name == "passed" else scale, seed)
    return {"value": math.fsum(values) / len(values), "low": low, "high": high}


def _interval(
    values: Sequence[float], groups: Iterable[object], scale: Scale | None, seed: int
) -> tuple[float, float]:
    """Return the interval of a mean on a scale, or of a share, over whole groups; NaN for a single group."""
    import numpy as np

    from judgesmith.agreement.resampling import Range, estimates_of, sums_by

    _, codes = np.unique([repr(group) for group in groups], return_inverse=True)
    sums = sums_by(codes, np.array(values), np.ones(len(values)))

    def mean(counts: Any) -> Any:
        total = counts @ sums
        return total[:, :1] / total[:, 1:]

    within = Range(scale.low, scale.high) if scale else Range(0.0, 1.0, (len(values),))
    (estimate,) = estimates_of(
        mean, len(sums), [within], rounds=ROUNDS, confidence=CONFIDENCE, seed=seed
    )
    return estimate.low, estimate.high


def _below(bar: Bar, statistics: Mapping[str, Any]) -> Iterator[str]:
    statistic = statistics[bar.statistic]
    value = statistic["low" if bar.low else "value"]
    n = statistics["rows"] - statistics["failed"]
    shown = f"{bar.statistic} {statistic['value']:.3f}"
    shown += (
        ""
        if bar.statistic == "min"
        else f" [{statistic['low']:.3f}, {statistic['high']:.3f}]"
    )
    if math.isnan(value):
        yield f"{bar.text}: {shown} of {n} rows" + (
            ": there is no interval over one document" if n else ""
        )
    elif value < bar.least:
        yield f"{bar.text}: {shown} of {n} rows"


def _lowest(items: Sequence[Item], verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the rows to look at first: those without a score, then the lowest."""
    order = sorted(
        range(len(items)),
        key=lambda n: -math.inf if verdicts[n].failure else verdicts[n].score,
    )
    for n in itertools.islice(order, SHOWN):
        verdict = verdicts[n]
        reason = verdict.failure or verdict.explanation
        yield f"  row {n + 1}: {'no score' if verdict.failure else f'{verdict.score:g}'}: {items[n].output} ({reason})"


def _line(words: str) -> str:
    """Return a text of unknown origin on one line of bounded length."""
    from judgesmith.running.plain import one_line

    line = words[: len(words) - len(words.lstrip())] + one_line(words)
    return line if len(line) <= 4 * WIDTH else line[: 4 * WIDTH] + " …"


def _record(statistics: Mapping[str, Any], record: Record | None) -> None:
    """Record the values in nested mappings, by names with dots."""
    if record is None:
        return
    for name, value in statistics.items():
        if isinstance(value, Mapping):
            _record({f"{name}.{part}": inner for part, inner in value.items()}, record)
        elif value is not None:
            record(f"judgesmith.{name}", value)
