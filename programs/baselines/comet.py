"""COMET and its kin: metrics that were trained on human ratings of translations.

The package unbabel-comet runs them. It brings a training framework and holds back the versions of several packages, so
it is no extra of judgesmith: install it in an environment of its own, or where it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import parts
from ...parts import option
from ..registry import metrics
from .compared import Compared, ComparedMetric, needed, opening


@metrics.register
class Comet(ComparedMetric):
    """A trained metric of the package unbabel-comet, for translations. See `Options`.

    A row needs a source, and for models that compare with references a reference, of which the first is taken. Values
    are the model's own, 0 to 1 for those of 2022 and later.
    """

    name = "comet"
    about = "COMET: a metric trained on human ratings of translations (package unbabel-comet and weights needed)"
    paper = "COMET: A Neural Framework for MT Evaluation (Rei et al. 2020)"
    at_once = 32

    class Options(parts.Options):
        model: str = option(
            "Unbabel/wmt22-comet-da", "A model's name on the hub, or the file of a checkpoint (.ckpt).", min_length=1
        )
        reference: bool = option(True, "Compare with a reference; no for models without (…-cometkiwi-…, …-qe-…).")

    def needs(self) -> tuple[str, ...]:
        return ("source", "reference") if self.chosen.reference else ("source",)  # type: ignore[attr-defined]

    def ready(self) -> None:
        self._model  # noqa: B018

    @cached_property
    def _model(self) -> Any:
        comet = needed("comet", Comet, "pip install unbabel-comet")
        name = self.chosen.model  # type: ignore[attr-defined]
        with opening(Comet, name):
            path = name if Path(name).expanduser().is_file() else comet.download_model(name)
            return comet.load_from_checkpoint(str(path))

    def values(self, rows: Sequence[Compared]) -> list[float]:
        names = ("src", "ref")[: len(self.needs())]
        asked = [
            {"mt": output, **{name: texts[0] for name, texts in zip(names, others, strict=True)}}
            for output, others in rows
        ]
        predicted = self._model.predict(asked, batch_size=8, gpus=0, progress_bar=False)
        return [float(value) for value in predicted["scores"]]
