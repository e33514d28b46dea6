"""`judgesmith report FOLDER`: what is found in a folder, the page of it, and what is hostile or damaged in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from json_lines import write

from judgesmith.programs import artifact
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.versions import Version
from judgesmith.rooms.watching import history
from judgesmith.rooms.watching.browsing import render
from judgesmith.rooms.watching.folder import browse
from judgesmith.rooms.watching.judges import compare_judges
from judgesmith.signatures.values import Scale

HOSTILE = "<img src=x onerror=alert(1)>"


def saved(
    path: Path, *, created: str = "2026-01-01", task: str = "", low: float = 0.5
) -> str:
    """A judge's file with a history; its fingerprint."""
    judge = Judge(DirectScorer(task=task), scale=Scale(1, 5))
    judge.provenance = {
        "created": created,
        "heldout": {
            "value": 1.2,
            "low": low,
            "high": 1.6,
            "signature": f"Q=1.20 {HOSTILE}",
        },
        "zero_shot": {"value": 0.4},
        "labels": {
            "fingerprint": "f",
            "aspect": "overall",
            "rows": 40,
            "origin": HOSTILE,
        },
        "optimizer": {"name": "random-search"},
        "cost": {"calls": 96, "prompt_tokens": 10, "completion_tokens": 2},
    }
    judge.save(str(path))
    (found,) = [one for one in browse(path.parent).judges if one.path == path.name]
    return found.version.fingerprint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "runs"
    (made / "study").mkdir(parents=True)
    mark = saved(made / "one.json")
    saved(made / "two.json", created="2026-02-01", task="Simplify.")
    rows = [
        {
            "id": str(k),
            "output": HOSTILE,
            "score": k % 5 + 1,
            "judge": mark,
            "verdict": {"score": k % 5 + 1},
        }
        for k in range(10)
    ]
    write(made / "rows.jsonl", rows)
    (made / f"{HOSTILE[:8]}.jsonl").write_text(
        '{"id": "a", "verdict": {"score": 1}}\nno json\n'
    )
    (made / "cut.json").write_text('{"format": "judgesmith.judge/1", "program"')
    (made / "other.json").write_text('{"a": 1}')
    (made / ".hidden.jsonl").write_text('{"verdict": ')
    (made / "study" / "config.yaml").write_text("study: labels\n")
    done = {
        "arm": HOSTILE,
        "model": "m",
        "train": 10,
        "status": "done",
        "q": 1.0,
        "calls": 50,
    }
    write(
        made / "study" / "results.jsonl",
        (done, done | {"q": 2.0}, {"status": "failed", "reason": "down"}),
    )
    return made


def test_judges_rows_studies_and_damage_are_found(folder: Path) -> None:
    found = browse(folder)
    assert [one.path for one in found.judges] == ["one.json", "two.json"]
    assert found.judges[0].agreement() == (1.2, 0.5, 1.6)
    assert found.judges[0].agreement("zero_shot")[0] == 0.4
    (rows,) = found.scored
    assert (rows.path, rows.spearman, rows.both) == (
        "rows.jsonl",
        pytest.approx(1.0),
        10,
    )
    assert rows.judges == (found.judges[0].version.fingerprint,)
    (study,) = found.studies
    assert study.arms == {f"{HOSTILE} · m · 10": (1.5, 2, 50.0)}
    assert study.failed == 1
    assert [path for path, _ in found.damaged] == [f"{HOSTILE[:8]}.jsonl", "cut.json"]
    assert "line 2" in found.damaged[0][1]
    assert "cut.json" in found.damaged[1][1]
    ((before, after, diff),) = found.diffs()
    assert (before.path, after.path, diff.same) == ("one.json", "two.json", False)
    assert diff.changes[0][::2] == ("task", "Simplify.")
    assert diff.parts == ("prompt",)


DEMO = {"output": "O", "group": "d", "score": 60.0}
CHANGES: list[tuple[Callable[[dict[str, Any]], Any], str, tuple[str, ...]]] = [
    (lambda d: d["provenance"].update(seed=7), "provenance.seed", ()),
    (lambda d: d.update(task="Another task."), "task", ("prompt",)),
    (
        lambda d: d.update(criteria=[{"name": "Wit", "definition": "x"}]),
        "criteria",
        ("prompt",),
    ),
    (
        lambda d: d["state"]["scorer.predict"]["demos"].append(DEMO),
        "state.scorer.predict.demos",
        ("prompt",),
    ),
    (
        lambda d: d.update(calibration={"percent": [0, 100], "score": [1, 4]}),
        "calibration",
        ("scale and calibration",),
    ),
    (lambda d: d["lm"].update(model="local/smollm2-135m"), "lm.model", ("model",)),
]


@pytest.mark.parametrize(("change", "where", "parts"), CHANGES)
def test_every_part_tells_what_changed_and_decides_whether_scores_may_be_compared(
    tmp_path: Path,
    change: Callable[[dict[str, Any]], Any],
    where: str,
    parts: tuple[str, ...],
) -> None:
    saved(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text()) | {
        "lm": {"model": "openai/fake", "sampling": {"temperature": 0.0}}
    }
    before = artifact.Artifact.of(json.loads(json.dumps(data)))
    change(data)
    diff = compare_judges(before, after := artifact.Artifact.of(data))
    assert [name for name, _, _ in diff.changes] == [where]
    assert (diff.parts, diff.same) == (parts, not parts)
    assert (
        Version.of(before).model.endswith("(by its name)"),
        "(file " in Version.of(after).model,
    ) == (
        True,
        parts == ("model",),
    )


