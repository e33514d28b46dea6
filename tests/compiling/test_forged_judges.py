"""Forged judges: any JSON at any place of a judge's file loads, or is refused in one line, through every door."""

import json
import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from json_places import Place, places
from judges import whole
from parrot import parrot

from judgesmith.cli.show_command import Show
from judgesmith.errors import ArtifactError, JudgesmithError
from judgesmith.evaluating.judges import Selection, read_judged
from judgesmith.programs import artifact, loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.judge import Judge
from judgesmith.running import opening
from judgesmith.scoring.scoring import Run, score_file
from judgesmith.signatures.values import Item

PROVENANCE: dict[str, Any] = {
    "created": "2026-01-01T00:00:00Z",
    "versions": {"judgesmith": "1", "dspy": "3"},
    "labels": {
        "origin": "labels.csv",
        "aspect": "fluency",
        "rows": 12,
        "train": 8,
        "heldout": 4,
        "fingerprint": "x",
    },
    "optimizer": {"name": "random-search"},
    "seed": 0,
    "candidates": [
        {
            "candidate": "zero-shot",
            "demos": 0,
            "q": 1.25,
            "low": 0.5,
            "high": None,
            "dropped": None,
        }
    ],
    "selected": {"candidate": "zero-shot", "demos": 0, "q": 1.25, "q_corrected": 1.0},
    "heldout": {"signature": "Q=1.25", "q": 1.25, "folds": 0},
    "zero_shot": {"signature": "Q=1.25"},
    "cost": {"calls": 1, "prompt_tokens": 2, "completion_tokens": 3},
    "seen": ["0123456789ab"],
    "notes": ["a note"],
}


def told(judge: Judge) -> Any:
    judge.provenance = PROVENANCE
    judge.set_lm(parrot())
    return artifact.to_dict(judge)


JUDGES = [told(judge) for judge in whole()]


PLACES = [(n, place) for n, judge in enumerate(JUDGES) for place in places(judge)]


def written(forged: Any) -> str:
    """As JSON; "@nested 900@" stands for so many lists in each other, more than Python can write."""
    text = json.dumps(forged)
    for depth in (40, 500, 900, 100_000):
        text = text.replace(f'"@nested {depth}@"', "[" * depth + "]" * depth)
    return text


EVIL = (
    "",
    "\x1b[2J\x07",
    "a\nb",
    "[bold]x[/nope]",
    "\ud800",
    "{aspect}",
    "x" * 500,
    "gguf:/etc/shadow",
    "../x",
)
texts = st.text(max_size=20) | st.sampled_from(EVIL)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from(
        [
            0,
            -1,
            2**63,
            10**30,
            10**4000,
            1e308,
            -1e308,
            5e-324,
            1e-9,
            0.5,
            101,
            math.inf,
        ]
    ),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=6,
) | st.sampled_from([f"@nested {depth}@" for depth in (40, 500, 900, 100_000)])


@st.composite
def forgeries(draw: st.DrawFn) -> Any:
    """A judge with one to three places changed, keys added or left out."""
    number, place = draw(st.sampled_from(PLACES))
    several = [
        place,
        *draw(
            st.lists(st.sampled_from([p for n, p in PLACES if n == number]), max_size=2)
        ),
    ]
    made = json.loads(json.dumps(JUDGES[number]))
    ways = st.sampled_from(["put", "put", "put", "add", "leave out"])
    for where in several:
        made = changed(made, where, draw(values), draw(ways), draw(texts))
    return made


def changed(made: Any, place: Place, value: Any, how: str, key: str) -> Any:
    if not place:
        return value if how == "put" else made
    part = made
    try:
        for step in place[:-1]:
            part = part[step]
        if how == "leave out":
            del part[place[-1]]
        elif how == "add" and isinstance(part[place[-1]], dict):
            part[place[-1]][key] = value
        else:
            part[place[-1]] = value
    except (KeyError, IndexError, TypeError):  # an earlier change took the place away
        pass
    return made


