"""May this judge be trusted? One sentence in the words people use, what follows from it, and the figures by name.

Every sentence is true as it stands: it says how many answers it rests on and its interval, and advises something only
where the interval lies on one side of the bar. Where raters do not agree, where a judge is a constant, or where labels
are too few, that is said instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesmith.agreement.coefficients import title_of
from judgesmith.agreement.correlation import Vector
from judgesmith.agreement.meta.evaluation import MetaEvaluation, rows_of
from judgesmith.agreement.meta.inputs import AVERAGE
from judgesmith.agreement.resampling import Estimate
from judgesmith.evaluating.decided import PREFERRED, Decided
from judgesmith.evaluating.pivot import (
    disagreement,
    distinct,
    headline,
    headline_place,
)
from judgesmith.evaluating.sources import Judged
from judgesmith.tables import counted, p_in_words, with_interval

#: Judges and aspects with a sentence of their own; of more, the tables tell.
MOST = 4
#: The share of rated rows without a verdict up to which a judge may decide alone.
LACKING = 0.05
#: More labels than this many times those at hand are not worth a number.
WORTH_SAYING = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What is found of a judge, and what follows."""

    judge: str
    aspect: str
    found: str
    """One sentence: how many answers, of how many, with the interval."""
    advice: str
    """What follows; "" where nothing does."""
    may: bool | None
    """True: it may decide alone; False: it may not; None: nothing here says so."""
    facts: tuple[str, ...] = ()
    """The figures by name."""

    def __str__(self) -> str:
        return f"{self.found} {self.advice}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "judge": self.judge,
            "aspect": self.aspect,
            "found": self.found,
            "advice": self.advice,
            "may_decide": self.may,
            "facts": list(self.facts),
        }


def answers(
    data: Judged, result: MetaEvaluation, decided: Sequence[Decided], bar: float
) -> list[Answer]:
    """Return an answer for each judge and aspect, the headline's alone where there are too many.

    bar: the share of fails that a judge has to find, and of passes to pass, to decide alone.
    """
    by_place = {(one.name, one.aspect): one for one in decided}
    pairs = [
        (judge, aspect)
        for aspect in data.human
        for judge, by_aspect in data.judges.items()
        if aspect in by_aspect
    ]
    if len(pairs) > MOST:
        return [_of_scores(data, result)]
    found = [
        _of_decisions(data, result, by_place[pair], bar)
        for pair in pairs
        if pair in by_place
    ]
    if len(pairs) > 1 or not found:
        found.append(_of_scores(data, result))
    return found


def _of_scores(data: Judged, result: MetaEvaluation) -> Answer:
    """Return the answer of judges that score: of one in pairs of answers, of several the tables' headline."""
    rows = rows_of(result.agreement)
    judges = distinct(rows, "judge")
    aspects = distinct(rows, "aspect")
    told = headline(result)
    if len(judges) > 1 or len(aspects) > 1:
        return Answer("", AVERAGE, told, _unfit(data), None)
    judge = judges[0]
    aspect = aspects[0]
    if apart := disagreement(result, [aspect]):
        return Answer(judge, aspect, apart, "", None)
    level, name = headline_place(result, rows)
    (row,) = (r for r in rows if (r["level"], r["coefficient"]) == (level, name))
    scores = data.judges[judge][aspect]
    given = scores[~np.isnan(scores)]
    if len(given) and np.ptp(given) == 0:
        constant = f"{judge} gave all {len(given)} answers {given[0]:g}: it tells nothing apart."
        return Answer(judge, aspect, constant, "Do not let it decide.", False)
    ordered = _in_pairs(data, result, judge, aspect)
    by_level = tuple(_by_level(result, name))
    facts = (*by_level, told, *_off(result, data, aspect)) if ordered else by_level
    if data.unequal:
        return Answer(judge, aspect, ordered or told, _unequal(data), None, facts)
    advice = _unfit(data) or _of_order(row)
    may = False if row["high"] < 0 else None
    return Answer(judge, aspect, ordered or told, advice, may, facts)


