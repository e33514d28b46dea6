"""`judgesmith discern`: does a judge notice perturbations? Parsing, and the order of things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from judgesmith.cli.commands import Command, Json, Model, Preset, Rows, argument, flag
from judgesmith.errors import OptionError
from judgesmith.wording import word_count

if TYPE_CHECKING:
    from judgesmith.datasets.perturbations.registry import Degree, Perturbation
    from judgesmith.rooms.discerning.checking.run import Run
    from judgesmith.rooms.discerning.judging import Subject
    from judgesmith.rooms.discerning.options import DiscernOptions
    from judgesmith.rooms.discerning.pairs import Book, Texts
    from judgesmith.rooms.discerning.run import JudgeResult
    from judgesmith.running.settings import Catalogue


#: Options that a run of checks does not read.
OF_PERTURBING = frozenset(
    ("good", "pick", "longer_than", "amount", "writer", "repeat", "weights", "form")
)
Chosen = Sequence[tuple["Perturbation", tuple["Degree", ...]]]


class Discern(Command, Preset, Model, Rows, Json):
    """Test whether a judge detects perturbed texts.

    Good texts are perturbed at several levels, and scored before and after.

    JUDGE is a saved judge or a metric (metric/rougeL). With --preset it may be METHOD or METHOD@MODEL, for example
    direct@local/qwen2.5-0.5b, which judges each metric of the preset's task. TEXTS is a file with good texts, or
    bench/NAME. One text per document is used: a reference, or an output if few rows have a reference.

    D = log_0.05 p of a one-sided Wilcoxon test (DHP benchmark). From 1 on, the judge scores good texts above perturbed
    ones more often than chance. Three tables have a D_avg and D_min each. They are the paper's perturbations, our
    rules in place of its model-written ones (--writer writes these), and our own perturbations. Two controls follow.
    Harmless changes measure false alarms. Attacks are texts that ask the judge for the best score.

    --preset dhp/summeval and others (`judgesmith list presets`) run the paper's benchmark.

    --check measures, without labels, score changes that no difference in quality explains. The texts are scored again,
    with a reworded rubric, in swapped order, and padded in length and style. A last check finds preference for
    outputs of the judge's own model. JUDGE may then also be a column of TEXTS with recorded scores.

    -o saves the pairs and all scores as JSON lines. After Ctrl-C the same command resumes. With another judge it adds
    that judge's scores to the same pairs. `judgesmith list options discern` has further options.
    """

    example: ClassVar[str] = "judgesmith discern judge.json texts.jsonl --check length"

    judge: str | None = argument(
        None,
        "Judge to test: a saved judge, metric/NAME, METHOD@MODEL with --preset, or a "
        "column of TEXTS with --check.",
        "JUDGE",
    )
    good_texts: str | None = argument(
        None,
        "File of good texts, or bench/NAME. Default: the texts of the preset.",
        "TEXTS",
    )
    perturb: list[str] = flag(
        [],
        "Perturbation (`judgesmith list perturbations`), with or without a level: typos, typos:major. Groups: all "
        "(default), paper (DHP's for this task), degradation, invariance, attack, character, word, sentence, "
        "trajectory. Repeatable.",
        metavar="NAME",
    )
    check: list[str] = flag(
        [],
        "Consistency check to run instead of perturbations: repeat, reworded, swapped, length, style, layout or own. "
        "Groups: padded (length, style and layout), all. Repeatable.",
        metavar="NAME",
    )
    n: int = flag(
        100, "Maximum number of texts, drawn at random with --seed.", "--n", ge=1
    )
    brief: bool = flag(
        False,
        "Skip explanations that follow the score: much faster, same scores, but no explanations in the report.",
    )
    output: Path | None = flag(
        None,
        "JSON-lines file of pairs and scores. An existing file is resumed.",
        "-o",
        "--output",
    )
    overwrite: bool = flag(False, "Start over instead of resuming -o.")
    report: Path | None = flag(
        None,
        "Self-contained HTML file with the tables and the texts whose perturbation was missed.",
        metavar="FILE.html",
    )

    @classmethod
    def catalogue(cls, chosen: Mapping[str, Any]) -> Catalogue:
        """Return the options of the run, of the checks and of the model's connection."""
        from judgesmith.rooms.discerning.checking.rows import CheckOptions
        from judgesmith.rooms.discerning.options import DiscernOptions
        from judgesmith.running.settings import Catalogue, Owner, ReachOptions

        owners = (
            Owner("run", "discern", DiscernOptions),
            Owner("check", "discern --check", CheckOptions),
            Owner("lm", "the language model", ReachOptions),
        )
        return Catalogue(
            owners, "discern", more="; see `judgesmith list options discern`"
        )

    def run(self) -> int:
        """Perturb the texts, judge both sides and print the tests."""
        from judgesmith.datasets.perturbations.registry import (
            PERTURBATIONS,
            find_perturbations,
        )
        from judgesmith.rooms.discerning.judging import (
            estimated,
            judge,
            missing,
            open_subject,
        )
        from judgesmith.rooms.discerning.options import DiscernOptions
        from judgesmith.rooms.discerning.pairs import read_texts
        from judgesmith.rooms.discerning.rewriting import WRITTEN, written_perturbations
        from judgesmith.rooms.discerning.run import analyse
        from judgesmith.rooms.discerning.weights import read_weights
        from judgesmith.running.console import Watch, err, out, print_json
        from judgesmith.running.opening import (
            connection_of,
            open_model,
            quiet,
            roles_for,
            rows_file,
        )
        from judgesmith.running.settings import ReachOptions

        if self.check:
            return self._run_checks()
        if unused := list(self.more("check")):
            raise OptionError(f"--{unused[0]} has no effect without --check")
        options = DiscernOptions(**self.more("run"))
        where = connection_of(ReachOptions(**self.more("lm")), self.api_base)
        source = self.good_texts or options.texts
        if self.judge is None or source is None:
            raise OptionError(
                "name a judge and the texts: judgesmith discern judge.json good.jsonl"
                if options.texts is None
                else "name a judge: judgesmith discern judge.json, or METHOD@MODEL such as direct@local/qwen2.5-0.5b"
            )
        self._check_files(source)
        limits = options.limits()
        perturbations = dict(PERTURBATIONS)
        if options.writer is not None:
            perturbations |= written_perturbations(
                None if options.dry_run else open_model(options.writer, where)
            )
        names = [*perturbations, *(kind.name for kind in WRITTEN)]
        if options.weights is None:
            weights = None
        else:
            weights = read_weights(options.weights, names, options.metric_names)
        if (
            Path(self.judge).is_file()
            and not self.judge.endswith(".json")
            and source.endswith(".json")
        ):
            raise OptionError(
                "arguments in the wrong order; give the judge before the texts: "
                f"judgesmith discern {source} {self.judge}"
            )
        judge_file = Path(self.judge)
        roles = roles_for(
            rows_file(source),
            self.roles(),
            *([judge_file] if judge_file.is_file() else []),
        )
        texts = read_texts(
            source, columns=roles, n=self.n, seed=options.seed, options=options
        )
        chosen = find_perturbations(self.perturb or ["all"], perturbations, texts.task)
        with quiet():
            connection = where if options.repeat == 1 else replace(where, cache=False)
            subject = open_subject(
                self.judge, self.lm, connection, options, brief=self.brief
            )
            book = _book(
                chosen,
                texts,
                options,
                self._kept(options),
                overwrite=self.overwrite,
            )
            tasks = missing(subject, book, texts.role, options)
            if options.dry_run:
                cost = estimated(subject, tasks, where)
                plan = _plan(texts, book, chosen, options)
                if self.as_json:
                    print_json(cost.to_dict() | plan)
                else:
                    out.print(
                        "\n".join([*_plan_in_words(plan), str(cost)]),
                        markup=False,
                        soft_wrap=True,
                    )
                return 0
            wanted = sum(len(asks) for _, _, asks in tasks)
            if not self.as_json and wanted and subject.judges:
                err.print(
                    f"{wanted:,} texts to judge; Ctrl-C loses nothing", style="dim"
                )
            with (
                limits.spending(*(one.lm for one in subject.judges)),
                Watch("judging", wanted) as watch,
            ):
                judge(subject, tasks, book, watch.step, limits)
            result = analyse(subject, book, perturbations, options, weights, texts.task)
        self._print_result(subject, texts, book, options, result)
        return 1 if result.failed else 0

    def _run_checks(self) -> int:
        """Run the checks that need no labels."""
        from judgesmith.rooms.discerning.checking.live import open_live
        from judgesmith.rooms.discerning.checking.rows import CheckOptions
        from judgesmith.rooms.discerning.checking.run import Run
        from judgesmith.rooms.discerning.options import DiscernOptions
        from judgesmith.running.console import Watch, err, out, print_json
        from judgesmith.running.opening import (
            connection_of,
            quiet,
            roles_for,
            rows_file,
        )
        from judgesmith.running.settings import ReachOptions

        options = DiscernOptions(**self.more("run"))
        where = connection_of(ReachOptions(**self.more("lm")), self.api_base)
        judge = self.judge
        source = self.good_texts or options.texts
        if judge is None or source is None:
            raise OptionError(
                "missing argument; name a judge (or a column with its scores) and rows: "
                "judgesmith discern judge.json rows.jsonl --check all"
            )
        if self.perturb:
            raise OptionError("--perturb and --check are two runs; leave one out")
        # What a preset sets is for either kind of run.
        unused = [name for name in self.more("run") if name in OF_PERTURBING]
        if unused and not self.preset:
            option = unused[0].replace("_", "-")
            raise OptionError(f"--{option} has no effect with --check; leave it out")
        self._check_files(source)
        judge_file = Path(judge)
        files = [judge_file] if judge_file.is_file() else []
        with quiet():
            run = Run.of(
                judge,
                source,
                self.check,
                roles_for(rows_file(source), self.roles(), *files),
                options,
                CheckOptions(**self.more("check")),
                lambda: open_live(judge, self.lm, where, options, brief=self.brief),
                self.n,
            )
            book = run.book(self._kept(options), overwrite=self.overwrite)
            tasks = run.tasks(book)
            if options.dry_run:
                cost = run.cost(tasks, where)
                plan = run.plan()
                if self.as_json:
                    print_json(cost.to_dict() | plan)
                else:
                    lines = [*run.in_words(), str(cost)]
                    out.print("\n".join(lines), markup=False, soft_wrap=True)
                return 0
            wanted = sum(len(asks) for _, _, asks in tasks)
            if not self.as_json and wanted:
                err.print(
                    f"{wanted:,} rows to judge; Ctrl-C loses nothing", style="dim"
                )
            limits = options.limits()
            with limits.spending(*run.models), Watch("judging", wanted) as watch:
                run.ask(tasks, book, watch.step, limits)
            return self._print_checks(run, book)

    def _kept(self, options: DiscernOptions) -> Path | None:
        """Return the file that scores are kept in; a dry run only reads one that is there and would be resumed."""
        resumed = bool(self.output and self.output.exists()) and not self.overwrite
        return self.output if resumed or not options.dry_run else None

    def _print_checks(self, run: Run, book: Book) -> int:
        """Print the result as JSON or as tables, and write the page."""
        from judgesmith.pages import write_page
        from judgesmith.rooms.discerning.checking import show
        from judgesmith.running.console import out, print_json, wide
        from judgesmith.running.plain import clean

        result = run.result(book)
        if self.report is not None:
            about = {"seed": run.how.seed, "rounds": run.how.rounds}
            write_page(self.report, show.render(result, about), "--report")
        if self.as_json:
            files = {
                "output": self.output and str(self.output),
                "report": self.report and str(self.report),
            }
            print_json(result.to_dict() | files)
            return 1 if result.failed else 0
        head = f"{result.rows} rows of {result.documents} documents of {result.origin}; decisions: {result.bar}"
        out.print(clean(head), markup=False, soft_wrap=True)
        if result.shifts:
            show.shifts_table(result).show(wide())
        if result.own is not None:
            show.own_table(result.own).show(wide())
        for note in [*result.notes, *show.left_out(result)]:
            out.print(
                f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True
            )
        out.print(f"{clean(show.lead_of(result))}.", markup=False, style="bold")
        for path in filter(None, (self.output, self.report)):
            out.print(f"Wrote {clean(str(path))}", markup=False)
        return 1 if result.failed else 0

    def _check_files(self, source: str) -> None:
        """Check, before any cost, that all outputs can be written and replace no input.

        Raises:
            OptionError: If one cannot.
        """
        from judgesmith.pages import check_page

        output = self.output
        if self.report is not None:
            check_page(self.report, "--report", Path(source), output)
        if output is not None and output.suffix.lower() != ".jsonl":
            raise OptionError(
                f"-o {output}: pairs and scores are JSON lines; name it .jsonl"
            )
        if (
            output is not None
            and output.exists()
            and Path(source).exists()
            and output.samefile(source)
        ):
            raise OptionError(f"-o {output} is the file of texts; name another")

    def _print_result(
        self,
        subject: Subject,
        texts: Texts,
        book: Book,
        options: DiscernOptions,
        result: JudgeResult,
    ) -> None:
        """Print the report, and the result as JSON or as tables."""
        from judgesmith.pages import write_page
        from judgesmith.rooms.discerning.page import render
        from judgesmith.rooms.discerning.tables import show
        from judgesmith.running.console import out, print_json
        from judgesmith.running.plain import clean

        notes = [*texts.notes, *_notes(subject, texts.role, book, options, result)]
        if self.report is not None:
            page = render(
                subject, result, book, options, origin=texts.origin, notes=notes
            )
            write_page(self.report, page, "--report")
        if self.as_json:
            left: dict[str, Counter[str]] = {}
            for one in book.left:
                left.setdefault(one.name, Counter())[one.reason] += 1
            files = {
                "output": self.output and str(self.output),
                "report": self.report and str(self.report),
            }
            more = {
                "repeat": options.repeat,
                "form": options.form,
                "rounds": options.rounds,
                "notes": notes,
                "left_out": left,
            }
            print_json(
                book.settings
                | more
                | {"pairs": len(book.pairs)}
                | files
                | result.to_dict()
            )
            return
        head = f"{len(texts.texts)} texts ({texts.role}s) of {texts.origin}, {len(book.pairs)} pairs"
        out.print(clean(head), markup=False)
        show(result, rounds=options.rounds)
        for note in notes:
            out.print(
                f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True
            )
        for path in filter(None, (self.output, self.report)):
            out.print(f"Wrote {clean(str(path))}", markup=False)


