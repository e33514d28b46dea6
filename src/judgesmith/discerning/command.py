"""`judgesmith discern`: does a judge notice perturbations? Parsing, and the order of things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from ..cli.commands import Command, Json, Model, Preset, Rows, argument, flag
from ..errors import OptionError

if TYPE_CHECKING:
    from ..datasets.perturbations.registry import Degree, Perturbation
    from ..running.settings import Catalogue
    from .checking.run import Run
    from .judging import Subject
    from .options import DiscernOptions
    from .pairs import Book, Texts
    from .run import JudgeResult


Chosen = Sequence[tuple["Perturbation", tuple["Degree", ...]]]


class Discern(Command, Preset, Model, Rows, Json):
    """Does a judge notice perturbations? Good texts are perturbed in levels, judged before and after, and tested.

    JUDGE is a file that `compile` saved, or metric/rougeL and other metrics. With --preset it may be METHOD or
    METHOD@MODEL, for example direct@local/qwen2.5-0.5b, which judges each metric of the preset's task. TEXTS is any
    file with good texts, or bench/NAME: its references, or its outputs where few rows have one, one for each document.

    D = log_0.05 p of a one-sided Wilcoxon test (DHP benchmark); from 1 on, the judge scores good texts above perturbed
    ones more often than chance. The paper's perturbations of a task, stand-ins by rules for those that it makes with a
    language model (--writer makes them), and ours have tables, D_avg and D_min of their own. Beside them there are
    changes that a good judge does not react to, which give its false alarms, and attacks, texts that ask the judge for
    the best score.

    --preset dhp/summeval and the others of `judgesmith list presets` are the paper's benchmark.

    --check asks, without labels and for any judge, what moves its scores though nothing has changed that counts: the
    same rows again, the rubric in other words, a comparison's order swapped, length and style padded, and outputs of
    its own family. JUDGE may then be a column of TEXTS, too, with scores that a judge once gave.

    With -o the pairs and all scores are kept as JSON lines: after Ctrl-C the same command resumes where it stopped, and
    the same command with another judge adds its scores to the same pairs.
    `judgesmith list options discern` has further options.
    """

    panel: ClassVar[str] = "Research"

    judge: str | None = argument(None, "The judge to test.", "JUDGE")
    good_texts: str | None = argument(
        None, "Good texts; a preset may name them instead.", "TEXTS"
    )
    perturb: list[str] = flag(
        [],
        "A perturbation (typos, typos:major; see `judgesmith list perturbations`) or a group: all, paper (DHP's for "
        "this task), degradation, invariance, attack, character, word, sentence, trajectory. Repeatable; default all.",
        metavar="NAME",
    )
    check: list[str] = flag(
        [],
        "A check in place of perturbations: repeat, reworded, swapped, length, style, layout, own; padded (length, "
        "style and layout), all. Repeatable.",
        metavar="NAME",
    )
    n: int = flag(100, "Texts at most, drawn by the seed.", "--n", ge=1)
    brief: bool = flag(
        False,
        "Scores alone, from judges that explain after the score: the same scores, several times faster, but no "
        "explanations in the report.",
    )
    output: Path | None = flag(
        None, "Pairs and scores as .jsonl; resumed if it exists.", "-o", "--output"
    )
    overwrite: bool = flag(False, "Start -o over.")
    report: Path | None = flag(
        None,
        "A page with tables and texts whose perturbation was missed; no network.",
        metavar="FILE.html",
    )

    @classmethod
    def catalogue(cls, given: Mapping[str, Any]) -> Catalogue:
        from ..running.settings import Catalogue, Owner, ReachOptions
        from .checking.rows import CheckOptions
        from .options import DiscernOptions

        owners = (
            Owner("run", "discern", DiscernOptions),
            Owner("check", "discern --check", CheckOptions),
            Owner("lm", "the language model", ReachOptions),
        )
        return Catalogue(
            owners, "discern", more="; see `judgesmith list options discern`"
        )

    def run(self) -> int:
        from ..datasets.perturbations.registry import PERTURBATIONS, find_perturbations
        from ..running.console import Watch, err, out, print_json
        from ..running.opening import (
            connection_of,
            open_model,
            quiet,
            roles_for,
            rows_file,
        )
        from ..running.settings import ReachOptions
        from .judging import estimated, judge, missing, open_subject
        from .options import DiscernOptions
        from .pairs import read_texts
        from .rewriting import WRITTEN, written_perturbations
        from .run import analyse
        from .weights import read_weights

        if self.check:
            return self._run_checks()
        if unused := list(self.more("check")):
            raise OptionError(f"--{unused[0]} does nothing without --check")
        how = DiscernOptions(**self.more("run"))
        where = connection_of(ReachOptions(**self.more("lm")), self.api_base)
        source = self.good_texts or how.texts
        if self.judge is None or source is None:
            raise OptionError(
                "name a judge and the texts: judgesmith discern judge.json good.jsonl"
                if how.texts is None
                else "name a judge: judgesmith discern judge.json, or METHOD@MODEL such as direct@local/qwen2.5-0.5b"
            )
        self._check_files(source)
        limits = how.limits()
        perturbations = dict(PERTURBATIONS)
        if how.writer is not None:
            perturbations |= written_perturbations(
                None if how.dry_run else open_model(how.writer, where)
            )
        known = [*perturbations, *(kind.name for kind in WRITTEN)]
        weights = (
            None
            if how.weights is None
            else read_weights(how.weights, known, how.metric_names)
        )
        if (
            Path(self.judge).is_file()
            and not self.judge.endswith(".json")
            and source.endswith(".json")
        ):
            raise OptionError(
                f"the judge comes first: judgesmith discern {source} {self.judge}"
            )
        judge_file = Path(self.judge)
        roles = roles_for(
            rows_file(source),
            self.roles(),
            *([judge_file] if judge_file.is_file() else []),
        )
        texts = read_texts(source, columns=roles, n=self.n, seed=how.seed, how=how)
        chosen = find_perturbations(self.perturb or ["all"], perturbations, texts.task)
        with quiet():
            asked = where if how.repeat == 1 else replace(where, cache=False)
            subject = open_subject(self.judge, self.lm, asked, how, brief=self.brief)
            unkept = how.dry_run and (
                self.overwrite or not (self.output and self.output.exists())
            )
            book = _book(
                chosen,
                texts,
                how,
                None if unkept else self.output,
                overwrite=self.overwrite,
            )
            tasks = missing(subject, book, texts.role, how)
            if how.dry_run:
                cost = estimated(subject, tasks, where)
                plan = _plan(texts, book, chosen, how)
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
            result = analyse(subject, book, perturbations, how, weights, texts.task)
        self._tell(subject, texts, book, how, result)
        return 1 if result.failed else 0

    def _run_checks(self) -> int:
        """The checks that need no labels."""
        from ..running.console import Watch, err, out, print_json
        from ..running.opening import connection_of, quiet, roles_for, rows_file
        from ..running.settings import ReachOptions
        from .checking.live import open_live
        from .checking.rows import CheckOptions
        from .checking.run import Run
        from .options import DiscernOptions

        how = DiscernOptions(**self.more("run"))
        where = connection_of(ReachOptions(**self.more("lm")), self.api_base)
        judge, source = self.judge, self.good_texts or how.texts
        if judge is None or source is None:
            raise OptionError(
                "name a judge, or a column with its scores, and rows: judgesmith discern judge.json rows.jsonl "
                "--check all"
            )
        if self.perturb:
            raise OptionError("--perturb and --check are two runs; leave one out")
        self._check_files(source)
        judge_file = Path(judge)
        files = [judge_file] if judge_file.is_file() else []
        with quiet():
            run = Run.of(
                judge,
                source,
                self.check,
                roles_for(rows_file(source), self.roles(), *files),
                how,
                CheckOptions(**self.more("check")),
                lambda: open_live(judge, self.lm, where, how, brief=self.brief),
                self.n,
            )
            unkept = how.dry_run and not (self.output and self.output.exists())
            book = run.book(None if unkept else self.output, overwrite=self.overwrite)
            tasks = run.tasks(book)
            if how.dry_run:
                cost, plan = run.cost(tasks, where), run.plan()
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
            limits = how.limits()
            with limits.spending(*run.models), Watch("judging", wanted) as watch:
                run.ask(tasks, book, watch.step, limits)
            return self._tell_checks(run, book)

    def _tell_checks(self, run: Run, book: Book) -> int:
        """The page, and the result as JSON or as tables."""
        from ..pages import write_page
        from ..running.console import out, print_json, wide
        from ..running.plain import clean
        from .checking import show

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
        for note in [*result.notes, *show.not_made(result)]:
            out.print(
                f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True
            )
        out.print(f"{clean(show.lead_of(result))}.", markup=False, style="bold")
        for path in filter(None, (self.output, self.report)):
            out.print(f"Wrote {clean(str(path))}", markup=False)
        return 1 if result.failed else 0

    def _check_files(self, source: str) -> None:
        """Before anything is spent: can all that comes of it be written, and over no input? Raises OptionError."""
        from ..pages import check_page

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

    def _tell(
        self,
        subject: Subject,
        texts: Texts,
        book: Book,
        how: DiscernOptions,
        result: JudgeResult,
    ) -> None:
        """The report, and the result as JSON or as tables."""
        from ..pages import write_page
        from ..running.console import out, print_json
        from ..running.plain import clean
        from .page import render
        from .tables import show

        notes = [*texts.notes, *_notes(subject, texts.role, book, how, result)]
        if self.report is not None:
            page = render(subject, result, book, how, origin=texts.origin, notes=notes)
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
                "repeat": how.repeat,
                "form": how.form,
                "rounds": how.rounds,
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
        show(result, rounds=how.rounds)
        for note in notes:
            out.print(
                f"note: {clean(note)}", style="yellow", markup=False, soft_wrap=True
            )
        for path in filter(None, (self.output, self.report)):
            out.print(f"Wrote {clean(str(path))}", markup=False)


def _book(
    chosen: Chosen,
    texts: Texts,
    how: DiscernOptions,
    output: Path | None,
    *,
    overwrite: bool,
) -> Book:
    """Pairs and the scores that are there already."""
    from ..datasets.perturbations.registry import Amounts
    from .pairs import Book, make_pairs

    settings = {
        "origin": texts.origin,
        "texts": texts.fingerprint,
        "role": texts.role,
        "n": len(texts.texts),
        "seed": how.seed,
        "amount": how.amount,
        "language": how.language,
        "writer": how.writer,
        "perturbations": [f"{p.name}:{d}" for p, degrees in chosen for d in degrees],
    }
    if not how.show_reference:
        settings["show_reference"] = False
    book = Book.open(
        output,
        settings,
        lambda: make_pairs(
            chosen,
            texts,
            seed=how.seed,
            amounts=Amounts(how.amount),
            language=how.language,
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
    texts: Texts, book: Book, chosen: Chosen, how: DiscernOptions
) -> dict[str, Any]:
    """Which texts, perturbations and metrics a run would have."""
    from ..datasets.perturbations.dhp import origin_of
    from ..datasets.perturbations.registry import sentences

    good = [text.text for text in texts.texts]
    made, left = (Counter(one.name for one in some) for some in (book.pairs, book.left))
    origins = {
        p.name if d == "only" else f"{p.name}:{d}": origin_of(p, d, texts.task)
        for p, ds in chosen
        for d in ds
    }
    return {
        "texts": {
            "origin": texts.origin,
            "role": texts.role,
            "n": len(good),
            "of": texts.total,
            "task": texts.task,
            "characters": round(fmean(map(len, good)), 1),
            "words": round(fmean(len(t.split()) for t in good), 1),
            "sentences": round(fmean(len(sentences(t, how.language)) for t in good), 1),
            "notes": texts.notes,
        },
        "perturbations": [
            {
                "perturbation": name,
                "origin": origin,
                "n": made[name],
                "left_out": left[name],
            }
            for name, origin in origins.items()
        ],
        "metrics": how.metrics,
        "repeat": how.repeat,
        "writer": how.writer,
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
    subject: Subject, role: str, book: Book, how: DiscernOptions, result: JudgeResult
) -> list[str]:
    """What keeps the numbers from being what they seem, or from being the paper's."""
    notes = []
    if subject.against_reference:
        if role == "reference":
            notes.append(
                "the texts are references: a metric compares each with the document's other references, or with the "
                "original text itself where there is none, which flatters it"
            )
    elif how.repeat > 1:
        again = (
            ""
            if book.path is not None
            else "; without -o the same command would ask all of it again"
        )
        notes.append(f"each text was judged {how.repeat} times{again}")
    possible = {pair.name for pair in book.pairs}
    reasons: dict[str, list[str]] = {}
    for one in book.left:
        if one.name not in possible:
            reasons.setdefault(one.name, []).append(one.reason)
    names: dict[str, list[str]] = {}
    for name, given_reasons in reasons.items():
        names.setdefault(max(set(given_reasons), key=given_reasons.count), []).append(
            name
        )
    notes += [
        f"{', '.join(several)}: not possible on these texts ({why})"
        for why, several in names.items()
    ]
    if how.metrics and not {m.casefold() for m in result.metrics} >= {
        m.casefold() for m in how.metric_names
    }:
        given, wanted = ", ".join(result.metrics), ", ".join(how.metric_names)
        notes.append(f"{result.judge} gives {given}; the task's metrics are {wanted}")
    if result.of("degradation", "stand-in"):
        notes.append(
            "stand-ins (~) are made by rules where the paper has a language model; they count as none of the paper's "
            "perturbations. --writer MODEL makes those"
        )
    if how.form == "paper" and len(result.metrics) > 1:
        notes.append(
            "without 1/M, several metrics make p as many times too small: a judge that guesses passes D = 1 far more "
            "often than in 5 % of the perturbations; p Holm, and what a judge notices, rest on the normalised p"
        )
    return notes