def one_line(error: JudgesmithError) -> None:
    message = str(error)
    assert message.isprintable()
    assert 0 < len(message) < 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("forged")
    (made / "rows.jsonl").write_text(
        '{"id": "1", "source": "s", "output": "An output."}\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGESMITH_REFERENCES", str(made / "references.sqlite"))
        patch.setattr(opening, "open_model", lambda *_: parrot())
        yield made


def opened(path: Path) -> Judge | None:
    """The judge that `js.load` and `judgesmith score` open, None where both refuse it, in one line and alike."""
    doors = (
        lambda: loading.load(path, lm=parrot()),
        lambda: opening.open_judge(path, "openai/parrot"),
    )
    judges = []
    for door in doors:
        try:
            judges.append(door())
        except ArtifactError as error:
            one_line(error)
    assert len(judges) in (0, len(doors))
    return judges[0] if judges else None


@settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(forged=forgeries())
@example(forged={**JUDGES[0], "provenance": PROVENANCE | {"seen": [[1]]}})
@example(forged={**JUDGES[0], "provenance": PROVENANCE | {"seen": 1}})
@example(forged={**JUDGES[0], "provenance": PROVENANCE | {"candidates": [1]}})
@example(
    forged={**JUDGES[0], "provenance": PROVENANCE | {"candidates": [{"q": "high"}]}}
)
@example(
    forged={**JUDGES[0], "provenance": PROVENANCE | {"candidates": [{"q": 10**400}]}}
)
@example(forged={**JUDGES[0], "scale": {"low": -1e308, "high": 1e308}})
@example(forged={**JUDGES[0], "scale": {"low": False, "high": True}})
@example(forged={**JUDGES[0], "provenance": {"x": "@nested 500@"}})
def test_any_json_anywhere_loads_or_is_one_line(
    forged: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "judge.json"
    path.write_text(written(forged), encoding="utf-8")
    judge = opened(path)
    for as_json in (False, True):
        try:
            Show(judge=path, as_json=as_json).run()
            assert judge is not None
        except ArtifactError as error:
            one_line(error)
            assert judge is None
    capsys.readouterr()
    if judge is None:
        return
    judge.previews(Item("An output.", "A source."))
    built = loading.build(artifact.read(path))
    again = loading.build(artifact.Artifact.of(json.loads(artifact.dumps(built))))
    assert artifact.fingerprint(built) == artifact.fingerprint(again)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(value=values, key=st.sampled_from([*PROVENANCE, "seen_texts"]))
def test_scoring_and_evaluating_bear_any_provenance(
    value: Any, key: str, folder: Path
) -> None:
    forged = JUDGES[0] | {"provenance": PROVENANCE | {key: value}}
    path, rows, output = (
        folder / "judge.json",
        folder / "rows.jsonl",
        folder / "scored.jsonl",
    )
    people = folder / "people.jsonl"
    people.write_text(
        "".join(
            f'{{"id": "{n}", "output": "Output {n}.", "score": {n}}}\n'
            for n in (1, 2, 3)
        )
    )
    path.write_text(written(forged), encoding="utf-8")
    judge = opened(path)
    if judge is not None:
        summary = score_file(Run(judge, output), rows, existing="overwrite")
        assert summary.rows == 1
        line = json.loads(output.read_text().splitlines()[0])
        assert line["verdict"]["score"] is None or 0 <= line["verdict"]["score"] <= 100
        read_judged([str(people)], Selection(judges=[f"j={path}"], unseen=True))


# What is no file


def test_devices_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    pipe, caught = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)

    def read() -> None:
        for path in (
            *filter(os.path.exists, ("/dev/zero", "/dev/null", "/dev/tty")),
            tmp_path,
            pipe,
        ):
            with pytest.raises(
                ArtifactError, match=r"not a regular file|is not a judge"
            ) as refused:
                artifact.read(path)
            caught.append(str(refused.value))

    reader = threading.Thread(
        target=read, daemon=True
    )  # which a pipe would hold up for ever
    reader.start()
    reader.join(30)
    assert not reader.is_alive()
    assert len(caught) >= 3
    assert all("not a regular file" in reason for reason in caught[-2:])


def test_no_more_is_read_than_a_judge_has_whatever_a_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "judge.json"
    path.write_bytes(b" " * 5000)
    monkeypatch.setattr(artifact, "LARGEST", 4096)
    about = os.fstat

    def lies(number: int) -> os.stat_result:
        return os.stat_result([*about(number)[:6], 0, *about(number)[7:10]])

    monkeypatch.setattr(os, "fstat", lies)
    with pytest.raises(ArtifactError, match="at most 4,096 bytes"):
        artifact.read(path)


@pytest.mark.parametrize(
    "place",
    [("scale", "low"), ("calibration", "percent", 0), ("provenance", "cost", "calls")],
)
def test_booleans_are_no_numbers(place: Place, tmp_path: Path) -> None:
    forged = changed(
        json.loads(json.dumps(next(j for j in JUDGES if j["calibration"]))),
        place,
        False,
        "put",
        "",
    )
    (tmp_path / "judge.json").write_text(json.dumps(forged))
    with pytest.raises(ArtifactError, match=r"valid (number|integer)"):
        loading.load(tmp_path / "judge.json", lm=parrot())


def test_the_base_of_the_forgeries_loads(tmp_path: Path) -> None:
    for judge in JUDGES:
        (tmp_path / "judge.json").write_text(json.dumps(judge))
        assert (
            artifact.to_dict(loading.load(tmp_path / "judge.json", lm=parrot()))[
                "provenance"
            ]
            == PROVENANCE
        )


def test_the_deepest_provenance_that_is_saved_is_read(tmp_path: Path) -> None:
    judge = Judge(ActiveCritic())
    part: list[Any] = []
    for _ in range(artifact.DEEPEST - 3):  # inside {"provenance": {"x": …}}
        part = [part]
    judge.provenance = {"x": part}
    judge.save(tmp_path / "judge.json")
    assert (
        loading.load(tmp_path / "judge.json", lm=parrot()).provenance
        == judge.provenance
    )
    judge.provenance = {"x": [part]}
    with pytest.raises(ArtifactError, match="nested deeper than 32 levels"):
        judge.save(tmp_path / "judge.json")


FLOODS: dict[str, Any] = {
    "unknown keys": ("program", {f"k{i}": 1 for i in range(600_000)}),
    "wrong items": ("provenance", {"seen": [1] * 900_000}),
}


@pytest.mark.parametrize(("part", "values"), FLOODS.values(), ids=FLOODS)
def test_a_file_of_a_million_errors_is_refused_before_each_is_named(
    tmp_path: Path, part: str, values: Any
) -> None:
    """They took 8 and 21 seconds at 16 MB."""
    (tmp_path / "judge.json").write_text(json.dumps({**JUDGES[0], part: values}))
    with pytest.raises(
        ArtifactError,
        match=r"judge\.json is not a judge: it holds more than 250,000 values",
    ):
        artifact.read(tmp_path / "judge.json")
