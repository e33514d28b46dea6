"""A table of results from judgesmith's own commands, run with --json; a command that resumes asks nothing twice.

    python experiments/bench/commands.py NAME --save [FOLDER] -- judgesmith discern … [-- judgesmith discern …]

`discern`: D_avg and D_min of the judge, by the origin of the perturbations. `study paper`: the paper's rows beside
ours. All commands of a table are of one kind. They stand in the saved table, without folders of this machine.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesmith.experiments.studies.paper import SIGNS, read
from judgesmith.experiments.studies.saving import save

Rows = tuple[dict[str, str], list[list[Any]]]
Found = Mapping[str, Any]
#: The tables that `python docs/tables.py` writes into experiments/results/*.md.
DATA = Path(__file__).resolve().parents[1] / "results/data"
ORIGINS = {"paper": "the paper's", "stand-in": "stand-ins by rules", "ours": "ours"}


def output_of(words: Sequence[str]) -> Found:
    """What a command prints with --json. Exit code 1 is a result, too: some rows have no score."""
    done = subprocess.run(
        [sys.executable, "-m", "judgesmith.cli.main", *words[1:], "--json"], stdout=subprocess.PIPE, text=True
    )
    if done.returncode > 1 or not done.stdout:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}")
    output: Found = json.loads(done.stdout)
    return output


def discerned(words: Sequence[str], output: Found) -> Rows:
    of_paper = output["form"] == "paper"
    columns = {"texts of": "", "judge": "", "texts": "{}", "perturbations": ""}
    other, form = (" (normalised)", "{:.2f} ({:.2f})") if of_paper else ("", "{:.2f}")
    columns |= {f"D_avg{other}": form, f"D_min{other}": form}
    columns |= {"lowest for": "", "blind to": "", "false alarms": "{:.0%}"}
    texts = words[words.index("--preset") + 1] if "--preset" in words else output["origin"].removesuffix(".jsonl")
    rows: list[list[Any]] = []
    for origin, value in ORIGINS.items():
        lines = [x for x in output["perturbations"] if (x["kind"], x["origin"]) == ("degradation", origin) and x["n"]]
        by_form = output if origin == "paper" else output["stand_ins" if origin == "stand-in" else "ours"]
        count = len(by_form["rests_on"])
        if not lines:
            continue
        of = f"{count} of {count + len(output['unmeasured'])}" if origin == "paper" else f"{count}"
        forms = [by_form[form] for form in (("paper", "normalised") if of_paper else ("normalised",))]
        few = sum(line["sees"] == "unknown" for line in lines)
        blind = ", ".join(line["perturbation"] for line in lines if line["sees"] == "no") or "none"
        blind += f"; too few texts for {few}" if few else ""
        ds = [[form[d] for form in forms] for d in ("d_avg", "d_min")]
        more = [forms[0]["worst"], blind if count else None, output["false_alarms"]]
        rows.append([texts, output["judge"], output["n"], f"{value}, {of}", *ds, *more])
    return columns, rows


def published(words: Sequence[str], output: Found) -> Rows:
    signs = [SIGNS[c] for c in read(output["table"]).coefficients]
    columns = {"row": "", "whose": ""} | {
        f"{column} {sign}": "{:.3f}" for column in output["columns"] for sign in signs
    }
    rows = []
    for row in output["rows"]:
        whose = f"{'ours' if row['ours'] else 'the paper'}{', ' if row['model'] else ''}{row['model']}"
        values = [value for column in output["columns"] for value in row["values"][column]]
        rows.append([row["row"], whose, *values, row["differs"]])
    return columns | {"what differs from the paper": ""}, rows


KINDS: Mapping[str, Callable[[Sequence[str], Found], Rows]] = {
    "discern": discerned, "study paper": published,
}  # fmt: skip


def parts(words: Sequence[str]) -> Iterator[list[str]]:
    """The words between one `--` and the next."""
    part: list[str] = []
    for word in [*words, "--"]:
        if word == "--":
            yield part
            part = []
        else:
            part.append(word)


def without_folders(words: Sequence[str]) -> str:
    """A command without folders of this machine."""
    return shlex.join(Path(word).name if Path(word).is_absolute() else word for word in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the table")
    parser.add_argument("--notes", default="", help="what a reader should know of the table, in a few words")
    parser.add_argument(
        "--save", nargs="?", const=DATA, type=Path, metavar="FOLDER",
        help="keep the tables as JSON here; without FOLDER in experiments/results/data, whose tables pages show",
    )  # fmt: skip
    own, *commands = parts(sys.argv[1:])
    given = parser.parse_args(own)
    if not commands or any(words[:1] != ["judgesmith"] for words in commands):
        parser.error("name the commands behind --: -- judgesmith discern …")
    columns: dict[str, str] = {}
    rows: list[list[Any]] = []
    for words in commands:
        kind = next((k for k in KINDS if " ".join(words[1:]).startswith(k)), None)
        if kind is None:
            parser.error(f"judgesmith {words[1]} has no table; there are {', '.join(KINDS)}")
        titles, more = KINDS[kind](words, output_of(words))
        if columns and titles != columns:
            parser.error("the commands give different columns; save them as tables of their own")
        columns, rows = titles, rows + more
    empty = [i for i in range(len(columns)) if all(row[i] in (None, "") for row in rows)]
    kept = {title: form for i, (title, form) in enumerate(columns.items()) if i not in empty}
    lines = [[value for i, value in enumerate(row) if i not in empty] for row in rows]
    print(json.dumps({"columns": list(kept), "rows": lines}, ensure_ascii=False))
    about = {"notes": given.notes} if given.notes else {}
    save(given.save, given.name, kept, lines, commands=[without_folders(words) for words in commands], **about)


if __name__ == "__main__":
    main()
