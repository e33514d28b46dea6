"""Tables and lines that commands print of plans, compiled judges and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from judgesmith.running.console import duration, number, out, print_json
from judgesmith.tables import Table, counted, shortened

if TYPE_CHECKING:  # DSPy takes a second to load, and many commands do without it
    from judgesmith.optimizers.report import CompileReport, Plan
    from judgesmith.programs.judge import Judge
    from judgesmith.signatures.values import Usage, Verdict


def show_dry_run(plan: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the estimated cost of a command, by name."""
    if as_json:
        print_json({"dry_run": True} | dict(plan))
    else:
        out.print(
            "\n".join(f"{name}: {value}" for name, value in plan.items()), markup=False
        )


def show_plan(plan: Plan, model: str) -> None:
    """Print the estimated cost of a compile run."""
    table = Table(["", ""], f"Estimated cost with {model} (upper bound)", header=False)
    split = f"{plan.train} to learn from, {plan.heldout} held out"
    if plan.folds:
        times = f"{plan.runs} times " if plan.runs > 1 else ""
        split = f"{times}{plan.folds} folds, cross-validated"
    table.add("rows", f"{plan.rows} ({split})")
    table.add("maximised", f"{plan.objective.label}: {plan.objective.about}")
    calls = f"{plan.calls:,}"
    if plan.row_calls > 1:
        calls += f" ({plan.row_calls} a row)"
    table.add("calls", calls)
    table.add("prompt tokens", f"about {plan.prompt_tokens:,}")
    table.add("answer tokens", f"about {plan.completion_tokens:,}")
    seconds = plan.seconds
    time = "unknown" if seconds is None else f"about {duration(seconds)}"
    if plan.batches is not None:
        time = f"up to {plan.batches} batches one after another, a day each at most"
        if plan.batches == 1:
            time = "one batch, a day at most"
    table.add("time", time)
    unknown = (
        "price unknown; whether there is a model of this name, the first call will show"
    )
    table.add("cost", unknown if plan.cost is None else f"about ${plan.cost:.2f}")
    table.show(out)
    for note in plan.notes:
        out.print(f"note: {escape(note)}")


def show_report(
    report: CompileReport,
    judge: Judge,
    paid: float | None,
    *,
    shown: Sequence[str] = (),
) -> None:
    """Print the table that ends a compile run: agreement on held-out rows.

    Notes in `shown` are not printed again. paid: dollars for calls that were sent; None where a price is unknown.
    """
    from judgesmith.optimizers.report import tested

    if decided := told_decisions(report.decisions, report.heldout.by.name):
        out.print(f"Decisions: {decided}.", markup=False)
    report.table().show(out)

    value, low, high, p = report.difference
    kept = report.selected["candidate"] == "zero-shot" and not any(
        note.endswith("(take)") for note in report.notes
    )
    if kept and len(report.candidates) == 1 and not value:
        verdict = "Nothing was searched: this is the model alone."
    elif kept:
        verdict = "The search kept the model alone: nothing tried did clearly better on the training rows."
    elif p == p and p < 0.05 and value > 0:
        verdict = "The compiled judge agrees better with people than the model alone."
    elif p == p and p < 0.05:
        verdict = "The compiled judge agrees WORSE with people than the model alone: the search was misled."
    elif value > 0:
        verdict = "The compiled judge came out better, but so few rows cannot tell it from chance."
    else:
        verdict = "The compiled judge is not better than the model alone on these rows."
    out.print(
        f"Difference {value:+.2f} {tested(low, high, p)}. {verdict}", markup=False
    )
    out.print(
        f"Chosen: {_chosen(report.selected)} ({training_q(report.selected, len(report.candidates))})."
    )
    out.print(
        f"Mean error on the scale {judge.scale}: {number(report.calibrated_error)} calibrated, "
        f"{number(report.uncalibrated_error)} before."
    )
    if (decision := judge.outcome.decision) is not None:
        out.print(f"Decided by the raw score: {decision}.", markup=False)
    if (way := report.way) and way["value"] is not None:
        if way["low"] is not None:
            ends = f"[{way['low']:.0%}, {way['high']:.0%}]"
        else:
            ends = "(no interval)"
        out.print(
            f"{way['value']:.0%} {ends} of the way from guessing to one human rater.",
            markup=False,
        )
    if sure := report.sureness:
        out.print(_interval_width(sure, judge))
    if report.drawn_from:
        out.print(
            "Criteria, and the comments of people that they come from, as the model says:"
        )
    for name, comments in report.drawn_from.items():
        out.print(f"  {shortened(name)}: {comments_in_words(comments)}", markup=False)
    show_usage(report.usage, report.seconds, paid)
    show_notes(report.notes, shown)


def candidate_name(candidate: Mapping[str, Any]) -> str:
    """Return what a candidate of a search is called."""
    from judgesmith.optimizers.search.base import candidate_in_words

    return candidate_in_words(str(candidate.get("candidate")))


