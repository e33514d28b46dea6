"""The judge that `judgesmith discern` tests: a saved one, a metric, or a method that judges a task's metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesmith.datasets.perturbations.registry import Pair
from judgesmith.errors import OptionError
from judgesmith.programs.artifact import fingerprint
from judgesmith.programs.baselines.metrics import PREFIX, reference_metric
from judgesmith.programs.capabilities import set_brief
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.lm import Connection
from judgesmith.programs.registry import methods
from judgesmith.rooms.discerning.options import DiscernOptions
from judgesmith.rooms.discerning.pairs import Book, ask_key
from judgesmith.running.estimates import SAMPLED, Estimate, estimate
from judgesmith.running.limits import Limits
from judgesmith.running.opening import open_judge, open_model
from judgesmith.signatures.values import Item, Scale


@dataclass(frozen=True)
class Subject:
    """A judge under test.

    scorers: by metric, each a `Judge`, or a metric. marks: each changes with anything that changes its scorer's scores.
    against_reference: whether it compares with references and does not read on its own.
    """

    name: str
    scorers: Mapping[str, Any]
    marks: Mapping[str, str]
    against_reference: bool = False

    @property
    def judges(self) -> list[Judge]:
        """The scorers that ask a model."""
        return [] if self.against_reference else list(self.scorers.values())


def open_subject(
    target: str,
    lm: str | None,
    where: Connection,
    options: DiscernOptions,
    *,
    brief: bool = False,
) -> Subject:
    """Return the judge of this name, checked before the first call; a `brief` one stops after the score if it can.

    Raises:
        OptionError: If the name is unknown, or an option does not fit.
        ArtifactError: If the file is not a judge.
        ModelError: If the model cannot be opened.
    """
    if target.startswith(PREFIX):
        scorer = reference_metric(target)
        mark = f"{PREFIX}{scorer.name}:{scorer.description}"
        return Subject(
            target, {"score": scorer}, {"score": mark}, against_reference=True
        )
    method, _, model = target.partition("@")
    name = target
    judges = dict[str, Judge]()
    if method not in methods.names() or Path(target).exists():
        name = Path(target).stem
        judges = {"score": open_judge(Path(target), lm, where)}
    elif not options.metrics:
        raise OptionError(
            f"{target}: a method judges the metrics of a task; name them with --preset (dhp/summeval, …) or --metrics "
            "TASK/ASPECT, or name the file of a saved judge"
        )
    else:
        opened = open_model(model or lm, where)
        for metric, plain in zip(options.metrics, options.metric_names, strict=True):
            of_metric = methods.get(method).from_options(
                {}, labels_aspect=None, library_aspect=metric
            )
            judges[plain] = Judge(of_metric, lm=opened, scale=Scale(*options.scale))
    marks = {}
    for metric, judge in judges.items():
        if judge.whole_documents:
            raise OptionError(
                f"{target}: a {judge.method.kind} judge ranks the outputs of a document against each other; here each "
                "text is judged by itself"
            )
        marks[metric] = f"{fingerprint(judge)}:{judge.lm.name}"
        set_brief(judge.method, brief)
    return Subject(name, judges, marks)


#: The texts to be judged, as rows by their keys.
Asks = Mapping[str, Mapping[str, Any] | Item]
#: A metric, which repeat, and the texts that it has no score of.
Task = tuple[str, int, Asks]


def asks_of(
    pairs: Iterable[Pair],
    role: str,
    *,
    against_reference: bool,
    show_reference: bool = True,
) -> Asks:
    """Return the texts of pairs, each once, those of one source together.

    A judge sees a text's own reference only where the good texts are outputs (and `show_reference` allows it): else the
    reference would be the original text itself. A metric compares with the other references, or with the original text
    where there is none.
    """
    result: dict[str, dict[str, Any]] = {}
    good = {pair.id: pair.original for pair in pairs if pair.kind != "attack"}
    for pair in pairs:
        for text in (pair.original, pair.perturbed):
            row: dict[str, Any] = {
                "output": text,
                "source": pair.source,
                "context": pair.context,
                "group": pair.group,
            }
            if against_reference:
                row["references"] = list(pair.references) or [
                    t for t in (good.get(pair.id),) if t
                ]
            elif show_reference and role == "output" and pair.references:
                row["reference"] = pair.references[0]
            result.setdefault(ask_key(pair, text), row)
    # All texts of one source together: a model with a cache of prompt beginnings reads the source once.
    place: dict[tuple[Any, Any], int] = {}
    for row in result.values():
        place.setdefault((row["source"], row["context"]), len(place))
    return dict(
        sorted(
            result.items(), key=lambda ask: place[ask[1]["source"], ask[1]["context"]]
        )
    )


def missing(
    subject: Subject, book: Book, role: str, options: DiscernOptions
) -> list[Task]:
    """Return the tasks without a score; failed texts are judged again."""
    result = list[Task]()
    live = not subject.against_reference
    asks = asks_of(
        book.pairs,
        role,
        against_reference=not live,
        show_reference=options.show_reference,
    )
    for metric, mark in subject.marks.items():
        for k in range(options.repeat if live else 1):
            left = {
                key: row
                for key, row in asks.items()
                if book.score(mark, key, k).get("score") is None
            }
            if left:
                result.append((metric, k, left))
    return result


def judge(
    subject: Subject,
    tasks: Sequence[Task],
    book: Book,
    step: Callable[[], None] = lambda: None,
    limits: Limits | None = None,
) -> None:
    """Judge the missing texts; each score is written as it comes in.

    Raises:
        BudgetError: If a limit is reached.
    """
    judged = failed = 0
    for metric, k, asks in tasks:
        items = [
            row if subject.against_reference else Item.of(row) for row in asks.values()
        ]
        scorer = subject.scorers[metric]
        # `step` shows it
        if isinstance(scorer, Judge):
            quiet = {"progress": False}
        else:
            quiet = {}
        for key, verdict in zip(asks, scorer.score_many(items, **quiet), strict=True):
            record = {
                "judge": subject.name,
                "mark": subject.marks[metric],
                "text": key,
                "repeat": k,
                "score": None if math.isnan(verdict.score) else round(verdict.score, 9),
                "criteria": {
                    n: c.score
                    for n, c in verdict.criteria.items()
                    if not math.isnan(c.score)
                },
                "explanation": verdict.explanation,
                "failure": verdict.failure,
            }
            if verdict.category is not None:
                record["category"] = verdict.category
            book.add(record)
            step()
            judged = judged + 1
            failed = failed + (verdict.failure is not None)
            if limits is not None:
                limits.check(failed, judged, verdict.failure)


def estimated(subject: Subject, tasks: Sequence[Task], where: Connection) -> Estimate:
    """Return the estimated cost of judging, without calling a model."""
    total = Estimate(0, 0, 0, 0, 0.0, 0.0)
    for metric, _, asks in () if subject.against_reference else tasks:
        scorer = subject.scorers[metric]
        sample = [Item.of(row) for row in list(asks.values())[:SAMPLED]]
        total += estimate(scorer, scorer.lm.name, len(asks), sample, where)
    return total
