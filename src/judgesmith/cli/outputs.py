"""What `--json` prints, command by command: one object on stdout at the end of a run that was not refused.

Other keys may be there; those named here stay. `judgesmith list schemas COMMAND` prints the JSON schema.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from judgesmith.errors import OptionError
from judgesmith.parts import nearest


class Output(BaseModel):
    """One object of the output of a command."""

    model_config = ConfigDict(extra="allow")


class Sentence(Output):
    """What is found of a judge, and what follows."""

    judge: str
    aspect: str
    found: str = Field(description="One sentence with its numbers and their interval.")
    advice: str = Field(description='What follows; "" where nothing does.')
    may_decide: bool | None = Field(
        description="true: it may decide alone; false: it may not; null: the rows do not tell."
    )
    facts: list[str] = Field(description="TPR, TNR, kappa and others, in words.")


class Decisions(Output):
    """A judge's decisions against people's."""

    judge: str
    names: list[str] = Field(description="The decisions, worst first.")
    counts: list[list[int]] = Field(
        description="Rows by people's decision (outer) and the judge's; the last column: no decision."
    )
    figures: dict[str, Any] = Field(
        description="accuracy, cohen_kappa and others: value, low, high."
    )


class CheckOutput(Output):
    """`judgesmith check`: may the judge be trusted?"""

    answers: list[Sentence] = Field(description="Read these first.")
    rows: int
    origin: str
    read: dict[str, Any] = Field(
        description="Which columns were taken for what; compare it with what you meant."
    )
    judges: dict[str, Any] = Field(
        description="Agreement by judge, aspect, level, coefficient."
    )
    decisions: list[Decisions]
    gate: dict[str, Any] | None = Field(
        description="The gates of --fail-under and why they failed; null without."
    )
    notes: list[str]


class JudgeDifference(Output):
    """The difference by the judge's scores alone."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None


class CompareOutput(Output):
    """`judgesmith compare`: is the new version better?"""

    sentence: str = Field(description="The answer, to be shown as it is.")
    verdict: Literal["better", "worse", "alike", "no worse", "undecided"]
    base: str
    new: str
    difference: float | None = Field(
        description="New less base, on the ratings' scale."
    )
    low: float | None
    high: float | None
    p: float | None
    more: int | None = Field(
        description="Labels of both that would decide; null where decided or unknown."
    )
    labelled: list[int] = Field(description="Labelled documents of base and new.")
    judge: JudgeDifference
    notes: list[str]
    exit_code: int


class Agreement(Output):
    """An agreement with its interval; null where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


class CompileOutput(Output):
    """`judgesmith compile`: a judge from human ratings."""

    judge: str | None = Field(
        description="The file that was written; null where a search waits for --yes."
    )
    search: dict[str, Any] | None = Field(
        None,
        description="What waits for --yes: calls, cost, may_pay (null: the labels do not tell), why.",
    )
    objective: str = Field(description="What heldout measures: q, auc, pairwise, …")
    heldout: Agreement = Field(
        description="Agreement on rows that the judge did not learn from."
    )
    zero_shot: Agreement = Field(description="The model alone, on the same rows.")
    surface: Agreement = Field(description="Length and overlap, without a model.")
    difference: dict[str, float | None] = Field(
        description="Compiled less model alone: value, low, high, p."
    )
    notes: list[str]
    calls: int


class PlanOutput(Output):
    """`judgesmith compile --dry-run`: what a run would cost; nothing is spent."""

    dry_run: Literal[True]
    rows: int
    calls: int
    cost: float | None = Field(
        description="US dollars; null where the price is unknown."
    )


class Failure(Output):
    """A row without a score."""

    id: str
    reason: str


class ScoreOutput(Output):
    """`judgesmith score`: the run; the verdicts are in the file."""

    output: str
    rows: int
    scored: int
    failed: int = Field(description="Rows without a score; never a low score.")
    failures: list[Failure]
    calls: int
    cost: float | None


class LabelOutput(Output):
    """`judgesmith label`: what raters gave."""

    store: str
    kind: str
    rows: int
    labels: int
    raters: list[dict[str, Any]] = Field(
        description="Counts, and in `beside` each rater beside the mean of the others, by question."
    )
    agreement: list[dict[str, Any]] = Field(
        description="alpha (for interval data) with its interval, and equal answers, by question."
    )
    decision: list[str] = Field(
        description="What the labels decide (--decide), or how sure alpha is, in sentences."
    )


class ReportOutput(Output):
    """`judgesmith report`: the page that was written."""

    output: str
    rows: int
    scored: int
    failures: int


class DemoOutput(Output):
    """`judgesmith demo`: the recorded rows."""

    rows: str
    page: str
    check: Sentence
    compare: str


class ScoreInterval(Output):
    """The interval of a score."""

    low: float
    high: float
    coverage: float = Field(description="The share of human ratings that it holds.")


class RowVerdict(Output):
    """A verdict on one output."""

    score: float | None = Field(description="On the judge's scale; null: see failure.")
    failure: str | None = Field(description="Why there is no score; never a low score.")
    explanation: str = ""
    category: str | None = None
    passed: bool | None = None
    interval: ScoreInterval | None = None
    suspicious: str | None = Field(
        None, description="The text addresses the judge, and what that did."
    )
    notes: list[str] = []


class RowOutput(Output):
    """A line of the file that `judgesmith score` writes: the row, with its verdict."""

    verdict: RowVerdict
    judge: str = Field(description="Fingerprint of the judge.")
    seen: bool = Field(description="The judge was compiled from this row.")


#: By command; of `compile`, also that of a dry run.
OUTPUTS: dict[str, type[Output]] = {
    "demo": DemoOutput,
    "check": CheckOutput,
    "compare": CompareOutput,
    "compile": CompileOutput,
    "compile --dry-run": PlanOutput,
    "score": ScoreOutput,
    "label": LabelOutput,
    "report": ReportOutput,
    "row": RowOutput,
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a command's output.

    Raises:
        OptionError: If there is no schema of that name.
    """
    if name not in OUTPUTS:
        known = ", ".join(OUTPUTS)
        raise OptionError(
            f"there is no schema of {name!r}{nearest(name, OUTPUTS)}; there are {known}"
        )
    return OUTPUTS[name].model_json_schema()
