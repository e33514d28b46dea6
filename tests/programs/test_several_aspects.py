"""A judge of several aspects: one verdict of each, the mean, failures, what is read once, files."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from planted import PlantedReader

from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs import artifact
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.judge import Judge
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.outcome import Decision
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.readings import opening
from judgesmith.programs.readings.head import HeadData
from judgesmith.programs.readings.judge import ReadingsJudge
from judgesmith.programs.readings.opening import Opened
from judgesmith.programs.several_aspects import AspectsJudge
from judgesmith.signatures.values import Criterion, Scale, Verdict
from judgesmith.testing.scripted import MakeScripted

MODEL = "a1b2" * 16


def direct(name: str, scale: Scale | None = None) -> DirectScorer:
    return DirectScorer(name, criteria=[Criterion(name, f"How {name} it is.")], reading="said", scale=scale)


def saying(**said: int | str) -> Callable[[Request], Any]:
    """A model that gives each aspect its percent; one that is given a text fails with it."""

    def answer(request: Request) -> Any:
        text = "\n".join(m["content"] for m in request.messages)
        value = next(v for name, v in said.items() if f"How {name} it is." in text)
        return Unanswered(value, again=False) if isinstance(value, str) else f"Score: {value}"

    return answer


def two(scale: Scale | None = None, other: Scale | None = None) -> AspectsJudge:
    return AspectsJudge({"clear": direct("clear", scale), "kind": direct("kind", other or scale)})


def test_the_score_is_the_mean_and_each_aspect_has_its_verdict(scripted: MakeScripted) -> None:
    judge = two(Scale(1, 5))
    judge.set_lm(scripted(saying(clear=50, kind=100))[0])
    verdict = judge.score("A source.", "An output.")
    assert {name: v.score for name, v in verdict.aspects.items()} == {"clear": 3.0, "kind": 5.0}
    assert (verdict.score, verdict.percent, judge.scale) == (4.0, 75.0, Scale(1, 5))  # (3 + 5) / 2
    assert verdict.usage.calls == 2
    again = Verdict.model_validate_json(verdict.model_dump_json())
    assert again.aspects["kind"].score == 5 and again.to_dict() == verdict.to_dict()
    assert verdict.to_dict()["aspects"]["clear"]["score"] == 3
    assert judge(source="A source.", output="An output.").aspects == {"clear": 3.0, "kind": 5.0}
    assert re.search(r"<th[^>]*>kind</th><td[^>]*>5</td>", verdict._repr_html_())


def test_aspects_on_other_scales_are_averaged_in_percent(scripted: MakeScripted) -> None:
    judge = two(Scale(1, 5), Scale(0, 1))
    judge.by_aspect["kind"].decision = Decision(("fail", "pass"), (40.0,), True)
    judge.set_lm(scripted(saying(clear=50, kind=30))[0])
    verdict = judge.score("A source.", "An output.")
    assert judge.scale == Scale(0, 100)
    assert verdict.score == pytest.approx(40)  # (50 + 30) / 2
    assert (verdict.aspects["clear"].score, verdict.aspects["kind"].score) == (3.0, pytest.approx(0.3))
    assert (verdict.aspects["kind"].passed, verdict.aspects["clear"].passed, verdict.passed) == (False, None, None)


def test_an_aspect_that_fails_takes_no_other_with_it(scripted: MakeScripted) -> None:
    judge = two()
    judge.set_lm(scripted(saying(clear=80, kind="HTTP 400"))[0])
    verdict = judge.score("A source.", "An output.")
    assert math.isnan(verdict.score)
    assert verdict.failure is not None and verdict.failure.startswith("kind: ") and "HTTP 400" in verdict.failure
    assert verdict.aspects["clear"].score == 80 and verdict.aspects["clear"].failure is None
    assert math.isnan(verdict.aspects["kind"].score) and "HTTP 400" in str(verdict.aspects["kind"].failure)
    empty = judge.score("A source.", " ")
    assert {v.failure for v in empty.aspects.values()} == {empty.failure} == {"the output is empty"}


def weighed(aspect: str, weight: float, **given: Any) -> ReadingsJudge:
    judge = ReadingsJudge(aspect, criteria=[Criterion(aspect, "")], layers=0, surface=False, **given)
    head = HeadData(model=MODEL, base=50.0, weights={"assistant.mean": (-3.0, weight)}, states={})
    judge.load_fitted("head", head.model_dump(mode="json"))
    return judge


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> PlantedReader:
    made = PlantedReader()
    monkeypatch.setitem(opening._opened, "test/model at None", Opened(made, MODEL))
    return made


def test_what_is_read_alike_is_read_once(scripted: MakeScripted, reader: PlantedReader) -> None:
    rows = [{"source": "A source.", "output": f"w{n} x{n} w"} for n in range(3)]
    lm, _ = scripted([])
    parts: dict[str, Judge] = {"one": weighed("one", 2.0), "two": weighed("two", 3.0)}
    judge = AspectsJudge(parts, lm=lm)
    assert (len(judge.passages()), judge.calls_per_row()) == (1, 0)
    together = list(judge.score_many(rows, concurrency=3))
    assert reader.reads == 3
    for name, part in parts.items():
        part.set_lm(lm)
        assert [v.score for v in part.score_many(rows)] == [v.aspects[name].score for v in together]
    assert reader.reads == 9
    assert together[0].aspects["one"].score != together[0].aspects["two"].score
    apart = AspectsJudge({"one": weighed("one", 2.0), "two": weighed("two", 3.0, instruction="Say it.")}, lm=lm)
    assert len(apart.passages()) == 2
    list(apart.score_many(rows))
    assert reader.reads == 15


def test_one_instruction_holds_for_all_aspects_of_the_same_rows() -> None:
    parts = [ReadingsJudge(name, criteria=[Criterion(name, "")], instruction=said) for name, said in
             (("one", ""), ("two", "Simplify it."), ("three", "Simplify it."))]  # fmt: skip
    parts[0].beside(parts[1:])
    assert parts[0].instruction == "Simplify it."
    parts[0].choose(instruction="")
    parts[1].choose(instruction="Summarise it.")
    parts[0].beside(parts[1:])  # two instructions: neither is known to hold for the third
    assert parts[0].instruction == ""


def test_it_is_saved_byte_for_byte(scripted: MakeScripted, tmp_path: Path) -> None:
    lm, _ = scripted(saying(clear=50, kind=100))
    judge = two(Scale(1, 5), Scale(0, 10))
    judge.set_lm(lm)
    judge.by_aspect["kind"].provenance = {"labels": {"aspect": "kind", "rows": 9}}
    judge.provenance = {"labels": {"aspects": ["clear", "kind"], "rows": 9}}
    path, beside = tmp_path / "judge.json", tmp_path / "again.json"
    judge.save(path)
    loaded = artifact.load(path, lm=lm)
    loaded.save(beside)
    assert path.read_bytes() == beside.read_bytes()
    assert list(json.loads(path.read_text())["aspects"]) == list(loaded.by_aspect) == ["clear", "kind"]
    assert artifact.fingerprint_of(artifact.read(path)) == artifact.fingerprint(judge)
    loaded.by_aspect["kind"].provenance = {}
    assert artifact.fingerprint(loaded) == artifact.fingerprint(judge)
    loaded.by_aspect["kind"].scale = Scale(0, 9)
    assert artifact.fingerprint(loaded) != artifact.fingerprint(judge)
    one = loaded.by_aspect["clear"]
    one.save(beside)
    assert artifact.load(beside, lm=lm).score("s", "o").score == 3


def test_it_lives_inside_another_program() -> None:
    class Program(dspy.Module):  # type: ignore[misc]
        def __init__(self, judge: Judge) -> None:
            super().__init__()
            self.judge = judge

    taught = two(Scale(1, 5))
    taught.by_aspect["kind"].scale = Scale(0, 10)
    fresh = Program(two(Scale(1, 5)))
    fresh.load_state(Program(taught).dump_state())
    assert fresh.judge.by_aspect["kind"].scale == Scale(0, 10)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["aspects"].pop("kind"), "at least 2"),
        (lambda d: d["aspects"].update({f"a{n}": d["aspects"]["kind"] for n in range(16)}), "at most 16"),
        (lambda d: d["aspects"].update({"n" * 81: d["aspects"].pop("kind")}), "at most 80"),
        (lambda d: d["aspects"].update({" ": d["aspects"].pop("kind")}), "1 to 80 characters"),
        (lambda d: d["aspects"]["kind"].update(aspects={}), "at least 2"),
        (lambda d: d["aspects"]["kind"].update(lm={"model": "openai/x", "sampling": {}}), "unknown key 'lm'"),
        (lambda d: d.update(program=d["aspects"]["kind"]["program"]), "program"),
        (lambda d: d["aspects"]["kind"]["program"].update(kind="aspects"), "unknown kind of judge"),
        (
            lambda d: d["aspects"]["kind"]["program"].update(kind="pairs", options=PairS("fluency").options()),
            "prompt f",
        ),
        (lambda d: d["aspects"]["kind"]["scale"].update(low=10, high=1), "a scale needs low < high"),
    ],
)
def test_a_forged_file_is_refused(change: Callable[[Any], Any], words: str, tmp_path: Path) -> None:
    data = artifact.to_dict(two())
    change(data)
    path = tmp_path / "judge.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ArtifactError, match=words):
        artifact.build(artifact.read(path))


def test_judges_that_cannot_stand_together_are_refused() -> None:
    pair = {"a": direct("a"), "b": direct("b")}
    for given, words in (
        ({"a": direct("a")}, "2 to 16 aspects"),
        ({f"a{n}": direct("a") for n in range(17)}, "got 17"),
        (pair | {"": direct("c")}, "1 to 80 characters"),
        (pair | {"c": AspectsJudge(pair)}, "no several aspects itself"),
        (pair | {"c": PairS("fluency")}, "one output at a time"),
    ):
        with pytest.raises(OptionError, match=words):
            AspectsJudge(given)
