"""`judgesmith discern`: does a judge notice perturbations? Parsing, and the order of things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..cli.commands import Command, Json, Model, Preset, Rows, argument, flag
from ..errors import OptionError

if TYPE_CHECKING:
    from ..datasets.perturbations.registry import Perturbation
    from ..programs.models.lm import Connection
    from ..running.limits import Limits
    from ..running.settings import Catalogue
    from .options import DiscernOptions
    from .pairs import Book, Contender, Task, Texts
    from .run import JudgeResult

__all__ = ["Discern"]


class Discern(Command, Preset, Model, Rows, Json):
    """Does a judge notice perturbations? Good texts are perturbed in levels, judged before and after, and tested.

    JUDGE is a file that `compile` saved, metric/rougeL and other metrics, or NAME=FILE; NAME/METRIC=FILE makes a metric
    of a judge of several files. With --preset it may be METHOD or METHOD@MODEL, for example direct@local/qwen2.5-0.5b,
    which judges each metric of the preset's task. TEXTS is any file with good texts, or bench/NAME: its references, or
    its outputs where there are none, one for each document.

    D = log_0.05 p of a one-sided Wilcoxon test (DHP benchmark); from 1 on, the judge scores good texts above perturbed
    ones more often than chance. The paper's perturbations of a task, stand-ins by rules for those that it makes with a
    language model (--writer makes them), and ours have tables, D_avg and D_min of their own. Beside them there are
    changes that a good judge does not react to, which give its false alarms, and attacks, texts that ask the judge for
    the best score.

    --preset dhp/summeval and the others of `judgesmith list presets` are the paper's benchmark.

    With -o the pairs and all scores are kept as JSON lines: after Ctrl-C the same command resumes where it stopped, and
    further judges are added to the same pairs.
    `judgesmith list options discern` has further options.
    """

    panel: ClassVar[str] = "Trust"

    arguments: list[str] = argument(
        [], "One judge or several, then the good texts, which a preset may name instead.", "JUDGE... TEXTS"
    )
    perturb: list[str] = flag(
        [],
        "A perturbation (typos, typos:major; see `judgesmith list perturbations`) or a group: all, paper (what DHP has "
        "for this task), degradation, invariance, attack, character, word, sentence. Repeatable; default all.",
        metavar="NAME",
    )
    n: int = flag(100, "Texts at most, drawn by the seed.", "--n", ge=1)
    brief: bool = flag(
        False,
        "Scores alone, from judges that explain after the score: the same scores, several times faster, but no "
        "explanations in the report.",
    )
    output: Path | None = flag(None, "Pairs and scores as .jsonl; resumed if it exists.", "-o", "--output")
    overwrite: bool = flag(False, "Start -o over.")
    report: Path | None = flag(
        None, "A page with tables and texts whose perturbation was missed; no network.", metavar="FILE.html"
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        from ..running.settings import Catalogue, Owner, ReachOptions
        from .options import DiscernOptions

        owners = (Owner("run", "discern", DiscernOptions), Owner("lm", "the language model", ReachOptions))
        return Catalogue(owners, "discern", more="; see `judgesmith list options discern`")

    def run(self) -> int:
        from ..running.console import out, print_json
        from ..running.opening import connection_of, quiet
        from ..running.settings import ReachOptions
        from .contenders import open_contenders
        from .options import DiscernOptions
        from .pairs import estimated, missing, read_texts
        from .planning import Plan
        from .rewriting import WRITTEN
        from .run import analyse
        from .weights import read_weights

        output = self.output
        how = DiscernOptions(**self.more("run"))
        where = connection_of(ReachOptions(**self.more("lm")), self.api_base)
        if how.weights_form is not None:
            _write_form(how, self.perturb)
            return 0
        judges, source = _judges_and_texts(self.arguments, how)
        self._check_files(source)
        limits = how.limits()
        perturbations = _perturbations(how, where)
        known = [*perturbations, *(kind.name for kind in WRITTEN)]
        weights = None if how.weights is None else read_weights(how.weights, known, how.metric_names)
        texts = read_texts(source, columns=self.roles(), n=self.n, seed=how.seed, how=how)
        chosen = _chosen(self.perturb or ["all"], perturbations, how, texts.task)
        with quiet():
            asked = where if how.repeat == 1 else replace(where, cache=False)
            contenders = open_contenders(judges, self.lm, asked, how, brief=self.brief)
            unkept = how.dry_run and (self.overwrite or not (output and output.exists()))
            book = _book(chosen, texts, how, None if unkept else output, overwrite=self.overwrite)
            tasks = [missing(one, book, texts.role, how) for one in contenders]
            if how.dry_run:
                plan = Plan(texts, book, chosen, how, estimated(contenders, tasks, where))
                if self.as_json:
                    print_json(plan.to_dict())
                else:
                    out.print("\n".join(plan.lines()), markup=False, soft_wrap=True)
                return 0
            _judge_all(contenders, book, tasks, limits, quietly=self.as_json)
            results = [analyse(contender, book, perturbations, how, weights, texts.task) for contender in contenders]
            tested = _Tested.of(contenders, results, book, texts, how)
        written = self._write_files(contenders, tested, book, how)
        if self.as_json:
            _print_result(tested, book, how, output, self.report)
        else:
            _tell_result(tested, book, how, written)
        return 1 if any(result.failed for result in tested.results) else 0

    def _check_files(self, source: str) -> None:
        """Before anything is spent: can all that comes of it be written, and over no input? Raises OptionError."""
        from ..pages import check_page

        output = self.output
        if self.report is not None:
            check_page(self.report, "--report", Path(source), output)
        if output is not None and output.suffix.lower() != ".jsonl":
            raise OptionError(f"-o {output}: pairs and scores are JSON lines; name it .jsonl")
        if output is not None and output.exists() and Path(source).exists() and output.samefile(source):
            raise OptionError(f"-o {output} is the file of texts; name another")

    def _write_files(
        self, contenders: Sequence[Contender], tested: _Tested, book: Book, how: DiscernOptions
    ) -> list[Path]:
        """The report; all files that there are now."""
        from ..pages import write_page
        from .page import render

        if self.report is not None:
            page = render(contenders, tested.results, book, how, origin=tested.texts.origin, notes=tested.notes)
            write_page(self.report, page, "--report")
        return [path for path in (self.output, self.report) if path is not None]


def _judges_and_texts(arguments: Sequence[str], how: DiscernOptions) -> tuple[list[str], str]:
    """The judges, and the texts of the command line or of the preset. Raises OptionError."""
    from .contenders import names_judge

    *judges, last = arguments or [""]
    if last and how.texts is not None and names_judge(last):
        return [*judges, last], how.texts
    if not judges:
        raise OptionError(
            "name a judge and the texts: judgesmith discern judge.json good.jsonl"
            if how.texts is None
            else "name a judge: judgesmith discern judge.json, or METHOD@MODEL such as direct@local/qwen2.5-0.5b"
        )
    return judges, last


def _write_form(how: DiscernOptions, perturb: Sequence[str] | None) -> None:
    """The form for experts' weights of the paper's perturbations for the task, or of those that are named."""
    from ..datasets.perturbations.registry import PERTURBATIONS, find_perturbations
    from ..running.console import out
    from ..running.plain import clean
    from .rewriting import written_perturbations
    from .weights import write_form

    path = how.weights_form
    assert path is not None
    perturbations = {**PERTURBATIONS, **written_perturbations(None)}
    named = find_perturbations(perturb or ["paper"], perturbations, how.task())
    chosen = [made for made, _ in named if made.kind == "degradation"]
    write_form(path, how.metrics, chosen)
    out.print(
        clean(f"Wrote {path}: {len(chosen)} perturbations, {len(how.metrics)} metrics. Each expert marks one metric "
              "for each perturbation in a copy; put the copies into a folder and give it with --weights FOLDER"),
        markup=False, soft_wrap=True,
    )  # fmt: skip


def _perturbations(how: DiscernOptions, where: Connection) -> dict[str, Perturbation]:
    """All that there are, by name."""
    from ..datasets.perturbations.registry import PERTURBATIONS
    from ..running.opening import open_model
    from .rewriting import written_perturbations

    if how.writer is None:
        return dict(PERTURBATIONS)
    return {**PERTURBATIONS, **written_perturbations(None if how.dry_run else open_model(how.writer, where))}


def _chosen(
    names: Sequence[str], there: Mapping[str, Perturbation], how: DiscernOptions, task: str
) -> list[tuple[Perturbation, tuple[Any, ...]]]:
    """Those that were asked for, each with its degrees."""
    from ..datasets.perturbations.registry import find_perturbations

    return [
        (made, tuple(d for d in degrees if how.degree == "both" or d in (how.degree, "only")))
        for made, degrees in find_perturbations(names, there, task)
    ]


def _book(
    chosen: Sequence[tuple[Perturbation, tuple[Any, ...]]],
    texts: Texts,
    how: DiscernOptions,
    output: Path | None,
    *,
    overwrite: bool,
) -> Book:
    """Pairs and the scores that are there already."""
    from ..datasets.perturbations.registry import Amounts
    from .pairs import Book, make_pairs

    amounts = Amounts(how.amount)
    settings = {
        "origin": texts.origin, "texts": texts.fingerprint, "role": texts.role, "n": len(texts.texts),
        "seed": how.seed, "amount": how.amount, "language": how.language, "writer": how.writer,
        "perturbations": [f"{p.name}:{d}" for p, degrees in chosen for d in degrees],
    }  # fmt: skip
    if not how.show_reference:
        settings["show_reference"] = False
    book = Book.open(
        output, settings,
        lambda: make_pairs(chosen, texts, seed=how.seed, amounts=amounts, language=how.language),
        overwrite=overwrite,
    )  # fmt: skip
    if not book.pairs:
        first = f" ({book.left[0].reason})" if book.left else ""
        raise OptionError(f"{texts.origin}: no text could be perturbed{first}; give other texts, or another --perturb")
    return book


def _judge_all(
    contenders: Sequence[Contender], book: Book, tasks: Sequence[Sequence[Task]], limits: Limits, *, quietly: bool
) -> None:
    """Judge what has no score in the book yet. Raises BudgetError over the limits."""
    from ..running.console import Watch, err
    from .pairs import judge, judges_of

    wanted = [sum(len(asks) for _, _, asks in task) for task in tasks]
    live = sum(w for c, w in zip(contenders, wanted, strict=True) if not c.against_reference)
    if not quietly and live:
        err.print(f"{live:,} texts to judge; Ctrl-C loses nothing", style="dim")
    models = [one.lm for contender in contenders for one in judges_of(contender)]
    with limits.spending(*models), Watch("judging", sum(wanted)) as watch:
        for contender, task, count in zip(contenders, tasks, wanted, strict=True):
            watch.stage(f"judging with {contender.name}", count)
            judge(contender, task, book, watch.step, limits)


@dataclass(frozen=True, slots=True)
class _Tested:
    """The result, as JSON or as tables."""

    texts: Texts
    results: list[JudgeResult]
    notes: list[str]

    @classmethod
    def of(
        cls, contenders: Sequence[Contender], results: list[JudgeResult], book: Book, texts: Texts, how: DiscernOptions
    ) -> _Tested:
        notes = [*texts.notes, *_notes(contenders, texts.role, how.repeat, book.path is not None), *_impossible(book)]
        notes += _notes_of_task(results, how)
        return cls(texts, results, notes)


def _print_result(tested: _Tested, book: Book, how: DiscernOptions, output: Path | None, report: Path | None) -> None:
    from ..running.console import print_json

    left: dict[str, dict[str, int]] = {}
    for one in book.left:
        reasons = left.setdefault(one.name, {})
        reasons[one.reason] = reasons.get(one.reason, 0) + 1
    print_json(
        book.settings
        | {"repeat": how.repeat, "form": how.form, "rounds": how.rounds, "notes": tested.notes, "left_out": left}
        | {"pairs": len(book.pairs), "output": str(output) if output else None}
        | {"report": str(report) if report else None}
        | {"judges": [result.to_dict() for result in tested.results]}
    )


def _tell_result(tested: _Tested, book: Book, how: DiscernOptions, written: Sequence[Path]) -> None:
    from ..running.console import out
    from ..running.plain import clean
    from . import tables

    texts = tested.texts
    out.print(
        clean(f"{len(texts.texts)} texts ({texts.role}s) of {texts.origin}, {len(book.pairs)} pairs"), markup=False
    )
    for result in tested.results:
        tables.show(result, rounds=how.rounds)
    for note in tested.notes:
        out.print(f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True)
    for path in written:
        out.print(f"Wrote {clean(str(path))}", markup=False)


def _notes(contenders: Sequence[Contender], role: str, repeat: int, kept: bool) -> list[str]:
    notes = []
    if role == "reference" and any(c.against_reference for c in contenders):
        notes.append(
            "the texts are references: a metric compares each with the document's other references, or with the "
            "original text itself where there is none, which flatters it"
        )
    if repeat > 1 and any(not c.against_reference for c in contenders):
        notes.append(
            f"each text was judged {repeat} times"
            + ("" if kept else "; without -o the same command would ask all of it again")
        )
    return notes


def _notes_of_task(results: Sequence[JudgeResult], how: DiscernOptions) -> list[str]:
    """What keeps a judge's numbers from being the paper's."""
    notes = []
    for result in results:
        judged = {metric.casefold() for metric in result.metrics}
        if how.metrics and not judged >= {name.casefold() for name in how.metric_names}:
            given, wanted = ", ".join(result.metrics), ", ".join(how.metric_names)
            notes.append(f"{result.judge} gives {given}; the task's metrics are {wanted}")
    if any(line.origin == "stand-in" for result in results for line in result.of("degradation")):
        notes.append(
            "stand-ins (~) are made by rules where the paper has a language model; they count as none of the paper's "
            "perturbations. --writer MODEL makes those"
        )
    if how.form == "paper" and any(len(result.metrics) > 1 for result in results):
        notes.append(
            "without 1/M, several metrics make p as many times too small: a judge that guesses passes D = 1 far more "
            "often than in 5 % of the perturbations; p Holm, and what a judge notices, rest on the normalised p"
        )
    return notes


def _impossible(book: Book) -> list[str]:
    """Perturbations that no text allowed, by the reason that most of the texts have."""
    possible = {pair.name for pair in book.pairs}
    reasons: dict[str, list[str]] = {}
    for one in book.left:
        if one.name not in possible:
            reasons.setdefault(one.name, []).append(one.reason)
    return [f"{name}: not possible on these texts ({max(set(r), key=r.count)})" for name, r in reasons.items()]
