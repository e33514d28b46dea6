"""Gates for tests: `assert_judged` on what a judge says of outputs, `assert_agreement` on how far it agrees with
people.

Both are fixtures of judgesmith's pytest plug-in, too, which record what they found for JUnit (`--junitxml`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError

if TYPE_CHECKING:
    from ..programs.judge import Judge
    from ..programs.models.lm import Connection
    from ..signatures.values import Item, Scale, Verdict

STATISTICS = ("mean", "passed", "min")
ROUNDS, CONFIDENCE = 2000, 0.95
#: Rows that a failed assertion shows, and characters of each.
SHOWN, WIDTH = 3, 100

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
        """Raises OptionError."""
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
    at_least: str | Sequence[str],
    lm: Any = None,
    connection: Connection | None = None,
    max_failed: int = 0,
    seed: int = 0,
    record: Record | None = None,
) -> dict[str, Any]:
    """Assert what a saved judge says of outputs: `assert_judged(outputs, judge="judge.json", at_least="mean>=3.5")`.

    outputs: texts; rows as `Judge.score_many` takes them (dicts with source, output …, a DataFrame); or a file of rows.
    at_least: one bar or several. `mean>=3.5` is of the scores on the judge's scale, `passed>=0.9` of the share that a
    judge of pass and fail lets pass, `min>=2` of the lowest score; `mean.low` and `passed.low` stand for the lower end
    of a 95 % bootstrap interval over documents (rows of one group, or of one source).
    max_failed: rows that may have no score; they are in no mean. record: called with names and values, as pytest's
    `record_property`. Calls are kept on disk: the same outputs cost no second call.

    Returns: {judge, model, rows, failed, calls, cached_calls, and value, low, high of each statistic}.
    Raises: AssertionError, with the reasons and the lowest rows; OptionError for no outputs or a bar that is none;
    LabelsError, ArtifactError and ModelError as reading the rows and opening the judge do.
    """
    from ..programs import artifact, loading
    from ..programs.judge import Judge

    bars = [
        Bar.parse(bar)
        for bar in ([at_least] if isinstance(at_least, str) else at_least)
    ]
    made = (
        judge
        if isinstance(judge, Judge)
        else loading.load(judge, lm=lm, connection=connection)
    )
    items = list(_items(outputs, made))
    if not items or not bars:
        raise OptionError(
            "there is nothing to judge: no outputs"
            if not items
            else "give at_least=…, such as mean>=3.5"
        )
    before = made.lm.meter.usage
    verdicts = list(made.score_many(items))
    spent = made.lm.meter.usage - before
    present = [
        (item, verdict)
        for item, verdict in zip(items, verdicts, strict=True)
        if verdict.failure is None
    ]
    result: dict[str, Any] = {
        "judge": artifact.fingerprint(made),
        "model": made.lm.name,
        "rows": len(items),
        "failed": len(items) - len(present),
        "calls": spent.calls,
        "cached_calls": spent.cached,
    }
    for name in dict.fromkeys(bar.statistic for bar in bars):
        result[name] = _statistic(name, present, made.scale, seed)
    _record(result, record)
    reasons = [
        f"{result['failed']} of {len(items)} rows have no score (at most {max_failed} may), the first: {v.failure}"
        for v in [v for v in verdicts if v.failure is not None][:1]
        if result["failed"] > max_failed
    ]
    reasons += [reason for bar in bars for reason in _below(bar, result)]
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
    more: Sequence[str] = (),
    record: Record | None = None,
) -> dict[str, Any]:
    """Assert how far a judge agrees with people, by the lower end of the interval, as `judgesmith evaluate
    --fail-under` does: `assert_agreement("labels.csv", judge="judge.json", at_least="spearman>=0.4")`.

    rows: a file with human ratings, or an output of `judgesmith score`, or bench/NAME. at_least:
    [LEVEL.]COEFFICIENT>=NUMBER. judge: a saved judge, which judges the rows now, or a column of scores; found where not
    given. human: human ratings; found where not given. more: further words of that command. Calls are kept on disk.

    Returns: what `judgesmith evaluate --json` prints. Raises: AssertionError with the gate's reasons; whatever the
    command says is wrong as one of `errors`.
    """
    import contextlib
    import io
    import json

    from ..cli.main import app

    options = [("--judge", judge), ("--human", human), ("--fail-under", at_least)]
    words = [
        word
        for name, value in options
        if value is not None
        for word in (name, str(value))
    ]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        app(["evaluate", str(rows), "--json", *words, *more], standalone_mode=False)
    data: dict[str, Any] = json.loads(output.getvalue())
    _record(data["judges"], record)
    if not data["gate"]["passed"]:
        raise AssertionError("\n".join(map(_line, data["gate"]["reasons"])))
    return data


def _items(outputs: Any, judge: Judge) -> Iterator[Item]:
    """Texts or rows as items; rows by the columns that the judge was compiled from, where they have these."""
    from ..datasets.formats import is_table, open_table, table_records
    from ..datasets.loading import iter_rows
    from ..datasets.records import ROLES, columns_of, unusual
    from ..rows import rows_of
    from ..signatures.values import Item

    if isinstance(outputs, str | Path):
        names: Any = next(open_table(Path(outputs)).records, {})
        rows: Any = Path(outputs)
    else:
        rows = outputs if is_table(outputs) else list(outputs)
        names = (
            next(table_records(rows), {})
            if is_table(rows) or all(isinstance(r, Mapping) for r in rows)
            else {}
        )
    roles = unusual(
        {
            role: name
            for role, name in columns_of(judge.provenance).items()
            if name in names and role in ROLES
        }
    )
    if roles or isinstance(rows, Path):
        yield from (Item.of(row) for row, _ in iter_rows(rows, columns=roles))
    else:
        yield from (
            Item(row) if isinstance(row, str) else Item.of(row) for row in rows_of(rows)
        )


def _statistic(
    name: str, judged: Sequence[tuple[Item, Verdict]], scale: Scale, seed: int
) -> dict[str, float]:
    """value, low and high; NaN where there are none."""
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
    """Of the mean on a scale, or of a share, by drawing whole groups again; NaN for a single group."""
    import numpy as np

    from ..agreement.resampling import Range, estimates_of, sums_by

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
    """The rows to look at first: those without a score, then the lowest."""
    order = sorted(
        range(len(items)),
        key=lambda n: -math.inf if verdicts[n].failure else verdicts[n].score,
    )
    for n in itertools.islice(order, SHOWN):
        verdict = verdicts[n]
        reason = verdict.failure or verdict.explanation
        yield f"  row {n + 1}: {'no score' if verdict.failure else f'{verdict.score:g}'}: {items[n].output} ({reason})"


def _line(words: str) -> str:
    """A text of unknown origin on one line of bounded length."""
    from ..running.plain import one_line

    line = words[: len(words) - len(words.lstrip())] + one_line(words)
    return line if len(line) <= 4 * WIDTH else line[: 4 * WIDTH] + " …"


def _record(statistics: Mapping[str, Any], record: Record | None) -> None:
    """What stands in mappings in mappings, by names with dots."""
    if record is None:
        return
    for name, value in statistics.items():
        if isinstance(value, Mapping):
            _record({f"{name}.{part}": inner for part, inner in value.items()}, record)
        elif value is not None:
            record(f"judgesmith.{name}", value)
