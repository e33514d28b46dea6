"""Judges that earlier versions saved load unchanged, whatever is fitted in them."""

import json
from pathlib import Path

import pytest

from judgesmith.programs import artifact, loading
from judgesmith.programs.registry import methods

GOLDEN = Path(__file__).parent / "golden"
FINGERPRINTS = dict(
    line.split() for line in (GOLDEN / "fingerprints.txt").read_text().splitlines()
)


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_saved_judge_loads_as_it_was(name: str, tmp_path: Path) -> None:
    path = GOLDEN / f"{name}.json"
    judge = loading.build(artifact.read(path))
    written = json.loads(path.read_text(encoding="utf-8"))
    saved = artifact.to_dict(judge)
    assert set(saved.pop("metadata")["dependency_versions"]) == {
        "python",
        "dspy",
        "cloudpickle",
    }  # of the moment
    assert saved == written | {"lm": None}  # no model was asked for
    judge = loading.load(path)
    assert artifact.fingerprint(judge) == FINGERPRINTS[name]
    assert artifact.to_dict(judge)["lm"] == written["lm"]
    judge.save(tmp_path / "again.json")
    again = loading.load(tmp_path / "again.json")
    assert artifact.dumps(again) == artifact.dumps(judge)
    assert artifact.fingerprint(again) == FINGERPRINTS[name]


def test_every_kind_and_whatever_is_fitted_is_here() -> None:
    saved = [
        json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
        for name in FINGERPRINTS
    ]
    assert {s["program"]["kind"] for s in saved} == {
        name
        for name, part in methods.parts().items()
        if part.__module__.startswith("judgesmith.")
    }
    assert {"ensemble", "combination", "head", "student", "panel"} <= {
        key for s in saved for key in s
    }
