"""README, site and results as text: lengths, links, names, prompts and words. `make docs` builds the site itself."""

import ast
import json
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts import script

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs/pages"
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "experiments/RESULTS.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")

words = script("words")
PAGES = words.pages()
NOTEBOOKS = sorted(SITE.rglob("*.ipynb"))


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The names of a page's headings as MkDocs and GitHub make them."""
    found = re.findall(
        r"^#+ (.+)$",
        re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL),
        re.M,
    )
    plain = (
        unicodedata.normalize("NFKD", re.sub(r"[`*]", "", title)).lower()
        for title in found
    )
    return {
        re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip()) for title in plain
    }


def nav(entries: list[object]) -> list[str]:
    found = []
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += nav(value) if isinstance(value, list) else [str(value)]
    return found


def test_the_pages_are_found() -> None:
    assert {ROOT / "README.md", ROOT / "programs/DSPY.md", SITE / "start.md"} <= set(
        PAGES
    )
    assert words.STYLE not in PAGES


def test_the_readme_has_one_picture_and_commands_that_are_there() -> None:
    assert README.count("![") == 1
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"(?:^\$ |`)make (\w+)", README, re.MULTILINE)
    assert {"test", "demo", "docs"} <= set(targets)
    assert all(re.search(rf"^{target}:", make, re.MULTILINE) for target in targets)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    (version,) = re.findall(
        r"`pip install \./judgesmith-(.+)-py3-none-any\.whl`", README
    )
    assert version == project["version"]
    extras = re.findall(r"'\.\[(\w+)\]'", README)
    assert {"local", "tables"} <= set(extras)
    assert set(extras) <= project["optional-dependencies"].keys()
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.search(r"^make .*\btest$", run, re.MULTILINE)
    assert re.search(r"^make .*\bdocs$", run, re.MULTILINE)


def test_the_readme_explains_q_where_it_is_first_used_and_compares_with_no_other_version() -> (
    None
):
    explained = README.index(
        "**Q** is our agreement score: the sum of three correlations"
    )
    assert re.search(r"\bQ\b", README[:explained]) is None
    assert not re.findall(
        r"\b(?:now|before|anymore|no longer)\b", without_code(README), re.IGNORECASE
    )


def test_no_page_installs_from_an_index() -> None:
    """Judgesmith is on none; a wheel or a clone is what there is."""
    found = [
        (path.name, line)
        for path in PAGES
        for line in re.findall(
            r"pip install (?:[^\n`#&]|&(?!&))*", path.read_text(encoding="utf-8")
        )
        if re.search(r"(?<![/\w-])judgesmith(?!-\d|/|\w)", line)
    ]
    assert found == []


#: Options of other programs, on lines that run them.
OTHERS = re.compile(
    r"pytest|nbconvert|opentelemetry-instrument|dspy:NAME|served-model-name|split -n|vllm serve|--install-c"
)


def test_every_option_on_a_page_is_one_of_the_code() -> None:
    """Options in prose, too, so that no page speaks of one that was removed. Studies say what was run then."""
    code = "".join(path.read_text(encoding="utf-8") for path in words.sources())
    names = {
        name.replace("-", "_")
        for name in re.findall(r"[\w-]+", code.replace("--", " "))
    }
    lines = [
        (path.name, line)
        for path in PAGES
        if not {"results", "tests"} & set(path.relative_to(ROOT).parts)
        for line in path.read_text(encoding="utf-8").splitlines()
        if not OTHERS.search(line)
    ]
    options = [
        (name, option)
        for name, line in lines
        for option in re.findall(r"(?<![\w-])--([a-z][\w-]*)", line)
    ]
    assert len(options) > 300
    assert [one for one in options if one[1].replace("-", "_") not in names] == []


def test_every_name_of_the_package_on_a_page_is_public() -> None:
    found = {
        (path.name, name)
        for path in PAGES
        if "results" not in path.relative_to(ROOT).parts
        for name in re.findall(
            r"\bjs\.([A-Za-z_]\w*)", path.read_text(encoding="utf-8")
        )
    }
    stub = (ROOT / "src/judgesmith/__init__.pyi").read_text(encoding="utf-8")
    imports = [one for one in ast.parse(stub).body if isinstance(one, ast.ImportFrom)]
    public = {name.name for one in imports for name in one.names}
    assert len(found) > 50
    assert sorted(one for one in found if one[1] not in public) == []