@pytest.fixture
def page(folder: Path, tmp_path: Path) -> str:
    return render(browse(folder), tmp_path / "page.html")


def test_the_page_escapes_every_text(page: str) -> None:
    assert "<img" not in page
    assert "<script" not in page
    assert "&lt;img" in page


@pytest.mark.parametrize("part", ["[0.50, 1.60]", ">96<", "10 + 2", "random-search"])
def test_the_page_shows_agreement_and_cost(page: str, part: str) -> None:
    assert part in page


def test_the_page_shows_the_lineage_of_a_scored_file(page: str) -> None:
    # As a scored file, and in the lineage of the judge that scored it.
    assert page.count("rows.jsonl") == 2


def test_the_page_shows_the_differences_of_two_judges(page: str) -> None:
    assert "one.json → two.json: " in page
    assert "Simplify." in page


def test_links_of_the_page_lead_to_parts_of_it(page: str) -> None:
    links = re.findall(r'href="([^"]*)"', page)
    assert links
    assert [link for link in links if not link.startswith("#")] == []
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)


def test_links_to_reports_start_from_the_page(folder: Path, tmp_path: Path) -> None:
    (folder / "study" / "study.html").write_text("x")
    (folder / "rows.html").write_text("x")
    page = render(browse(folder), tmp_path / "page.html")
    assert 'href="runs/study/study.html"' in page
    assert 'href="runs/rows.html">rows.jsonl</a>' in page


def test_the_command_writes_one_file_and_names_the_damage(
    cli: Any, folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out.html"
    told = cli("browse", folder, "-o", target, "--json").json
    assert (told["judges"], told["scored"], told["studies"], len(told["damaged"])) == (
        2,
        1,
        1,
        2,
    )
    assert target.read_text().startswith("<!doctype html>")
    assert (
        "judges: 2, scored files: 1, studies: 1, labels: 0, watched: 0, damaged: 2"
        in cli("browse", folder).out
    )
    assert (folder / "browse.html").exists()


def test_what_is_no_folder_no_page_or_empty_is_said(
    cli: Any, folder: Path, tmp_path: Path
) -> None:
    assert (
        "is not a folder"
        in cli("browse", folder / "one.json", "-o", folder / "x.html").err
    )
    assert "name it .html" in cli("browse", folder, "-o", folder / "x.txt").err
    (tmp_path / "empty").mkdir()
    assert "There is no saved judge" in render(
        browse(tmp_path / "empty"), tmp_path / "x.html"
    )


# Watched judges ------------------------------------------------------------------------------------------------------


def watched(path: Path, judge: str, *states: str) -> None:
    """A history of four rows: "baseline", "quiet" or "alarm" runs, one a day."""
    for day, state in enumerate(states, 1):
        test = history.TestedChange(
            name="sentinels: scores moved",
            p=0.5,
            n=4,
            before=3,
            now=2,
            alarm=state == "alarm",
        )
        run = history.Run(
            time=f"2026-11-{day:02}T06:00:00+00:00",
            judge=judge,
            model=HOSTILE,
            rows="a" * 12,
            ids=list("abcd"),
            scores=[1, 2, 3, None],
            words=[1, 1, 1, 1],
            baseline=state == "baseline",
            found=[] if state == "baseline" else [test],
            agreement=history.Agreement(
                aspect="score", value=0.6, low=0.1, high=0.9, n=3
            ),
        )
        history.append(path, run)


def cells(page: str, section: str, name: str) -> list[str]:
    """The cells of a row by its name."""
    (row,) = re.findall(
        rf'<tr>(<th scope="row" dir="auto">{name}<.*?)</tr>',
        page[page.index(f'id="{section}"') :],
    )[:1]
    return [
        re.sub("<[^>]*>", "", cell)
        for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)
    ]


def test_watched_judges_stand_beside_the_judges_they_are(
    folder: Path, tmp_path: Path
) -> None:
    mark = browse(folder).judges[0].version.fingerprint
    watched(folder / "rows.watch.jsonl", mark, "baseline", "alarm", "quiet", "alarm")
    watched(folder / "study" / "other.jsonl", "b" * 12, "baseline", "quiet")
    found = browse(folder)
    assert [(one.path, one.state) for one in found.watched] == [
        ("rows.watch.jsonl", "alarm"),
        ("study/other.jsonl", "quiet"),
    ]
    assert len(found.scored) == 1
    assert len(found.damaged) == 2
    page = render(found, tmp_path / "page.html")
    assert "<img" not in page
    first = cells(page, "watched-judges", "rows.watch.jsonl")
    assert first[2:] == [
        "alarm: sentinels: scores moved",
        "2026-11-04 06:00 UTC",
        "3 of 4",
        "0.60[0.10, 0.90]",
        "4",
        "2",
    ]
    assert cells(page, "judges", "one.json")[-1] == "alarm, 2026-11-04 06:00 UTC"
    assert cells(page, "watched-judges", "study/other.jsonl")[2] == "quiet"
    # the judge of the second history is not in the folder
    assert page.count('href="#judges"') == 2
    assert page.count('href="#watched-judges"') == 2


def test_a_broken_history_is_damaged_and_half_a_line_is_left_out(folder: Path) -> None:
    watched(folder / "h.jsonl", "c" * 12, "baseline", "quiet")
    with (folder / "h.jsonl").open("a") as file:
        file.write('{"format": "judgesmith.wat')
    (folder / "other.jsonl").write_text('{"format": "judgesmith.watch/9", "time": 3}\n')
    found = browse(folder)
    assert [len(one.runs) for one in found.watched] == [2]
    assert [path for path, _ in found.damaged][-1] == "other.jsonl"
