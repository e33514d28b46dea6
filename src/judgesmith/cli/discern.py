"""`judgesmith discern`: can a judge see damage? Parsing and the order of things; `discern` has the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from .options import LM, ApiBase, Columns, Concurrency, Json, NoCache, Rpm, Timeout

if TYPE_CHECKING:
    from ..experiments.discernment.pairs import Book, Contender
    from ..programs.models.lm import Connection

__all__ = ["register"]


class DiscernDegree(StrEnum):
    both = "both"
    minor = "minor"
    major = "major"


class DiscernForm(StrEnum):
    normalised = "normalised"
    paper = "paper"


HELP = """Can a judge see damage? Good texts are damaged in levels, judged before and after, and tested.

JUDGE is a file that `compile` saved, metric/rougeL and other metrics, or NAME=FILE; NAME/METRIC=FILE makes a metric of
a judge of several files. Several judges are compared on the same pairs. TEXTS is any file with good texts, or
bench/NAME: its references where there are some, else its outputs, one for each document.

D = log_0.05 p of a one-sided Wilcoxon test (DHP benchmark); from 1 on, the judge scores good texts above damaged ones
more often than chance. Beside the paper's damages (those with + are ours) there are changes that a good judge does not
react to, which give its false alarms, and attacks, texts that ask the judge for the best score.

