"""Tables of results are what the programs saved that measured them; pages show these files."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts import script

from judgesmith.experiments.studies.saving import save

pytestmark = pytest.mark.text

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "experiments/results").glob("*.md"))
DATA = sorted((ROOT / "experiments/results/data").glob("*.json"))

tables = script("tables")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_tables_of_a_page_are_those_of_its_data(page: Path) -> None:
    """`python docs/tables.py` writes them."""
    text = page.read_text(encoding="utf-8")
    assert tables.with_tables(text) == text
    assert (
        text.count("<!-- table:")
        == text.count("<!-- /table -->")
        == len(tables.BLOCK.findall(text))
    )


def test_every_saved_table_is_shown() -> None:
    assert DATA
    assert tables.unshown() == []


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_a_saved_table_names_its_command_and_versions_and_no_folder_of_a_machine(
    path: Path,
) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    assert all(
        re.match(r"python experiments/bench/\w+\.py|judgesmith ", said)
        for said in data["commands"]
    )
    assert {"judgesmith", "numpy", "scipy"} <= set(data["versions"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", data["date"])
    assert not re.search(
        r"(?<![\w.])/(home|root|tmp|work|Users)/", path.read_text(encoding="utf-8")
    )


def saved(folder: Path, rows: list[list[Any]], **about: Any) -> str:
    """A page with one table of these rows."""
    columns = {
        "what": "",
        "Q": "{:.2f} [{:.2f}, {:.2f}]",
        "share": "{:.0%}",
        "n": "{:,}",
    }
    save(folder, "made", columns, rows, commands=["judgesmith evaluate x"], **about)
    page = "# Page\n\n<!-- table: made -->\n<!-- /table -->\n\nText.\n"
    return str(tables.with_tables(page, folder))


def test_a_table_is_written_by_the_columns_formats(tmp_path: Path) -> None:
    rows = [
        ["one", [-0.5, -1.0, 0.25], np.float64(0.256), np.int64(1200)],
        ["two", [math.nan, 0.0, 0.0], None, 3],
        ["three", [-0.001, -0.014, 0.001], 1.0, 0],
    ]
    page = saved(tmp_path, rows, seed=7, notes="small")
    assert "| what | Q | share | n |\n| --- | --- | --- | --- |\n" in page
    assert "| one | −0.50 [−1.00, 0.25] | 26 % | 1,200 |\n" in page
    assert "| three | 0.00 [−0.01, 0.00] | 100 % | 0 |\n" in page
    assert "| two | – | – | 3 |\n" in page  # an interval without a value is none
    assert "`judgesmith evaluate x`: judgesmith " in page
    assert "seed 7, small ([data](data/made.json))" in page
    assert tables.with_tables(page, tmp_path) == page
    assert (
        tables.with_tables(page.replace("0.50", "0.60"), tmp_path) == page
    )  # a changed figure is noticed
    assert page.startswith("# Page\n\n")
    assert page.endswith("<!-- /table -->\n\nText.\n")


def test_a_page_shows_a_part_of_a_table(tmp_path: Path) -> None:
    rows = [["one", [0.1, 0.0, 0.2], 0.5, 7], ["two", [0.3, 0.2, 0.4], 0.6, 8]]
    page = saved(tmp_path, rows)
    chosen = page.replace("table: made", "table: made; rows: tw*; columns: what | n")
    assert "| what | n |\n| --- | --- |\n| two | 8 |\n\n" in tables.with_tables(
        chosen, tmp_path
    )
    by_two_cells = page.replace("table: made", "table: made; rows: one / *0.1*")
    assert "two" not in tables.with_tables(by_two_cells, tmp_path)
    with pytest.raises(KeyError, match="nothing is called three"):
        tables.with_tables(page.replace("made -->", "made; rows: three -->"), tmp_path)


def test_texts_of_the_data_are_no_markup(tmp_path: Path) -> None:
    page = saved(
        tmp_path, [["<b>a|b</b>\n| [x](y) *z* <!-- /table -->", None, None, None]]
    )
    (row,) = (line for line in page.splitlines() if "a\\|b" in line)
    assert (
        row == r"| &lt;b>a\|b&lt;/b> \| \[x\](y) \*z\* &lt;!-- /table --> | – | – | – |"
    )


def test_a_row_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a row of 1 cells for 4 columns"):
        saved(tmp_path, [["one"]])