def _chosen(selected: Mapping[str, Any]) -> str:
    """Return the chosen candidate, and the examples in its prompt."""
    name = candidate_name(selected)
    demos = selected["demos"]
    return (
        f"{name}, {counted(demos, 'example') if demos else 'no examples'} in the prompt"
    )


def show_usage(usage: Usage, seconds: float, paid: float | None) -> None:
    """Show the calls, tokens, dollars and seconds of a run in one line."""
    cost = "price unknown" if paid is None else f"${paid:.4g}"
    out.print(
        f"{usage.calls:,} calls ({usage.cached:,} more came from the disk), {usage.prompt_tokens:,} + "
        f"{usage.completion_tokens:,} tokens, {cost}, {duration(seconds)}.",
        highlight=False,
    )


def show_notes(notes: Iterable[str], shown: Collection[str] = ()) -> None:
    """Show the notes that are not in `shown`, warnings in red."""
    for note in notes:
        if note not in shown:
            style = "red" if "WARNING" in note else "yellow"
            out.print(f"note: {note}", style=style, markup=False)


def comments_in_words(comments: Sequence[Mapping[str, str]]) -> str:
    """Return the rows that comments are on, with the words of three."""
    shown = [
        f"{shortened(one['row'])} “{shortened(one['text'], 80)}”"
        for one in comments[:3]
    ]
    more = f" and {len(comments) - 3} more" if len(comments) > 3 else ""
    return f"from row {', row '.join(shown)}{more}" if shown else "from no comment"


#: What a decision's measures are called.
_MEASURES = {
    "tnr": "TNR",
    "tpr": "TPR",
    "kappa": "Cohen's kappa",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "weighted_kappa": "quadratic-weighted kappa",
    "accuracy": "accuracy",
    "pairwise_accuracy": "pairwise accuracy",
}


def told_decisions(figures: Any, objective: str = "") -> str:
    """Return the agreement of decisions with people's on the held-out rows; "" for a judge that makes none.

    objective: what the table shows, which is left out.
    """
    from judgesmith.optimizers.measuring import MEASURED

    if not isinstance(figures, Mapping):  # from a file, perhaps
        return ""
    measures = []
    for key, name in _MEASURES.items():
        of = figures.get(key)
        if MEASURED.get(key) != objective and isinstance(of, Mapping):
            ends = [of.get(end) for end in ("value", "low", "high")]
            value, low, high = (
                number(end if isinstance(end, float | int) else None) for end in ends
            )
            measures.append(f"{name} {value} [{low}, {high}]")
    rows = f" ({figures.get('n')} held-out rows)"
    return ", ".join(measures) + rows if measures else ""


def _interval_width(sure: Mapping[str, Any], judge: Judge) -> str:
    if sure["width"] is None:
        return "How sure a score is, these rows cannot tell."
    extent = judge.scale.high - judge.scale.low
    return (
        f"A score's {sure['coverage']:.0%} interval is {number(sure['width'])} wide on average, "
        f"{sure['width'] / extent:.0%} of the scale (from {sure['rows']} rows of {sure['documents']} documents)."
    )


def objective_label(name: Any) -> str:
    """Return an objective's label; an unknown name from a file stays as it is."""
    from judgesmith.agreement.objectives import objectives

    if isinstance(name, str) and name in objectives:
        return objectives.get(name).label
    return "Q"


def training_q(selected: Mapping[str, Any], candidates: int) -> str:
    """Return the chosen candidate's agreement on the rows that chose it, and its shrunken value.

    selected: `selected` of a report.
    """
    # From a file, perhaps, which may hold anything; older ones have Q alone.
    result = [
        selected.get(name, selected.get(old))
        for name, old in (("value", "q"), ("corrected", "q_corrected"))
    ]
    naive, after = (v if isinstance(v, float) else None for v in result)
    by = objective_label(selected.get("objective"))
    text = f"leave-one-out {by} {number(naive)}"
    if candidates < 2 or after is None:
        return text
    return f"{text}; {number(after)} after correction for having been chosen from {candidates} candidates"


def show_verdict(title: str, output: str, verdict: Verdict, scale: str) -> None:
    """Print a verdict with its output."""
    score = "no score" if verdict.failure else number(verdict.score)
    decided = f", {escape(verdict.category)}" if verdict.category is not None else ""
    out.print(f"\n[bold]{escape(title)}[/bold]  {score} on {scale}{decided}")
    out.print(f"  {shortened(output, 240)}", markup=False, style="dim")
    if verdict.failure:
        out.print(f"  failed: {verdict.failure}", markup=False, style="red")
    if verdict.suspicious:
        out.print(f"  suspicious: {verdict.suspicious}", markup=False, style="yellow")
    if verdict.explanation:
        out.print(f"  {verdict.explanation}", markup=False)
    for name, criterion in verdict.criteria.items():
        out.print(
            f"  - {name}: {number(criterion.score, 0)}/100 {criterion.explanation}",
            markup=False,
        )
