"""METEOR without WordNet: words matched exactly, then by their stems, with a penalty for a broken order.

Source: "METEOR: An Automatic Metric for MT Evaluation with High Levels of Correlation with Human Judgments" (Lavie and
Agarwal 2007), with its parameters. The third stage, WordNet's synonyms, is left out: its data comes with no package
that judgesmith uses. So values lie a little below those of the published program.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property

from ... import parts
from ...errors import MissingExtraError
from ...parts import option
from ..metrics import PREFIX
from ..registry import metrics
from .compared import Against, ComparedMetric, against

__all__ = ["Meteor", "aligned", "meteor"]

_WORD = re.compile(r"\w+|[^\w\s]")


def aligned(
    output: Sequence[str], reference: Sequence[str], stages: Sequence[Callable[[str], str]]
) -> list[tuple[int, int]]:
    """Pairs of places (output, reference) of words that mean the same, each word in one pair at most, in the output's
    order. stages: what of two words has to be equal, the strictest first.

    Each stage takes the longest runs of matching words first. That gives as many matches as there can be, and nearly
    always the fewest chunks; the published program searches for them.
    """
    pairs: dict[int, int] = {}
    free = set(range(len(reference)))
    for stage in stages:
        made, wanted = ([stage(word) for word in words] for words in (output, reference))
        while True:
            best = (0, 0, 0)
            for i in (i for i in range(len(made)) if i not in pairs):
                for j in free:
                    length = 0
                    while (
                        i + length < len(made)
                        and i + length not in pairs
                        and j + length in free
                        and made[i + length] == wanted[j + length]
                    ):
                        length += 1
                    best = max(best, (length, -i, -j))
            length, i, j = best[0], -best[1], -best[2]
            if not length:
                break
            pairs |= {i + step: j + step for step in range(length)}
            free -= set(range(j, j + length))
    return sorted(pairs.items())


def meteor(pairs: Sequence[tuple[int, int]], made: int, wanted: int, alpha: float, beta: float, gamma: float) -> float:
    """(1 - gamma * (chunks / matches)^beta) * P*R / (alpha*P + (1 - alpha)*R), in [0, 1].

    pairs: of an alignment, in the output's order. made, wanted: words of output and reference. A chunk is a run of
    matches that is adjacent in both texts. An output equal to its reference has one chunk, and so a little less than 1.
    """
    if not pairs:
        return 0.0
    matches = len(pairs)
    precision, recall = matches / made, matches / wanted
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    joined = sum(b == (a[0] + 1, a[1] + 1) for a, b in itertools.pairwise(pairs))
    return mean * (1 - gamma * math.pow((matches - joined) / matches, beta))


@metrics.register
class Meteor(ComparedMetric):
    """METEOR by exact words and Porter stems, in lower case. See `Options`."""

    name = "meteor"
    about = "METEOR by exact words and Porter stems, without WordNet's synonyms, best reference"
    paper = "METEOR: An Automatic Metric for MT Evaluation (Banerjee and Lavie 2005; Lavie and Agarwal 2007)"
    extra = "metrics"

    class Options(parts.Options):
        against: Against = against()
        alpha: float = option(0.9, "Weight of recall in the mean of precision and recall.", gt=0, lt=1)
        beta: float = option(3.0, "Power of the share of chunks in the penalty.", gt=0, le=10)
        gamma: float = option(0.5, "The highest penalty.", ge=0, le=1)

    def ready(self) -> None:
        self._stem  # noqa: B018  imported before the first row

    @cached_property
    def _stem(self) -> Callable[[str], str]:
        try:
            from nltk.stem.porter import PorterStemmer
        except ImportError as error:
            raise MissingExtraError(
                f"{PREFIX}{self.name} needs a package ({error}): pip install 'judgesmith[{self.extra}]'"
            ) from None
        stem: Callable[[str], str] = PorterStemmer().stem
        return stem

    def value(self, output: str, other: str) -> float:
        made, wanted = (_WORD.findall(text.lower()) for text in (output, other))
        if not made or not wanted:
            return 0.0
        chosen = self.chosen
        assert isinstance(chosen, Meteor.Options)
        pairs = aligned(made, wanted, (str, self._stem))
        return meteor(pairs, len(made), len(wanted), chosen.alpha, chosen.beta, chosen.gamma)
