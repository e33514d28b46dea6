"""Committees: the mean of z-scores by hand, members that fail, what is passed on, and files that are refused."""

import asyncio
import copy
import json
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgesmith as js
from judgesmith.datasets.records import Labels, Row
from judgesmith.errors import ArtifactError, OptionError
from judgesmith.optimizers.compiling import Compiler
from judgesmith.optimizers.search.random import CorrelationRandomSearch
from judgesmith.programs import artifact
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.baselines.pairs import PairS
from judgesmith.programs.ensemble import LEAST_SD, Ensemble, Norm
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.openlgauge.judge import OpeNLGauge
from judgesmith.programs.outcome import Calibration
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import Item, Scale, Verdict

MakeScripted = Any  # the fixture of conftest.py, which tests cannot import
SECRETS = ("One sign.", "Two signs.", "Three signs.")
NORMS = (Norm(50, 10), Norm(20, 5), Norm(70, 20))


def member(secret: str, **options: Any) -> ActiveCritic:
    """A judge whose prompt shows one demonstration of its own, by which a script can tell it."""
    judge = ActiveCritic("vanilla", **({"explain": "before", "reading": "said"} | options))
    judge.overall_scorer.predict.demos = [
        {"source": "", "output": secret, "group": f"group of {secret}", "score": 40.0, "gold": True, "augmented": False}
    ]
    return judge


def committee(count: int = 2, norms: Sequence[Norm] = NORMS, **options: Any) -> Ensemble:
    members = [member(secret) for secret in SECRETS[:count]]
    return Ensemble(members, norms[:count], **({"scale": Scale(1, 5)} | options))


def saying(numbers: Mapping[str, Any]) -> Callable[[Request], Any]:
    """Each member's answer by the demonstration in its prompt: a score, or what is said instead."""

    def answer(request: Request) -> Any:
        shown = "\n".join(m["content"] for m in request.messages)
        said = next(said for secret, said in numbers.items() if secret in shown)
        return f"Explanation: {said} it is.\nScore: {said}" if isinstance(said, int) else said

    return answer


def judged(scripted: MakeScripted, *said: Any, norms: Sequence[Norm] = NORMS) -> Verdict:
    lm, _ = scripted(saying(dict(zip(SECRETS, said, strict=False))))
    return committee(len(said), norms, lm=lm).score("A source.", "An output.")


# -- the score


def test_the_mean_of_z_scores_by_hand(scripted: MakeScripted) -> None:
    verdict = judged(scripted, 60, 30)
    # (60 - 50) / 10 = 1 and (30 - 20) / 5 = 2; mean 1.5, on the first member's percents 50 + 10 * 1.5 = 65.
    assert verdict.percent == pytest.approx(65.0)
    assert verdict.score == pytest.approx(1 + 4 * 0.65)
    # Each on the first member's percents: 50 + 10 * 1 = 60 and 50 + 10 * 2 = 70.
    assert [o.percent for o in verdict.opinions.values()] == pytest.approx([60.0, 70.0])
    # Their standard deviation: sqrt((5² + 5²) / 1) = 7.07 of 100, on 1..5 times 4 / 100.
    assert verdict.spread == pytest.approx(math.sqrt(50) * 0.04)
    assert list(verdict.opinions) == ["member 1", "member 2"]
    assert verdict.explanation == "60 it is."
    assert verdict.usage.calls == 2
    assert len(verdict.raw) == 2
    assert not verdict.notes


def test_a_score_stays_inside_its_range_and_is_calibrated_last(scripted: MakeScripted) -> None:
    # (100 - 50) / 10 = 5 and (100 - 20) / 5 = 16: 50 + 10 * 10.5 = 155.
    assert judged(scripted, 100, 100).percent == 100.0
    assert judged(scripted, 0, 0).percent == pytest.approx(50 - 10 * 4.5)  # -5 and -4
    assert judged(scripted, 0, 0, norms=(Norm(20, 10), Norm(90, 5))).percent == 0.0  # -2 and -18
    lm, _ = scripted(saying({SECRETS[0]: 60, SECRETS[1]: 30}))
    judge = committee(lm=lm)
    judge.calibration = Calibration((0.0, 65.0, 100.0), (1.0, 4.5, 5.0))
    assert judge.score("A source.", "An output.").score == pytest.approx(4.5)


