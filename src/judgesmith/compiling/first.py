"""The first step with a model that costs money: the model alone is measured before a search is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import typer

from judgesmith.compiling.run import CompileRun, Setup
from judgesmith.optimizers.registry import optimizers
from judgesmith.optimizers.report import AspectsReport, CompileReport, Plan
from judgesmith.optimizers.search.few_shot import NoSearch
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.models.provider import provider_of
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.tables import interval

#: The model alone, asked once a row: in the words of the library or the user, else by the name of what is rated.
ALONE: Mapping[str, Mapping[str, str]] = {
    DirectScorer.kind: {},
    ActiveCritic.kind: {"variant": "vanilla", "explain": "none", "reading": "said"},
}


def is_asked(run: CompileRun, plan: Plan) -> bool:
    """Return whether a search has to be agreed to: it costs money, and no budget says how much it may cost.

    A price that is unknown is none where the user's own settings name the server.
    """
    searches = optimizers.get(str(run.setup.optimizer)).searches
    if run.lm is None or not searches or not plan.calls:
        return False
    if run.run.max_calls is not None or run.run.max_cost is not None:
        return False
    if plan.cost is None:
        return not provider_of(run.lm).placed(run.api_base)
    return plan.cost > 0


def alone(run: CompileRun) -> Iterator[CompileRun]:
    """Yield runs that measure the model alone, the first choice first; none if a saved judge is gone on from."""
    if run.setup.start is not None:
        return
    for method, options in ALONE.items():
        yield replace(
            run,
            setup=Setup(method, NoSearch.name),
            of_method=options,
            of_optimizer={},
            run=run.run.model_copy(update={"teacher": None}),
        )


@dataclass(frozen=True, slots=True)
class Search:
    """A search that waits to be agreed to. may_pay: None where the labels do not tell."""

    calls: int
    cost: float | None
    may_pay: bool | None
    why: str

    @classmethod
    def of(cls, plan: Plan, report: CompileReport | AspectsReport | None) -> Search:
        """Return the search of a plan, after the model alone was measured; None: it was not."""
        if report is None:
            why = "what the saved judge reaches on these labels was not measured"
            return cls(plan.calls, plan.cost, None, why)
        may_pay, why = worth(report)
        return cls(plan.calls, plan.cost, may_pay, why)

    def __str__(self) -> str:
        cost = "at an unknown price" if self.cost is None else f"about ${self.cost:.2f}"
        return f"A search takes up to {self.calls:,} calls, {cost}: {self.why}."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "calls": self.calls,
            "cost": self.cost,
            "may_pay": self.may_pay,
            "why": self.why,
        }


def worth(report: CompileReport | AspectsReport) -> tuple[bool | None, str]:
    """Return whether a search can gain anything that would show, by the interval of the model alone, and why."""
    if isinstance(report, CompileReport):
        return _worth(report)
    found = {name: _worth(one) for name, one in report.aspects.items()}
    answers = [may_pay for may_pay, _ in found.values()]
    whole: bool | None = None
    if True in answers:
        whole = True
    elif None not in answers:
        whole = False
    return whole, "; ".join(f"{name}: {why}" for name, (_, why) in found.items())


def _worth(report: CompileReport) -> tuple[bool | None, str]:
    reached = report.heldout
    of = f"{reached.by.label} {reached.value:.2f} {interval(reached.low, reached.high)}"
    if report.nothing_scored:
        return False, "the model alone scored no row; see the notes first"
    if not reached.low > reached.by.chance:
        return True, (
            f"it may pay, since the model alone ({of}) cannot be told from guessing; look at task and labels first"
        )
    way = report.way or {}
    if way.get("high") is None:
        return None, (
            "it may pay or not, since one rating a row gives no ceiling; only a gain that is large beside the "
            f"interval of the model alone ({of}) would show"
        )
    place = f"{way['value']:.0%} [{way['low']:.0%}, {way['high']:.0%}]"
    if way["high"] >= 1:
        return False, (
            f"it can hardly pay, since the model alone ({of}) is {place} of the way to one human rater, and the "
            "interval holds that rater"
        )
    return True, (
        f"it may pay, since the model alone ({of}) is {place} of the way to one human rater"
    )


def options_of(run: CompileRun) -> str:
    """Return the options by which the command line compiles as a run that `alone` yields."""
    chosen = {"method": run.setup.method, **run.of_method}
    words = [f"--{name} {value}" for name, value in chosen.items()]
    return " ".join([*words, f"--optimizer {run.setup.optimizer}"])


def ask(
    search: Search,
    report: CompileReport | AspectsReport | None,
    *,
    options: str,
    as_json: bool,
) -> bool | None:
    """Ask whether to search; return None where nobody can be asked, which is then said.

    Args:
        search: What is asked about.
        report: Of the model alone, if it was measured.
        options: Of the command that saves what was measured; "" if nothing was.
        as_json: Nobody is asked, and the report is printed with the search.
    """
    from judgesmith.running.console import asks, err, print_json

    if as_json:
        found = {} if report is None else report.to_dict()
        print_json(found | {"judge": None, "search": search.to_dict()})
        return None
    err.print(f"\n{search}", markup=False)
    if asks():
        return typer.confirm("Search now?", err=True)
    err.print(
        "Nobody can be asked here, so nothing more was sent and nothing is saved; answers are kept. With --yes, "
        f"`judgesmith compile` searches{options and f'; with {options} it saves the model alone, at no further call'}.",
        markup=False,
    )
    return None