def _by_level(result: MetaEvaluation, name: str) -> Iterator[str]:
    """Yield the agreement within systems and documents beside that over all rows, where systems are named.

    A judge that knows systems alone agrees over all rows, too.
    """
    levels = {
        row["level"]: row
        for row in rows_of(result.agreement)
        if row["coefficient"] == name and not math.isnan(row["value"])
    }
    if "within" not in levels:
        return
    told = []
    for level, where in (
        ("within", "among the rows of one system"),
        ("sample", "of one document"),
        ("pooled", "over all rows"),
    ):
        if level in levels:
            row = levels[level]
            value = with_interval(row["value"], row["low"], row["high"])
            told.append(f"{where} {value}")
    yield f"{title_of(name)}: {', '.join(told)}."


def _of_order(row: Mapping[str, Any]) -> str:
    """Return what follows from a correlation with its interval; "" where the headline says it."""
    low = row["low"]
    high = row["high"]
    if math.isnan(low):
        return "There is no interval, so that nothing follows."
    if high < 0:
        return "It runs against people: do not let it decide."
    if low > 0:
        return "It may sort answers like these; where a single score decides, look at its error below."
    value = abs(row["value"])
    times = ((high - low) / 2 / value) ** 2 if value > 0 else math.inf
    sentence = (
        f"{counted(row['n'], 'label')} are too few to tell it from a judge that guesses"
    )
    if times > WORTH_SAYING:
        return f"{sentence}; if it does better, it is by little."
    more = max(1, math.ceil(row["n"] * (times - 1)))
    return f"{sentence}; about {more} more would tell, if it is as good as it looks."


def _in_pairs(data: Judged, result: MetaEvaluation, judge: str, aspect: str) -> str:
    """Return how often the judge puts the better of two answers first; "" if Kendall's tau over all rows is not there.

    Of pairs that people rated differently; ties of the judge count half. That share is (1 + d) / 2 by Somers' d, which
    is tau-b times the root of pairs that the judge, over those that people, do not tie (Somers 1962). The interval is
    that of tau-b, so scaled.
    """
    rows = rows_of(result.agreement)
    tau = next(
        (r for r in rows if (r["level"], r["coefficient"]) == ("pooled", "kendall")),
        None,
    )
    scores = data.judges[judge][aspect]
    human = data.human[aspect]
    both = ~np.isnan(scores) & ~np.isnan(human)
    if tau is None or math.isnan(tau["value"]):
        return ""
    ours = _untied(scores[both])
    theirs = _untied(human[both])
    shares = [
        (1 + min(max(tau[end] * math.sqrt(ours / theirs), -1.0), 1.0)) / 2
        for end in ("value", "low", "high")
    ]
    return (
        f"Of two answers that people rated differently, {judge} scores the better one higher in "
        f"{_share(Estimate(*shares))} of cases ({counted(int(both.sum()), 'label')})."
    )


def _untied(values: Vector) -> int:
    """Return the pairs of different values."""
    counts = np.unique(values, return_counts=True)[1]
    return int(len(values) * (len(values) - 1) - (counts * (counts - 1)).sum()) // 2


def _off(result: MetaEvaluation, data: Judged, aspect: str) -> Iterator[str]:
    """Yield how far a single score is off, of a judge on people's scale."""
    for row in rows_of(result.scale):
        error = with_interval(row["rmse"], row["rmse_low"], row["rmse_high"])
        low, high = data.scales.get(aspect, (math.nan, math.nan))
        if not math.isnan(row["rmse"]) and not math.isnan(low):
            yield f"A single score is off by {error} points on a scale of {low:g} to {high:g} (root mean square)."


def _of_decisions(
    data: Judged, result: MetaEvaluation, one: Decided, bar: float
) -> Answer:
    """Return the answer of a judge that decides."""
    if apart := disagreement(result, [one.aspect]):
        return Answer(one.name, one.aspect, apart, "", None)
    if one.names == PREFERRED:
        found = _preferred(one, bar)
    elif len(one.names) == 2:
        found = _two(one, bar)
    else:
        found = _several(one, bar)
    if data.unequal:
        return Answer(
            one.name, one.aspect, found.found, _unequal(data), None, found.facts
        )
    if found.may and (unfit := _unfit(data) or _lacking(one)):
        return Answer(one.name, one.aspect, found.found, unfit, None, found.facts)
    return found


