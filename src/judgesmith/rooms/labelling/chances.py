"""Rows drawn with stated probabilities, by what a judge says of them.

`judgesmith label --chance "gpt4:fail=1,pass=0.2"` draws all that a judge fails and a fifth of what it passes.
`--order decide` draws from what it fails and from what it passes as a decision needs (`agreement.sequential.planned`).
The probabilities stand in the labels (`label_chance`), where `check`, `compare` and `estimate` find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

import numpy as np

from judgesmith.agreement.sequential import Strata
from judgesmith.errors import OptionError
from judgesmith.evaluating.sources import inside, read_file, some
from judgesmith.rooms.labelling.task import Unit
from judgesmith.wording import folded


@dataclass(frozen=True, slots=True)
class Chances:
    """The probability of a row by the words of a column."""

    column: str
    of: Mapping[str, float]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `gpt4:fail=1,pass=0.2`.

        Raises:
            OptionError: If the text has another form, or a share is not in (0, 1].
        """
        column, _, rest = text.rpartition(":")
        parts = rest.split(",")
        shares = {}
        for part in parts:
            word, _, share = part.rpartition("=")
            with suppress(ValueError):
                shares[folded(word)] = float(share)
        whole = len(shares) == len(parts)  # each is a number, and no word stands twice
        if not column or not whole or not all(0 < one <= 1 for one in shares.values()):
            raise OptionError(
                f"--chance {text!r} is not of the form COLUMN:WORD=SHARE,WORD=SHARE with shares above 0 and up to 1, "
                "such as gpt4:fail=1,pass=0.2"
            )
        return cls(column, shares)

    def drawn(
        self,
        rows: str,
        columns: Mapping[str, str],
        units: Iterable[Unit],
        seed: int,
    ) -> dict[str, float]:
        """Return the units that are drawn, in random order, with their probabilities.

        Whether a unit is drawn depends on the seed and on its texts alone, so that a later run draws the same ones.

        Raises:
            OptionError: For a word of the column without a share.
        """
        file = read_file(rows, columns)
        cells: dict[int, Any] = {}
        for row, record in zip(file.rows, file.records, strict=True):
            cells[row.line] = inside(record, self.column)
        drawn: list[tuple[float, str, float]] = []
        for unit in units:
            cell = cells.get(unit.line)
            word = folded(cell)
            if word not in self.of:
                raise OptionError(
                    f"--chance: row {unit.line} of {file.origin} has {cell!r} in {self.column!r}; there are shares for "
                    f"{some(map(repr, self.of))}"
                )
            share = self.of[word]
            if _uniform(f"{seed}|{unit.key}") < share:
                place = _uniform(f"{seed}|order|{unit.key}")
                drawn.append((place, unit.key, share))
        return {key: share for _, key, share in sorted(drawn)}


def in_strata(
    units: Iterable[tuple[Unit, bool]], strata: Strata, seed: int
) -> dict[str, float]:
    """Return units in the order in which a decision needs them, with their relative probabilities.

    Each comes from what the judge fails or passes by chance, as the strata are drawn, and there at random.

    Args:
        units: The units, each with whether the judge passes it.
        strata: How often each stratum is drawn.
        seed: Of the order.
    """
    left: list[list[str]] = [[], []]
    for unit, passed in units:
        left[passed].append(unit.key)
    for own in left:
        own.sort(key=lambda key: _uniform(f"{seed}|order|{key}"))
    relative = np.array(strata.drawn) / np.array(strata.rows)
    relative /= relative.max()
    order: dict[str, float] = {}
    for step in range(sum(map(len, left))):
        stratum = int(_uniform(f"{seed}|stratum|{step}") >= strata.drawn[0])
        if not left[stratum]:
            stratum = 1 - stratum
        order[left[stratum].pop()] = float(relative[stratum])
    return order


def _uniform(text: str) -> float:
    """Return a number in [0, 1) that depends on the text alone."""
    return int(sha256(text.encode()).hexdigest()[:13], 16) / 16**13
