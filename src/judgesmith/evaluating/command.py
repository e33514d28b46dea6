"""`judgesmith evaluate`: how far do judges agree with people?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..cli.commands import Command, Config, Json, Model, Rows, Scaled, argument, flag

if TYPE_CHECKING:
    from ..running.settings import Catalogue

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

    Rows come from a scored file, any file with score columns, or a benchmark (bench/summeval). Every number has an
    interval over resampled documents and shows the rows it rests on. With --judge judge.json a saved judge judges the
    rows first. Its calls are cached on disk, so the same command resumes after Ctrl-C.

    Levels. pooled: one correlation over all rows (Active-Critic's summary level, UniEval's and USR's turn level,
    nlpstats' global level). sample: the mean of correlations within each document (G-Eval's and UniEval's summary level
    on SummEval, per_doc_mean, nlpstats' input level); constant documents are left out and counted. system: the
    correlation of the systems' means. within: one correlation over all rows less what tells systems apart.

    Intervals resample documents, because rows of one document are no independent evidence. They cover these systems on
    other documents. At system level even that is too narrow: 75-90 % instead of 95 % in a simulation. --new-systems
    makes intervals and tests of correlations cover other systems, too.

    Tests between judges use Student's t with the standard error of the interval, all pairs of judges together (max-t).
    So p is below 0.05 just where the 95 % interval of the difference leaves 0 out.

    In CI, judgesmith evaluate scored.jsonl --fail-under 'spearman>=0.4' exits with 1 unless two things hold. The lower
    end of the first judge's interval is at least 0.4 for every aspect, and 95 % of the rows have a score. For
    categories, pass or fail, or preferences: 'kappa>=0.5', 'accuracy>=0.8', 'balanced-accuracy>=0.7', 'f1>=0.7',
    'precision>=0.6', 'recall>=0.6' (for fail), 'auc>=0.8', 'pairwise>=0.6'. All but the last two use the judge's own
    decisions if scored rows have them. 'way>=0.8' is the share of the way to one human rater. Of errors the upper end
    of the interval counts: 'mae<=0.5', 'rmse<=0.7'. A bar for one aspect has its name before it:
    'fluency:spearman>=0.4'.

    --spans TRUTH compares the errors that a judge marked with those that people marked: precision, recall and F1 over
    characters. --fail-under takes these, too.

    `judgesmith list options evaluate` has further options, such as --figures FOLDER.
    """

    panel: ClassVar[str] = "Start"

    sources: list[str] = argument(
        ...,
        "Files with scores (joined by id), bench/NAME, metric/NAME. The human ratings come from the first file.",
        "SOURCE...",
    )
    human: list[str] = flag(
        [],
        "Human ratings: an aspect (coherence), a column, a path (zscores.simplicity), or all. Repeatable; found by "
        "name where not given.",
        metavar="COLUMN",
    )
    judge: list[str] = flag(
        [],
        "A judge: a file that `compile` saved, which judges the rows now; or scores: a column, a path "
        "(verdict.criteria.fluency.score), a name in SET.metrics.jsonl beside SET.jsonl, metric/NAME "
        "(`judgesmith list metrics`). {aspect} stands for the aspect: UniEval=unieval_{aspect}. "
        "Repeatable; the verdicts of `judgesmith score` are found where not given.",
        metavar="[NAME=]COLUMN|FILE.json",
    )
    limit: int | None = flag(None, "Only the first rows.", ge=1)
    unseen: bool = flag(
        False, "Leave out, for all judges, the rows that one of them was compiled from."
    )
    level: list[str] = flag(
        [],
        "pooled, within (systems), sample or system. Repeatable; all that the rows allow where not given.",
    )
    coefficient: list[str] = flag(
        [],
        "pearson, spearman, kendall (these by default), q (their sum), acc_eq, acc_eq_cross, acc_soft (WMT's); kappa, "
        "cohen-kappa, accuracy, "
        "balanced-accuracy, f1, auc, pairwise (by default where they fit), precision, recall. Repeatable.",
    )
    spans: str | None = flag(
        None,
        "Compare error spans with those that people marked: a file, or bench/NAME.",
        metavar="TRUTH",
    )
    output: Path | None = flag(
        None,
        "HTML file of the report; it loads nothing from the network.",
        "-o",
        "--output",
    )
    fail_under: list[str] = flag(
        [],
        "Exit with 1 if the lower end of the first judge's interval is below X "
        "(of mae and rmse: the upper end above X). Repeatable; ASPECT: limits it to one aspect (fluency:q>=1).",
        metavar="[ASPECT:][LEVEL.]COEFFICIENT>=X",
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        """Return the options of the evaluation and of the model's connection."""
        from ..running.settings import Catalogue, Owner, ReachOptions
        from .options import EvaluateOptions

        owners = (
            Owner("run", "evaluate", EvaluateOptions),
            Owner("lm", "the language model", ReachOptions),
        )
        return Catalogue(
            owners, "evaluate", more="; see `judgesmith list options evaluate`"
        )

    def run(self) -> int:
        """Read rows and judges, measure agreement and write the outputs."""
        from ..errors import OptionError
        from ..parts import read_options
        from ..running.settings import ReachOptions
        from .options import EvaluateOptions
        from .request import EvaluateRequest
        from .run import run

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