def _unequal(data: Judged) -> str:
    """Return that rows were not drawn alike."""
    return (
        f"The labelled rows were drawn with unequal probabilities ({data.unequal!r}): these figures are of them, and "
        "not of all rows."
    )


def _unfit(data: Judged) -> str:
    """Return why agreement on these rows says little of others; "" if nothing is known."""
    if data.seen:
        return (
            f"{counted(len(data.seen), 'row')} of these the judge was compiled from, which says little of others: "
            "leave them out with --unseen."
        )
    chosen = sum(row.suggested for row in data.rows)
    if chosen:
        return f"{counted(chosen, 'row')} of these `suggest` chose, which says little of rows drawn at random."
    return ""


def _lacking(one: Decided) -> str:
    """Return that a judge gave no verdict on many rated rows; "" if it gave enough."""
    rated = ~np.isnan(one.people)
    lacking = int((rated & np.isnan(one.judge)).sum())
    if lacking <= LACKING * int(rated.sum()):
        return ""
    return (
        f"{one.name} gave no verdict on {lacking} of {int(rated.sum())} rated answers, of which these figures say "
        "nothing."
    )


# Pass and fail --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate of a judge, and the labels that it rests on."""

    name: str
    share: Estimate
    labels: int

    def more(self, bar: float) -> float:
        """Return how many times as many labels would put the bar outside the interval; inf at the bar itself."""
        away = abs(self.share.value - bar)
        half = (self.share.high - self.share.low) / 2
        return (half / away) ** 2 if away > 0 else math.inf


def _two(one: Decided, bar: float) -> Answer:
    """Return the answer of a judge of pass and fail."""
    fail, passed = one.names
    (found, missed, _), (wrong, right, _) = one.counts()
    failed_by = "people failed" if fail == "fail" else f"people called {fail!r}"
    passed_by = "passed" if passed == "pass" else f"called {passed!r}"
    failing = "failed" if fail == "fail" else f"called {fail!r}"
    facts = tuple(_facts(one))
    labels = found + missed + wrong + right

    def answer(sentence: str, advice: str, may: bool | None) -> Answer:
        return Answer(one.name, one.aspect, sentence, advice, may, facts)

    if found + missed == 0:
        return answer(
            f"Of {labels} answers, {failed_by} none: nothing here says whether {one.name} finds what is wrong.",
            f"Label answers that {one.name} {failing}, and more of the others.",
            None,
        )
    if wrong + right == 0:
        return answer(
            f"Of {labels} answers, people {passed_by} none: nothing here says whether {one.name} lets good ones pass.",
            f"Label answers that {one.name} {passed_by}, and more of the others.",
            None,
        )
    always = {0: failing, labels: passed_by}.get(missed + right)
    if always is not None:
        return answer(
            f"{one.name} {always} all {labels} answers, {missed or wrong} of them where people did "
            "not: it tells nothing apart.",
            "Do not let it decide.",
            False,
        )
    recall = one.figures["recall"]
    ends = Estimate(1 - recall.value, 1 - recall.high, 1 - recall.low)
    failed = counted(found + missed, "answer")
    sentence = f"Of {failed} that {failed_by}, {one.name} {passed_by} {missed}: {_share(ends)}."
    rates = [
        _Rate("fails found", recall, found + missed),
        _Rate("passes passed", one.figures["tpr"], wrong + right),
    ]
    return answer(sentence, *_follows(rates, bar, labels, "of fails and of passes"))


def _follows(
    rates: Sequence[_Rate], bar: float, labels: int, wrong: str
) -> tuple[str, bool | None]:
    """Return what follows from rates that all have to reach a bar: the advice, and whether the judge may decide.

    wrong: what the rest is of, in words.
    """
    if any(math.isnan(rate.share.low) for rate in rates):
        return "There is no interval, so that nothing follows.", None
    low = [rate for rate in rates if rate.share.high < bar]
    if low:
        return "Do not let it decide alone.", False
    open_ = [rate for rate in rates if rate.share.low < bar]
    if not open_:
        return (
            f"It may decide alone on answers like these, if {100 * (1 - bar):.0f}% {wrong} may be wrong.",
            True,
        )
    below = [rate.more(bar) for rate in open_ if rate.share.value < bar]
    times = min(below) if below else max(rate.more(bar) for rate in open_)
    sentence = (
        f"{counted(labels, 'label')} are too few to say whether it may decide alone"
    )
    if times > WORTH_SAYING:
        return f"{sentence}; it is near the bar of {100 * bar:.0f}%.", None
    more = max(1, math.ceil(labels * (times - 1)))
    return f"{sentence}; about {more} more would tell.", None


