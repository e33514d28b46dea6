"""Which judge a command line asks for: the options of the methods, and the judge that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..optimizers.compiling import OVERALL
from ..programs.active_critic.critic import ActiveCritic
from ..programs.aspects import aspects
from ..programs.comparing.pairs import PairS
from ..programs.comparing.pairwise import PairwiseDirectScorer
from ..programs.judge import Judge
from ..programs.openlgauge.judge import OpeNLGauge
from ..programs.pointwise.direct import DirectScorer
from ..programs.pointwise.geval import GEval
from ..programs.prompting.answers import read_criteria_list


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """What `compile` and `new` are told of the judge."""

    method: str = "active-critic"
    variant: str = "coarse"
    explain: str = "auto"
    reading: str = "auto"
    task: str | None = None
    criteria: Path | None = None
    without: tuple[str, ...] = ()
    library_aspect: str | None = None
    aspect_file: Path | None = None
    annotators: Sequence[str] = ()
    supervisor: str = "lm"
    references: int = 5
    writer: str | None = None
    form: str | None = None
    order: str | None = None

    def judge(self, aspect: str | None) -> Judge:
        """The judge as it is before anything is learnt. aspect: the name of the labels' score; None where there are no
        labels. Raises OptionError."""
        if self.annotators and self.method != "openlgauge":
            raise OptionError("--annotator goes with --method openlgauge")
        if (self.form or self.order) and self.method not in ("pairwise-direct", "pairwise", "pairs"):
            raise OptionError("--form and --order go with the methods that compare: pairwise-direct and pairs")
        if self.method != "active-critic":
            return self._of_one_aspect(aspect)
        if self.library_aspect or self.aspect_file:
            raise OptionError(
                "--as and --aspects go with the other methods; active-critic infers criteria (--criteria)"
            )
        if aspect is None and not (self.task or self.criteria):
            raise OptionError("without labels to learn it from, say what is judged: --task, --criteria or both")
        if aspect is None and self.variant == "fine" and not self.criteria:
            raise OptionError(
                "the fine variant scores criteria; without labels to infer them from, give --criteria FILE"
            )
        explain = "none" if "explanations" in self.without else self.explain
        return ActiveCritic(
            self.variant,  # type: ignore[arg-type]
            explain=explain,  # type: ignore[arg-type]
            reading=self.reading,  # type: ignore[arg-type]
            task=self.task or "",
            criteria=read_criteria_file(self.criteria) if self.criteria else (),
            use_task="task" not in self.without,
            use_criteria="criteria" not in self.without,
            combine="mean" if "os-e" in self.without else "os-e",
        )

    def _of_one_aspect(self, aspect: str | None) -> Judge:
        compared = {"form": self.form or "better-worse", "order": self.order or "other-first"}
        methods: dict[str, tuple[Callable[..., Judge], dict[str, Any]]] = {
            "openlgauge": (
                OpeNLGauge,
                {"annotators": self.annotators, "supervisor": self.supervisor, "reading": self.reading},
            ),
            "pairwise-direct": (
                PairwiseDirectScorer,
                {"levels": self.references, "writer": self.writer or "", **compared},
            ),
            "g-eval": (GEval, {}),
            "direct": (DirectScorer, {"reading": self.reading}),
            "pairs": (PairS, compared),
        }
        kind, own = methods["pairwise-direct" if self.method == "pairwise" else self.method]
        options: dict[str, Any] = {"task": self.task or "", **own}
        if self.criteria:
            if self.library_aspect or self.aspect_file:
                raise OptionError(
                    "--criteria says the aspect in your words, --as and --aspects take it from a library; give one"
                )
            (criterion, *more) = read_criteria_file(self.criteria)
            if more:
                raise OptionError(f"--criteria {self.criteria}: one aspect is judged at a time; leave one in it")
            return kind(criterion.name, criteria=[criterion], **options)
        library = aspects(self.aspect_file)
        name = self.library_aspect or ("overall" if aspect in OVERALL else aspect)
        if name is None:
            raise OptionError("which aspect is judged? Give --as TASK/ASPECT (see `judgesmith aspects`) or --criteria")
        try:
            found = library.find(name)
        except OptionError as error:
            raise OptionError(
                f"what does {name!r} mean? {error}. Give --as TASK/ASPECT (see `judgesmith aspects`) or --criteria FILE"
            ) from None
        return kind(found, library=library, **options)


def read_criteria_file(path: Path) -> list[Any]:
    """The criteria of `--criteria FILE`. Raises OptionError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--criteria {path}: {error}") from None
    found = read_criteria_list(text, most=64)
    if not found:
        raise OptionError(
            f"--criteria {path}: no criteria in it; write JSON {{name: definition}} or lines `name: definition`"
        )
    return found
