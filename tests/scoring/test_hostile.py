"""Hostile rows, names, judges and options.

No escape reaches a terminal, no formula a spreadsheet, no traceback a user, and no row is lost to a full disk.
"""

import csv
import io
import json
import math
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from json_lines import write
from patience import HANG
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

from judgesmith.cli import main as command_line
from judgesmith.datasets.loading import read_labels
from judgesmith.errors import LabelsError
from judgesmith.running.console import ShownConsole
from judgesmith.running.plain import json_text, shown

#: Any text, lone surrogates included, with more than its share of what a terminal obeys.
hostile = st.text(st.characters(exclude_categories=()), max_size=12) | st.lists(
    st.sampled_from(
        [
            "\x1b[31m",
            "\x1b]0;x\a",
            "\x9b2J",
            "\r",
            "\b",
            "\0",
            "\u202e",
            "\u2066",
            "\u200b",
            "\ufeff",
            "\U000e0041",
            "\ud800",
            "\u2028",
            "[bold]",
            "[/]",
            "=1+1",
            "a",
            "\t",
            "\n",
        ]
    ),
    min_size=1,
    max_size=4,
).map("".join)
large = st.sampled_from([1e308, -1e308, 10**400, "1e999"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile | large,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(hostile, inner, max_size=3)
    ),
    max_leaves=5,
)
a_few = settings(max_examples=8, suppress_health_check=list(HealthCheck))


def harmless(words: str) -> bool:
    """Whether no character acts on a terminal or hides: of Unicode's controls, only line breaks and tabs."""
    return not any(
        unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(c) in BIDI
        for c in words
        if c not in "\n\t"
    )


BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
#: Format characters that writing needs: joiners, and signs that are seen.
NEEDED = {
    *map(ord, "\u200c\u200d"),
    *range(0x600, 0x606),
    0x6DD,
    0x70F,
    0x890,
    0x891,
    0x8E2,
    0x110BD,
    0x110CD,
    *range(0x13430, 0x13456),
    *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B),
}


def seven(ask: Any) -> str:
    return "4" if ask.step == "probe" else "Explanation: It says so.\nScore: 7"


def one_line(done: Any) -> bool:
    return (
        done.out == ""
        and len(done.err.splitlines()) == 1
        and "Traceback" not in done.err
    )


# -- terminals --------------------------------------------------------------------------------------------------------


def test_every_control_and_format_character_of_unicode_is_made_visible() -> None:
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        acts = (
            unicodedata.category(c) in ("Cc", "Cs", "Cf", "Zl", "Zp")
            and code not in NEEDED
            and c not in "\n\t"
        )
        if acts:
            assert shown(c) == "\ufffd", hex(code)
        elif (
            not 0xE0000 <= code <= 0xE007F and code != 0x2065
        ):  # not assigned, in the midst of format characters
            assert shown(c) == c, hex(code)


@given(hostile, st.booleans())
def test_nothing_that_rich_renders_acts(text: str, terminal: bool) -> None:
    console = ShownConsole(
        file=io.StringIO(), force_terminal=terminal, color_system=None, width=60
    )
    table = Table(title=Text(text))
    table.add_column(Text(text))
    table.add_row(Text(text), text.replace("[", r"\["))
    console.print(text, markup=False)
    console.print(table)
    console.print(Text(text), [text], {text: 1})
    console.rule(Text(text))
    with Progress(
        TextColumn("{task.description}", markup=False),
        console=console,
        disable=not terminal,
    ) as bar:
        bar.add_task(text)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    if terminal:  # rich's own: moves of the cursor
        for own in ("\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A", "\r"):
            written = written.replace(own, "")
    assert harmless(written)


