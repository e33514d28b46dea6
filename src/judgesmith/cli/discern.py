"""`judgesmith discern`: does a judge notice perturbations? Parsing, and the order of things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from .options import LM, ApiBase, Columns, Json
from .settings import Config, Settings, settings_of, with_settings

if TYPE_CHECKING:
    from ..datasets.perturbations.registry import Perturbation
    from ..experiments.discernment.comparison import Comparison
    from ..experiments.discernment.options import DiscernOptions
    from ..experiments.discernment.pairs import Book, Contender, Task, Texts
    from ..experiments.discernment.run import JudgeResult
    from ..experiments.limits import Limits
    from ..experiments.settings import Catalogue
    from ..programs.models.lm import Connection

__all__ = ["register"]

HELP = """Does a judge notice perturbations? Good texts are perturbed in levels, judged before and after, and tested.

JUDGE is a file that `compile` saved, metric/rougeL and other metrics, or NAME=FILE; NAME/METRIC=FILE makes a metric of
a judge of several files. Several judges are compared on the same pairs. TEXTS is any file with good texts, or
bench/NAME: its references where there are some, else its outputs, one for each document.

D = log_0.05 p of a one-sided Wilcoxon test (DHP benchmark); from 1 on, the judge scores good texts above perturbed ones
more often than chance. Beside the paper's perturbations (those with + are ours) there are changes that a good judge
does not react to, which give its false alarms, and attacks, texts that ask the judge for the best score.

