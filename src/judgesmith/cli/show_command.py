"""`judgesmith show`: what a saved judge learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.markup import escape

from judgesmith.cli.commands import Command, Json, Rows, argument, flag
from judgesmith.cli.rendering import (
    candidate_name,
    comments_in_words,
    objective_label,
    told_decisions,
    training_q,
)
from judgesmith.errors import OptionError
from judgesmith.running.console import number, out, print_json
from judgesmith.tables import Cell, Column, Table, shortened

if TYPE_CHECKING:
    from judgesmith.programs.judge import Judge
    from judgesmith.programs.versions import Version

#: Of a larger pool of demonstrations only the first are listed.
MOST_DEMOS_SHOWN = 20


class Show(Command, Rows, Json):
    """Show a saved judge: task, criteria, examples, agreement and cost."""

    example: ClassVar[str] = "judgesmith show judge.json"

    judge: Path = argument(..., "Saved judge (JSON file).")
    prompt: Path | None = flag(
        None,
        "File of rows: print the messages that the judge would send for the first row.",
    )

    def run(self) -> None:
        """Print a saved judge: criteria, prompts, agreement and history."""
        from judgesmith.programs import artifact, loading
        from judgesmith.programs.versions import Version
        from judgesmith.running.opening import quiet, roles_for

        with quiet():
            read = artifact.read(self.judge)
            judge = loading.build(read)
            version = Version.of(read)
            saved = artifact.to_dict(judge) | {"lm": read.lm and read.lm.model_dump()}
            rows = self.prompt
            if rows is None:
                messages = None
            else:
                messages = _messages(
                    judge, rows, roles_for(rows, self.roles(), self.judge)
                )
            if self.as_json:
                data = saved | {
                    "fingerprint": version.fingerprint,
                    "fingerprint_parts": version.parts(),
                }
                print_json(data | ({"prompt": messages} if messages else {}))
            elif messages is not None:
                for name, sent in messages.items():
                    out.rule(escape(name))
                    for message in sent:
                        out.print(f"[bold]{message['role']}[/bold]")
                        out.print(message["content"], markup=False)
            else:
                _print_judge(self.judge, judge, saved, version)


def _messages(judge: Judge, rows: Path, roles: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the messages that the first row would send, by step."""
    from judgesmith.datasets.loading import iter_rows
    from judgesmith.signatures.values import Item

    row, _ = next(iter_rows(rows, columns=roles), (None, None))
    if row is None:
        raise OptionError(f"{rows}: no rows in the file; name one with rows")
    return judge.previews(Item.of(row))


def _print_judge(
    path: Path, judge: Judge, saved: Mapping[str, Any], version: Version
) -> None:
    from judgesmith.programs import artifact
    from judgesmith.programs.models.files import weights_of

    provenance = {
        name: part for name, part in saved["provenance"].items() if part is not None
    }
    fields = type(judge.method.options).model_fields
    usual = {name: field.get_default() for name, field in fields.items()}
    options = ", ".join(
        f"{name}={value}"
        for name, value in saved["program"]["options"].items()
        if value not in ("", [], usual.get(name))
    )
    kind = saved["program"]["kind"] + (f" ({options})" if options else "")
    drawn = {
        name: f" ({comments_in_words(comments)})"
        for name, comments in provenance.get("criteria_from", {}).items()
    }
    facts = Table(["", ""], header=False)
    for name, value in (
        ("judge", f"{path.name}, {kind}"),
        (
            "fingerprint",
            f"{version.fingerprint} (`judge` in the rows that it scores), of:",
        ),
        *(("", f"{name}: {mark}") for name, mark in version.parts().items()),
        ("model", weights_of((saved["lm"] or {}).get("model", "none"))),
        ("scale", judge.scale),
        *(
            [("decides", judge.outcome.decision)]
            if judge.outcome.decision is not None
            else []
        ),
        *(
            [("prefers", judge.outcome.preference)]
            if judge.outcome.preference is not None
            else []
        ),
        ("task", saved["task"] or "–"),
        *(
            ("criteria", f"{c.name}: {c.definition}{drawn.get(c.name, '')}")
            for c in judge.method.knowledge.criteria
        ),
        *judge.method.facts().items(),
        *_history(provenance),
    ):
        facts.add(name, str(value))
    facts.show(out)
    for name, predictor in artifact.predictors(judge.method).items():
        if predictor.demos:
            _show_demonstrations(name, predictor.demos, judge)
    if tried := provenance.get("candidates", []):
        _tried(tried).show(out)


