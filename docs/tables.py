"""Writes the tables of the pages of results from the data that benches and studies saved.

    python docs/tables.py [--check]

A page holds `<!-- table: NAME -->` … `<!-- /table -->`; what stands between comes from
experiments/results/data/NAME.json. `<!-- table: NAME; rows: mean* | wiki_da*; columns: task | 40* -->` shows only what
its patterns match: rows by their first cells, joined by " / ", and columns by their titles.
`<!-- summary: NAME -->` … `<!-- /summary -->` holds a table of summaries.yaml, whose cells come from several such
files. --check changes nothing and fails where a page and its data differ.
"""

import json
import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments/results"
SUMMARIES = Path(__file__).with_name("summaries.yaml")
BLOCK = re.compile(
    r"(<!-- table: (?P<name>[\w.-]+)(?:; rows: (?P<rows>[^;\n]+?))?(?:; columns: (?P<columns>[^;\n]+?))? -->\n)"
    r".*?(<!-- /table -->)",
    re.DOTALL,
)
SUMMARY = re.compile(
    r"(<!-- summary: ([\w.-]+) -->\n).*?(<!-- /summary -->)", re.DOTALL
)
REFERENCE = re.compile(r"\{\{([\w.-]+)\|([^|}]+)(?:\|([^|}]+))?\}\}")


def plain(text: str) -> str:
    """Return a text of the data as text of a cell."""
    escaped = re.sub(r"([\\`*|\[\]])", r"\\\1", " ".join(text.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def cell(value: Any, form: str) -> str:
    """Return a value as a cell, by its column's form."""
    if isinstance(value, str):
        return plain(value)
    parts = value if isinstance(value, list) else [value]
    if None in parts:
        return "–"
    text = re.sub(
        r"[+-](?=0(?:\.0+)?(?![\d.]))", "", form.format(*parts)
    )  # no signed zero
    return re.sub(r"(?<=\d)%", " %", re.sub(r"-(?=[\d.])", "−", text))


def source(name: str, data: dict[str, Any]) -> str:
    """Return the line below a table: what was run, when, and where the numbers are."""
    first, *others = data["commands"]
    more = f" and {len(others)} more" if others else ""
    about = [
        data.get("model", ""),
        f"seed {data['seed']}" if "seed" in data else "",
        data.get("notes", ""),
    ]
    parts = [
        f"judgesmith {data['versions']['judgesmith']}",
        data["date"],
        *map(plain, filter(None, about)),
    ]
    return f"`{first.replace('`', '')}`{more}: {', '.join(parts)} ([data](data/{name}.json))"


def loaded(name: str, folder: Path) -> dict[str, Any]:
    """Return the data of a table."""
    data: dict[str, Any] = json.loads(
        (folder / f"{name}.json").read_text(encoding="utf-8")
    )
    return data


def matching(named: Sequence[Sequence[str]], patterns: str | None) -> list[int]:
    """Return the places of what has a name that one of the patterns matches; all without patterns.

    Raises:
        KeyError: If a pattern matches none.
    """
    if patterns is None:
        return list(range(len(named)))
    places = set()
    for pattern in patterns.split(" | "):
        matched = {
            place
            for place, names in enumerate(named)
            if any(fnmatchcase(name, pattern) for name in names)
        }
        if not matched:
            raise KeyError(f"nothing is called {pattern}")
        places |= matched
    return sorted(places)


def keys(row: Sequence[Any]) -> list[str]:
    """Return a row's names: its first cell, its first two, …, joined by " / "."""
    return [" / ".join(map(str, row[:count])) for count in range(1, len(row))]


def part(data: dict[str, Any], rows: str | None, columns: str | None) -> dict[str, Any]:
    """Return the data with the rows and columns that the patterns match."""
    titles = list(data["columns"])
    across = matching([[title] for title in titles], columns)
    down = matching([keys(row) for row in data["rows"]], rows)
    return data | {
        "columns": {titles[place]: data["columns"][titles[place]] for place in across},
        "rows": [[data["rows"][row][place] for place in across] for row in down],
    }


def row_of(data: dict[str, Any], key: str) -> list[Any]:
    """Return the row whose first cells, joined by " / ", are the key; "-" is the only row.

    Raises:
        KeyError: If there is none.
    """
    if key == "-" and len(data["rows"]) == 1:
        return list(data["rows"][0])
    for row in data["rows"]:
        if key in keys(row):
            return list(row)
    raise KeyError(f"no row {key}")


def referenced(text: str, folder: Path) -> str:
    """Replace each `{{TABLE|ROW|COLUMN}}` by that cell, and `{{TABLE|date}}` and its like by a fact beside the data."""

    def found(match: re.Match[str]) -> str:
        data = loaded(match[1], folder)
        column = match[3]
        if match[2] == "command":
            command = re.sub(r"\s+#.*", "", data["commands"][0])
            commit = re.search(r"of commit (\w+)", data["commands"][0])
            return f"`{command.replace('`', '')}`" + (
                f" of {commit[1]}" if commit else ""
            )
        if column is None:
            return plain(str(data[match[2]]))
        place = list(data["columns"]).index(column)
        return cell(row_of(data, match[2])[place], data["columns"][column])

    return REFERENCE.sub(found, text)


def summary(name: str, folder: Path) -> str:
    """Return a summary table, with numbers from the data."""
    rows = yaml.safe_load(SUMMARIES.read_text(encoding="utf-8"))[name]
    lines = [[referenced(str(text), folder) for text in row] for row in rows]
    lines.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def table(name: str, data: dict[str, Any]) -> str:
    """Return a table as markdown."""
    forms = list(data["columns"].values())
    rows = [
        [cell(value, form) for value, form in zip(row, forms, strict=True)]
        for row in data["rows"]
    ]
    lines = [[plain(title) for title in data["columns"]], ["---"] * len(forms), *rows]
    return (
        "\n".join(f"| {' | '.join(line)} |" for line in lines)
        + f"\n\n{source(name, data)}\n"
    )


def with_tables(text: str, folder: Path = RESULTS / "data") -> str:
    """Return the page with its tables as the data has them.

    Raises:
        FileNotFoundError: If a table has no data.
    """

    def rendered(found: re.Match[str]) -> str:
        shown = part(loaded(found["name"], folder), found["rows"], found["columns"])
        return f"{found[1]}\n{table(found['name'], shown)}\n{found[5]}"

    def summed(found: re.Match[str]) -> str:
        return f"{found[1]}\n{summary(found[2], folder)}\n{found[3]}"

    return SUMMARY.sub(summed, BLOCK.sub(rendered, text))


def unshown() -> list[str]:
    """Return saved tables that no page shows or links, and no summary cites."""
    pages = "".join(path.read_text(encoding="utf-8") for path in RESULTS.glob("*.md"))
    shown = set(re.findall(r"\(data/([\w.-]+)\.json\)", pages))
    summaries = SUMMARIES.read_text(encoding="utf-8")
    shown |= {found[1] for found in REFERENCE.finditer(summaries)}
    return sorted(
        path.stem
        for path in (RESULTS / "data").glob("*.json")
        if path.stem not in shown
    )


def main() -> int:
    """Write the tables into the pages, or check them."""
    check = "--check" in sys.argv[1:]
    wrong = [f"no page shows {name}" for name in unshown()]
    for page in [ROOT / "README.md", *sorted(RESULTS.glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        if (rendered := with_tables(text)) != text:
            if check:
                wrong.append(
                    f"{page.name} differs from its data; run python docs/tables.py"
                )
            else:
                page.write_text(rendered, encoding="utf-8")
    sys.stderr.write("".join(f"{line}\n" for line in wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
