"""OpeNLGauge over scripted models: one annotator, ensembles that disagree or fail, the supervisor, artifacts."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from judgesmith.errors import ArtifactError, OptionError
from judgesmith.programs.answers.reply import Reply, TokenChoice
from judgesmith.programs.artifact import to_dict
from judgesmith.programs.capabilities import ask_all, leave_out
from judgesmith.programs.judge import Judge
from judgesmith.programs.loading import load
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Request, Unanswered
from judgesmith.programs.openlgauge.annotation import AnnotationLayout, Focus
from judgesmith.programs.openlgauge.judge import Member, OpeNLGauge
from judgesmith.programs.pipeline import teach
from judgesmith.signatures.values import Criterion, ErrorSpan, Item, Scale, Verdict

MakeScripted = Callable[..., tuple[LanguageModel, Any]]
OUTPUT = "The mill opened in 1899. It made paper. The mill burned twice."
SOURCE = "The mill opened in 1898 and made paper until it burned down."


def said(label: str, *errors: tuple[str, str, int], reason: str = "that is why") -> str:
    blocks = [
        f"Error {n}\nLocation: {w}\nExplanation: {x}\nSeverity: {s}"
        for n, (w, x, s) in enumerate(errors, 1)
    ]
    return "\n\n".join(
        [*(blocks or ["No Error"]), f"Overall: {label}\nReason: {reason}"]
    )


YEAR = ('"in 1899"', "the source says 1898", 3)
TWICE = ('"burned twice"', "the source says once", 2)


def gauge(*, lm: Any = None, scale: Scale | None = None, **options: Any) -> Judge:
    return Judge(
        OpeNLGauge("summarization/consistency", **options),
        lm=lm,
        scale=scale or Scale(1, 5),
    )


def is_merging(request: Request) -> bool:
    return "<annotations>" in request.messages[-1]["content"]


@pytest.fixture
def ensemble(scripted: MakeScripted) -> Callable[..., tuple[Judge, dict[str, Any]]]:
    """ensemble([answer, …], supervisor=answer): a judge whose annotators a, b, … answer so, and the transports."""

    def make(
        answers: Sequence[Any], *, supervisor: Any = None, **options: Any
    ) -> tuple[Judge, dict[str, Any]]:
        names = [f"openai/{'abcdefgh'[i]}" for i in range(len(answers))]
        judge = gauge(
            annotators=names,
            supervisor="none" if supervisor is None else "lm",
            **options,
        )
        transports = {}
        for name, answer in zip(names, answers, strict=True):
            model, transports[name] = scripted(
                lambda request, answer=answer: answer, name=name
            )
            judge.method.use(name, model)
        lm, transports["lm"] = scripted(
            lambda request: supervisor if is_merging(request) else None,
            name="openai/lm",
        )
        judge.set_lm(lm)
        return judge, transports

    return make


def test_one_annotator_gives_score_spans_and_reason(scripted: MakeScripted) -> None:
    lm, transport = scripted(lambda request: said("Poor", YEAR, TWICE))
    verdict = gauge(lm=lm).score(SOURCE, OUTPUT)
    assert (verdict.percent, verdict.score) == (
        25.0,
        2.0,
    )  # the second of five labels; 1 + 4 * 25 %
    assert [(OUTPUT[e.start : e.end], e.how, e.severity) for e in verdict.errors] == [
        ("in 1899", "exact", 3.0),
        ("burned twice", "exact", 2.0),
    ]
    assert verdict.explanation == "that is why"
    assert (verdict.opinions, verdict.failure, verdict.repaired) == ({}, None, False)
    assert len(transport.requests) == 1  # nothing to merge


def test_the_prompt_says_the_aspect_its_ends_and_what_to_leave_aside(
    texts_of: Callable[[Any], str],
) -> None:
    judge = gauge(low="all of it is wrong", high="all of it is right")
    shown = texts_of(judge.previews(Item(OUTPUT, SOURCE))["annotator"])
    for part in (
        "all of it is wrong",
        "all of it is right",
        "Leave aside:",
        "Unacceptable, Poor, Fair, Good, Excel",
    ):
        assert part in shown
    assert "at most 8 errors" in shown
    assert "Rules:" in shown
    assert "Rules:" not in AnnotationLayout(rules=False).rules(
        {"focus": Focus("fluency")}
    )


@pytest.mark.parametrize(
    ("options", "most", "tokens"), [({}, 4, 900), ({"forced_most": 8}, 8, 1620)]
)
def test_a_local_model_may_list_as_many_errors_as_the_paper(
    options: dict[str, Any], most: int, tokens: int
) -> None:
    judge = gauge(**options)
    for layout in (
        judge.method.annotator.predict.layout,
        judge.method.supervisor.predict.layout,
    ):
        # One error, and as many more as the grammar repeats.
        assert f'("\\n\\n" error){{0,{most - 1}}}' in layout.grammar({})
        assert layout.max_tokens({}) == tokens
    with pytest.raises(OptionError, match="forced_most"):
        gauge(forced_most=9)


def test_a_model_that_takes_schemas_answers_in_json(scripted: MakeScripted) -> None:
    error = {
        "location": "in 1899",
        "explanation": "the source says 1898",
        "severity": 3,
    }
    text = json.dumps(
        {"errors": [error], "overall": "Poor", "reason": "A year is wrong."}
    )
    lm, transport = scripted(lambda request: text, json_schema=True)
    verdict = gauge(lm=lm).score(SOURCE, OUTPUT)
    (request,) = transport.requests
    assert list(request.schema["properties"]) == ["errors", "overall", "reason"]
    assert list(request.schema["properties"]["errors"]["items"]["properties"]) == list(
        error
    )
    assert request.schema["properties"]["overall"]["enum"] == [
        "Unacceptable",
        "Poor",
        "Fair",
        "Good",
        "Excellent",
    ]
    assert (verdict.percent, verdict.explanation, verdict.repaired) == (
        25.0,
        "A year is wrong.",
        False,
    )
    assert [(e.text, e.how, e.severity) for e in verdict.errors] == [
        ("in 1899", "exact", 3.0)
    ]


def test_the_expected_label_tells_equal_labels_apart(scripted: MakeScripted) -> None:
    text = said("Good", TWICE)
    start = text.index("Good")

    def answer(sure: float) -> Reply:
        tokens = [TokenChoice(c, ((c, 0.0),)) for c in text[:start]]
        tokens.append(
            TokenChoice(
                "Good", (("Good", math.log(sure)), (" excellent", math.log(1 - sure)))
            )
        )
        tokens += [TokenChoice(c, ((c, 0.0),)) for c in text[start + 4 :]]
        return Reply(text, tuple(tokens))

    lm, _ = scripted(
        [(lambda m: True, answer(0.8)), (lambda m: True, answer(0.6))], logprobs=True
    )
    judge = gauge(lm=lm)
    # .8 * 75 + .2 * 100, .6 * 75 + .4 * 100
    assert [judge.score(SOURCE, OUTPUT).percent for _ in range(2)] == [
        pytest.approx(80),
        pytest.approx(85),
    ]
    assert judge.method.saved_options()["reading"] == "expected"


def test_the_score_is_the_weighted_mean_and_the_spread_is_shown(ensemble: Any) -> None:
    judge, _ = ensemble([said("Excellent"), said("Good", YEAR), said("Fair", TWICE)])
    verdict = judge.score(SOURCE, OUTPUT)
    assert verdict.percent == pytest.approx(75)  # (100 + 75 + 50) / 3
    assert verdict.spread == pytest.approx(1.0)  # labels 5, 4, 3
    assert [o.label for o in verdict.opinions.values()] == ["Excellent", "Good", "Fair"]
    assert {e.annotators for e in verdict.errors} == {("openai/b",), ("openai/c",)}
    members = zip(judge.method.options.annotators, (3, 1, 0), strict=True)
    judge.method.choose(annotators=tuple(Member(m.model, weight=w) for m, w in members))
    assert judge.score(SOURCE, OUTPUT).percent == pytest.approx(
        93.75
    )  # (3 * 100 + 75) / 4


def test_an_annotator_that_fails_leaves_the_mean_and_is_reported(ensemble: Any) -> None:
    judge, _ = ensemble(
        [said("Good", YEAR), Unanswered("HTTP 500: no", again=False), "No idea, sorry."]
    )
    verdict = judge.score(SOURCE, OUTPUT)
    assert verdict.percent == 75.0
    assert math.isnan(verdict.spread)
    assert "HTTP 500" in verdict.opinions["openai/b"].failure
    assert "asked twice" in verdict.opinions["openai/c"].failure
    assert [n.split(":")[0] for n in verdict.notes] == [
        f"annotator openai/{x} gave no score" for x in "bc"
    ]
    json.dumps(verdict.to_dict(), allow_nan=False)


def test_where_all_fail_there_is_no_score(ensemble: Any) -> None:
    judge, _ = ensemble(["…", Unanswered("HTTP 401", again=False)])
    verdict = judge.score(SOURCE, OUTPUT)
    assert math.isnan(verdict.score)
    assert verdict.failure.startswith("every annotator failed: openai/a: ")
    assert (
        verdict.usage.calls == 2
    )  # the unreadable answer was asked for twice, the refusal cost nothing


def test_the_supervisor_merges_and_is_held_against_the_reports(ensemble: Any) -> None:
    merged = (
        "Error 1\nLocation: opened in 1899\nExplanation: the source says 1898\nSeverity: 1\n\n"
        "Error 2\nLocation: It made paper\nExplanation: invented by the supervisor\nSeverity: 5"
    )
    other = said("Poor", ("1899", "the source says 1898, not 1899", 4), TWICE)
    judge, transports = ensemble([said("Fair", YEAR), other], supervisor=merged)
    verdict = judge.score(SOURCE, OUTPUT)
    assert len(transports["lm"].requests) == 1
    year, invented = sorted(verdict.errors, key=lambda error: error.text, reverse=True)
    assert (year.text, invented.text) == ("opened in 1899", "It made paper")
    assert (
        year.severity == 4.0
    )  # the highest of those merged, whatever the supervisor says
    assert set(year.annotators) == {"openai/a", "openai/b"}
    assert any("not reported by any annotator" in note for note in invented.notes)
    assert (
        "the supervisor dropped 1 of 3 reported errors; they are with the annotators"
        in verdict.notes
    )
    assert [e.text for e in verdict.opinions["openai/b"].errors] == [
        "1899",
        "burned twice",
    ]
    asked = transports["lm"].requests[0].messages[-1]["content"]
    assert "Annotator 1" in asked
    assert "Annotator 2" in asked
    assert "openai/a" not in asked
    judge.method.set_brief(True)  # the same score without the supervisor
    assert judge.score(SOURCE, OUTPUT).percent == verdict.percent == pytest.approx(37.5)
    assert len(transports["lm"].requests) == 1


def test_a_supervisor_is_taught_what_was_merged_of_which_reports(
    ensemble: Any, tmp_path: Any
) -> None:
    merged = "Error 1\nLocation: opened in 1899\nExplanation: the source says 1898\nSeverity: 4"
    other = said("Poor", ("1899", "the source says 1898, not 1899", 4), TWICE)
    judge, transports = ensemble(
        [said("Fair", YEAR), said("Excellent"), other], supervisor=merged
    )
    shown = judge.method.demonstration(
        Item(OUTPUT, SOURCE, group="g"), judge.score(SOURCE, OUTPUT)
    ) | {"score": 30.0}
    teach(judge.method, shown)
    teach(
        judge.method, {**shown, "output": "The best of all outputs.", "score": 90.0}
    )  # nothing is wrong, people say
    teach(
        judge.method,
        judge.method.demonstration(Item("An output without reports."), None)
        | {"score": 40.0},
    )
    judge.save(tmp_path / "judge.json")
    loaded = load(tmp_path / "judge.json", lm=judge.lm)
    reports = (
        "Annotator 1\nError 1\nLocation: in 1899\nExplanation: the source says 1898\nSeverity: 3\n\n"
        "Annotator 2\nError 1\nLocation: 1899\nExplanation: the source says 1898, not 1899\nSeverity: 4\n\n"
        "Error 2\nLocation: burned twice\nExplanation: the source says once\nSeverity: 2"
    )
    (name,) = (
        name for name in judge.previews(Item("…")) if name.startswith("supervisor")
    )
    for group, demonstrations in (("g", []), ("h", [reports, merged])):
        _, *turns, _ = loaded.previews(
            Item("The mill was sold.", "A source.", group=group)
        )[name]
        assert len(turns) == len(demonstrations)
        assert all(
            part in turn["content"]
            for part, turn in zip(demonstrations, turns, strict=True)
        )
    next(
        judge.score_many(
            [
                {
                    "source": "A source.",
                    "output": "The mill opened in 1899.",
                    "group": "h",
                }
            ]
        )
    )
    assert reports in transports["lm"].requests[-1].messages[1]["content"]
    assert judge.method.stops_early()
    assert judge.method.supervisor.predict in judge.method.taught()
    judge.method.set_brief(True)  # it is not asked: no instruction of it can be tried
    assert judge.method.taught() == [judge.method.annotator.predict]


def test_a_supervisor_that_fails_costs_nothing_but_a_note(ensemble: Any) -> None:
    judge, _ = ensemble(
        [said("Fair", YEAR), said("Poor", TWICE)],
        supervisor=Unanswered("HTTP 500", again=False),
    )
    verdict = judge.score(SOURCE, OUTPUT)
    assert verdict.percent == pytest.approx(37.5)
    assert {e.text for e in verdict.errors} == {"in 1899", "burned twice"}
    assert any("the supervisor failed" in note for note in verdict.notes)


def test_an_outlier_is_not_heard_by_the_supervisor_but_counts(ensemble: Any) -> None:
    good = said("Good", TWICE)
    answers = [good, good, good, good, said("Unacceptable", YEAR)]
    judge, transports = ensemble(answers, supervisor="Error 1\nLocation: x")
    verdict = judge.score(SOURCE, OUTPUT)
    # Labels 4 4 4 4 1: mean 3.4, standard deviation 1.2, the last is 2.4 = 2 deviations away.
    assert [o.outlier for o in verdict.opinions.values()] == [False] * 4 + [True]
    assert verdict.percent == pytest.approx(60.0)  # (4 * 75 + 0) / 5
    assert (
        "1899"
        not in transports["lm"]
        .requests[0]
        .messages[-1]["content"]
        .split("<annotations>")[1]
    )
    assert any("openai/e is an outlier" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("overall", "severity", "answer", "percent"),
    [
        ("integers", "integers", "Severity: 2\n\nOverall: 4", 75.0),
        ("integers", "categories", "Severity: Minor\n\nOverall: 4", 75.0),
        ("labels", "categories", "Severity: Minor\n\nOverall: Good", 75.0),
    ],
)
def test_the_papers_scales(
    scripted: MakeScripted, overall: Any, severity: Any, answer: str, percent: float
) -> None:
    lm, transport = scripted(
        lambda request: f"Error 1\nLocation: 1899\nExplanation: x\n{answer}\nReason: y"
    )
    verdict = gauge(lm=lm, overall=overall, severity=severity).score(SOURCE, OUTPUT)
    assert verdict.percent == percent
    assert verdict.errors[0].severity == 2.0
    rules = transport.requests[0].messages[0]["content"]
    assert ("1, 2, 3, 4, 5" in rules) == (overall == "integers")
    assert ("Neutral, Minor" in rules) == (severity == "categories")


# -- artifacts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda d: d["ensemble"].append({"model": "http://evil/x"}), "may not choose"),
        (
            lambda d: d["ensemble"].append({"model": "openai/a", "api_base": "x"}),
            "ensemble.1.api_base",
        ),
        (
            lambda d: d["ensemble"].append({"model": "openai/a", "temperature": 9.0}),
            "ensemble.1.temperature",
        ),
        (lambda d: d["ensemble"].append({"model": "openai/a"}), "named twice"),
        (
            lambda d: d.update(program={"kind": "active-critic", "options": {}}),
            "takes no ensemble",
        ),
        (lambda d: d.update(criteria=[]), "aspect"),
        (
            lambda d: d["program"]["options"].update(supervisor="os.system"),
            "supervisor",
        ),
    ],
)
def test_a_forged_ensemble_is_refused(
    change: Callable[[Any], None], part: str, tmp_path: Any, scripted: Any
) -> None:
    judge = gauge(annotators=["openai/a"])
    data = to_dict(judge)
    data["program"]["options"]["aspect"] = "no such aspect"
    change(data)
    (tmp_path / "j.json").write_text(json.dumps(data))
    lm, _ = scripted([])
    with pytest.raises(ArtifactError, match=part):
        load(tmp_path / "j.json", lm=lm)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"annotators": ["openai/a", "openai/a"]}, "named twice"),
        ({"annotators": ["openai/a@3"]}, "between 0 and 2"),
        ({"annotators": [""]}, "MODEL@0.7"),
        ({"supervisor": "me"}, "supervisor: Input should be 'lm' or 'none'; got 'me'"),
        (
            {"criteria": [Criterion("a", "b"), Criterion("c", "d")]},
            "one aspect is judged at a time",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], part: str
) -> None:
    with pytest.raises(OptionError, match=part):
        OpeNLGauge("fluency", **options)


def test_a_demonstration_shows_the_errors_of_its_verdict_and_keeps_the_rules() -> None:
    errors = (
        ErrorSpan("in 1899", "It was 1898.", 3.0, 16, 23, "exact"),
        ErrorSpan("", "No place.", 1.0, how="omission"),
    )
    shown = gauge().method.demonstration(
        Item(OUTPUT, SOURCE), Verdict(2.0, percent=25.0, errors=errors)
    )["annotation"]
    assert shown == (
        "Error 1\nLocation: in 1899\nExplanation: It was 1898.\nSeverity: 3\n\n"
        "Error 2\nLocation: omission\nExplanation: No place.\nSeverity: 1"
    )
    layout = AnnotationLayout()
    demo = {"score": 100.0, "annotation": "Error 1\nLocation: x", "explanation": "fine"}
    assert layout.answer(demo, {}) == "No Error\n\nOverall: Excellent\nReason: fine"
    assert (
        layout.answer({**demo, "score": 40.0}, {})
        == "Error 1\nLocation: x\n\nOverall: Fair\nReason: fine"
    )
    assert (
        layout.answer({"score": 40.0, "explanation": "errors are missing"}, {}) is None
    )
    assert layout.example({"score": 40.0}) == "Overall: Fair"


def test_annotators_that_were_left_out_are_asked_again_with_all(
    ensemble: Any,
) -> None:
    judge, transports = ensemble([said("Good", YEAR), said("Poor", TWICE)])
    leave_out(judge.method, ["openai/b"])
    judge.score(source=SOURCE, output=OUTPUT)
    asked = [len(transport.requests) for transport in transports.values()]
    assert asked[:2] == [1, 0]
    ask_all(judge.method)
    judge.score(source=SOURCE, output=OUTPUT)
    asked = [len(transport.requests) for transport in transports.values()]
    assert asked[:2] == [2, 1]