With -o the pairs and all scores are kept as JSON lines: after Ctrl-C the same command goes on where it stopped, and
further judges are added to the same pairs.
"""


def register(app: typer.Typer) -> None:
    """Add `discern` to the command line."""
    paragraphs = (" ".join(part.split()) for part in HELP.split("\n\n"))
    app.command(name="discern", cls=with_settings(_catalogue), help="\n\n".join(paragraphs))(discern)


def _catalogue(given: Mapping[str, Any]) -> Catalogue:
    from ..experiments.discernment.options import DiscernOptions
    from ..experiments.settings import Catalogue, Owner, ReachOptions

    owners = (Owner("run", "discern", DiscernOptions), Owner("lm", "the language model", ReachOptions))
    return Catalogue(owners, "discern", more="; see `judgesmith options discern`")


Perturb = Annotated[
    list[str] | None,
    typer.Option(
        "--perturb",
        metavar="NAME",
        help="A perturbation (typos, typos:major; see `judgesmith perturbations`) or a group: all, paper, damage, "
        "invariance, attack, character, word, sentence. Repeatable; default all.",
    ),
]
Brief = Annotated[
    bool,
    typer.Option(
        "--brief",
        help="Scores alone, from judges that explain after the score: the same scores, several times faster, but "
        "no explanations in the report.",
    ),
]


def discern(
    context: typer.Context,
    arguments: Annotated[
        list[str], typer.Argument(metavar="JUDGE... TEXTS", help="One judge or several, then the good texts.")
    ],
    perturb: Perturb = None,
    n: Annotated[int, typer.Option("--n", help="Texts at most, drawn by the seed.", min=1)] = 100,
    brief: Brief = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Pairs and scores as .jsonl; is gone on with.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start -o anew.")] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png|.svg", help="Bars of D by perturbation.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="A page with tables, figure and texts whose perturbation was missed; no network.",
        ),
    ] = None,
    columns: Columns = None,
    lm: LM = None,
    api_base: ApiBase = None,
    settings: Settings = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    from ..experiments.console import out, print_json
    from ..experiments.discernment import tables
    from ..experiments.discernment.options import DiscernOptions
    from ..experiments.discernment.pairs import estimated, read_texts
    from ..experiments.discernment.run import analyse, read_weights
    from ..experiments.opening import column_roles, connection_of, quiet
    from ..experiments.reports.discernment import render, write
    from ..experiments.settings import ReachOptions

    if len(arguments) < 2:
        raise OptionError("name a judge and the texts: judgesmith discern judge.json good.jsonl")
    *judges, source = arguments
    _check_files(source, output, plot, report)
    found = _catalogue({}).resolve(*settings_of(context, settings))
    how, where = DiscernOptions(**found["run"]), connection_of(ReachOptions(**found["lm"]), api_base)
    limits = how.limits()
    if how.writer is not None and how.dry_run:
        raise OptionError(
            "--dry-run calls no model, and a writer has to write perturbations first; leave one of them out"
        )
    weights = read_weights(how.weights) if how.weights is not None else None
    there = _perturbations(how, where)
    chosen = _chosen(perturb or ["all"], there, how)
    texts = read_texts(source, columns=column_roles(columns or []), n=n, seed=how.seed)
    with quiet():
        asked = where if how.repeat == 1 else replace(where, cache=False)
        contenders = open_contenders(judges, lm, asked, brief=brief)
        unkept = how.dry_run and (overwrite or not (output and output.exists()))
        book = _book(chosen, texts, how, None if unkept else output, overwrite=overwrite)
        tasks = _tasks(contenders, book, texts, how)
        if how.dry_run:
            told = estimated(contenders, tasks, where)
            print_json(told.to_dict()) if as_json else out.print(str(told), markup=False, soft_wrap=True)
            raise typer.Exit(0)
        _judge_all(contenders, book, tasks, limits, quietly=as_json)
        results = [analyse(contender, book, there, how, weights) for contender in contenders]
        tested = _Tested.of(contenders, results, book, texts, how)
    if plot is not None:
        tables.plot(tested.results, plot, origin=texts.origin)
    if report is not None:
        page = render(
            contenders, tested.results, tested.comparisons, book, how, origin=texts.origin, notes=tested.notes
        )
        write(report, page)
    if as_json:
        _print_result(tested, book, how, output, report)
    else:
        _tell_result(tested, book, how, [path for path in (output, plot, report) if path is not None])
    raise typer.Exit(1 if any(result.failed for result in tested.results) else 0)


def _check_files(source: str, output: Path | None, plot: Path | None, report: Path | None) -> None:
    """Before anything is spent: can all that comes of it be written, and over no input? Raises OptionError."""
    from ..experiments.discernment.tables import check_plot
    from ..experiments.reports.discernment import check_report

    if plot is not None:
        check_plot(plot)
    if report is not None:
        check_report(report, Path(source), output)
    if output is not None and output.suffix.lower() != ".jsonl":
        raise OptionError(f"-o {output}: pairs and scores are JSON lines; name it .jsonl")
    if output is not None and output.exists() and Path(source).exists() and output.samefile(source):
        raise OptionError(f"-o {output} is the file of texts; name another")


def _perturbations(how: DiscernOptions, where: Connection) -> dict[str, Perturbation]:
    """All that there are, by name."""
    from ..datasets.perturbations.registry import PERTURBATIONS
    from ..experiments.discernment.rewriting import written_perturbations
    from ..experiments.opening import open_model

    written = {} if how.writer is None else written_perturbations(open_model(how.writer, where))
    return {**PERTURBATIONS, **written}


def _chosen(
    names: Sequence[str], there: Mapping[str, Perturbation], how: DiscernOptions
) -> list[tuple[Perturbation, tuple[Any, ...]]]:
    """Those that were asked for, each with its degrees."""
    from ..datasets.perturbations.registry import find_perturbations

    return [
        (made, tuple(d for d in degrees if how.degree == "both" or d in (how.degree, "only")))
        for made, degrees in find_perturbations(names, there)
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
    from ..experiments.discernment.pairs import Book, make_pairs

    amounts = Amounts(how.amount)
    settings = {
        "origin": texts.origin, "texts": texts.fingerprint, "role": texts.role, "n": len(texts.texts),
        "seed": how.seed, "amount": how.amount, "language": how.language, "writer": how.writer,
        "perturbations": [f"{p.name}:{d}" for p, degrees in chosen for d in degrees],
    }  # fmt: skip
    book = Book.open(
        output, settings,
        lambda: make_pairs(chosen, texts, seed=how.seed, amounts=amounts, language=how.language),
        overwrite=overwrite,
    )  # fmt: skip
    if not book.pairs:
        first = f" ({book.left[0].reason})" if book.left else ""
        raise OptionError(f"{texts.origin}: no text could be perturbed{first}; give other texts, or another --perturb")
    return book


def _tasks(contenders: Sequence[Contender], book: Book, texts: Texts, how: DiscernOptions) -> list[list[Task]]:
    """What has no score in the book yet, by contender."""
    from ..experiments.discernment.pairs import asks_of, missing

    found = []
    for contender in contenders:
        asks = asks_of(book.pairs, texts.role, against_reference=contender.against_reference)
        found.append(missing(contender, asks, book, how.repeat))
    return found


def _judge_all(
    contenders: Sequence[Contender], book: Book, tasks: Sequence[Sequence[Task]], limits: Limits, *, quietly: bool
) -> None:
    """Judge what has no score in the book yet. Raises BudgetError over the limits."""
    from ..experiments.console import Watch, err
    from ..experiments.discernment.pairs import judge, judges_of

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
    """What came of it."""

    texts: Texts
    results: list[JudgeResult]
    comparisons: list[Comparison]
    notes: list[str]

    @classmethod
    def of(
        cls, contenders: Sequence[Contender], results: list[JudgeResult], book: Book, texts: Texts, how: DiscernOptions
    ) -> _Tested:
        from ..experiments.discernment.comparison import compare

        notes = [*texts.notes, *_notes(contenders, texts.role, how.repeat, book.path is not None), *_impossible(book)]
        return cls(texts, results, compare(contenders, results, book, how), notes)


def _print_result(tested: _Tested, book: Book, how: DiscernOptions, output: Path | None, report: Path | None) -> None:
    from ..experiments.console import print_json

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
        | {"comparisons": [one.to_dict() for one in tested.comparisons]}
    )


def _tell_result(tested: _Tested, book: Book, how: DiscernOptions, written: Sequence[Path]) -> None:
    from ..experiments.console import out
    from ..experiments.discernment import tables
    from ..experiments.plain import clean

    texts = tested.texts
    out.print(
        clean(f"{len(texts.texts)} texts ({texts.role}s) of {texts.origin}, {len(book.pairs)} pairs"), markup=False
    )
    for result in tested.results:
        tables.show(result, rounds=how.rounds)
    tables.show_comparisons(tested.comparisons)
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


def _impossible(book: Book) -> list[str]:
    """Perturbations that no text allowed, by the reason that most of the texts have."""
    possible = {pair.name for pair in book.pairs}
    reasons: dict[str, list[str]] = {}
    for one in book.left:
        if one.name not in possible:
            reasons.setdefault(one.name, []).append(one.reason)
    return [f"{name}: not possible on these texts ({max(set(r), key=r.count)})" for name, r in reasons.items()]


# Judges --------------------------------------------------------------------------------------------------------------


def _named(text: str) -> tuple[str, str, str]:
    """The parts of NAME=FILE; a metric's options may have signs of their own."""
    from ..programs.metrics import PREFIX

    given, equals, target = text.partition(f"={PREFIX}")
    return (given, "=", PREFIX + target) if equals else text.rpartition("=")


