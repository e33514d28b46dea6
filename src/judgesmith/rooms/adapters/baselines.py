"""Scores of an earlier commit on the same inputs, to compare today's with: the `baseline=` of `assert_judged`."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from judgesmith.agreement.paired import Paired, paired
from judgesmith.errors import LabelsError, OptionError
from judgesmith.programs.atomic import write_whole
from judgesmith.signatures.values import Item

FORMAT = "judgesmith.scores/1"
#: The fewest inputs that both commits have to have: of fewer nothing is found at the level of a look.
FEWEST = 10


@dataclass(frozen=True)
class Scores:
    """The scores of one commit, by input."""

    judge: str
    """The judge's fingerprint."""
    model: str
    written: str
    values: Mapping[str, float]

    @classmethod
    def of(
        cls, judge: str, model: str, items: Sequence[Item], scores: Sequence[float]
    ) -> Self:
        """Return the scores of these items; NaN where there is none."""
        values = {
            name: score
            for name, score in zip(_names(items), scores, strict=True)
            if not math.isnan(score)
        }
        return cls(judge, model, datetime.now(UTC).date().isoformat(), values)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the scores of an earlier commit.

        Raises:
            OptionError: If there is no such file, or it is none.
        """
        if not path.is_file():
            raise OptionError(
                f"baseline={str(path)!r}: there is no such file; write it once with `pytest --write-baselines`, and "
                "keep it in the repository"
            )
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            if told["format"] != FORMAT:
                raise ValueError(told["format"])
            values = {str(name): float(one) for name, one in told["scores"].items()}
            return cls(told["judge"], told["model"], told["written"], values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OptionError(
                f"baseline={str(path)!r} holds no scores of `assert_judged` ({error}); write it again with `pytest "
                "--write-baselines`"
            ) from None

    def write(self, path: Path) -> None:
        """Write the file."""
        told: dict[str, Any] = {
            "format": FORMAT,
            "judge": self.judge,
            "model": self.model,
            "written": self.written,
            "scores": dict(self.values),
        }
        write_whole(path, json.dumps(told, indent=1) + "\n")

    def since(self, then: Scores, items: Sequence[Item], looks: int) -> Paired:
        """Return the mean now less then on the inputs that both scored; rows of one group or source are one document.

        Raises:
            OptionError: If another judge or model gave the scores.
            LabelsError: If too few inputs are the same.
        """
        if (self.judge, self.model) != (then.judge, then.model):
            raise OptionError(
                f"the baseline of {then.written} was scored by judge {then.judge} with {then.model}, and these outputs "
                f"by {self.judge} with {self.model}; write it again with `pytest --write-baselines`"
            )
        names = _names(items)
        shared = sum(name in self.values and name in then.values for name in names)
        if shared < FEWEST:
            raise LabelsError(
                f"{shared} inputs have a score now and in the baseline of {then.written}; give the same inputs, at "
                f"least {FEWEST}, or write it again with `pytest --write-baselines`"
            )
        return paired(
            [self.values.get(name, math.nan) for name in names],
            [then.values.get(name, math.nan) for name in names],
            [item.group or item.source or str(n) for n, item in enumerate(items)],
            looks=looks,
        )


def _names(items: Sequence[Item]) -> list[str]:
    """Return a name for each input, whatever its output: a hash of its texts and its number among equal ones."""
    seen = Counter[str]()
    names = []
    for item in items:
        parts = [item.source, item.context, item.reference]
        text = json.dumps(parts, ensure_ascii=False, default=str)
        name = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        seen[name] += 1
        names.append(f"{name}.{seen[name]}")
    return names