def _book(
    chosen: Chosen,
    texts: Texts,
    options: DiscernOptions,
    output: Path | None,
    *,
    overwrite: bool,
) -> Book:
    """Return pairs and the scores that are there already."""
    from judgesmith.datasets.perturbations.registry import Amounts
    from judgesmith.rooms.discerning.pairs import Book, make_pairs

    settings = {
        "origin": texts.origin,
        "texts": texts.fingerprint,
        "role": texts.role,
        "n": len(texts.texts),
        "seed": options.seed,
        "amount": options.amount,
        "language": options.language,
        "writer": options.writer,
        "perturbations": [f"{p.name}:{d}" for p, degrees in chosen for d in degrees],
    }
    if not options.show_reference:
        settings["show_reference"] = False
    book = Book.open(
        output,
        settings,
        lambda: make_pairs(
            chosen,
            texts,
            seed=options.seed,
            amounts=Amounts(options.amount),
            language=options.language,
        ),
        overwrite=overwrite,
    )
    if not book.pairs:
        first = f" ({book.left[0].reason})" if book.left else ""
        raise OptionError(
            f"{texts.origin}: no text could be perturbed{first}; give other texts, or another --perturb"
        )
    return book


def _plan(
    texts: Texts, book: Book, chosen: Chosen, options: DiscernOptions
) -> dict[str, Any]:
    """Return the texts, perturbations and metrics that a run would have."""
    from judgesmith.datasets.perturbations.dhp import origin_of
    from judgesmith.datasets.perturbations.registry import sentences

    paired = Counter(pair.name for pair in book.pairs)
    left = Counter(one.name for one in book.left)
    perturbations = []
    for perturbation, degrees in chosen:
        for degree in degrees:
            name = perturbation.name
            if degree != "only":
                name = f"{name}:{degree}"
            perturbations.append(
                {
                    "perturbation": name,
                    "origin": origin_of(perturbation, degree, texts.task),
                    "n": paired[name],
                    "left_out": left[name],
                }
            )
    good = [one.text for one in texts.texts]
    parts = [sentences(text, options.language) for text in good]
    return {
        "texts": {
            "origin": texts.origin,
            "role": texts.role,
            "n": len(good),
            "of": texts.total,
            "task": texts.task,
            "characters": round(fmean(map(len, good)), 1),
            "words": round(fmean(map(word_count, good)), 1),
            "sentences": round(fmean(map(len, parts)), 1),
            "notes": texts.notes,
        },
        "perturbations": perturbations,
        "metrics": options.metrics,
        "repeat": options.repeat,
        "writer": options.writer,
        "to_write": sum(pair.method == "lm" for pair in book.pairs),
    }