class Fixed(Judge):
    """A judge that says one number, or fails."""

    kind = "fixed"

    def __init__(self, percent: float) -> None:
        super().__init__()
        self.percent = percent

    def options(self) -> dict[str, Any]:
        return {"percent": self.percent}

    async def ajudge(self, item: Item, lm: Any) -> Verdict:
        return Verdict(math.nan, percent=self.percent)


def percent_of(said: Sequence[float], norms: Sequence[Norm]) -> Verdict:
    lm: Any = SimpleNamespace(embedded=False)
    return engine.run(Ensemble([Fixed(p) for p in said], norms).averdict(Item("An output."), lm))


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(1, 50)), min_size=2, max_size=8),
    st.floats(0.2, 5),
    st.floats(-20, 20),
)
def test_a_score_lies_among_its_members_and_knows_no_units(
    drawn: list[tuple[float, float, float]], stretch: float, shift: float
) -> None:
    said, norms = [p for p, _, _ in drawn], [Norm(mean, sd) for _, mean, sd in drawn]
    verdict = percent_of(said, norms)
    opinions = [o.percent for o in verdict.opinions.values()]
    assert 0 <= verdict.percent <= 100
    assert min(opinions) - 1e-9 <= verdict.percent <= max(opinions) + 1e-9
    # A member that stretches and shifts all it says counts as before.
    mean, sd, last = norms[-1].mean * stretch + shift, norms[-1].sd * stretch, said[-1] * stretch + shift
    if len(said) > 2 and 0 <= mean <= 100 and sd <= 100:
        other = percent_of([*said[:-1], last], [*norms[:-1], Norm(mean, sd)])
        assert other.percent == pytest.approx(verdict.percent, abs=1e-6)
    # The order of all but the first says nothing.
    turned = percent_of([said[0], *said[:0:-1]], [norms[0], *norms[:0:-1]])
    assert turned.percent == pytest.approx(verdict.percent, abs=1e-6)


# -- members that fail


def test_a_member_that_fails_leaves_the_mean_with_a_note(scripted: MakeScripted) -> None:
    verdict = judged(scripted, "I would rather not.", 30, 90)
    # (30 - 20) / 5 = 2 and (90 - 70) / 20 = 1, on the first member's percents all the same.
    assert verdict.failure is None
    assert verdict.percent == pytest.approx(50 + 10 * 1.5)
    assert verdict.explanation == "30 it is."
    assert [note.split(":")[0] for note in verdict.notes] == ["member 1 gave no score"]
    assert "asked twice" in verdict.notes[0]
    first = verdict.opinions["member 1"]
    assert math.isnan(first.percent)
    assert first.failure
    assert verdict.usage.calls == 4  # the first was asked twice
    assert verdict.spread == pytest.approx(math.sqrt(50) * 0.04)
    json.dumps(verdict.to_dict(raw=True), allow_nan=False)
    single = judged(scripted, 60, Unanswered("HTTP 400: no", again=False))
    assert (single.percent, math.isnan(single.spread)) == (pytest.approx(60.0), True)
    none = judged(scripted, Unanswered("HTTP 400: no", again=False), "I would rather not.")
    assert math.isnan(none.score)
    assert re.match(r"every member failed: member 1: .*HTTP 400.*; member 2: ", none.failure or "")
    assert (none.usage.calls, len(none.raw)) == (2, 2)  # the second was asked twice; the first call was refused


