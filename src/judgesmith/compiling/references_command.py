"""`judgesmith references`: write the graded references of documents, look at them, share them as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cli.commands import Command, Group, Json, Reach, Rows, argument, flag
from ..errors import CallError, OptionError

if TYPE_CHECKING:
    from ..programs.comparing.pairwise import PairwiseDirectScorer
    from ..programs.models.lm import LanguageModel
    from ..signatures.values import Item

__all__ = ["REFERENCES", "Build", "Export", "Import", "ListReferences"]

REFERENCES = Group(
    "Graded references that outputs are compared with: build, list, export, import. They are kept in "
    "~/.cache/judgesmith/references.sqlite, or where JUDGESMITH_REFERENCES says.",
    hidden=True,
)


class Build(Command, Rows, Reach, Json):
    """Write the references of all documents in a file that have none yet. Each is written once, whatever the number of
    outputs, and by one process where several run."""

    rows: Path = argument(..., "Rows with sources: .jsonl, .csv, .tsv, .json, .parquet.", "ROWS")
    judge: Path | None = flag(None, "Write what this saved pairwise judge needs, instead of the options below.")
    aspect: str = flag("overall", "Aspect of quality: NAME or TASK/NAME (`judgesmith list aspects`).")
    levels: int = flag(5, "References a document, from the worst to the best.", ge=2, le=9)
    words: str = flag(
        "0", "Length aimed at: a number, 0 for the task's usual one, or auto (median of the outputs).",
        coerce_numbers_to_str=True,
    )  # fmt: skip

    def run(self) -> int:
        from ..programs.comparing.pairwise import PairwiseDirectScorer
        from ..running.console import number, out, print_json
        from ..running.opening import open_judge, open_model

        where = self.connection()
        documents, length = _documents(self.rows, self.roles())
        if self.judge is not None:
            opened = open_judge(self.judge, self.lm, where)
            if not isinstance(opened, PairwiseDirectScorer):
                raise OptionError(f"{self.judge.name} is a judge of kind {opened.kind}, which needs no references")
            scorer = opened
        else:
            scorer = PairwiseDirectScorer(self.aspect, levels=self.levels, words=_words(self.words, length))
            scorer.set_lm(open_model(self.lm, where))
        summary = _build(scorer, scorer.lm, documents)
        if self.as_json:
            print_json(summary)
            return 1 if summary["failed"] else 0
        rate = summary["hit_rate"]
        out.print(
            f"{summary['documents']} documents: {summary['found']} had references"
            f"{'' if rate is None else f' ({rate:.0%})'}, {summary['written']} were written, "
            f"{summary['failed']} failed. {summary['calls']:,} calls, {number(summary['tokens'], 0)} tokens.",
            markup=False,
        )
        if summary["left_out"]:
            out.print(f"{summary['left_out']} levels were left out: no text for them passed the checks.", markup=False)
        if scorer.words:
            out.print(f"They are found by judges with words={scorer.words}.", markup=False)
        for problem in summary["failures"][:5]:
            out.print(f"failed: {problem}", style="red", markup=False)
        return 1 if summary["failed"] else 0


def _documents(path: Path, roles: dict[str, str]) -> tuple[list[Item], int]:
    """The different documents of a file in its order, and the median length of its outputs in words."""
    from ..datasets.loading import iter_rows
    from ..programs.comparing.references import document_hash
    from ..programs.comparing.synthesis import length_guide
    from ..signatures.values import Item

    found: dict[str, Item] = {}
    outputs: list[str] = []
    for row, _ in iter_rows(path, columns=roles or None):
        item = Item(row.output, row.source, row.context)
        if item.source.strip() or (item.context or "").strip():
            found.setdefault(document_hash(item), item)
        outputs.append(row.output)
    if not found:
        raise OptionError(
            f"{path.name}: no row has a source to write references for; name its column: --columns source=…"
        )
    return list(found.values()), length_guide(outputs)


def _words(told: str, length: int) -> int:
    if told.strip().lower() == "auto":
        return length
    if not told.strip().isdecimal():
        raise OptionError(f"--words {told!r} is not a number of words; give a number, or auto")
    return int(told)


def _build(scorer: PairwiseDirectScorer, lm: LanguageModel, documents: list[Item]) -> dict[str, Any]:
    from ..programs.models import engine
    from ..running.console import Watch
    from ..signatures.values import Usage

    store = scorer.store
    before = store.found, store.written

    async def one(item: Item) -> tuple[int, Usage, str | None]:
        try:
            made, usage = await scorer.areferences(item, lm)
        except CallError as error:
            return 0, getattr(error, "usage", None) or Usage(), str(error)
        return len(made.left_out), usage, None

    left_out, usage, failures = 0, Usage(), list[str]()
    with Watch("references", len(documents)) as watch:
        watch.stage(f"references of {len(documents)} documents", len(documents))
        for missing, cost, failure in engine.ordered_map(one, documents, in_flight=lm.concurrency):
            left_out, usage = left_out + missing, usage + cost
            failures += [failure] if failure is not None else []
            watch.step()
    found, written = store.found - before[0], store.written - before[1]
    return {
        "documents": len(documents),
        "found": found,
        "written": written,
        "failed": len(failures),
        "hit_rate": found / (found + written) if found + written else None,
        "left_out": left_out,
        "calls": usage.calls,
        "cached_calls": usage.cached,
        "tokens": usage.tokens,
        "words": scorer.words,
        "store": str(store.path),
        "failures": failures[:1000],
    }


class ListReferences(Command, Json):
    """What is in the store, by writer, aspect and number of levels; or the references of one document in full."""

    document: str | None = flag(
        None, "Show the references of the documents whose hash begins with this.", metavar="HASH"
    )

    def run(self) -> None:
        from rich.table import Table

        from ..evaluating.tables import escape
        from ..programs.comparing.references import reference_store
        from ..running.console import out, print_json
        from ..running.plain import clean

        store = reference_store()
        if self.document is not None:
            entries = [e for e in store.entries() if e[0].document.startswith(self.document.lower())]
            if not entries:
                raise OptionError(f"no references of a document {self.document[:64]!r} in {store.path}")
            if self.as_json:
                print_json({"references": [_entry(*e) for e in entries]})
                return
            for key, found in entries:
                out.print(clean(f"{key.document[:12]}  {key.aspect}, by {key.writer}"), style="bold", markup=False)
                for level in range(1, found.levels + 1):
                    text = found.outputs.get(level) or f"(left out: {found.left_out.get(level, '')})"
                    out.print(f"  {level}/{found.levels}  {clean(text)}", markup=False)
            return
        groups = list(_groups(store.entries()))
        if self.as_json:
            print_json({"store": str(store.path), "groups": groups})
            return
        table = Table(title="References", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("writer", "aspect", "levels", "prompt", "documents", "left out"):
            table.add_column(column, justify="right" if column in ("levels", "documents", "left out") else "left")
        for group in groups:
            table.add_row(
                *(escape(str(group[c])) for c in ("writer", "aspect", "levels", "prompt", "documents", "left_out"))
            )
        out.print(table if groups else "There are no references yet; `judgesmith references build ROWS` writes some.")
        out.print(f"in {store.path}", style="dim", markup=False)


def _groups(entries: Iterator[Any]) -> Iterator[dict[str, Any]]:
    grouped: dict[tuple[str, str, int, str], dict[str, Any]] = {}
    for key, found in entries:
        group = grouped.setdefault(
            (key.writer, key.aspect, key.levels, key.prompt),
            {"writer": key.writer, "aspect": key.aspect, "levels": key.levels, "prompt": key.prompt,
             "documents": 0, "left_out": 0},
        )  # fmt: skip
        group["documents"] += 1
        group["left_out"] += len(found.left_out)
    yield from grouped.values()


def _entry(key: Any, found: Any) -> dict[str, Any]:
    return {
        "document": key.document, "aspect": key.aspect, "prompt": key.prompt, "levels": key.levels,
        "writer": key.writer, "outputs": {str(n): t for n, t in found.outputs.items()},
        "left_out": {str(n): t for n, t in found.left_out.items()},
    }  # fmt: skip


class Export(Command):
    """Write references as JSON lines, to be shared. Documents are in it by their hash alone; what references repeat of
    them is in it."""

    output: Path = argument(..., "Where to write them.", "FILE.jsonl")
    aspect: str | None = flag(None, "Those of this aspect only.")
    writer: str | None = flag(None, "Those that this model wrote.")

    def run(self) -> None:
        from ..programs.comparing.references import reference_store
        from ..running.console import out

        count = reference_store().export_to(self.output, aspect=self.aspect, writer=self.writer)
        out.print(f"{count} documents' references written to {self.output}", markup=False)


class Import(Command):
    """Take over references from a file. All of it is checked first."""

    path: Path = argument(..., "A file that `references export` wrote.", "FILE.jsonl")
    replace: bool = flag(False, "Let the file's references replace those in the store.")

    def run(self) -> None:
        from ..programs.comparing.references import reference_store
        from ..running.console import out

        new, known = reference_store().import_from(self.path, replace=self.replace)
        kept = "replaced" if self.replace else "kept as they were"
        out.print(f"{new} documents' references are new, {known} were there and {kept}", markup=False)
