"""The DSPy side of a judge: it is a program that is called, optimized, saved and loaded as any other."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
from dspy.predict.parameter import Parameter

from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs import artifact, pipeline
from judgesmith.programs.aspects import OVERALL
from judgesmith.programs.capabilities import locate
from judgesmith.programs.contract import Contract, unmeasured
from judgesmith.programs.method import Method, MethodSettings
from judgesmith.programs.models import engine
from judgesmith.programs.models.as_dspy import Quiet
from judgesmith.programs.models.lm import LanguageModel, language_model
from judgesmith.programs.models.local import note_engine
from judgesmith.programs.outcome import Outcome
from judgesmith.programs.prompting.predict import called
from judgesmith.signatures.values import Item, Scale, Verdict

_LOG = logging.getLogger("judgesmith.judges")


class JudgeSettings(Parameter):  # type: ignore[misc]
    """Options, outcome and fitted data, as a leaf of DSPy's state beside the knowledge and the predictors.

    So a judge inside another program is saved and loaded with it.
    """

    def __init__(self, judge: DSPyJudge) -> None:
        self.judge = judge

    def reset(self) -> None:
        """Keep everything: only demonstrations are reset."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return the settings as JSON values, with demonstrations in the method's form."""
        pipeline.settle_demos(self.judge.method, self.judge.outcome.scale)
        return artifact.settings(self.judge)

    def load_state(self, state: Mapping[str, Any]) -> JudgeSettings:
        """Take the settings of another judge."""
        self.judge.method, self.judge.outcome = artifact.with_settings(
            self.judge.method, state
        )
        return self


