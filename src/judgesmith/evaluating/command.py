"""`judgesmith evaluate`: how far do judges agree with people?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import (
    Command,
    Config,
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
)


class Evaluate(Command, Config, Model, Rows, Scaled, Json):
    """Measure agreement between judges and human ratings.

    Rows come from a scored file, any file with score columns, or a benchmark (bench/summeval). Every number has its
    interval and number of rows. With --judge judge.json, a saved judge scores the rows first. Its calls are cached on
    disk, so the same command resumes after Ctrl-C.

    Levels. pooled: one correlation over all rows (Active-Critic's summary level, UniEval's and USR's turn level,
    nlpstats' global level). sample: the mean of the correlations within documents (G-Eval's and UniEval's summary level
    on SummEval, nlpstats' input level). Documents with constant scores are left out and counted. system: the
    correlation of the systems' means. within: one correlation over all rows, each less the mean of its system.

    Intervals are bootstrap intervals over documents, because rows of one document are not independent. They hold for
    these systems on other documents. At system level they are too narrow: 75-90 % coverage instead of 95 % in a
    simulation. --new-systems makes intervals and tests of correlations hold for other systems, too.

    Tests between judges use Student's t with the standard error of the interval, over all pairs at once (max-t). So p
    is below 0.05 exactly if the 95 % interval of the difference excludes 0.

    In CI, `judgesmith evaluate scored.jsonl --fail-under 'spearman>=0.4'` exits with 1 unless two conditions hold. The
    lower end of the first judge's interval is at least 0.4 for every aspect. 95 % of the rows have a score. For
    categories, pass or fail, or preferences: 'kappa>=0.5', 'accuracy>=0.8', 'balanced-accuracy>=0.7', 'f1>=0.7',
    'precision>=0.6', 'recall>=0.6' (for fail), 'auc>=0.8', 'pairwise>=0.6'. All but the last two use the judge's own
    decisions if scored rows have them. 'way>=0.8' is a position between guessing (0) and one human rater (1). Errors
    use the upper end: 'mae<=0.5', 'rmse<=0.7'. For one aspect, write its name first: 'fluency:spearman>=0.4'.

    --spans TRUTH compares the judge's error spans with human ones: precision, recall and F1 over characters.
    --fail-under accepts these, too.

    `judgesmith list options evaluate` has further options, such as --figures FOLDER.
    """

    panel: ClassVar[str] = "Start"

    sources: list[str] = argument(
        ...,
        "Files with scores (joined by id), bench/NAME or metric/NAME. Human ratings come from the first file.",
        "SOURCE...",
    )
    human: list[str] = flag(
        [],
        "Human rating: an aspect (coherence), a column, a path (zscores.simplicity), or all. Default: columns with "
        "the usual names. Repeatable.",
        metavar="COLUMN",
    )
    judge: list[str] = flag(
        [],
        "Scores to evaluate: a column, a path (verdict.criteria.fluency.score), a name in SET.metrics.jsonl, or "
        "metric/NAME (`judgesmith list metrics`). A saved judge scores the rows now. {aspect} is replaced by the "
        "aspect's name: UniEval=unieval_{aspect}. Default: the verdicts of `judgesmith score`. Repeatable.",
        metavar="[NAME=]COLUMN|FILE.json",
    )
    limit: int | None = flag(
        None, "Number of rows to use, from the first. Default: all.", ge=1
    )
    unseen: bool = flag(
        False, "Leave out all rows that any of the judges was compiled from."
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
    output: Path | None = flag(
        None,
        "Self-contained HTML file of the report.",
        "-o",
        "--output",
    )
    fail_under: list[str] = flag(
        [],
        "Exit with 1 if the lower end of the first judge's interval is below X. For mae and rmse: if the upper end "
        "is above X. ASPECT: limits it to one aspect (fluency:q>=1). Repeatable.",
        metavar="[ASPECT:][LEVEL.]COEFFICIENT>=X",
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        """Return the options of the evaluation and of the model's connection."""
        from judgesmith.evaluating.options import EvaluateOptions
        from judgesmith.running.settings import Catalogue, Owner, ReachOptions

        owners = (
            Owner("run", "evaluate", EvaluateOptions),
            Owner("lm", "the language model", ReachOptions),
        )
        return Catalogue(
            owners, "evaluate", more="; see `judgesmith list options evaluate`"
        )

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
            options=read_options(EvaluateOptions, options, "evaluate"),
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
            lm=self.lm,
            api_base=self.api_base,
            reach=ReachOptions(**self.more("lm")),
            as_json=self.as_json,
        )
        return run(request)
