"""A file format and an export of another package: a class each is all that readers, commands and help need."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from json_lines import write

from judgesmith.datasets import exports, formats
from judgesmith.datasets.exports import Answer, Answers, Results
from judgesmith.datasets.formats import Format, Text, TextFormat, open_table
from judgesmith.datasets.loading import (
    count_rows,
    iter_rows,
    read_aspects,
    read_compared,
    read_labels,
    read_outputs,
)
from judgesmith.datasets.tables import table_records
from judgesmith.errors import LabelsError, OptionError
from judgesmith.parts import Registry

ROWS = [
    {"source": f"Question {n}?", "output": f"Answer {n}.", "score": n % 5 + 1}
    for n in range(12)
]


class Yaml(TextFormat):
    name = "format-of-a-test"
    about = "YAML"
    suffixes = (".test-yaml", ".test-yml")
    written = True

    def rows(self, text: Text, notes: list[str]) -> Iterator[dict[str, Any]]:
        try:
            data = yaml.safe_load(text.read())
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise LabelsError(
                f"{text.name}, line {line}: malformed YAML ({error.problem}); correct the line"
            ) from None
        yield from table_records(data, text.name)

    def write(self, rows: formats.Rows, path: Path) -> None:
        path.write_text(yaml.safe_dump(list(rows())), encoding="utf-8")


class Thumbs(Answers):
    """{"prompt": …, "reply": …, "thumb": {"by": …, "up": …}}."""

    name = "thumbs"
    title = "Thumbs"
    about = "Thumbs, its JSON lines"

    def belongs(self, record: Mapping[str, Any]) -> bool:
        return "thumb" in record

    def read(
        self, record: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Iterable[Answer]]:
        thumb = record["thumb"]
        texts = {"source": record["prompt"], "output": record["reply"]}
        left = "which a bot gave" if thumb["by"] == "bot" else ""
        return texts, [Answer("overall", thumb["by"], thumb["up"], left)]


class Grader(Results):
    """{"grader": {"cases": [{"q": …, "a": …, "grade": …}]}}."""

    name = "grader"
    title = "Grader"
    about = "Grader, a run as JSON"

    def samples(self, data: Mapping[str, Any]) -> Any:
        run = data.get("grader")
        return run.get("cases") if isinstance(run, Mapping) else None

    def row(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        if "grade" not in sample:
            raise ValueError("grade is missing")
        judges = {"grader": {"score": sample["grade"]}}
        return {"source": sample["q"], "output": sample["a"], exports.JUDGES: judges}


def with_parts(registry: Registry[Any], *parts: Any) -> Registry[Any]:
    """A registry as one that has found these in another package, too."""
    copy: Registry[Any] = Registry(registry.kind, packages=(), group="none")
    for part in (*registry.parts().values(), *parts):
        copy.register(part)
    return copy


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "formats", with_parts(formats.formats, Yaml))
    monkeypatch.setattr(exports, "exports", with_parts(exports.exports, Thumbs, Grader))


@pytest.fixture
def labels(installed: None, tmp_path: Path) -> Path:
    path = tmp_path / "labels.test-yaml"
    path.write_text(yaml.safe_dump(ROWS), encoding="utf-8")
    return path


# -- a format ---------------------------------------------------------------------------------------------------------


def test_a_new_format_is_read_as_any_other(labels: Path) -> None:
    as_dicts = read_labels(ROWS, scale=(1, 5))
    read = read_labels(labels, scale=(1, 5))
    assert read.scores.tolist() == as_dicts.scores.tolist()
    assert [row.output for row in read.rows] == [row["output"] for row in ROWS]
    assert len(read_outputs(labels).rows) == len(list(iter_rows(labels))) == 12
    assert count_rows(labels) is None


def test_a_file_may_have_its_other_suffix(labels: Path) -> None:
    other = labels.with_suffix(".TEST-YML")
    other.write_bytes(labels.read_bytes())
    assert len(list(open_table(other).records)) == 12


def test_its_errors_name_the_line(labels: Path) -> None:
    labels.write_text("- output: a\n- output: [b\n", encoding="utf-8")
    with pytest.raises(
        LabelsError, match=r"^labels\.test-yaml, line \d+: malformed YAML"
    ):
        read_labels(labels)
    labels.write_text("- 1\n", encoding="utf-8")
    with pytest.raises(
        LabelsError, match=r"^labels\.test-yaml, row 1: an object is needed"
    ):
        read_labels(labels)


def test_its_encoding_is_found_like_that_of_others(labels: Path) -> None:
    labels.write_text(yaml.safe_dump(ROWS), encoding="utf-16")
    assert len(read_labels(labels, scale=(1, 5))) == 12


def test_commands_read_and_write_it(
    labels: Path, cli: Any, judge_file: Path, server: Any, tmp_path: Path
) -> None:
    out = tmp_path / "scored.test-yaml"
    judge = ("--judge", judge_file, "--api-base", server.base)
    done = cli("score", labels, *judge, "-o", out, "--json")
    assert done.json["scored"] == 12, done.err
    written = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert [row["output"] for row in written] == [row["output"] for row in ROWS]
    assert all(isinstance(row["judge_score"], float) for row in written)
    scored = [{**row, "other": 5 - n % 3} for n, row in enumerate(ROWS)]
    labels.write_text(yaml.safe_dump(scored), encoding="utf-8")
    measured = cli("evaluate", labels, "--judge", "other", "--json")
    assert measured.code == 0, measured.err


def test_help_and_errors_list_it(installed: None, cli: Any, tmp_path: Path) -> None:
    for command in ("compile", "score", "label"):
        assert ".test-yaml" in cli(command, "--help").out
    assert ".test-yaml" in cli("score", "--help").out.partition("--output")[2]
    (tmp_path / "rows.xyz").write_text("a", encoding="utf-8")
    with pytest.raises(
        LabelsError, match=r"unknown file type; use .* \.test-yaml, \.test-yml$"
    ):
        read_labels(tmp_path / "rows.xyz")


def test_two_formats_with_one_suffix_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = type("Other", (Yaml,), {"name": "other", "suffixes": (".csv",)})
    monkeypatch.setattr(formats, "formats", with_parts(formats.formats, other))
    with pytest.raises(OptionError, match=r"csv and other both read \.csv"):
        open_table(tmp_path / "rows.csv")


# -- exports ----------------------------------------------------------------------------------------------------------


def test_a_new_export_of_annotators_is_recognised(
    installed: None, tmp_path: Path
) -> None:
    records = []
    for n in range(10):
        thumb = {"by": "bot" if n == 9 else "ann", "up": n % 2}
        records.append({"prompt": f"Is it {n}?", "reply": f"{n}", "thumb": thumb})
    read = read_labels(write(tmp_path / "thumbs.jsonl", records))
    assert read.scores.tolist() == [n % 2 for n in range(9)]
    said = "read as an export of Thumbs; 1 ratings were left out, which a bot gave"
    assert any(said in note for note in read.warnings)


def test_a_new_result_file_is_read_or_refused_by_its_row(
    installed: None, tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    path.write_text(
        '{"grader": {"cases": [{"q": "A?", "a": "b", "grade": 1}, {"q": "C?", "a": "d"}]}}',
        encoding="utf-8",
    )
    with pytest.raises(
        LabelsError, match=r"^run\.json, row 2: grade is missing, which Grader does not"
    ):
        read_outputs(path)
    whole = path.read_text(encoding="utf-8").replace('"d"}', '"d", "grade": 0}')
    path.write_text(whole, encoding="utf-8")
    records = read_outputs(path).records
    assert [record[exports.JUDGES]["grader"]["score"] for record in records] == [1, 0]


# -- unknown names ----------------------------------------------------------------------------------------------------

#: Every way into a file of rows.
WAYS: dict[str, Any] = {
    "open_table": open_table,
    "format_of": formats.format_of,
    "count_rows": count_rows,
    "iter_rows": lambda path: list(iter_rows(path)),
    "read_labels": read_labels,
    "read_aspects": lambda path: read_aspects(path, ["all"]),
    "read_outputs": read_outputs,
    "read_compared": read_compared,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["rows.xyz", "rows", "rows.csv.zip", "rows.gz"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(
    way: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text('{"output": "a", "score": 1}\n', encoding="utf-8")
    every = [one for form in formats.formats.parts().values() for one in form.suffixes]
    with pytest.raises(LabelsError, match="unknown file type") as error:
        WAYS[way](path)
    assert all(suffix in str(error.value) for suffix in every)


@pytest.mark.parametrize(
    "command",
    [
        ("compile", "{}", "--lm", "openai/loopback", "-o", "judge.json"),
        ("evaluate", "{}"),
        ("score", "{}", "--judge", "{judge}"),
        ("report", "{}"),
        ("label", "{}", "--no-browser"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_refuses_an_unknown_suffix(
    command: tuple[str, ...], cli: Any, judge_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rows.xyz"
    path.write_text('{"output": "a", "score": 1}\n', encoding="utf-8")
    words = [word.format(path, judge=judge_file) for word in command]
    done = cli(*words)
    assert done.code == 2
    assert "unknown file type; use one of .csv" in done.err


def test_scores_are_not_written_in_an_unknown_format(
    cli: Any, judge_file: Path, tmp_path: Path
) -> None:
    rows = write(tmp_path / "rows.jsonl", ROWS)
    for name in ("out.xyz", "out.xlsx", "out", "out.jsonl.gz"):
        done = cli("score", rows, "--judge", judge_file, "-o", tmp_path / name)
        assert done.code == 2
        written = re.search(
            r"scores are written as (.*?)[;.]?$", done.err, re.MULTILINE
        )
        assert written
        assert {".jsonl", ".csv", ".parquet"} <= set(re.findall(r"\.\w+", written[1]))


@pytest.mark.parametrize("kind", ["formats", "exports"])
def test_an_unknown_name_is_refused(kind: str, cli: Any) -> None:
    done = cli("list", kind, "nothing")
    assert done.code == 2
    assert "'nothing' is unknown" in done.err
    assert "known: " in done.err


def test_every_format_says_what_it_is() -> None:
    for form in formats.formats.parts().values():
        assert issubclass(form, Format)
        assert all(one.startswith(".") and one == one.lower() for one in form.suffixes)
        writes = form.write is not Format.write
        assert writes == form.written
        assert bool(form.extra) == bool(form.modules)
