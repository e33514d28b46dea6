"""Saved judges: what goes in comes out, byte for byte, and a forged file is refused before anything else happens."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from json_places import Place, at, put

from judgesmith.errors import ArtifactError
from judgesmith.programs import artifact, loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.artifact import (
    LARGEST,
    dumps,
    fingerprint,
    read,
    save,
    to_dict,
)
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import load
from judgesmith.programs.models.lm import Connection, Sampling, language_model
from judgesmith.programs.outcome import Calibration
from judgesmith.signatures.values import Criterion, CriterionScore, Item, Scale

FORGED_CASES: Any = {
    "key in sampling": [["lm", "sampling", "extra_headers"], {}],
    "temperature": [["lm", "sampling", "temperature"], 3],
    "max_tokens": [["lm", "sampling", "max_tokens"], 0],
    "address as model": [["lm", "model"], "http://evil.example/v1"],
    "class path": [["program", "class"], "os.system"],
    "option value": [["program", "options", "variant"], "giant"],
    "option type text": [["program", "options", "use_task"], "no"],
    "option left over from another variant": [
        ["program", "options", "variant"],
        "coarse",
    ],
    "options that contradict": [["program", "options", "use_criteria"], False],
    "lm in state": [["state", "overall_scorer.predict", "lm"], {"model": "x"}],
    "another predictor": [["state", "evil"], {"instructions": "", "demos": []}],
    "signature of another predictor": [["signatures", "evil"], "000000000000"],
    "signature changed": [["signatures", "overall_scorer.predict"], "000000000000"],
    "signature missing": [["signatures"], {}],
    "demo key": [["state", "overall_scorer.predict", "demos", 0, "tool"], "x"],
    "demo score -1": [["state", "overall_scorer.predict", "demos", 0, "score"], -1],
    "demo criterion off the scale": [
        ["state", "overall_scorer.predict", "demos", 0, "criteria_scores", "Truth"],
        {"score": 900},
    ],
    "calibration falls": [
        ["calibration"],
        {"percent": [0, 50, 100], "score": [1, 4, 3]},
    ],
    "calibration off the scale": [
        ["calibration"],
        {"percent": [0, 100], "score": [1, 500]},
    ],
    "calibration below the scale": [
        ["calibration"],
        {"percent": [0, 100], "score": [-9, 5]},
    ],
    "calibration off percent": [
        ["calibration"],
        {"percent": [0, 1000], "score": [1, 5]},
    ],
    "calibration text": [["calibration"], {"percent": ["0", "100"], "score": [1, 5]}],
    "calibration key": [["calibration", "code"], "x"],
    "scale upside down": [["scale"], {"low": 5, "high": 1}],
    "scale text": [["scale"], {"low": "1", "high": "5"}],
    "criterion without a name": [["criteria", 0, "name"], ""],
    "provenance as text": [["provenance"], "me"],
}
NAMED: Any = [
    [["format"], "judgesmith.judge/2", "judgesmith.judge/2"],
    [["format"], 7, "7"],
    [["headers"], {}, "headers"],
    [["lm", "api_base"], "x", "lm.api_base"],
    [["program", "options", "endpoint"], "x", "endpoint"],
    [["program", "kind"], "g-eval-9", "g-eval-9"],
    [
        ["state", "overall_scorer.predict", "config"],
        {},
        "state.overall_scorer.predict.config",
    ],
    [
        ["state", "overall_scorer.predict", "demos", 1, "score"],
        200,
        "state.overall_scorer.predict.demos.1.score",
    ],
]
CRITERIA = (
    Criterion("Fluency", "It reads „well“ – 漢字 🙂."),
    Criterion("Truth", "It is true."),
)
OVERALL = "overall_scorer.predict"
ITEM = Item("The output.", "The source.", "The context.", "The reference.", "doc9")


def compiled(variant: str = "fine", **options: Any) -> Judge:
    """A judge with everything that a compiled one has."""
    judge = Judge(
        ActiveCritic(
            variant,
            **{"explain": "before", "reading": "said", "aspect": "clarity"} | options,
            task="Summaries are judged.",
            criteria=CRITERIA,
        ),
        scale=Scale(1, 5),
    )
    judge.outcome = replace(
        judge.outcome, calibration=Calibration((0.0, 40.0, 100.0), (1.1, 3.0, 4.9))
    )
    judge.provenance = {
        "made": "2025-01-01",
        "seed": 0,
        "q": [1.25, None],
        "labels": {"rows": 12},
    }
    whole = {
        "Fluency": CriterionScore(80.0, "Fine."),
        "Truth": CriterionScore(100 / 3, "One error."),
    }
    demos = [
        {
            "source": "Demo source.",
            "output": "Demo output.",
            "context": "Demo context.",
            "reference": None,
            "group": "doc1",
            "score": 200 / 3,
            "explanation": "It is „dull“.",
            "criteria_scores": whole,
            "augmented": True,
            "gold": True,
        },
        {
            "source": "",
            "output": "Second.",
            "group": "doc2",
            "score": 0.0,
            "augmented": False,
            "gold": True,
        },
        {
            "source": "",
            "output": "Third.",
            "group": "doc3",
            "score": 100.0,
            "augmented": False,
            "gold": False,
        },
    ]
    for predictor in artifact.predictors(judge.method).values():
        predictor.demos = [dict(d) for d in demos]
        predictor.signature = predictor.signature.with_instructions(
            "Rate as people do.\nSecond line."
        )
    return judge


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judge.json"


# There and back


@pytest.mark.parametrize("variant", ["vanilla", "coarse", "fine"])
@pytest.mark.parametrize("explain", ["before", "after", "none"])
@pytest.mark.parametrize("reading", ["said", "expected"])
def test_a_loaded_judge_sends_the_same_prompts(
    path: Path, variant: str, explain: str, reading: str
) -> None:
    judge = compiled(variant, explain=explain, reading=reading)
    judge.save(path)
    again = load(path)
    assert isinstance(again.method, ActiveCritic)
    for item in (ITEM, Item("Demo output.", "Demo source."), Item("x", group="doc2")):
        assert again.previews(item) == judge.previews(item)
    assert again.method.saved_options() == judge.method.saved_options()
    assert again.outcome == judge.outcome
    assert again.provenance == judge.provenance
    assert again.method.knowledge.criteria == CRITERIA


def test_it_is_readable_in_a_diff(path: Path) -> None:
    compiled().save(path)
    text = path.read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert max(len(line) for line in text.splitlines()) < 120
    assert "It reads „well“ – 漢字 🙂." in text  # no \u escapes
    keys = "format program task criteria scale calibration lm signatures state provenance metadata"
    assert list(json.loads(text)) == keys.split()


def test_neither_address_nor_key_is_saved(path: Path) -> None:
    lm = language_model(
        "openai/some-model",
        connection=Connection(
            api_base="http://secret.example:8000/v1", api_key="sk-secret", cache=False
        ),
        sampling=Sampling(0.5, 99),
    )
    judge = compiled()
    judge.set_lm(lm)
    judge.save(path)
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text
    assert json.loads(text)["lm"] == {
        "model": "openai/some-model",
        "sampling": {"temperature": 0.5, "max_tokens": 99},
    }


def test_a_demonstration_with_an_unread_criterion_can_be_saved(path: Path) -> None:
    # Up to half of the criteria may be missing from a verdict that becomes a demonstration.
    judge = compiled()
    demo = judge.method.criteria_scorer.predict.demos[0]
    demo["criteria_scores"] = {
        "Fluency": CriterionScore(80.0, "Fine."),
        "Truth": CriterionScore(math.nan),
    }
    judge.method.overall_scorer.predict.demos[0]["criteria_scores"] = demo[
        "criteria_scores"
    ]
    judge.save(path)
    again = load(path)
    assert again.previews(ITEM) == judge.previews(ITEM)
    assert dumps(again) == dumps(judge)


# Failures leave the old file


def changed(change: Callable[[Judge], Any]) -> Judge:
    judge = compiled()
    change(judge)
    return judge


@pytest.mark.parametrize(
    "change",
    [
        lambda j: j.provenance.update(q=math.nan),
        lambda j: j.provenance.update(q=object()),
        lambda j: j.provenance.update(q="\ud800"),
        lambda j: setattr(j.method.knowledge, "description", "\ud800"),
        lambda j: j.method.overall_scorer.predict.demos[0].update(score=101.0),
        lambda j: j.method.overall_scorer.predict.demos[0].update(score=math.nan),
        lambda j: j.method.overall_scorer.predict.demos[0].update(output=None),
        lambda j: setattr(j.method.knowledge, "criteria", (Criterion("", "no name"),)),
    ],
)
def test_what_cannot_be_saved_is_refused_and_the_old_file_stays(
    path: Path, change: Any
) -> None:
    compiled().save(path)
    before = path.read_bytes()
    with pytest.raises(ArtifactError, match="cannot be saved"):
        changed(change).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "judge.json").mkdir()
    with pytest.raises(ArtifactError, match="cannot be written"):
        compiled().save(tmp_path / "judge.json")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArtifactError, match="cannot be written"):
        compiled().save(tmp_path / "file" / "judge.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "judge.json"]


# Fingerprints


def test_the_fingerprint_ignores_where_a_judge_comes_from_and_nothing_else() -> None:
    judge = compiled()
    first = fingerprint(judge)
    judge.provenance = {"made": "another day"}
    assert fingerprint(judge) == first
    assert len(first) == 12
    changes: list[Callable[[Judge], Any]] = [
        lambda j: setattr(j.method.knowledge, "description", "Another task."),
        lambda j: setattr(j.method.knowledge, "criteria", CRITERIA[:1]),
        lambda j: setattr(j, "outcome", replace(j.outcome, scale=Scale(0, 5))),
        lambda j: setattr(j, "outcome", replace(j.outcome, calibration=None)),
        lambda j: j.method.choose(aspect=""),
        lambda j: j.method.choose(use_task=False),
        lambda j: j.method.overall_scorer.predict.demos.pop(),
        lambda j: j.method.overall_scorer.predict.demos[0].update(score=1.0),
        lambda j: j.method.overall_scorer.predict.demos.reverse(),
        lambda j: setattr(
            j.method.overall_scorer.predict,
            "signature",
            j.method.overall_scorer.predict.signature.with_instructions("Other."),
        ),
    ]
    prints = {fingerprint(changed(change)) for change in changes} | {first}
    assert len(prints) == len(changes) + 1


# Loading


def test_the_files_sampling_goes_with_its_model(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = to_dict(compiled()) | {
        "lm": {"model": "openai/m", "sampling": {"temperature": 0.3, "max_tokens": 50}}
    }
    path.write_text(json.dumps(data), encoding="utf-8")
    asked: list[Any] = []
    monkeypatch.setattr(
        loading,
        "language_model",
        lambda lm, *, sampling, **_: asked.append((lm, sampling)),
    )
    load(path)
    load(path, lm="openai/other")
    assert asked == [
        ("openai/m", Sampling(0.3, 50)),
        ("openai/other", Sampling(0.3, 50)),
    ]


# Forged and broken files


def forged(place: Place = (), value: Any = None) -> str:
    """A judge's file with a value at a place; without one, as it is."""
    lm = {"model": "openai/m", "sampling": {"temperature": 0.0, "max_tokens": None}}
    data = json.loads(dumps(compiled())) | {"lm": lm}
    return json.dumps(put(data, place, value) if place else data)


