"""`judgesmith check`: may a judge be trusted, and how far does it agree with people? `evaluate` is its old name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import (
    Command,
    Json,
    Model,
    Rows,
    Scaled,
    argument,
    flag,
)

if TYPE_CHECKING:
    from judgesmith.running.settings import Catalogue

#: Options that say nothing of error spans.
BESIDE_SPANS = (
    "human",
    "judge",
    "level",
    "coefficient",
    "output",
    "lm",
    "limit",
    "unseen",
    "plan",
    "baseline",
    "certificate",
)


class Check(Command, Model, Rows, Scaled, Json):
    """Check whether a judge may be trusted, on rows that people rated.

    One sentence comes first, with what follows from it. Then come TPR, TNR, kappa, a constant judge, and how far
    people agree themselves. The command says how it read the file, and prints tables.

    Rows come from a scored file, any file with score columns, or a benchmark (bench/summeval). With --judge judge.json,
    a saved judge scores the rows first. Its calls are cached, so the same command resumes after Ctrl-C.

    Intervals are bootstrap intervals over documents, because rows of one document are not independent. They hold for
    these systems on other documents. Tests between judges cover all pairs at once (max-t). So p is below 0.05 exactly
    if the 95 % interval of the difference excludes 0.

    --fail-under 'spearman>=0.4' exits with 1 unless two conditions hold. The lower end of the first judge's interval is
    at least 0.4. And 95 % of the rows have a score. Pass or fail: 'tnr>=0.8' (fails found), 'tpr>=0.8' (passes passed),
    'accuracy>=0.8', 'cohen-kappa>=0.5'. 'rate>=0.8' is the pass rate of all rows, corrected by labels of some.
    Categories: 'kappa>=0.5'. Preferences: 'pairwise>=0.6'. 'way>=0.8' lies between guessing (0) and one human rater
    (1). Errors use the upper end: 'mae<=0.5'. One aspect or level: 'fluency:q>=1', 'sample.kendall>=0.3'.

    --baseline FILE keeps the verdicts of the run that passed. Later runs on these labels ask only whether the judge
    agrees less than then. A gate that is asked again and again fails by chance.
    """

    example: ClassVar[str] = "judgesmith check scored.jsonl --human score"
    everyday: ClassVar[tuple[str, ...]] = (
        "human",
        "judge",
        "lm",
        "plan",
        "unseen",
        "fail_under",
        "baseline",
        "certificate",
        "output",
        "scale",
        "columns",
        "as_json",
    )

    sources: list[str] = argument(
        ...,
        "Files with scores (joined by id), bench/NAME or metric/NAME. Human ratings come from the first file.",
        "FILE...",
    )
    human: list[str] = flag(
        [],
        "Human rating: an aspect (coherence), a column, a path (zscores.simplicity), all, or one file of labels "
        "(joined by id). Default: columns with the usual names. Repeatable.",
        metavar="COLUMN|FILE",
    )
    judge: list[str] = flag(
        [],
        "Judge to check: a column, a path (verdict.criteria.fluency.score), a saved judge, which scores the rows now, "
        "or metric/NAME. {aspect} is replaced by the aspect's name. Default: the verdicts of `judgesmith score`. "
        "Repeatable.",
        metavar="[NAME=]COLUMN|FILE.json",
    )
    plan: bool = flag(
        False,
        "Print what more labels would buy: intervals, differences, and the power of each gate.",
    )
    unseen: bool = flag(
        False, "Leave out all rows that any of the judges was compiled from."
    )
    fail_under: list[str] = flag(
        [],
        "Exit with 1 if the lower end of the first judge's interval is below X. Repeatable.",
        metavar="[ASPECT:][LEVEL.]COEFFICIENT>=X",
    )
    baseline: Path | None = flag(
        None,
        "File of the run that passed --fail-under: written if it is not there, else compared with.",
        metavar="FILE.json",
    )
    certificate: Path | None = flag(
        None,
        "One page on what the judge may be used for, as .html or .json.",
        metavar="FILE",
    )
    output: Path | None = flag(
        None,
        "Self-contained HTML file of the report.",
        "-o",
        "--output",
    )
    limit: int | None = flag(
        None,
        "Number of rows to use, from the first. Default: all.",
        ge=1,
    )
    level: list[str] = flag(
        [],
        "Level of agreement: pooled, within (systems), sample or system. Default: all that the rows allow. "
        "Repeatable.",
    )
    coefficient: list[str] = flag(
        [],
        "Coefficient to compute (`judgesmith list coefficients`). Default: pearson, spearman and kendall; "
        "of decisions, those that apply. Repeatable.",
    )
    spans: str | None = flag(
        None,
        "File or bench/NAME with human error spans. The judge's spans are compared with them.",
        metavar="TRUTH",
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        """Return the options of the evaluation and of the model's connection."""
        from judgesmith.evaluating.options import EvaluateOptions
        from judgesmith.running.settings import Catalogue, Owner, ReachOptions

        owners = (
            Owner("run", "check", EvaluateOptions),
            Owner("lm", "the language model", ReachOptions),
        )
        return Catalogue(owners, "check", more="; see `judgesmith list options check`")

    def run(self) -> int:
        """Read rows and judges, measure agreement and write the outputs."""
        from judgesmith.errors import OptionError
        from judgesmith.evaluating.options import EvaluateOptions
        from judgesmith.evaluating.request import EvaluateRequest
        from judgesmith.evaluating.run import run
        from judgesmith.parts import read_options
        from judgesmith.running.settings import ReachOptions

        if self.spans is not None and (
            wrong := next((name for name in BESIDE_SPANS if getattr(self, name)), None)
        ):
            raise OptionError(f"--{wrong.replace('_', '-')} has no effect with --spans")
        everyday = {"levels": self.level, "coefficients": self.coefficient}
        options = self.more("run") | {
            name: value for name, value in everyday.items() if value
        }
        request = EvaluateRequest(
            sources=self.sources,
            options=read_options(EvaluateOptions, options, "check"),
            human=self.human,
            judges=self.judge,
            columns=self.roles(),
            orders=self.orders(),
            scale=self.scale,
            limit=self.limit,
            unseen=self.unseen,
            spans=self.spans,
            output=self.output,
            fail_under=self.fail_under,
            plan=self.plan,
            baseline=self.baseline,
            certificate=self.certificate,
            lm=self.lm,
            api_base=self.api_base,
            reach=ReachOptions(**self.more("lm")),
            as_json=self.as_json,
        )
        return run(request)


class Evaluate(Check):
    """Check whether a judge may be trusted: the old name of `judgesmith check`, whose help says more."""

    hidden: ClassVar[bool] = True
