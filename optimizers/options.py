"""What labels are compiled by: the options of compiling, and the value that holds them with search and teacher."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator

from judgesmith.agreement.correlation import Level
from judgesmith.agreement.objectives import Objective, chosen_objective, objectives
from judgesmith.datasets.duplicates import SHARE
from judgesmith.datasets.records import Labels
from judgesmith.errors import OptionError
from judgesmith.optimizers.examples import scale_of
from judgesmith.optimizers.search.base import DemonstrationSearch
from judgesmith.optimizers.search.few_shot import NoSearch
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.parts import Effect, Options, option
from judgesmith.programs.active_critic.task import TaskInference
from judgesmith.programs.method import Method
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.progress import Progress, Silent
from judgesmith.programs.refining import fitted_always

#: Why a teacher is refused.
NO_TEACHER = "no model writes anything in it"


def _checked_name(name: str) -> str:
    objectives.get(name)
    return name


class CompileOptions(Options):
    """Options of compiling itself, beside judge, labels, model and optimizer."""

    level: Level = option(
        "pooled",
        "Level of agreement. pooled: all rows together (the papers' summary level). sample: within documents. "
        "system: of systems' means. within: within systems.",
    )
    objective: Annotated[str, AfterValidator(_checked_name)] | None = option(
        None,
        "Objective to maximise: q, kappa, auc or pairwise. none: q for scores, kappa for categories, auc for pass "
        "and fail, pairwise for preferences.",
    )
    heldout: float | None = option(
        None,
        "Share of documents held out for the reported agreement. none: cross-validation up to 160 labels, or where "
        "folds need no model calls; else 0.25.",
        gt=0,
        lt=1,
    )
    cv: int | None = option(
        None,
        "Number of cross-validation folds (whole documents), instead of a held-out share. The judge itself is "
        "compiled from all rows. none: 4 folds up to 160 labels, repeated five times if that needs no model calls. "
        "Above 160, 4 folds only if they need none.",
    )
    template_share: float = option(
        SHARE,
        "Share of documents above which nearly equal texts are a template, not duplicates. Rows of a template may be "
        "on both sides of a split.",
        gt=0,
        le=1,
        added=True,
    )
    cost_of_missed_fail: float = option(
        1.0,
        "Pass and fail: cost of a fail that is passed, relative to a pass that is failed. Other values than 1 set "
        "the cut-off by the lowest cost on training rows, instead of balanced accuracy.",
        gt=0,
    )
    refine: bool = option(
        True,
        "After the search, also try leaving out the inferred task and fitting weights. Changes that improve "
        "agreement are kept. no: as in the papers.",
    )
    batches: int = option(
        25, "Maximum number of mini-batches for task inference.", ge=1
    )
    batch_size: int = option(
        5, "Number of labelled rows in a mini-batch for task inference.", ge=1
    )
    keep: int = option(5, "Maximum number of task descriptions to merge.", ge=1)
    max_calls: int | None = option(
        None,
        "Maximum number of model calls, retries not counted. At the limit, the best candidate so far is saved. "
        "Default: no limit.",
        ge=1,
    )
    max_cost: float | None = option(
        None,
        "Maximum cost, in US dollars.",
        effect=Effect(
            ways=(),
            refusals={
                "--batch": "cannot stop the requests of --batch, which are sent at once; use --max-calls"
            },
        ),
        gt=0,
    )
    new_systems: bool = option(
        False,
        "Make the intervals of agreement hold for other systems, too. They get wider, and need at least 3 systems.",
        added=True,
    )
    seed: int = option(0, "Random seed for splits and candidates.")
    take: str | None = option(
        None,
        "Name of the candidate to save instead of the best one. With several aspects: for all, or ASPECT=NAME for one.",
        added=True,
    )


@dataclass(frozen=True, slots=True)
class Compiler:
    """How labels are compiled, whatever the judge and its model. No run changes it.

    Raises:
        OptionError: For a teacher that the search has no use for.
    """

    search: DemonstrationSearch = field(default_factory=CorrelationRandomSearch)
    """The optimizer; `NoSearch` for none."""
    options: CompileOptions = field(default_factory=CompileOptions)
    heldout: Labels | None = None
    """Labels to hold out in place of a share."""
    teacher: LanguageModel | None = None
    """The model that writes the answers shown as demonstrations."""
    inference: TaskInference | None = None
    """How task and criteria are inferred, in place of what the options say."""
    progress: Progress = field(default_factory=Silent)
    """The watcher of the run."""

    def __post_init__(self) -> None:
        if self.teacher is not None and not self.search.uses_teacher:
            raise OptionError(
                f"teacher does nothing with optimizer {self.search.name}: {NO_TEACHER}"
            )
        if self.heldout is not None:
            heldout = self.heldout.regrouped(self.options.template_share)
            object.__setattr__(self, "heldout", heldout)

    @property
    def inferring(self) -> TaskInference:
        """Return how task and criteria are inferred."""
        o = self.options
        return self.inference or TaskInference(
            batches=o.batches, batch_size=o.batch_size, keep=o.keep
        )

    def search_by(self, objective: Objective) -> DemonstrationSearch:
        """Return the optimizer of a run: its own objective, level and seed do not hold."""
        return self.search.for_run(
            objective=objective, seed=self.options.seed, progress=self.progress
        )

    def objective(self, labels: Labels) -> Objective:
        """Return the objective that is maximised: the requested one, or the default for this kind of labels.

        Raises:
            OptionError: For an objective that does not fit the labels.
        """
        o = self.options
        if o.cost_of_missed_fail != 1 and labels.kind != "binary":
            raise OptionError(
                f"--cost-of-missed-fail is for pass and fail, and the labels are of kind {labels.kind}"
            )
        levels = [scale_of(labels).to_percent(level) for level in labels.levels]
        return chosen_objective(labels.kind, o.objective, o.level, levels)


def level_for(labels: Labels) -> Level:
    """Return the default level of agreement: sample for preferences, otherwise pooled.

    Preferences order outputs within documents only.
    """
    return "sample" if labels.kind == "preference" else "pooled"


def default_optimizer(method: type[Method] | Method) -> str:
    """Return the name of the optimizer that a method is compiled by if none is named."""
    return NoSearch.name if fitted_always(method) else CorrelationRandomSearch.name
