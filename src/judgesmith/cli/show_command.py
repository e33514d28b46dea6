"""`judgesmith show`: what a saved judge learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markup import escape
from rich.table import Table

from ..errors import OptionError
from ..running.console import number, out, print_json
from .commands import Command, Json, Rows, argument, flag
from .rendering import objective_label, training_q

if TYPE_CHECKING:
    from ..programs.judge import Judge
    from ..programs.versions import Version

#: Of a larger pool of demonstrations only the first are listed.
MOST_DEMOS_SHOWN = 20


class Show(Command, Rows, Json):
    """Show what a judge learnt: task, criteria, demonstrations, agreement, cost. Calls no model."""

    panel: ClassVar[str] = "Look"

    judge: Path = argument(..., "A judge that `compile` saved.")
    prompt: Path | None = flag(None, "Rows: print the very messages that the first one would send.")

    def run(self) -> None:
        from ..programs import artifact
        from ..programs.versions import Version
        from ..running.opening import quiet

        with quiet():
            read = artifact.read(self.judge)
            made = artifact.build(read)
            version = Version.of(read)
            saved = artifact.to_dict(made) | {"lm": read.lm and read.lm.model_dump()}
            messages = None if self.prompt is None else _messages(made, self.prompt, self.roles())
            if self.as_json:
                told = saved | {"fingerprint": version.fingerprint, "fingerprint_parts": version.parts()}
                print_json(told | ({"prompt": messages} if messages else {}))
            elif messages is not None:
                for name, sent in messages.items():
                    out.rule(escape(name))
                    for message in sent:
                        out.print(f"[bold]{message['role']}[/bold]")
                        out.print(message["content"], markup=False)
            else:
                _print_judge(self.judge, made, saved, version)


def _messages(judge: Judge, rows: Path, roles: Mapping[str, str]) -> Mapping[str, Any]:
    """What the first row would send, by the step that sends it."""
    from ..datasets.loading import iter_rows
    from ..programs.prompting.suspicion import guarded
    from ..signatures.values import Item

    row, _ = next(iter_rows(rows, columns=roles), (None, None))
    if row is None:
        raise OptionError(f"{rows}: no row in it")
    return judge.previews(guarded(Item.of(row))[0])


def _facts(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    for name, value in rows:
        table.add_row(name, escape(value))
    return table


def _identity(version: Version, saved: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Fingerprint, with those of its parts, and model."""
    return [
        ("fingerprint", f"{version.fingerprint} (`judge` in the rows that it scores), of:"),
        *(("", f"{name}: {mark}") for name, mark in version.parts().items()),
        ("model", (saved["lm"] or {}).get("model", "none")),
    ]


def _print_judge(path: Path, judge: Judge, saved: Mapping[str, Any], version: Version) -> None:
    from ..programs import artifact

    provenance = {name: part for name, part in saved["provenance"].items() if part is not None}
    facts = _facts([])
    options = ", ".join(f"{k}={v}" for k, v in saved["program"]["options"].items() if v not in ("", True))
    facts.add_row("judge", escape(f"{path.name}, {saved['program']['kind']} ({options})"))
    for name, value in _identity(version, saved):
        facts.add_row(name, escape(value))
    facts.add_row("scale", str(judge.scale))
    if judge.decision is not None:
        facts.add_row("decides", escape(str(judge.decision)))
    if judge.preference is not None:
        facts.add_row("prefers", str(judge.preference))
    facts.add_row("task", escape(saved["task"] or "–"))
    for index, criterion in enumerate(judge.knowledge.criteria):
        facts.add_row("criteria" if index == 0 else "", escape(f"{criterion.name}: {criterion.definition}"))
    for name, value in (*judge.facts().items(), *_history(provenance)):
        facts.add_row(name, escape(value))
    out.print(facts)
    for name, predictor in artifact.predictors(judge).items():
        if predictor.demos:
            out.print(_demonstrations(name, predictor.demos, judge))
    if tried := provenance.get("candidates", []):
        out.print(_tried(tried))


def _history(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How it was compiled: agreement, what was chosen, labels, cost and date."""
    lines = []
    for title, key in (("agreement", "heldout"), ("zero-shot", "zero_shot")):
        if found := provenance.get(key):
            lines.append((title, str(found.get("signature", "–"))))
    if selected := provenance.get("selected"):
        candidates = len(provenance.get("candidates", []))
        lines.append(("chosen", f"{selected.get('candidate')}: {training_q(selected, candidates)}"))
    if objective := provenance.get("objective"):
        lines.append(("maximised", objective_label(objective)))
    if labels := provenance.get("labels"):
        lines.append(("labels", f"{labels.get('rows')} rows of {labels.get('origin')}, {labels.get('aspect')}"))
    if cost := provenance.get("cost"):
        tokens = f"{cost.get('prompt_tokens')} + {cost.get('completion_tokens')} tokens"
        lines.append(("cost", f"{cost.get('calls')} calls, {tokens}"))
    if "created" in provenance:
        lines.append(("created", provenance["created"]))
    return lines


def _demonstrations(name: str, demos: Any, judge: Judge) -> Table:
    from ..programs.prompting.neighbours import Neighbours

    text = f"{len(demos)} demonstrations"
    if isinstance(demos, Neighbours):
        text = f"for each output the {demos.shown} most similar of {len(demos)} labelled rows"
    table = Table(title=f"{escape(name)}: {text}")
    for column in ("score", "by", "source", "output", "explanation"):
        table.add_column(column, overflow="fold", max_width=None if column in ("score", "by") else 48)
    for demo in demos[:MOST_DEMOS_SHOWN]:
        table.add_row(
            number(judge.scale.from_percent(demo["score"])),
            "people" if demo.get("gold") else "the model",
            *(escape(_cut(demo.get(field) or "")) for field in ("source", "output", "explanation")),
        )
    if len(demos) > MOST_DEMOS_SHOWN:
        table.caption = f"and {len(demos) - MOST_DEMOS_SHOWN} more (--json shows all)"
    return table


def _tried(candidates: Sequence[Mapping[str, Any]]) -> Table:
    by = objective_label(candidates[0].get("objective"))
    beside = ("Q",) if by != "Q" else ()
    table = Table(title=f"What the search tried ({by} on training rows, each judged without itself)")
    for column in ("candidate", "demos", by, "95 % interval", *beside, "failed", "rows"):
        table.add_column(column, justify="left" if column == "candidate" else "right")
    for c in candidates:
        table.add_row(
            escape(str(c.get("candidate"))), str(c.get("demos")), number(c.get("value", c.get("q"))),
            f"{number(c.get('low'))} … {number(c.get('high'))}", *([number(c.get("q"))] if beside else []),
            str(c.get("failed")),
            escape(str(c.get("rows") or c.get("n"))) + (", dropped" if c.get("dropped") else ""),
        )  # fmt: skip
    return table


def _cut(text: str, most: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
