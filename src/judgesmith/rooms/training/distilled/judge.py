"""The distilled judge: a small model whose low-rank weights learnt from labels to answer with a digit.

Source: OpeNLGauge (§5.2) for a small judge that learns from a large one; LoRA (Hu et al. 2022); the score is the
expected digit, which is also what training fits: RAFT (Lukasik et al. 2025), TRACT (Chiang et al. 2025).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from judgesmith import parts
from judgesmith.errors import ModelError
from judgesmith.parts import option
from judgesmith.programs.active_critic.scoring import OverallScorer, TaskContext
from judgesmith.programs.aspects import Aspect, Task
from judgesmith.programs.models.files import file_sha256
from judgesmith.programs.models.lm import LanguageModel, with_adapter
from judgesmith.programs.models.transport import Message
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.openlgauge.annotation import Annotator, Focus, error_list
from judgesmith.programs.openlgauge.grounding import ground_errors
from judgesmith.programs.registry import methods
from judgesmith.rooms.training.distilled.gguf_adapter import GGUF_ADAPTER
from judgesmith.rooms.training.distilled.marking import MarkedLayout
from judgesmith.signatures.values import Item, Verdict

#: Files beside a judge that are looked at for its weights.
_MOST_FILES = 200
Answered = Literal["score", "annotation"]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class StudentData(parts.Options):
    """A trained student, as a saved judge holds it.

    base, adapter, gguf: SHA-256 of the base model's file, of the low-rank weights, and of these in llama.cpp's format.
    """

    base: Hash
    adapter: Hash
    gguf: Hash
    rank: Annotated[int, Field(ge=1, le=1024)]
    alpha: Annotated[float, Field(gt=0, le=1e6)]


def served_name(adapter: str) -> str:
    """Return the name that a server is to give the student: it tells which weights answer."""
    return f"judge-{adapter[:12]}"


@methods.register
class Distilled(OneAspect):
    """A small model trained to give scores (`judgesmith distill`); untrained, the plain model under the same prompt.

    Its weights are files beside the saved judge, identified by their SHA-256. Options: `judgesmith list methods
    distilled`. Sources: OpeNLGauge, §5; RAFT (Lukasik et al. 2025).
    """

    kind: ClassVar[str] = "distilled"
    about: ClassVar[str] = (
        "a small model trained on labels, in one short answer; made by `judgesmith distill`"
    )
    paper: ClassVar[str] = (
        "OpeNLGauge (its distilled model, §5); RAFT (Lukasik et al. 2025)"
    )
    takes_any_name: ClassVar[bool] = True

    class Options(OneAspect.Options):
        """Options of the method."""

        answer: Answered = option(
            "score",
            "Form of the answer: the score alone, or errors with their spans and then the score.",
            added=True,
        )

    options: Options

    @classmethod
    def aspect_options(cls, aspect: Aspect, task: Task | None) -> dict[str, str]:
        """Return that prompts show everything, as those do that it is trained on."""
        return {"material": "all"}

    class Fitted(parts.Options):
        """The trained student; None before training."""

        student: StudentData | None = None

    def __init__(self, aspect: str | Aspect = "overall", **options: Any) -> None:
        super().__init__(aspect, **options)
        self.student: StudentData | None = None
        self.home: Path | None = None

    def build(self) -> None:
        """Make the scorer, or the annotator of errors."""
        self.scorer: OverallScorer | Annotator = Annotator(MarkedLayout())
        if self.options.answer == "score":
            self.scorer = OverallScorer("none", "expected")

    # -- its weights

    def located(self, path: Path) -> None:
        """Look for the weights beside the judge's file."""
        self.home = path.parent

    def take(self, student: StudentData) -> None:
        """Score by these weights from now on."""
        self.student = student

    def fitted(self) -> dict[str, Any]:
        """Return the student's weights, by their hashes; see `capabilities.Learns`."""
        if self.student is None:
            return {}
        return {"student": self.student.model_dump(mode="json")}

    def load_fitted(self, name: str, data: Any) -> None:
        """Restore the student from the data that `fitted` returned.

        Raises:
            OptionError: If the data are invalid.
        """
        self.take(parts.read_options(StudentData, data, "the student"))

    def facts(self) -> dict[str, str]:
        """Return facts for `judgesmith show`."""
        if self.student is None:
            return {"student": "none: the plain model answers"}
        return {
            "student": f"rank {self.student.rank}, served as {served_name(self.student.adapter)}"
        }

    def _weights_file(self, name: str, digest: str) -> Path | None:
        """Return the file beside the judge, or in a folder beside it, that has this hash."""
        if self.home is None:
            return None
        files = sorted([*self.home.glob(name), *self.home.glob(f"*/{name}")])[
            :_MOST_FILES
        ]
        return next(
            (path for path in files if path.is_file() and file_sha256(path) == digest),
            None,
        )

    def _runs(self, lm: LanguageModel, student: StudentData) -> LanguageModel:
        """Return the model with the trained weights.

        Raises ModelError for another base model, and for weights that are not there.
        """
        if lm.weights is None:
            self._check_served(lm, student)
            return lm
        digest = file_sha256(lm.weights)
        if digest != student.base:
            raise ModelError(
                f"this judge was trained on another base model (its SHA-256 begins {student.base[:12]}) than {lm.name} "
                f"({digest[:12]}); give the one it was trained on with --lm, or train again"
            )
        file = self._weights_file(GGUF_ADAPTER, student.gguf)
        if file is None:
            if self.home is None:
                where = "load it from its file"
            else:
                where = "put its folder beside the judge's file"
            named = f"no {GGUF_ADAPTER} whose SHA-256 begins {student.gguf[:12]}"
            raise ModelError(f"the judge's weights are not there: {named}; {where}")
        with _lock:
            key = (f"{lm.name}:{id(lm)}", student.gguf)
            if key not in _opened:
                _opened[key] = with_adapter(lm, file)
            return _opened[key]

    def _check_served(self, lm: LanguageModel, student: StudentData) -> None:
        named = lm.name.rpartition("/")[2].removesuffix(":latest")
        if named != served_name(student.adapter):
            raise ModelError(
                f"{lm.name} is not this judge's model: a server has to offer it as {served_name(student.adapter)}, so "
                "that no other one answers for it"
            )

    # -- judging

    async def prepare(self, lm: LanguageModel) -> None:
        """Check that the model has the student's weights."""
        if self.student is not None:
            await asyncio.to_thread(self._runs, lm, self.student)

    def _focus(self) -> Focus:
        criterion = self.knowledge.criteria[0] if self.knowledge.criteria else None
        return Focus(
            self.options.aspect,
            criterion.definition if criterion else "",
            self.knowledge.description,
        )

    def _task_context(self) -> TaskContext:
        return TaskContext(
            self.knowledge.description, self.knowledge.criteria, self.options.aspect
        )

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        """Judge a row."""
        runs = lm if self.student is None else self._runs(lm, self.student)
        if isinstance(self.scorer, OverallScorer):
            scored = await self.scorer.ascore(item, self._task_context(), runs)
            return scored.verdict(scored.read.values["score"])
        answer = await self.scorer.annotate(item, self._focus(), runs)
        errors = ground_errors(answer.read.values["annotation"].errors, item.output)
        return answer.verdict(answer.read.values["score"]).model_copy(
            update={"errors": errors}
        )

    def messages(self, item: Item) -> list[Message]:
        """Return the prompt of a row, demonstrations of its group left out."""
        inputs: Mapping[str, Any] = (
            self.scorer.inputs(item, self._task_context())
            if isinstance(self.scorer, OverallScorer)
            else self.scorer.inputs(item, self._focus())
        )
        return self.scorer.predict.messages(inputs)

    def demonstration(self, item: Item, verdict: Verdict | None) -> dict[str, Any]:
        """Return a demonstration; with the errors, if the verdict has them."""
        demo = super().demonstration(item, verdict)
        if verdict is None:
            return demo
        return demo | {"annotation": error_list(verdict.errors) or "No Error"}

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages for a row."""
        return {"scorer": self.messages(item)}


_opened: dict[tuple[str, str], LanguageModel] = {}
_lock = threading.Lock()
