"""COMET and its kin: metrics that were trained on human ratings of translations.

The package unbabel-comet runs them. It brings a training framework and holds back the versions of several packages, so
it is no extra of judgesmith: install it in an environment of its own, or where it fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import parts
from ...errors import ModelError
from ...parts import option
from ...signatures.values import Verdict
from ..metrics import PREFIX, Metric, cell, output_of
from ..registry import metrics
from .compared import needed, one_line, others_of

_ROWS = 32  # rows that are scored together


@metrics.register
class Comet(Metric):
    """A trained metric of the package unbabel-comet, for translations. See `Options`.

    A row needs a source, and for models that compare with references a reference, of which the first is taken. Values
    are the model's own, 0 to 1 for those of 2022 and later.
    """

    name = "comet"
    about = "COMET: a metric trained on human ratings of translations (package unbabel-comet and weights needed)"
    paper = "COMET: A Neural Framework for MT Evaluation (Rei et al. 2020)"

    class Options(parts.Options):
        model: str = option(
            "Unbabel/wmt22-comet-da", "A model's name on the hub, or the file of a checkpoint (.ckpt).", min_length=1
        )
        reference: bool = option(True, "Compare with a reference; no for models without (…-cometkiwi-…, …-qe-…).")

    @cached_property
    def _model(self) -> Any:
        comet = needed("comet", Comet, "pip install unbabel-comet")
        name = self.chosen.model  # type: ignore[attr-defined]
        try:
            path = name if Path(name).expanduser().is_file() else comet.download_model(name)
            return comet.load_from_checkpoint(str(path))
        except Exception as error:  # of the hub, of torch, of the checkpoint's reader
            raise ModelError(
                f"{PREFIX}{self.name}: the model {name} cannot be fetched or opened: {one_line(error)}"
            ) from None

    def score_many(self, rows: Iterable[Any]) -> Iterator[Verdict]:
        """See `Metric`. Raises MissingExtraError, ModelError."""
        model, compares = self._model, self.chosen.reference  # type: ignore[attr-defined]
        source = iter(rows)
        while batch := list(itertools.islice(source, _ROWS)):
            asked: dict[int, dict[str, str]] = {}
            for place, row in enumerate(batch):
                texts = {"src": cell(row, "source") or "", "mt": output_of(row)}
                references = others_of(row, "reference")
                if texts["src"].strip() and (references or not compares):
                    asked[place] = texts | ({"ref": references[0]} if compares else {})
            said = model.predict(list(asked.values()), batch_size=8, gpus=0, progress_bar=False) if asked else None
            values = dict(zip(asked, [] if said is None else said["scores"], strict=True))
            for place, row in enumerate(batch):
                if place in values:
                    value = float(values[place])
                    yield Verdict(score=value, percent=min(100.0, max(0.0, 100.0 * value)))
                else:
                    missing = "source" if not (cell(row, "source") or "").strip() else "reference"
                    yield Verdict.failed(f"no {missing} to compare with")