With -o the pairs and all scores are kept as JSON lines: after Ctrl-C the same command goes on where it stopped, and
further judges are added to the same pairs.
"""


def register(app: typer.Typer) -> None:
    """Add `discern` to the command line."""
    paragraphs = (" ".join(part.split()) for part in HELP.split("\n\n"))
    app.command(name="discern", help="\n\n".join(paragraphs))(discern)


def discern(
    arguments: Annotated[
        list[str], typer.Argument(metavar="JUDGE... TEXTS", help="One judge or several, then the good texts.")
    ],
    perturb: Annotated[
        list[str] | None,
        typer.Option(
            "--perturb",
            metavar="NAME",
            help="A perturbation (typos, typos:major) or a group: all, paper, damage, invariance, attack, character, "
            "word, sentence. Repeatable; default all.",
            rich_help_panel="Perturbations",
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("--n", help="Texts at most, drawn by the seed.", min=1, rich_help_panel="Data")
    ] = 100,
    repeat: Annotated[
        int,
        typer.Option(
            help="Scores of each text, averaged (paper: 5). At temperature 0 one is enough. More than one asks without "
            "the cache of calls; -o keeps what was asked.",
            min=1,
            rich_help_panel="Judging",
        ),
    ] = 1,
    brief: Annotated[
        bool,
        typer.Option(
            "--brief",
            help="Scores alone, from judges that explain after the score: the same scores, several times faster, but "
            "no explanations in the report.",
            rich_help_panel="Judging",
        ),
    ] = False,
    degree: Annotated[
        DiscernDegree, typer.Option(help="Minor damage, major damage or both.", rich_help_panel="Perturbations")
    ] = DiscernDegree.both,
    amount: Annotated[
        str,
        typer.Option(
            metavar="relative|TASK",
            help="How many characters and words: shares of the text, or the paper's numbers for summarization, "
            "scientific, story, answer or translation.",
            rich_help_panel="Perturbations",
        ),
    ] = "relative",
    language: Annotated[
        str, typer.Option(help="Of the texts, as en, de or zh; for sentences and rules.", rich_help_panel="Data")
    ] = "en",
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A language model that makes the paper's LM-made damages (entities-lm, grammar-lm, rewrite-lm).",
            rich_help_panel="Perturbations",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Pairs and scores as .jsonl; is gone on with.", rich_help_panel="Output"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start -o anew.", rich_help_panel="Output")] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.png|.svg", help="Bars of D by damage.", rich_help_panel="Output"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="A page with tables, figure and texts whose damage was missed; no network.",
            rich_help_panel="Output",
        ),
    ] = None,
    criteria: Annotated[
        bool,
        typer.Option(
            "--criteria", help="The judge's criteria are its metrics, in place of its score.", rich_help_panel="Judging"
        ),
    ] = False,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="W.csv|.json",
            help="An expert's weight of each metric by perturbation; default our own table (see "
            "optimizers/agreement/discernment.py).",
            rich_help_panel="Statistics",
        ),
    ] = None,
    form: Annotated[
        DiscernForm,
        typer.Option(
            help="How several metrics' p are combined: each weighs 1/M, or as the paper prints it, M times too eager.",
            rich_help_panel="Statistics",
        ),
    ] = DiscernForm.normalised,
    rounds: Annotated[
        int, typer.Option(help="Of the bootstrap; 0 for no intervals.", min=0, rich_help_panel="Statistics")
    ] = 1000,
    seed: Annotated[
        int, typer.Option(help="Decides texts, perturbations and resamples.", rich_help_panel="Statistics")
    ] = 0,
    columns: Columns = None,
    lm: LM = None,
    api_base: ApiBase = None,
    timeout: Timeout = 120.0,
    concurrency: Concurrency = None,
    rpm: Rpm = None,
    no_cache: NoCache = False,
    as_json: Json = False,
) -> None:
    from ..datasets.perturbations.registry import PERTURBATIONS, Amounts, find_perturbations
    from ..experiments.console import Watch, err, out, print_json
    from ..experiments.discernment import tables as tables
    from ..experiments.discernment.comparison import compare
    from ..experiments.discernment.pairs import Book, asks_of, judge, make_pairs, missing, read_texts
    from ..experiments.discernment.run import analyse, read_weights
    from ..experiments.opening import column_roles, connection, quiet
    from ..experiments.plain import clean
    from ..experiments.reports.discernment import check_report, render, write

    if len(arguments) < 2:
        raise OptionError("name a judge and the texts: judgesmith discern judge.json good.jsonl")
    *judges, source = arguments
    if plot is not None:
        tables.check_plot(plot)
    if report is not None:
        check_report(report, Path(source), output)
    if output is not None and output.suffix.lower() != ".jsonl":
        raise OptionError(f"-o {output}: pairs and scores are JSON lines; name it .jsonl")
    if output is not None and output.exists() and Path(source).exists() and output.samefile(source):
        raise OptionError(f"-o {output} is the file of texts; name another")
    table = read_weights(weights) if weights is not None else None
    amounts = Amounts(amount)
    there = dict(PERTURBATIONS)
    if writer is not None:
        from ..experiments.discernment.rewriting import written_perturbations
        from ..experiments.opening import open_model

        there |= written_perturbations(open_model(writer, connection(api_base, timeout, concurrency, rpm, no_cache)))
    chosen = [
        (made, tuple(d for d in degrees if degree is DiscernDegree.both or d in (degree.value, "only")))
        for made, degrees in find_perturbations(perturb or ["all"], there)
    ]
    where = connection(api_base, timeout, concurrency, rpm, no_cache)
    texts = read_texts(source, columns=column_roles(columns or []), n=n, seed=seed)
    with quiet():
        contenders = open_contenders(
            judges, lm, where if repeat == 1 else connection(api_base, timeout, concurrency, rpm, True), brief=brief
        )
        settings = {
            "origin": texts.origin, "texts": texts.fingerprint, "role": texts.role, "n": len(texts.texts),
            "seed": seed, "amount": amount, "language": language, "writer": writer,
            "perturbations": [f"{p.name}:{d}" for p, degrees in chosen for d in degrees],
        }  # fmt: skip
        book = Book.open(
            output, settings,
            lambda: make_pairs(chosen, texts, seed=seed, amounts=amounts, language=language),
            overwrite=overwrite,
        )  # fmt: skip
        if not book.pairs:
            first = f" ({book.left[0].reason})" if book.left else ""
            raise OptionError(
                f"{texts.origin}: no text could be perturbed{first}; give other texts, or another --perturb"
            )
        tasks = []
        for contender in contenders:
            asks = asks_of(book.pairs, texts.role, against_reference=contender.against_reference)
            tasks.append(missing(contender, asks, book, repeat))
        wanted = [sum(len(asks) for _, _, asks in task) for task in tasks]
        live = sum(w for c, w in zip(contenders, wanted, strict=True) if not c.against_reference)
        if not as_json and live:
            err.print(f"{live:,} texts to judge; Ctrl-C loses nothing", style="dim")
        with Watch("judging", sum(wanted)) as watch:
            for contender, task, count in zip(contenders, tasks, wanted, strict=True):
                watch.stage(f"judging with {contender.name}", count)
                judge(contender, task, book, watch.step)
        results = [
            analyse(c, book, there, repeat=repeat, criteria=criteria, weights=table, form=form.value, rounds=rounds,
                    seed=seed)
            for c in contenders
        ]  # fmt: skip
        comparisons = compare(contenders, results, book, repeat=repeat, criteria=criteria, rounds=rounds, seed=seed)
    if plot is not None:
        tables.plot(results, plot, origin=texts.origin)
    notes = [*texts.notes, *_notes(contenders, texts.role, repeat, bool(output)), *_impossible(book)]
    if report is not None:
        page = render(
            contenders, results, comparisons, book, origin=texts.origin, notes=notes, repeat=repeat, criteria=criteria,
            rounds=rounds,
        )  # fmt: skip
        write(report, page)
    if as_json:
        left: dict[str, dict[str, int]] = {}
        for one in book.left:
            reasons = left.setdefault(one.name, {})
            reasons[one.reason] = reasons.get(one.reason, 0) + 1
        print_json(
            settings
            | {"repeat": repeat, "form": form.value, "rounds": rounds, "notes": notes, "left_out": left}
            | {"pairs": len(book.pairs), "output": str(output) if output else None}
            | {"report": str(report) if report else None}
            | {"judges": [result.to_dict() for result in results]}
            | {"comparisons": [one.to_dict() for one in comparisons]}
        )
    else:
        out.print(
            clean(f"{len(texts.texts)} texts ({texts.role}s) of {texts.origin}, {len(book.pairs)} pairs"), markup=False
        )
        for result in results:
            tables.show(result, rounds=rounds)
        tables.show_comparisons(comparisons)
        for note in notes:
            out.print(f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True)
        for path in (output, plot, report):
            if path is not None:
                out.print(f"Wrote {clean(str(path))}", markup=False)
    raise typer.Exit(1 if any(result.failed for result in results) else 0)


def _notes(contenders: Sequence[Contender], role: str, repeat: int, kept: bool) -> list[str]:
    notes = []
    if role == "reference" and any(c.against_reference for c in contenders):
        notes.append(
            "the texts are references: a metric compares each with the document's other references, or with the "
            "undamaged text itself where there is none, which flatters it"
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


def open_contenders(names: Sequence[str], lm: str | None, where: Connection, *, brief: bool = False) -> list[Contender]:
    """The judges that were named, checked before the first call; `brief` ones stop after the score where they can.
    Raises OptionError, ArtifactError, ModelError."""
    from ..experiments.discernment.pairs import Contender
    from ..experiments.opening import open_judge
    from ..programs.artifact import fingerprint
    from ..programs.metrics import PREFIX, reference_metric

    found: dict[str, dict[str, Any]] = {}
    for text in names:
        given, equals, target = text.rpartition("=")
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