def _facts(one: Decided) -> Iterator[str]:
    """Yield the figures of a judge's decisions by name."""
    figures = one.figures
    if len(one.names) == 2:
        yield (
            f"It finds {_share(figures['recall'])} of fails (TNR) and passes {_share(figures['tpr'])} of passes (TPR)."
        )
    yield f"Cohen's kappa {one.in_words()['kappa']}."
    yield (
        f"It agrees with people on {_share(figures['agreement'])} of answers; always saying {one.commonest!r} would on "
        f"{_share(Estimate(figures['constant'].value))}."
    )
    if "between" in figures:
        yield (
            f"The ceiling: two people agree on {_share(figures['between'])}, kappa {one.in_words()['between_kappa']}."
        )


# Categories and preferences -------------------------------------------------------------------------------------------


def _several(one: Decided, bar: float) -> Answer:
    """Return the answer of a judge of more than two categories."""
    counts = np.array(one.counts())[:, :-1]
    labels = int(counts.sum())
    equal = int(np.trace(counts))
    facts = tuple(_facts(one))
    given = int((counts.sum(axis=0) > 0).sum())
    agreement = one.figures["agreement"]
    sentence = f"Of {counted(labels, 'answer')}, {one.name} put {equal} in people's category: {_share(agreement)}."
    if given == 1:
        name = one.names[int(counts.sum(axis=0).argmax())]
        sentence = f"{one.name} called all {labels} answers {name!r}, {equal} as people did: it tells nothing apart."
        return Answer(
            one.name, one.aspect, sentence, "Do not let it decide.", False, facts
        )
    right, wrong, p = one.against_constant()
    if not (right > wrong and p < 0.05):
        always = _share(Estimate(one.figures["constant"].value))
        advice = (
            f"{counted(labels, 'label')} cannot tell it from always saying {one.commonest!r} ({always}; "
            f"{p_in_words(p)})."
        )
        return Answer(one.name, one.aspect, sentence, advice, None, facts)
    advice, may = _follows(
        [_Rate("agreement", agreement, labels)], bar, labels, "of them"
    )
    return Answer(one.name, one.aspect, sentence, advice, may, facts)


def _preferred(one: Decided, bar: float) -> Answer:
    """Return the answer of a judge of two outputs."""
    counts = np.array(one.counts())
    apart = counts[[0, 2]]
    labels = int(apart[:, :-1].sum())
    same = int(apart[0, 0] + apart[1, 2])
    ties = int(apart[:, 1].sum())
    if not labels:
        sentence = "People preferred neither output of any pair: nothing here says how good a judge is."
        return Answer(one.name, one.aspect, sentence, "", None)
    share = one.figures["same"]
    tied = f" (and called {ties} a tie)" if ties else ""
    sentence = (
        f"Of {counted(labels, 'comparison')} that people decided, {one.name} chose the same side in {same}{tied}: "
        f"{_share(share)}."
    )
    facts = tuple(_facts(one))
    if share.high < 0.5:
        advice = "It runs against people: do not let it decide."
        may = False
    elif not share.low > 0.5:
        advice = "That cannot be told from tossing a coin."
        may = None
    else:
        advice, may = _follows(
            [_Rate("same side", share, labels)], bar, labels, "of them"
        )
    return Answer(one.name, one.aspect, sentence, advice, may, facts)


# Words ----------------------------------------------------------------------------------------------------------------


def _share(e: Estimate) -> str:
    """Return a share as `52% [33, 71]`, a dash where there is none."""
    if math.isnan(e.value):
        return "–"
    ends = "" if math.isnan(e.low) else f" [{100 * e.low:.0f}, {100 * e.high:.0f}]"
    return f"{100 * e.value:.0f}%{ends}"
