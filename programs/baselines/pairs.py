"""PairS: the outputs of one document are ranked by pairwise preferences, in a merge sort that keeps several orders.

The order of two merged runs is likely by the probabilities of the comparisons that lead to it, in the geometric mean.
Where a comparison is uncertain both of its outcomes are followed, so that an early mistake can still be outweighed by
later comparisons; comparisons that no open order asks for are never made.

Source: PairS-beam of "Aligning with Human Judgement: The Role of Pairwise Preference in Large Language Model
Evaluators" (Liu et al. 2024), as in the baselines of "Direct-Scoring NLG Evaluators Can Use Pairwise Comparisons Too"
(§3). Prompts are those of `comparison`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from hashlib import sha256
from typing import ClassVar, NamedTuple, TypeVar, cast

from judgesmith.errors import CallError
from judgesmith.parts import option
from judgesmith.programs.comparing.comparison import Comparing, Comparison, settled
from judgesmith.programs.method import Cost
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Message
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Item, Usage, Verdict

T = TypeVar("T")
#: Outputs of a document that estimates of calls are made for: no row knows how many others its document has.
USUAL_OUTPUTS = 16
NO_OTHERS = "PairS needs at least two different outputs of the same document (the same source text, or group)"

#: (a, b) -> the probability that output a is better than output b. May raise CallError.
Preference = Callable[[int, int], Awaitable[float]]


class Path(NamedTuple):
    """A beginning of a merged order, with the logarithms of the probabilities of the comparisons on its way added up.

    The mean is what paths are chosen by. The sum alone would favour orders in which one run ends early, since the rest
    of the other follows without a comparison.
    """

    order: tuple[int, ...] = ()
    total: float = 0.0
    comparisons: int = 0

    @property
    def mean(self) -> float:
        """Return the mean log-probability of a comparison; 0 without any."""
        return self.total / self.comparisons if self.comparisons else 0.0

    def then(self, output: int, chance: float | None) -> Path:
        """Return the path with one output more.

        Args:
            output: The output.
            chance: The probability of the comparison that places it, None without one.
        """
        if chance is None:
            return self._replace(order=(*self.order, output))
        return Path(
            (*self.order, output), self.total + math.log(chance), self.comparisons + 1
        )


async def merged(
    first: Sequence[int],
    second: Sequence[int],
    prefer: Preference,
    *,
    beam: int,
    margin: float,
) -> Path:
    """Return the likeliest order found of two ranked runs, worst first.

    At each place the worse of the two runs' next outputs follows. A comparison whose likelier outcome has at least 0.5
    + margin is taken as it stands; of an uncertain one both outcomes are followed, and the `beam` likeliest orders are
    kept. Orders that have placed the same outputs go on alike, so that only the likeliest of them is kept: with beam >
    min(len(first), len(second)) and margin 0.5 the result is the likeliest of all. beam 1 is greedy.

    Raises:
        CallError: For a failed comparison.
    """
    paths = {0: Path()}  # by the number of outputs of `first` in it
    for placed in range(len(first) + len(second)):
        open_places = [i for i in paths if i < len(first) and placed - i < len(second)]
        odds = dict(
            zip(
                open_places,
                await together(
                    [prefer(first[i], second[placed - i]) for i in open_places]
                ),
                strict=True,
            )
        )
        reached: dict[int, Path] = {}
        for i, path in paths.items():
            if i not in odds:  # a run has ended
                ended = i == len(first)
                following = [
                    (i, path.then(second[placed - i], None))
                    if ended
                    else (i + 1, path.then(first[i], None))
                ]
            else:
                better = min(
                    1 - 1e-9, max(1e-9, odds[i])
                )  # the first run's output is the better one
                following = [
                    (i, path.then(second[placed - i], better)),
                    (i + 1, path.then(first[i], 1 - better)),
                ]
                if abs(better - 0.5) >= margin:
                    del following[better > 0.5]
            for n, longer in following:
                if n not in reached or longer.mean > reached[n].mean:
                    reached[n] = longer
        paths = dict(sorted(reached.items(), key=lambda entry: -entry[1].mean)[:beam])
    (path,) = paths.values()  # all outputs of both are in it
    return path


async def together(tasks: Iterable[Awaitable[T]]) -> list[T]:
    """Return all results, after all have ended.

    Raises:
        CallError: For a failed call.
    """
    got = await settled(tasks)
    for error in got:
        if isinstance(error, CallError):
            raise error
    return cast("list[T]", got)


class _Ranking:
    """The ranking of one document's different outputs.

    It has comparisons by pair, and failures, costs and the model's texts by output. A pair's costs stand with its first
    output.
    """

    def __init__(
        self,
        compare: Callable[[int, int], Awaitable[Comparison]],
        beam: int,
        margin: float,
    ) -> None:
        self._compare = compare
        self._beam = beam
        self._margin = margin
        self.compared: dict[tuple[int, int], Comparison] = {}
        self.failed: dict[int, str] = {}
        self.usage: dict[int, Usage] = {}
        self.raw: dict[int, tuple[str, ...]] = {}
        self.merges: list[Path] = []

    async def order(self, outputs: Sequence[int]) -> tuple[int, ...]:
        """Worst first, without those whose comparison failed."""
        runs: list[tuple[int, ...]] = [(output,) for output in outputs]
        while len(runs) > 1:
            pairs = list(zip(runs[::2], runs[1::2], strict=False))
            runs = [
                *await together([self._merge(*pair) for pair in pairs]),
                *runs[2 * len(pairs) :],
            ]
        return runs[0] if runs else ()

    async def _merge(
        self, first: Sequence[int], second: Sequence[int]
    ) -> tuple[int, ...]:
        while True:  # each failure takes two outputs away
            runs = self._without_failed(first), self._without_failed(second)
            try:
                path = await merged(
                    *runs, self._prefer, beam=self._beam, margin=self._margin
                )
            except CallError:
                continue
            self.merges.append(path)
            return path.order

    def _without_failed(self, run: Sequence[int]) -> list[int]:
        return [output for output in run if output not in self.failed]

    async def _prefer(self, a: int, b: int) -> float:
        # Always asked the same way round: which run an output comes from must not matter.
        first = min(a, b)
        second = max(a, b)
        if (first, second) not in self.compared:
            try:
                compared = await self._compare(first, second)
            except CallError as error:
                self.failed[first] = self.failed[second] = str(error)
                self._bill(
                    first, getattr(error, "usage", Usage()), getattr(error, "raw", ())
                )
                raise
            self.compared[first, second] = compared
            self._bill(first, compared.usage, compared.raw)
        compared = self.compared[first, second]
        better = compared.better + compared.similar / 2
        return better if a == first else 1 - better

    def _bill(self, output: int, usage: Usage, raw: tuple[str, ...]) -> None:
        self.usage[output] = self.usage.get(output, Usage()) + usage
        self.raw[output] = (*self.raw.get(output, ()), *raw)


@methods.register
class PairS(Comparing):
    """Ranks the outputs of each document by comparing them with each other: a judge of sets, not of single outputs.

    Options: `judgesmith list methods pairs`.

    A score is a rank: percent = 100·(rank from the bottom − 1)/(m − 1) among the m different outputs of the document,
    so that scores of different documents say nothing about each other (level "sample" is the one to compile and measure
    at). Equal texts share a rank; there are no other ties. A document with one output has no score.

    Source: Aligning with Human Judgement (Liu et al. 2024).
    """

    kind: ClassVar[str] = "pairs"
    about: ClassVar[str] = (
        "ranks the outputs of each document by comparing them with each other (best measured within documents)"
    )
    paper: ClassVar[str] = (
        "Aligning with Human Judgement: The Role of Pairwise Preference in Large Language Model Evaluators (Liu et al. "
        "2024)"
    )

    class Options(Comparing.Options):
        beam: int = option(
            8, "Orders kept open in a merge; 1 is greedy (PairS-greedy).", ge=1, le=1000
        )
        margin: float = option(
            0.1,
            "How far from one half the probability of a comparison may lie for both of its outcomes to be followed; 0 "
            "follows the likelier alone, 0.5 always both.",
            ge=0,
            le=0.5,
        )

    options: Options

    def cost(self) -> Cost:
        """Return an upper bound for documents of up to 16 outputs.

        A greedy merge sort of m outputs makes at most m·⌈log₂ m⌉ comparisons, and no beam more than there are pairs,
        m·(m − 1)/2. Larger documents may need more a row.
        """
        m = USUAL_OUTPUTS
        greedy = math.ceil(math.log2(m))
        all_pairs = math.ceil((m - 1) / 2)
        if self.options.beam == 1 or self.options.margin == 0:
            comparisons = greedy
        else:
            comparisons = all_pairs
        return Cost(comparisons * self.calls_a_comparison())

    def no_bootstrap(self) -> str:
        """Return the reason why answers cannot be bootstrapped as demonstrations."""
        return "a rank among the outputs of a document is not an answer to a comparison; labelled rows are shown"

    # -- judging

    async def rank(
        self, items: Sequence[Item], lm: LanguageModel, slots: asyncio.Semaphore
    ) -> list[Verdict]:
        """Return verdicts on the outputs of one document; see `capabilities.RanksDocuments`."""
        first: dict[str, int] = {}  # a text's first row
        for i, item in enumerate(items):
            if item.output.strip():
                first.setdefault(item.output, i)
        # The order in which a merge sort meets its items leaves traces where preferences are weak: it must come neither
        # from the file nor from the systems.
        texts = sorted(
            first,
            key=lambda text: sha256(text.encode("utf-8", "surrogatepass")).digest(),
        )
        distinct = [items[first[text]] for text in texts]

        async def compare(a: int, b: int) -> Comparison:
            async with slots:
                return await self.acompare(distinct[a], texts[b], lm)

        ranking = _Ranking(compare, self.options.beam, self.options.margin)
        order = await ranking.order(range(len(texts)))
        by_text = dict(
            zip(texts, self._verdicts(ranking, order, len(texts)), strict=True)
        )
        empty = Verdict.failed("the output is empty")
        verdicts = [by_text.get(item.output, empty) for item in items]
        # Equal texts were compared once: what that cost stands on one row alone.
        return [
            verdict
            if first.get(item.output, i) == i
            else verdict.model_copy(update={"usage": Usage(), "raw": ()})
            for i, (item, verdict) in enumerate(zip(items, verdicts, strict=True))
        ]

    def _verdicts(
        self, ranking: _Ranking, order: Sequence[int], outputs: int
    ) -> list[Verdict]:
        cautions = self._notes(ranking, len(order))
        verdicts = []
        for output in range(outputs):
            usage = ranking.usage.get(output, Usage())
            raw = ranking.raw.get(output, ())
            if output in ranking.failed:
                reason = f"a comparison with another output of its document failed: {ranking.failed[output]}"
            elif len(order) < 2:
                if outputs < 2:
                    reason = NO_OTHERS
                else:
                    reason = "the other outputs of its document could not be compared"
            else:
                place = order.index(output)
                own = [
                    compared
                    for (first, _), compared in ranking.compared.items()
                    if first == output
                ]
                verdict = Verdict(
                    percent=100.0 * place / (len(order) - 1),
                    repaired=any(compared.repaired for compared in own),
                    notes=(f"rank {len(order) - place} of {len(order)}", *cautions),
                    usage=usage,
                    raw=raw,
                )
                verdicts.append(verdict)
                continue
            verdicts.append(Verdict.failed(reason, usage=usage, raw=raw))
        return verdicts

    def _notes(self, ranking: _Ranking, ranked: int) -> list[str]:
        """Return notes for the reader of any of the document's ranks."""
        results = ranking.compared.values()
        steps = sum(path.comparisons for path in ranking.merges)
        mean = math.exp(
            math.fsum(path.total for path in ranking.merges) / max(1, steps)
        )
        notes = [
            f"comparisons of this document: {len(results)}, for {ranked} outputs; those on the way to their order have "
            f"a probability of {mean:.2f} in the geometric mean"
        ]
        if ranking.failed:
            notes.append(
                f"{len(ranking.failed)} other outputs of this document could not be compared"
            )
        return notes + self.cautions(results)

    # -- prompts

    def prompts(self, item: Item) -> dict[str, list[Message]]:
        """Return the messages of one comparison."""
        prompt = self.comparison_prompt(item, "(another output of the same document)")
        return {"comparer (once a comparison)": prompt}