def _plan_in_words(plan: Mapping[str, Any]) -> list[str]:
    lines = [
        "{n} of {of} {role}s of {origin}, as texts of the paper's task {task!r}; on average {characters} characters, "
        "{words} words, {sentences} sentences".format(**plan["texts"]),
        *(f"note: {note}" for note in plan["texts"]["notes"]),
    ]
    if plan["metrics"]:
        lines.append(
            f"metrics: {', '.join(plan['metrics'])}; each text is scored {plan['repeat']} times by each"
        )
    for line in plan["perturbations"]:
        left = f", {line['left_out']} left out" if line["left_out"] else ""
        lines.append(
            f"  {line['perturbation']} ({line['origin']}): {line['n']} texts{left}"
        )
    if plan["to_write"]:
        lines.append(
            f"{plan['to_write']} texts to be written by {plan['writer']} first, each in 1 to 3 tries, not counted below"
        )
    return lines


def _notes(
    subject: Subject,
    role: str,
    book: Book,
    options: DiscernOptions,
    result: JudgeResult,
) -> list[str]:
    """Return caveats of the numbers, such as differences from the paper's benchmark."""
    notes = []
    if subject.against_reference:
        if role == "reference":
            notes.append(
                "the texts are references: a metric compares each with the document's other references, or with the "
                "original text itself where there is none, which flatters it"
            )
    elif options.repeat > 1:
        if book.path is not None:
            again = ""
        else:
            again = "; without -o the same command would ask all of it again"
        notes.append(f"each text was judged {options.repeat} times{again}")
    possible = {pair.name for pair in book.pairs}
    reasons: dict[str, list[str]] = {}
    for one in book.left:
        if one.name not in possible:
            reasons.setdefault(one.name, []).append(one.reason)
    names: dict[str, list[str]] = {}
    for name, of_name in reasons.items():
        names.setdefault(max(set(of_name), key=of_name.count), []).append(name)
    notes += [
        f"{', '.join(several)}: not possible on these texts ({why})"
        for why, several in names.items()
    ]
    if options.metrics and not {m.casefold() for m in result.metrics} >= {
        m.casefold() for m in options.metric_names
    }:
        present = ", ".join(result.metrics)
        wanted = ", ".join(options.metric_names)
        notes.append(f"{result.judge} gives {present}; the task's metrics are {wanted}")
    if result.of("degradation", "stand-in"):
        notes.append(
            "stand-ins (~) are made by rules where the paper has a language model; they count as none of the paper's "
            "perturbations. --writer MODEL makes those"
        )
    if options.form == "paper" and len(result.metrics) > 1:
        notes.append(
            "without 1/M, several metrics make p as many times too small: a judge that guesses passes D = 1 far more "
            "often than in 5 % of the perturbations; p Holm, and what a judge notices, rest on the normalised p"
        )
    return notes