@pytest.mark.parametrize(("embedded", "at_once"), [(True, 1), (False, 3)])
def test_an_embedded_model_is_asked_by_one_member_after_the_other(
    embedded: bool, at_once: int, scripted: MakeScripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm, transport = scripted(saying(dict.fromkeys(SECRETS, 50)))
    lm.embedded = embedded
    judge = committee(3, lm=lm)
    judge.score("A source.", "First.")  # the probes are over
    send = transport.send
    under_way: list[int] = [0]

    async def slowly(request: Request) -> Any:
        under_way.append(under_way[-1] + 1)
        await asyncio.sleep(0.02)
        under_way.append(under_way[-1] - 1)
        return await send(request)

    monkeypatch.setattr(transport, "send", slowly)
    judge.score("A source.", "An output.")
    assert max(under_way) == at_once


# -- what is passed on


def test_members_are_copies_that_can_be_taught() -> None:
    given = [member(secret) for secret in SECRETS]
    for one in given:
        one._compiled = True  # as a search leaves it
    judge = Ensemble(given, NORMS)
    assert len(judge.taught()) == len(artifact.predictors(judge)) == 3
    assert [p.demos[0]["output"] for p in judge.taught()] == list(SECRETS)
    for predictor in judge.taught():
        predictor.demos = []
    assert all(one.overall_scorer.predict.demos for one in given)
    assert judge.calls_per_row() == 3
    assert Ensemble([ActiveCritic("fine")] * 2, NORMS[:2]).calls_per_row() == 4


def test_only_the_first_member_explains_where_the_score_comes_first(scripted: MakeScripted) -> None:
    lm, transport = scripted(lambda request: "Score: 60\nExplanation: So.")
    judge = Ensemble([member(s, explain="after", reading="auto") for s in SECRETS], NORMS, lm=lm)

    def asked() -> list[int]:
        transport.requests.clear()
        list(judge.score_many([{"source": "A source.", "output": "An output."}]))
        return sorted(request.max_tokens for request in transport.requests)

    short, _, long = asked()
    assert short < long
    assert asked() == [short, short, long]
    assert not judge.brief
    judge.set_brief(True)
    assert judge.brief
    assert asked() == [short, short, short]
    judge.set_brief(False)
    assert judge.deepcopy().brief is False
    assert asked() == [short, short, long]


def test_no_member_sees_the_judged_document(scripted: MakeScripted) -> None:
    judge = committee(3)
    for number, secret in enumerate(SECRETS, start=1):
        shown = judge.previews(Item("An output.", "A source.", group=f"group of {secret}"))
        there = {name for name, messages in shown.items() if any(s in str(messages) for s in SECRETS)}
        assert there == {f"member {n}: overall_scorer" for n in (1, 2, 3) if n != number}


def test_annotators_of_members_are_reached_through_the_committee() -> None:
    judges = [OpeNLGauge("fluency", annotators=["openai/a", "openai/b@0.5"]) for _ in range(2)]
    judge = Ensemble(judges, NORMS[:2])
    assert judge.models() == ("openai/a", "openai/b")
    assert judge.calls_per_row() == 2 * (2 + 1)
    connection = js.Connection(attempts=7)
    judge.connect(connection)
    assert all(m._connection is connection for m in judge.members)  # type: ignore[attr-defined]
    assert [m.model for m in artifact.build(artifact.Artifact.of(artifact.to_dict(judge))).members[1].members] == [
        "openai/a",
        "openai/b",
    ]


@pytest.mark.parametrize(
    ("members", "norms", "said"),
    [
        (lambda: [member("a")], NORMS[:1], "2 to 8 members"),
        (lambda: [member(str(n)) for n in range(9)], (NORMS * 3), "2 to 8 members"),
        (lambda: [member("a"), member("b")], NORMS, "one norm for each"),
        (lambda: [member("a"), DirectScorer("fluency")], NORMS[:2], "one kind"),
        (lambda: [committee(), committee()], NORMS[:2], "no ensembles themselves"),
        (lambda: [PairS("fluency"), PairS("fluency")], NORMS[:2], "ranks the outputs of a document"),
    ],
)
def test_what_cannot_be_a_committee(members: Any, norms: Any, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Ensemble(members(), norms)


def test_a_norm_is_a_mean_and_a_spread_of_percents() -> None:
    for mean, sd in ((math.nan, 1), (50, math.nan), (50, 0), (50, -1), (-1, 5), (101, 5), (50, math.inf)):
        with pytest.raises(OptionError, match="standard deviation"):
            Norm(mean, sd)


# -- saved and loaded


def test_the_fingerprint_knows_every_member_and_norm() -> None:
    def changed(change: Callable[[Any], None]) -> str:
        judge = committee(3)
        change(judge)
        return artifact.fingerprint(judge)

    prints = {
        changed(lambda j: None),
        changed(lambda j: j.members[2].overall_scorer.predict.demos.clear()),
        changed(lambda j: setattr(j, "norms", (*NORMS[:2], Norm(70, 21)))),
        changed(lambda j: setattr(j, "norms", (Norm(51, 10), *NORMS[1:]))),
        changed(lambda j: j.members.reverse()),
    }
    assert len(prints) == 5


NORM = {"norm": {"mean": 5, "sd": 5}}
DIRECT, RANKING = (NORM | artifact.method(judge) for judge in (DirectScorer("fluency"), PairS("fluency")))


#: What is special to a committee's file; what any judge's file may hold is tested with the artifact.
FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no other member": lambda d: d["committee"].update(others=[]),
    "nine members": lambda d: d["committee"].update(others=d["committee"]["others"] * 4),
    "no norm": lambda d: d["committee"].pop("norm"),
    "a member without a norm": lambda d: d["committee"]["others"][0].pop("norm"),
    "sd too small": lambda d: d["committee"]["norm"].update(sd=LEAST_SD / 2),
    "sd as text": lambda d: d["committee"]["norm"].update(sd="10"),
    "mean off the scale": lambda d: d["committee"]["norm"].update(mean=101),
    "a key": lambda d: d["committee"].update(weights=[1, 2]),
    "a key in a norm": lambda d: d["committee"]["norm"].update(code="x"),
    "a model of its own": lambda d: d["committee"]["others"][0].update(lm={"model": "openai/evil", "sampling": {}}),
    "the file as a committee": lambda d: d["program"].update(kind="committee"),
    "a committee as a member": lambda d: d["committee"]["others"][0].update(committee=copy.deepcopy(d["committee"])),
    "another kind": lambda d: d["committee"]["others"].__setitem__(0, DIRECT),
    "as a list": lambda d: d.update(committee=[d["committee"]]),
    "ranks": lambda d: d.update(RANKING, committee=NORM | {"others": [RANKING]}),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED.keys())
def test_a_forged_committee_is_refused(change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.loads(artifact.dumps(committee(3)))
    path = tmp_path / "judge.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert len(js.load(path).members) == 3  # type: ignore[attr-defined]
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    monkeypatch.setattr(artifact, "language_model", lambda *_, **__: pytest.fail("a model was looked up"))
    with pytest.raises(ArtifactError) as caught:
        js.load(path)
    assert len(str(caught.value)) < 500


def test_a_member_that_cannot_be_saved_is_named(tmp_path: Path) -> None:
    judge: Judge = committee(2)
    judge.members[1].overall_scorer.predict.demos[0]["score"] = 101.0  # type: ignore[attr-defined]
    with pytest.raises(ArtifactError, match=r"cannot be saved: committee\.others\.0\.state"):
        judge.save(tmp_path / "judge.json")


# -- compiled, whatever the method


def by_quality(request: Request) -> str:
    """A model that sees an output's quality, and errs otherwise with other demonstrations."""
    asked = request.messages[-1]["content"]
    quality = int(re.findall(r"of quality (\d)", asked)[-1])
    seen = min(9.0, max(0.0, quality + random.Random(str(request.messages)).gauss(0, 3)))
    label = ("Unacceptable", "Poor", "Fair", "Good", "Excellent")[int(seen / 2)]
    return f"No Error\n\nOverall: {label}\nReason: it will do"


def test_a_method_with_annotators_can_be_compiled_to_a_committee(scripted: MakeScripted) -> None:
    lm, _ = scripted(by_quality)
    rows = [
        Row(f"r{n}", f"Text {n} of quality {n * 7 % 10}.", f"Source {n // 2}.", doc_id=f"d{n // 2}",
            group=f"d{n // 2}", scores={"overall": float(n * 7 % 10)}, line=n)
        for n in range(60)
    ]  # fmt: skip
    labels = Labels(tuple(rows), "overall", (0.0, 9.0), origin="labels.jsonl")
    judge = OpeNLGauge("fluency", annotators=("openai/a", "openai/b"), supervisor="none")
    for name in ("openai/a", "openai/b"):
        judge.use(name, lm)
    search = CorrelationRandomSearch(candidates=4, max_demos=3, sure=0.0)
    made, report = Compiler(search=search, ensemble_top=4).run(judge, labels, lm)
    assert isinstance(made, Ensemble), made.provenance["committee"]
    assert report.heldout.objective.failed == 0
    again = artifact.build(artifact.Artifact.of(artifact.to_dict(made)), lm=lm)
    assert artifact.fingerprint(again) == artifact.fingerprint(made)
    verdict = made.score("Source 99.", "Text 99 of quality 8.")
    assert (verdict.failure, len(verdict.opinions)) == (None, len(made.members))