def refused(path: Path, text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    """The message with which a file is refused. No model is even looked up."""
    path.write_bytes(
        text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    )
    with monkeypatch.context() as patch:
        patch.setattr(
            loading,
            "language_model",
            lambda *_, **__: pytest.fail("a model was looked up"),
        )
        with pytest.raises(ArtifactError) as caught:
            load(path)
    return str(caught.value)


def test_the_forgeries_start_from_a_file_that_loads(path: Path) -> None:
    path.write_text(forged(), encoding="utf-8")
    assert read(path).lm is not None
    assert load(path, lm="openai/m").previews(ITEM) == compiled().previews(ITEM)


FORGED = FORGED_CASES | {
    "long model": [("lm", "model"), "a" * 201],
    "too many demos": [
        ("state", OVERALL, "demos"),
        [{"output": "x", "score": 1}] * 257,
    ],
    "too many criteria": [
        ("criteria",),
        [{"name": f"n{i}", "definition": ""} for i in range(65)],
    ],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(refused(path, forged(*FORGED[name]), monkeypatch)) < 500


@pytest.mark.parametrize(
    "place",
    [
        ["state", "overall_scorer.predict"],
        ["state", "overall_scorer.predict", "demos", 0, "score"],
        ["state", "overall_scorer.predict", "demos", 0, "output"],
        ["scale"],
        ["task"],
    ],
)
def test_a_file_without_what_it_needs_is_refused(
    path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.loads(forged())
    del at(data, place[:-1])[place[-1]]
    assert len(refused(path, json.dumps(data), monkeypatch)) < 500


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [*NAMED, (["format"], ["x" * 10_000], "judgesmith.judge/1")],
)
def test_the_message_names_what_is_wrong(
    path: Path, place: Place, value: Any, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refused(path, forged(place, value), monkeypatch)
    assert named in message
    assert len(message) < 500


MARKED = forged(("provenance", "q"), "@")
BROKEN: dict[str, str | bytes] = {
    "no json": "kind: active-critic",
    "half": forged()[:500],
    "list": "[]",
    "no format": "{}",
    "NaN": forged(("provenance", "q"), math.nan),
    "1e999": MARKED.replace('"@"', "1e999"),
    "a number of 5000 digits": MARKED.replace('"@"', "9" * 5000),
    "deep": MARKED.replace('"@"', "[" * 200_000 + "]" * 200_000),
    "a key twice deep down": MARKED.replace('"@"', '{"a": 1, "a": 2}'),
    "latin-1": forged(("task",), "@").replace("@", "ü").encode("latin-1"),
    "a pickle": b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n.",
    "a lone surrogate in provenance": MARKED.replace("@", "\\ud800"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_refused(
    path: Path, text: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refused(path, text, monkeypatch)
    assert "judge.json" in message
    assert len(message) < 500


def test_a_huge_file_is_refused_unread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024)  # sparse
    monkeypatch.setattr(
        Path, "read_text", lambda *_, **__: pytest.fail("the file was read")
    )
    with pytest.raises(ArtifactError, match=f"{LARGEST:,}"):
        load(path)


def test_a_judge_too_large_to_be_read_again_is_not_saved(path: Path) -> None:
    judge = compiled()
    judge.provenance["notes"] = ["x" * LARGEST]
    with pytest.raises(
        ArtifactError, match=f"at most {LARGEST:,}; take fewer or shorter"
    ):
        save(judge, path)
    assert not path.exists()


def test_a_missing_file_says_what_makes_one_and_a_model_of_this_machine_is_asked_for_by_name(
    path: Path,
) -> None:
    with pytest.raises(ArtifactError, match="judgesmith compile"):
        load(path)
    with pytest.raises(ArtifactError, match="not a judge"):
        load(path.parent)
    path.write_text(
        json.dumps(
            to_dict(compiled()) | {"lm": {"model": "gguf:tiny.gguf", "sampling": {}}}
        )
    )
    with pytest.raises(ArtifactError, match=r"tiny\.gguf.*gguf:PATH"):
        load(path)