def test_styles_still_reach_a_terminal() -> None:
    console = ShownConsole(
        file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    console.print("[red]warning[/red]")
    assert "\x1b[31mwarning\x1b[0m" in console.file.getvalue()  # type: ignore[attr-defined]


@given(anything)
def test_json_keeps_every_text_and_shows_none_raw(value: Any) -> None:
    text = json_text({"v": value})
    assert harmless(text)
    assert json.loads(text, parse_constant=pytest.fail) == {"v": plain(value)}


def plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


@given(
    text=hostile.filter(lambda t: "\0" not in t and t.strip() and not t.startswith("-"))
)
@a_few
def test_options_that_are_refused_are_one_harmless_line(cli: Any, text: str) -> None:
    for arguments in (
        ("show", text),
        (text,),
        ("score", text, "--judge", text),
        ("compile", text, "--variant", text),
        ("evaluate", text),
        ("report", text),
        ("compile", "rows.jsonl", "--columns", text),
    ):
        done = cli(*arguments)
        assert done.code == 2
        assert one_line(done), done
        assert harmless(done.err)


@given(source=hostile, name=hostile, identity=hostile)
@a_few
def test_rows_and_answers_reach_people_harmless(
    cli: Any,
    server: Any,
    judge_file: Path,
    tmp_path: Path,
    source: str,
    name: str,
    identity: str,
) -> None:
    server.answer = seven
    rows, scored = tmp_path / "rows.jsonl", tmp_path / "rows.scored.jsonl"
    records = [
        {
            "id": f"{identity}{i % 9}",
            "source": source,
            "output": f"{source} {i}",
            "score": i,
            "x" + name: name,
        }
        for i in range(10)
    ]
    write(rows, records)
    lm = ("--lm", "openai/fake", "--api-base", server.base)
    for arguments in (
        ("score", rows, "--judge", judge_file, *lm[2:], "--overwrite", "-o", scored),
        (
            "score",
            rows,
            "--judge",
            judge_file,
            *lm[2:],
            "--overwrite",
            "-o",
            scored,
            "--json",
        ),
        ("show", judge_file, "--prompt", rows),
        ("show", judge_file, "--prompt", rows, "--json"),
        ("compile", rows, *lm, "--dry-run"),
        ("compile", rows, *lm, "--dry-run", "--aspect", "x" + name),
        ("evaluate", scored, "--human", "score"),
        ("evaluate", scored, "--human", "x" + name),
        ("report", scored, "--json"),
    ):
        done = cli(*arguments)
        assert done.code in (0, 1, 2)
        assert harmless(done.out + done.err), (arguments, done)
        assert "internal error" not in done.err, (arguments, done)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ValueError("two\nlines \x1b[31m"),
        KeyError("k"),
        MemoryError(),
        RecursionError("deep"),
        AssertionError(),
        OSError(28, "No space left on device", "there"),
        PermissionError(13, "Permission denied"),
        EOFError(),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        ExceptionGroup("g", [ValueError("v")]),
    ],
    ids=lambda e: type(e).__name__,
)
def test_what_reaches_the_entry_is_one_line(
    error: BaseException, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**options: Any) -> int:
        raise error

    monkeypatch.setattr(command_line, "app", fail)
    done = cli("show", "judge.json")
    assert done.code == 2
    assert one_line(done), done
    assert harmless(done.err)
    assert ("internal error" in done.err) == (
        not isinstance(error, OSError | MemoryError)
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_standard_output_is_an_error(spawn: Any) -> None:
    code = "import os; os.dup2(os.open('/dev/full', 1), 1); from judgesmith.cli.main import main; main()"
    process = spawn("list", "aspects", "--json", code=code)
    _, err = process.communicate(timeout=HANG)
    assert (process.returncode, err.splitlines()) == (
        2,
        ["OSError: No space left on device"],
    )


# -- rows and files ---------------------------------------------------------------------------------------------------

names = st.sampled_from(
    [
        "id",
        "output",
        "source",
        "score",
        "scores",
        "context",
        "doc_id",
        "group",
        "rating_1",
        "verdict",
    ]
)
starts = st.sampled_from(
    [
        b"",
        b"id,output,score\n",
        b"\xff\xfe",
        b"\xef\xbb\xbf[",
        b"\x1f\x8b",
        b'{"output":"x"}\n',
        b"PAR1",
    ]
)
files = st.tuples(
    st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".parquet"]),
    st.builds(bytes.__add__, starts, st.binary(max_size=60)),
) | st.tuples(
    st.sampled_from([".jsonl"]),
    st.lists(st.dictionaries(names | hostile, anything, max_size=5), max_size=10).map(
        lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode()
    ),
)


@given(file=files)
@a_few
def test_any_file_is_read_or_refused_in_one_line(
    cli: Any, server: Any, judge_file: Path, tmp_path: Path, file: tuple[str, bytes]
) -> None:
    server.answer = seven
    rows, out = tmp_path / f"any{file[0]}", tmp_path / "out.jsonl"
    rows.write_bytes(file[1])
    out.unlink(missing_ok=True)
    for arguments in (
        (
            "score",
            rows,
            "--judge",
            judge_file,
            "--api-base",
            server.base,
            "--overwrite",
            "-o",
            out,
        ),
        ("evaluate", rows),
        ("compile", rows, "--lm", "openai/fake", "--dry-run"),
        ("report", rows, "-o", tmp_path / "page.html"),
    ):
        done = cli(*arguments)
        assert done.code in (0, 1, 2)
        assert "internal error" not in done.err, (arguments, done)
        assert harmless(done.out + done.err)
        if done.code == 2:
            assert "Traceback" not in done.err
    if out.exists():
        with out.open(
            encoding="utf-8", newline="\n"
        ) as lines:  # U+2028 and the like end no line
            for line in lines:
                json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("1e308", "is larger than any score"),
        ("true", "write 1 for true"),
        ("-1e13", "is larger than any score"),
    ],
)
def test_a_score_that_is_none_is_refused_where_it_stands(
    cell: str, why: str, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(
            f'{{"output": "o{i}", "score": {cell if i == 3 else i}}}\n'
            for i in range(9)
        )
    )
    with pytest.raises(
        LabelsError, match=rf"rows.jsonl, row 4, column 'score': .*{why}"
    ):
        read_labels(rows)


# -- what is written --------------------------------------------------------------------------------------------------


@given(texts=st.lists(hostile.filter(str.strip), min_size=1, max_size=4), name=hostile)
@example(texts=["+"], name="")  # its id "+0" is a number
@a_few
def test_a_csv_runs_nothing_and_is_gone_on_with(
    cli: Any, server: Any, judge_file: Path, tmp_path: Path, texts: list[str], name: str
) -> None:
    server.answer = seven
    records = [
        {"id": f"{text}{i}", "output": text, "x" + name: "=1+1", "-y": -1.5}
        for i, text in enumerate(texts)
    ]
    rows, out = write(tmp_path / "rows.jsonl", records), tmp_path / "out.csv"
    call = (
        "score",
        rows,
        "--judge",
        judge_file,
        "--api-base",
        server.base,
        "-o",
        out,
        "--json",
    )
    assert cli(*call, "--overwrite").code in (0, 1)
    with out.open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert "-1.5" in cells
    # A number with a sign is what it is, no formula; the ids "-0" and "+0" are such, too.
    begins = [c for c in cells if c.strip() and c.lstrip()[0] in "=+@-"]
    assert not [c for c in begins if not re.fullmatch(r"[+-][\d.]+", c)]
    again = cli(*call)
    assert again.code in (0, 1), again
    assert again.json["resumed"] == len(texts)