def test_the_block_of_the_readme_is_what_the_demo_prints(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python docs/demo.py` writes it."""
    monkeypatch.chdir(tmp_path)
    said = cli("demo").said
    assert script("demo").with_block(README, said) == README
    assert len(said.splitlines()) <= 25
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("name", script("pictures").WRITTEN)
def test_a_picture_is_of_the_page_as_it_is(
    name: str, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python docs/pictures.py` takes them again."""
    pictures = script("pictures")
    monkeypatch.chdir(tmp_path)
    kept = json.loads(pictures.KEPT.read_text(encoding="utf-8"))
    assert kept[name] == pictures.digest(pictures.written(name, tmp_path, cli))
    assert (pictures.ASSETS / f"{name}.png").is_file()


def test_the_picture_of_the_label_page_is_of_the_page_as_it_is() -> None:
    pictures = script("pictures")
    kept = json.loads(pictures.KEPT.read_text(encoding="utf-8"))
    assert kept["label"] == pictures.digest_of_label()
    shown = {path.stem for path in pictures.ASSETS.glob("*.png")}
    assert shown == set(kept)  # one more needs a digest, too


def test_the_figure_of_the_demo_is_of_the_kept_run(tmp_path: Path) -> None:
    """`python docs/demo.py --live` draws it."""
    demo = script("demo")
    data = json.loads((demo.ASSETS / "demo.json").read_text(encoding="utf-8"))
    demo.draw(data, tmp_path / "demo.svg")
    said = re.compile(r"<!-- (.+?) -->")
    assert said.findall((tmp_path / "demo.svg").read_text("utf-8")) == said.findall(
        (demo.ASSETS / "demo.svg").read_text("utf-8")
    )


def test_the_page_of_the_demo_has_the_figures_of_the_kept_run() -> None:
    data = json.loads(
        (ROOT / "docs/pages/assets/demo.json").read_text(encoding="utf-8")
    )
    page = figures((ROOT / "experiments/results/demo.md").read_text(encoding="utf-8"))
    for name in ("compiled", "model alone"):
        assert (
            figures(" ".join(f"{abs(one):.2f}" for one in data["agreement"][name]))
            <= page
        )


@pytest.mark.model
@pytest.mark.slow
def test_the_demo_says_what_was_kept_of_it(tmp_path: Path) -> None:
    demo = script("demo")
    data = json.loads((demo.ASSETS / "demo.json").read_text(encoding="utf-8"))
    fresh = demo.run_live()
    assert fresh["rows"] == data["rows"]
    assert [one["suspicious"] for one in fresh["verdicts"]] == [
        one["suspicious"] for one in data["verdicts"]
    ]
    for name, kept in data["agreement"].items():
        assert fresh["agreement"][name] == pytest.approx(kept, abs=0.1)
    scores = [one["score"] for one in data["verdicts"]]
    assert [one["score"] for one in fresh["verdicts"]] == pytest.approx(scores, abs=0.2)


def test_the_reference_of_the_command_line_is_that_of_the_commands() -> None:
    assert (SITE / "reference/cli.md").read_text(encoding="utf-8") == script(
        "commands"
    ).page()


def test_how_many_labels_has_the_figures_of_the_data() -> None:
    data = json.loads(
        (ROOT / "experiments/results/data/experience.json").read_text(encoding="utf-8")
    )
    (mean,) = (
        dict(zip(data["columns"], row, strict=True))
        for row in data["rows"]
        if row[0].startswith("mean of 31")
    )
    page = (SITE / "howto/labels.md").read_text(encoding="utf-8")
    for names in (
        ("0 labels", "5", "8", "12", "20", "40", "80"),
        ("8, no experience", "40, no experience"),
    ):
        cells = [f"{mean[name]:.2f}" for name in names]
        assert re.search(r"[ |–]+".join(map(re.escape, cells)), page), cells


@pytest.mark.parametrize(
    "page", [*PAGES, *NOTEBOOKS], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{path} is not there"
        assert not anchor or anchor in anchors(target), (
            f"{path} has no heading #{anchor}"
        )


def test_a_link_that_leads_nowhere_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[there](page.md#a-page) [not there](other.md)\n", encoding="utf-8"
    )
    with pytest.raises(AssertionError, match=r"other\.md is not there"):
        test_every_link_leads_somewhere(page)


def open_blocks(text: str) -> list[str]:
    """The lines with which blocks of code begin that are never closed, or closed by a line with prose behind it."""
    fences = re.findall(r"^ *```.*$", text, re.MULTILINE)
    wrong = [fence for fence in fences[1::2] if fence.strip() != "```"]
    return wrong + fences[len(fences) - len(fences) % 2 :]


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_every_block_of_code_is_closed(page: Path) -> None:
    assert open_blocks(page.read_text(encoding="utf-8")) == []


def test_a_block_of_code_that_runs_into_prose_would_be_found() -> None:
    assert open_blocks("```python\n1\n```\nProse.\n") == []
    assert open_blocks("```python\n1\n``` Prose.\n") == ["``` Prose."]
    assert open_blocks("```python\n1\n") == ["```python"]


def test_the_site_has_every_page_once() -> None:
    listed = nav(
        yaml.safe_load((ROOT / "docs/mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    )
    (table,) = re.findall(
        r"^PAGES = (\{.*?^\})",
        (ROOT / "docs/hooks.py").read_text(encoding="utf-8"),
        re.M | re.DOTALL,
    )
    elsewhere = ast.literal_eval(table)
    assert all((ROOT / path).is_file() for path in elsewhere)
    own = {
        path.relative_to(SITE).with_suffix(".md").as_posix()
        for path in [*SITE.rglob("*.md"), *NOTEBOOKS]
    }
    studies = {
        f"results/{path.name}" for path in (ROOT / "experiments/results").glob("*.md")
    }
    assert len(set(listed)) == len(listed)
    apart = studies | {
        page
        for page in own | set(elsewhere.values())
        if page.split("/")[0] in ("examples", "project")
    }
    assert set(listed) - apart | apart == own | studies | set(elsewhere.values())
    assert set(listed) & apart == {"results/benchmarks.md"}


def test_the_reference_has_every_public_name() -> None:
    stub = (ROOT / "src/judgesmith/__init__.pyi").read_text(encoding="utf-8")
    public = {
        f"judgesmith.{module}.{name}"
        for module, name in re.findall(r"^from \.(\S+) import (\w+)", stub, re.M)
    }
    text = "".join(
        path.read_text(encoding="utf-8") for path in (SITE / "reference").glob("*.md")
    )
    shown = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    assert {
        name for name in public if not name.startswith("judgesmith.errors.")
    } <= shown
    assert "judgesmith.errors" in shown


def test_every_study_is_on_the_page_of_results() -> None:
    linked = {path for path, _ in LINK.findall(RESULTS)}
    assert {
        f"results/{path.name}" for path in (ROOT / "experiments/results").glob("*.md")
    } <= linked


def figures(text: str) -> set[str]:
    """The numbers with a decimal point, without a leading zero."""
    return {
        found.replace("0.", ".", 1) if found[:2] == "0." else found
        for found in re.findall(r"\d*\.\d+", text)
    }


def test_the_summary_shows_figures_of_its_studies() -> None:
    rows = re.findall(
        r"^\| (.+?) \| .+? \| (.*?) \| (\[.+\].*) \|$", RESULTS, re.MULTILINE
    )
    assert len(rows) > 20
    for question, figure, links in rows:
        pages = [
            (ROOT / "experiments" / path).read_text(encoding="utf-8")
            for path, _ in LINK.findall(links)
        ]
        missing = figures(figure) - set().union(*map(figures, pages))
        assert not missing, f"{question}: {missing}"


def test_the_tables_of_readme_and_results_are_those_of_the_data() -> None:
    """`python docs/tables.py` writes them."""
    tables = script("tables")
    assert "<!-- summary: readme -->" in README
    for page in (ROOT / "README.md", *(ROOT / "experiments/results").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert tables.with_tables(text) == text, page.name


def test_a_summary_of_a_row_that_is_not_there_is_refused() -> None:
    tables = script("tables")
    folder = tables.RESULTS / "data"
    assert tables.referenced("{{experience|mean of 31 tasks|rows}}", folder) == "4262"
    assert (
        tables.referenced(
            "{{crossing-tables|wiki_da.meaning / 40 / folds, five times|draws}}", folder
        )
        == "8"
    )
    with pytest.raises(KeyError, match="no row mean of 99 tasks"):
        tables.referenced("{{experience|mean of 99 tasks|rows}}", folder)


@pytest.mark.parametrize(
    "page", sorted((SITE / "methods").glob("*.md")), ids=lambda path: path.stem
)
def test_the_prompts_shown_are_those_that_are_sent(page: Path) -> None:
    """`python docs/prompts.py` writes them."""
    text = page.read_text(encoding="utf-8")
    assert script("prompts").with_prompts(text) == text


@pytest.mark.parametrize(
    ("texts", "hits"),
    [
        (
            ["It fails and says so.", "so\nmany rows", "asked ANEW", "people's scores"],
            1,
        ),
        (['"asked anew"', "`--perturb degradation`", "```\nanew\n```", "renewed"], 0),
    ],
)
def test_such_a_phrase_would_be_found_and_quotations_and_code_are_left_alone(
    texts: list[str], hits: int
) -> None:
    assert [len(list(words.wrong(f"A line.\n\n{text}\n"))) for text in texts] == [
        hits
    ] * len(texts)


@pytest.mark.parametrize(
    ("source", "hits"),
    [
        ('"""Keeps\nso many rows."""', 1),
        ('raise Error(f"{name} is none"\n            f" of {names}")', 1),
        ("#: Rows, of which so\n#: many are kept.\nROWS = 3", 1),
        ("rows = 3  # made anew", 1),
        ('anew = 1\ndef so(many):\n    """Not `asked anew`, nor "anew"."""', 0),
    ],
)
def test_such_a_phrase_would_be_found_in_strings_and_comments_and_names_are_left_alone(
    source: str, hits: int
) -> None:
    assert len(list(words.wrong_in_code(f"import os\n\n{source}\n"))) == hits
