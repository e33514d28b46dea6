"""What a saved judge cannot hold is said before anything is spent, and what was fitted is kept whatever happens."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import judgesmith as js
from judgesmith.cli.main import app
from judgesmith.datasets.records import Labels
from judgesmith.datasets.row import Row
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.artifact import save_or_keep
from judgesmith.signatures.values import Item, Scale, Verdict


def rated(scores: list[float], scale: tuple[float, float], **kind: Any) -> Labels:
    """Rows of their own documents with a signal that follows the scores."""
    noise = np.random.default_rng(0).normal(size=len(scores))
    low, high = scale
    rows = tuple(
        Row(
            id=str(n),
            output=f"Output number {n}.",
            source=f"Source {n}.",
            doc_id=f"d{n}",
            group=f"d{n}",
            scores={"": score},
            columns={"gpt4": (score - low) / (high - low) + 0.3 * float(noise[n])},
        )
        for n, score in enumerate(scores)
    )
    return Labels(rows, "", scale, **kind)


BINARY = {"kind": "binary", "levels": (0.0, 1.0), "categories": ("fail", "pass")}
GRADES = {
    "kind": "category",
    "levels": (0.0, 0.5, 1.0),
    "categories": ("bad", "fair", "good"),
}


@pytest.mark.parametrize(
    "labels",
    [
        rated([0.0, 1.0] * 4, (0, 1), **BINARY),
        rated([0.0, 1.0, 1.0] * 30, (0, 1), **BINARY),
        rated([1.0] * 9, (0, 1), **BINARY),
        rated([0.0, 0.5, 1.0, 1.0] * 12, (0, 1), **GRADES),
        rated([0.0, 0.5, 1.0] * 4, (0, 1), kind="preference"),
        rated([3.0] * 12, (1, 5)),
        rated([n * 1e-10 for n in range(11)], (0, 1e-9)),
        rated([1e12 - n * 1e-3 for n in range(9)], (1e12 - 8e-3, 1e12)),
    ],
    ids=[
        "8 binary",
        "90 binary",
        "all pass",
        "grades",
        "preferences",
        "constant",
        "tiny scale",
        "far scale",
    ],
)
def test_every_kind_of_labels_gives_a_judge_that_is_saved(
    labels: Labels, tmp_path: Path
) -> None:
    judge = js.compile(js.ModelReadings(signals=["gpt4=0..1"]), labels, progress=False)
    judge.save(tmp_path / "judge.json")
    verdicts = [
        one.score("A source.", "An output.", gpt4=0.4)
        for one in (judge, js.load(tmp_path / "judge.json"))
    ]
    assert verdicts[0].to_dict() == verdicts[1].to_dict()
    assert verdicts[0].failure is None


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (
            {"task": "x" * 400_001},
            {},
            "task: String should have at most 400000 characters",
        ),
        ({"task": "\ud800"}, {}, "surrogates not allowed"),
        (
            {"criteria": [js.Criterion(f"c{n}", "It is.") for n in range(65)]},
            {},
            "criteria: List should have at most 64",
        ),
        (
            {},
            GRADES | {"categories": ("bad", "fair", "g" * 201)},
            "decision.names.2: String should have at most 200",
        ),
        (
            {},
            GRADES | {"categories": ("bad", "fair", "fair")},
            "categories must be different words",
        ),
        (
            {},
            {
                "kind": "category",
                "levels": tuple(n / 20 for n in range(21)),
                "categories": tuple(f"grade {n}" for n in range(21)),
            },
            "2 to 20 categories",
        ),
    ],
    ids=[
        "long task",
        "no text",
        "65 criteria",
        "long category",
        "one category twice",
        "21 categories",
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_a_call(
    given: dict[str, Any], kind: dict[str, Any], message: str, scripted: Any
) -> None:
    lm, transport = scripted([])
    judge = js.Judge(js.ActiveCritic("coarse", **given), lm=lm)
    with pytest.raises(ArtifactError, match=message):
        js.compile(judge, rated([0.0, 0.5, 1.0] * 10, (0, 1), **kind), progress=False)
    assert transport.requests == []
    with pytest.raises(OptionError, match="max_demos"):
        js.CorrelationRandomSearch(max_demos=257)


def test_what_was_fitted_is_kept_where_a_judge_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "source": f"S {n}",
            "output": f"O {n}.",
            "score": n % 5 + 1,
            "gpt4": (n * 7) % 5 + 1,
        }
        for n in range(40)
    ]
    labels = tmp_path / "labels.jsonl"
    labels.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    judge = tmp_path / "judge.json"
    broken = js.Judge.save

    def fails(self: Any, path: Any, **given: Any) -> None:
        self.provenance["odd"] = math.nan
        broken(self, path, **given)

    monkeypatch.setattr(js.Judge, "save", fails)
    done = CliRunner().invoke(
        app,
        [
            "compile",
            str(labels),
            "--signal",
            "gpt4",
            "--scale",
            "1",
            "5",
            "-o",
            str(judge),
        ],
    )
    kept = tmp_path / "judge.recovery.json"
    assert done.exit_code == 1
    assert not judge.exists()
    assert str(kept) in "".join(str(done.exception).split("\n"))
    assert "finished calls" in str(done.exception)
    data = json.loads(kept.read_text(encoding="utf-8"))
    assert data["format"] == "judgesmith.recovery/1"
    assert "cannot be saved" in data["problem"]
    assert data["scoring"]["calibration"]
    assert data["report"]["heldout"]
    assert data["kind"] == "readings"
    with pytest.raises(ArtifactError, match=r"judgesmith\.recovery/1"):
        js.load(kept)


def test_a_judge_without_a_place_to_be_saved_is_kept_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    judge = js.Judge(js.ActiveCritic("coarse", task="Summaries."))
    with pytest.raises(
        ArtifactError, match=r"cannot be written.*; all that was fitted is kept in"
    ) as error:
        save_or_keep(judge, tmp_path / "file" / "judge.json")
    kept = Path(str(error.value).partition("kept in ")[2].partition(", and")[0])
    assert (
        json.loads(kept.read_text(encoding="utf-8"))["knowledge"]["task"]
        == "Summaries."
    )
    kept.unlink()
    kept.parent.rmdir()


@pytest.mark.parametrize(
    ("percent", "failure"),
    [(100 + 1e-9, None), (120.0, "gave 120, which is outside 0..100")],
)
def test_a_raw_score_beyond_its_range_is_a_failure(
    percent: float, failure: str | None, scripted: Any
) -> None:
    class Beyond(js.Method):
        async def judge(self, item: Item, lm: Any) -> Verdict:
            return Verdict(percent=percent)

    lm, _ = scripted([])
    verdict = js.Judge(Beyond(), lm=lm, scale=Scale(1, 5)).score(
        "A source.", "An output."
    )
    assert (verdict.failure is None) == (failure is None)
    assert (failure or "") in (verdict.failure or "")
    assert (
        math.isnan(verdict.score)
        if failure
        else (verdict.percent, verdict.score) == (100.0, 5.0)
    )


def test_a_score_at_the_end_of_its_scale_is_on_it() -> None:
    ends = [
        (low, low + step) for low in (0.0, -0.1, 1e6) for step in (0.07, 0.3, 1e-9, 7.1)
    ]
    for low, high in ends:
        assert Scale(low, high).to_percent(high) == 100.0
        assert Scale(low, high).to_percent(low) == 0.0
    assert Scale(1, 5).to_percent(7) == 150.0