def open_contenders(names: Sequence[str], lm: str | None, where: Connection, *, brief: bool = False) -> list[Contender]:
    """The judges that were named, checked before the first call; `brief` ones stop after the score where they can.
    Raises OptionError, ArtifactError, ModelError."""
    from ..experiments.discernment.pairs import Contender
    from ..experiments.opening import open_judge
    from ..programs.artifact import fingerprint
    from ..programs.metrics import PREFIX, reference_metric

    found: dict[str, dict[str, Any]] = {}
    for text in names:
        given, equals, target = ("", "", text) if text.startswith(PREFIX) else _named(text)
        name, slash, metric = given.strip().partition("/")
        if equals and (not name or (slash and not metric.strip())):
            raise OptionError(f"judge {text!r} is not of the form FILE, NAME=FILE or NAME/METRIC=FILE")
        is_metric = target.startswith(PREFIX)
        name = name or (target if is_metric else Path(target).stem)
        scorer: Any
        if is_metric:
            scorer = reference_metric(target)
            mark = f"{PREFIX}{scorer.name}:{scorer.description}"
        else:
            scorer = open_judge(Path(target), lm, where)
            if scorer.whole_documents:
                raise OptionError(
                    f"{target}: a {scorer.kind} judge ranks the outputs of a document against each other; here each "
                    "text is judged by itself"
                )
            mark = f"{fingerprint(scorer)}:{scorer.lm.name}"
            scorer.set_brief(brief)
        entry = found.setdefault(name, {"scorers": {}, "marks": {}, "against_reference": is_metric})
        if (metric or "score") in entry["scorers"] or entry["against_reference"] != is_metric:
            raise OptionError(f"judge {name!r} is named twice; tell them apart with NAME=FILE or NAME/METRIC=FILE")
        entry["scorers"][metric or "score"] = scorer
        entry["marks"][metric or "score"] = mark
    return [Contender(name, **entry) for name, entry in found.items()]