def _history(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the history of a judge: agreement, choices, labels, cost and date."""
    lines = []
    aspects = provenance.get("aspects")
    if not isinstance(aspects, Mapping):
        aspects = {}
    for name, entry in aspects.items():
        agreed = entry.get("heldout") if isinstance(entry, Mapping) else None
        if isinstance(agreed, Mapping):
            signature = str(agreed.get("signature", "–"))
            lines.append((f"agreement, {name}", signature))
    for title, key in (
        ("agreement", "heldout"),
        ("within systems", "within_systems"),
        ("within documents", "within_documents"),
        ("systems' mean labels", "system_means"),
        ("model alone", "zero_shot"),
    ):
        if (entry := provenance.get(key)) and not aspects:
            lines.append((title, str(entry.get("signature", "–"))))
    if decided := told_decisions(provenance.get("decisions")):
        lines.insert(0, ("decisions", decided))
    if selected := provenance.get("selected"):
        candidates = len(provenance.get("candidates", []))
        lines.append(
            (
                "chosen",
                f"{candidate_name(selected)}: {training_q(selected, candidates)}",
            )
        )
    if objective := provenance.get("objective"):
        lines.append(("maximised", objective_label(objective)))
    if labels := provenance.get("labels"):
        lines.append(
            (
                "labels",
                f"{labels.get('rows')} rows of {labels.get('origin')}, {labels.get('aspect')}",
            )
        )
    if cost := provenance.get("cost"):
        tokens = f"{cost.get('prompt_tokens')} + {cost.get('completion_tokens')} tokens"
        lines.append(("cost", f"{cost.get('calls')} calls, {tokens}"))
    if "created" in provenance:
        lines.append(("created", provenance["created"]))
    for one in reversed(provenance.get("lineage", [])):
        if one.get("labels"):
            labels = f"{one['rows']} labels ({one['labels'][:12]})"
        else:
            labels = "no labels"
        lines.append(
            (
                "started from",
                f"{one.get('judge')} of {one.get('created') or 'an unknown date'}, {labels}",
            )
        )
    return lines


def _show_demonstrations(name: str, demos: Any, judge: Judge) -> None:
    title = f"{name}: {len(demos)} demonstrations"
    table = Table(
        [Column("score", "s"), "by", "source", "output", "explanation"], title
    )
    for demo in demos[:MOST_DEMOS_SHOWN]:
        table.add(
            number(judge.scale.from_percent(demo["score"])),
            "people" if demo.get("gold") else "the model",
            *(
                shortened(demo.get(field) or "", 160)
                for field in ("source", "output", "explanation")
            ),
        )
    table.show(out)
    if len(demos) > MOST_DEMOS_SHOWN:
        out.print(
            f"and {len(demos) - MOST_DEMOS_SHOWN} more (--json shows all)", style="dim"
        )


def _tried(candidates: Sequence[Mapping[str, Any]]) -> Table:
    by = objective_label(candidates[0].get("objective"))
    table = Table(
        [
            "candidate",
            Column("examples", "s"),
            Column(by, ".2f"),
            Column("failed", "s"),
            Column("rows", "s"),
        ],
        f"What the search tried ({by} on training rows, each judged without itself; 95% intervals)",
    )
    for c in candidates:
        value = Cell(c.get("value", c.get("q")), c.get("low"), c.get("high"))
        rows = str(c.get("rows") or c.get("n")) + (
            ", dropped" if c.get("dropped") else ""
        )
        table.add(
            candidate_name(c),
            str(c.get("demos")),
            value,
            str(c.get("failed")),
            rows,
        )
    return table