class DSPyJudge(Quiet):
    """A judge as a DSPy program. `Judge`, which users hold, adds the ways to score."""

    def __init__(
        self,
        method: Method,
        *,
        lm: str | LanguageModel | Any | None = None,
        scale: Scale | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(method, Method):
            raise OptionError(
                f"a judge is made of a method, such as js.ActiveCritic(); got a {type(method).__name__}"
            )
        outcome = outcome or Outcome()
        for predictor in method.predictors():
            predictor.alone = False  # the judge knows the scale of its rows
        self.method = method
        self.outcome = outcome if scale is None else replace(outcome, scale=scale)
        self.own_lm: LanguageModel | None = None if lm is None else language_model(lm)
        self.provenance: dict[str, Any] = {}
        #: The contract of the file that the provenance is of, where an earlier version wrote it.
        self.earlier: Contract | None = None
        self.report: Any = None
        self.explains = False
        self.settled = JudgeSettings(self)

    def forward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        *,
        group: str | None = None,
        **row: Any,
    ) -> dspy.Prediction:
        """Judge one output in DSPy's form, for programs, evaluation and optimizers: `judge(source=…, output=…)`.

        Args:
            source: The source.
            output: The judged text.
            context: Further material, such as retrieved passages.
            reference: A good output.
            group: Demonstrations of this group are kept out of the prompt.
            **row: The texts under other names that `judgesmith.rows` knows, and other columns of the row.

        Returns:
            A `dspy.Prediction` with score (float on the judge's scale, NaN for none), percent (float in [0, 100]),
                explanation, criteria (name -> float in [0, 100]), errors, failure; and left_out, the number of
                demonstrations that the row's prompt did not show since they are of its document, where there are some.

        Raises:
            ModelError: When the model cannot be used at all.
        """
        return engine.run(
            self.aforward(source, output, context, reference, group=group, **row)
        )

    async def aforward(
        self,
        source: str = "",
        output: str = "",
        context: str | None = None,
        reference: str | None = None,
        *,
        group: str | None = None,
        lm: LanguageModel | None = None,
        columns: Mapping[str, float] | None = None,
        explain: bool = False,
        **row: Any,
    ) -> dspy.Prediction:
        """Judge one output as `forward` does, for asynchronous callers.

        Args:
            source: The source.
            output: The judged text.
            context: Further material.
            reference: A good output.
            group: Demonstrations of this group are kept out of the prompt.
            lm: A model that the method was prepared for.
            columns: Numbers that the method weighs.
            explain: True to have the model write the reasons for the score.
            **row: The texts under other names that `judgesmith.rows` knows, and other columns of the row.
        """
        item = pipeline.called_with(
            source, output, context, reference, group, columns, row
        )
        verdict = await engine.on_loop(self.judged(item, lm, explain=explain))
        return pipeline.told(self.method, item, verdict)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """Return DSPy's parameters, in the order in which a state is written and read.

        Criteria come before their weights, and demonstrations after the scale of the human ratings in them.
        """
        places = {"method.knowledge": 0, "settled": 1}
        # The judge's settings hold the method's.
        own = [
            pair
            for pair in super().named_parameters()
            if not isinstance(pair[1], MethodSettings)
        ]
        return sorted(own, key=lambda pair: places.get(pair[0], 2))

    def set_lm(self, lm: str | LanguageModel | Any) -> None:
        """Use another model, a name or any that `language_model` accepts, for every step.

        Raises:
            ModelError: For an unusable model.
        """
        self.own_lm = language_model(lm)
        tell_engine(self)
        for predictor in self.predictors():
            predictor.lm = self.own_lm

    def get_lm(self) -> Any:
        """Return the judge's own model as DSPy takes it; None if it uses DSPy's.

        A model of DSPy's is the very object that was set.
        """
        own = self._chosen_lm
        return own.dspy if isinstance(own, LanguageModel) else own

    def save(
        self,
        path: str | Path,
        save_program: bool = False,
        modules_to_serialize: Any = None,
    ) -> None:
        """Write the judge as one JSON file (see `programs.artifact`), atomically.

        Raises:
            ArtifactError: For the forms of DSPy's that hold pickled code.
        """
        _refuse_pickle(path, save_program)
        artifact.save(self, path)
        self._located(path)

    def load(
        self,
        path: str | Path,
        allow_pickle: bool = False,
        allow_unsafe_lm_state: bool = False,
    ) -> None:
        """Become the judge that a file holds; `js.load` makes a new one.

        The judge's own model stays; one that has none where DSPy has none either gets the file's.

        Raises:
            ArtifactError: For another kind of judge, and for pickles.
        """
        _refuse_pickle(path, allow_pickle)
        self._become(artifact.read(path), Path(path).name)
        self._located(path)

    def load_state(
        self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False
    ) -> None:
        """Become the judge of a state, or of a file's content, in DSPy's form of `load`.

        Raises:
            ArtifactError: For another kind of judge.
        """
        if "format" in state:
            self._become(artifact.Artifact.of(state), "the state")
        else:
            super().load_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)

    def _become(self, read: artifact.Artifact, where: str) -> None:
        method = read.built()
        if type(method) is not type(self.method):
            raise ArtifactError(
                f"{where} holds a {method.kind} judge; js.load(path) makes one of it"
            )
        if self.own_lm is None and self.get_lm() is None and dspy.settings.lm is None:
            named = artifact.model_of(read)
            if named is None:
                self.own_lm = None
            else:
                self.own_lm = language_model(named, sampling=artifact.sampling_of(read))
        artifact.connect(method, None)
        self.method = method
        self.outcome = read.outcome
        self.provenance = read.provenance
        self.earlier = read.contract

    def _located(self, path: str | Path) -> None:
        locate(self.method, Path(path))

    # -- for its own use and the product's

    async def judged(
        self, item: Item, lm: LanguageModel | None, *, explain: bool = False
    ) -> Verdict:
        """Judge a row, on the engine's loop, without DSPy's callbacks and history of the judge itself."""
        method = self.method
        outcome = self.outcome
        if (alone := pipeline.ranked_only(method)) is not None:
            return alone
        if lm is None:
            lm = self.lm
            await method.prepare(lm)
        verdict, safe = await pipeline.judge_row(method, outcome, item, lm)
        if moved := self.moved_to(lm):
            verdict = unmeasured(verdict, moved)
        if explain or self.explains:
            return await pipeline.explained(
                method, outcome, safe, verdict, lm, self.judges_aspect
            )
        return verdict

    @property
    def lm(self) -> LanguageModel:
        """Return the model in use: one that a parent program set on its predictors, the judge's own, else DSPy's.

        Raises:
            ModelError: Without any.
        """
        return called(self._chosen_lm)

    def moved_to(self, lm: LanguageModel) -> str:
        """Return one sentence if a model is another than the judge's agreement was measured with, else ""."""
        held = self.provenance.get("contract")
        if not held and "labels" not in self.provenance:
            return ""
        if (
            held and held.get("fingerprint") == lm.fingerprint
        ):  # as for nearly every row
            return ""
        contract = self.contract
        return "" if contract is None else contract.moved(lm.name, lm.fingerprint)

    @property
    def contract(self) -> Contract | None:
        """Return what its agreement with people rests on; None for a judge that was compiled from no labels."""
        found = Contract.of(self.provenance)
        if found is None or "contract" in self.provenance:
            return found
        return self.earlier or found

    @property
    def moved(self) -> str:
        """Return `moved_to` of the judge's own model, "" without one."""
        own = self.own_lm
        return "" if own is None else self.moved_to(own)

    @property
    def _chosen_lm(self) -> Any:
        return (
            next((p.lm for p in self.predictors() if p.lm is not None), None)
            or self.own_lm
        )

    @property
    def judges_aspect(self) -> str:
        """Return the aspect of its scores, by the labels that it was compiled from, or by its option.

        "" for the output as a whole, or if nothing states it.
        """
        labels = self.provenance.get("labels")
        aspect = labels.get("aspect") if isinstance(labels, Mapping) else None
        aspect = aspect or self.method.saved_options().get("aspect")
        return aspect if isinstance(aspect, str) and aspect not in OVERALL else ""


def _refuse_pickle(path: str | Path, wanted: bool) -> None:
    if wanted or Path(path).suffix.lower() in (".pkl", ".pickle"):
        raise ArtifactError(
            f"{path}: a judge is never pickled, since loading a pickle runs what is in it; save it as JSON, "
            "judge.save('judge.json'), and read it with js.load('judge.json') or judge.load('judge.json')"
        )


def tell_engine(judge: DSPyJudge) -> None:
    """Log, once for each, where another engine computes a judge's own model than when it was compiled."""
    before = str(judge.provenance.get("computed_by") or "")
    lm = judge.own_lm
    if lm is None:
        return
    note_engine(lm.name, before, lm.computed_by)
    if said := judge.moved_to(lm):
        _LOG.warning("this judge was %s", said)
