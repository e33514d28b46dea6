"""From labels to a judge, over HTTP: what is held out, what a label copier gets, failures, budgets, repeatability."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import judgesmith as js
from judgesmith.datasets.records import Labels
from judgesmith.errors import BudgetError, LabelsError, LeakError, OptionError
from judgesmith.optimizers.budget import Budget
from judgesmith.optimizers.options import CompileOptions, Compiler
from judgesmith.optimizers.planning import plan as planned
from judgesmith.optimizers.report import CompileReport
from judgesmith.optimizers.search.few_shot import NoSearch
from judgesmith.programs.artifact import dumps

SHARE = 0.25
Compiled = Callable[..., tuple[js.Judge, CompileReport]]
TWO = [js.Criterion("Clarity", "is clear"), js.Criterion("Truth", "is true")]
CRITERIA = "Clarity: So. Score: 50\nTruth: So. Score: 50"


@pytest.fixture
def compiled(server: Any, labels: Labels) -> Compiled:
    """compiled(labels, **options of js.compile): the judge and its report.

    By default the search is small, and a quarter of 30 labels or more is held out where no folds are asked for.
    """

    def run(
        labels: Labels = labels, judge: js.Judge | None = None, **options: Any
    ) -> tuple[js.Judge, CompileReport]:
        options.setdefault(
            "heldout", None if "cv" in options or len(labels) < 30 else SHARE
        )
        options.setdefault(
            "optimizer",
            js.CorrelationRandomSearch(candidates=options.pop("candidates", 2)),
        )
        options.setdefault(
            "connection",
            js.Connection(api_base=server.base, attempts=options.pop("attempts", 5)),
        )
        options.setdefault("lm", "openai/fake")
        made = js.compile(
            judge or js.ActiveCritic("coarse", explain="before"), labels, **options
        )
        return made, made.report

    return run


@pytest.fixture
def labels(labels_of: Any) -> Labels:
    """48 rows of 12 documents, random scores."""
    draw = random.Random(5)
    return labels_of(12, 4, lambda n: draw.randint(0, 100))


def held_out(report: CompileReport) -> list[str]:
    return [p["id"] for p in report.heldout_predictions]


def dateless(judge: js.Judge) -> str:
    text, count = re.subn(r'"created": "[^"]+"', '"created": ""', dumps(judge))
    assert count == 1
    return text


# -- what is held out -------------------------------------------------------------------------------------------------


def test_held_out_rows_are_unknown_until_the_search_is_over(
    server: Any, compiled: Compiled, labels: Labels
) -> None:
    judge, report = compiled(labels, js.ActiveCritic("coarse"), candidates=3)
    held = set(held_out(report))
    assert len(held) == report.heldout_rows == 12
    groups = {row.group for row in labels.rows if row.id in held}
    assert not groups & {row.group for row in labels.rows if row.id not in held}
    judged = [(ask.mark in held, ask.number) for ask in server.judged]
    assert max(n for out, n in judged if not out) < min(n for out, n in judged if out)
    for ask in server.asks:
        others = ask.text.replace(ask.judged, "") if ask in server.judged else ask.text
        assert not held & set(re.findall(r"\br\d{3}\b", others)), ask.text
    for predictor in judge.predictors():
        assert not groups & {demo["group"] for demo in predictor.demos}
    assert {ask.step for ask in server.asks} >= {
        "probe",
        "observe",
        "describe",
        "propose",
        "score",
    }


def test_reasons_are_learnt_from_and_none_stands_where_its_row_is_judged(
    server: Any, compiled: Compiled, fake: Any, labels: Labels
) -> None:
    rows = [
        replace(row, comments={"": (f"It says {row.id}.",)}) if n % 2 else row
        for n, row in enumerate(labels.rows)
    ]
    cited = json.loads(fake.CRITERIA)["criteria"]
    cited[0]["comments"] = "2, 1, 4711"
    judging = fake.judging(lambda ask: len(ask.judged) % 101)
    server.answer = lambda ask: (
        json.dumps({"criteria": cited})
        if ask.step in ("propose", "join")
        else judging(ask)
    )
    judge, report = compiled(replace(labels, rows=tuple(rows)), candidates=3)
    held = set(held_out(report))
    own = re.compile(r"It says (r\d{3})\.")
    assert not held & {mark for ask in server.asks for mark in own.findall(ask.text)}
    assert not [ask for ask in server.judged if ask.mark in own.findall(ask.text)]
    turns = [
        turn
        for ask in server.judged
        for turn in ask.body["messages"]
        if turn["role"] == "assistant"
    ]
    assert any(own.search(turn["content"]) for turn in turns)
    told = json.loads(dumps(judge))["provenance"]["criteria_from"]
    assert told == report.to_dict()["criteria_from"]
    assert [n for n in report.notes if "comments that do not exist" in n]
    assert [name for name, comments in told.items() if comments] == ["Accuracy"]
    assert all(
        comment["text"] == f"It says {comment['row']}." for comment in told["Accuracy"]
    )
    assert replace(labels, rows=tuple(rows)).fingerprint() != labels.fingerprint()


def test_labels_to_hold_out_are_checked_before_a_call(
    server: Any, compiled: Compiled, labels: Labels
) -> None:
    train = labels.subset(range(32))
    other = labels.subset(range(32, 48))
    _, report = compiled(train, heldout=other)
    assert held_out(report) == [row.id for row in other.rows]
    assert (report.train_rows, report.heldout_rows) == (32, 16)
    server.forget()
    with pytest.raises(LeakError, match="group 'd007' is in both"):
        compiled(train, heldout=labels.subset(range(31, 48)))
    copied = replace(
        other.rows[0], source=train.rows[0].source, output=train.rows[0].output
    )
    with pytest.raises(LeakError, match="repeats the source and output"):
        compiled(train, heldout=replace(other, rows=(copied, *other.rows[1:])))
    with pytest.raises(OptionError, match=r"on 0\.\.100, those held out on 1\.\.5"):
        compiled(train, heldout=replace(other, scale=(1.0, 5.0)))
    unscored = replace(other, rows=(replace(other.rows[0], scores={}), *other.rows[1:]))
    with pytest.raises(LabelsError, match="row 33 has no score"):
        compiled(train, heldout=unscored)
    with pytest.raises(LabelsError, match="row 33 has no score for 'overall'"):
        compiled(replace(labels, rows=(*train.rows, *unscored.rows)))
    assert server.asks == []


def telling(fake: Any) -> Callable[[Any], Any]:
    """What task inference reads goes into the description, so that a prompt tells which rows its judge has seen."""

    def answer(ask: Any) -> Any:
        if ask.step in ("observe", "describe", "merge"):
            return "Seen: " + " ".join(sorted(set(re.findall(r"\br\d{3}\b", ask.text))))
        return fake.judging(
            lambda ask: 99 if ask.mark in ask.shown else int(ask.mark[1:])
        )(ask)

    return answer


@pytest.mark.parametrize(
    ("documents", "options", "folds", "note"),
    [
        (6, {}, 4, "agreement is cross-validated (4 folds), "),
        (12, {"heldout": None}, 4, "agreement is cross-validated (4 folds), "),
        (12, {"cv": 3}, 3, "agreement is cross-validated (3 folds), "),
    ],
    ids=["few labels", "more", "asked for"],
)
def test_a_cross_validated_row_is_judged_by_a_judge_that_did_not_see_it(
    documents: int,
    options: dict[str, Any],
    folds: int,
    note: str,
    server: Any,
    fake: Any,
    compiled: Compiled,
    labels: Labels,
) -> None:
    labels = labels.subset(range(documents * 4))
    server.answer = telling(fake)
    # With the description in every prompt: without it a row that was seen could not be told.
    student = js.Judge(js.ActiveCritic("coarse", explain="before", use_criteria=False))
    search = js.CorrelationRandomSearch(candidates=1)
    rows = len(labels)
    plan = planned(
        Compiler(search, CompileOptions(**options)), student, labels, "openai/fake"
    )
    assert (plan.rows, plan.folds, plan.heldout, plan.train) == (
        rows,
        folds,
        rows,
        folds * rows,
    )
    judge, report = compiled(labels, student, optimizer=search, **options)
    assert (
        report.folds,
        report.heldout.objective.n,
        report.to_dict()["cross_validated"],
    ) == (folds, rows, True)
    assert sorted(held_out(report)) == sorted(row.id for row in labels.rows)
    assert any(ask.mark in ask.shown for ask in server.judged)  # the training rows
    for p in report.heldout_predictions:
        assert (
            p["percent"] == p["zero_shot_percent"] == int(p["id"][1:])
        )  # 99 where the row was seen
    assert any(
        said.startswith(f"{note}each fold judged by a judge compiled without it")
        for said in report.notes
    )
    assert judge.provenance["heldout"]["folds"] == folds
    # The judge itself is compiled from all of them.
    assert len(judge.provenance["seen"]) == judge.provenance["labels"]["train"] == rows
    assert judge.provenance["cost"]["calls"] <= plan.calls


def test_folds_that_cannot_be_are_refused_before_a_call(
    server: Any, compiled: Compiled, labels: Labels
) -> None:
    train = labels.subset(range(32))
    other = labels.subset(range(32, 48))
    with pytest.raises(OptionError, match=r"give one of them \(--cv or --heldout\)"):
        compiled(train, heldout=other, cv=4)
    with pytest.raises(
        OptionError, match="cv is 1; cross-validation takes 2 folds or more"
    ):
        compiled(labels, cv=1)
    with pytest.raises(
        OptionError, match=r"cv is 13, but .* there are 12; take 12 folds or fewer"
    ):
        compiled(labels, cv=13)
    with pytest.raises(
        OptionError, match=r"cv is 2, but .* there are 1; add rows of other documents"
    ):
        compiled(labels.subset(range(4)), cv=2)
    assert server.asks == []
    assert (
        planned(
            Compiler(options=CompileOptions(cv=12)),
            js.Judge(js.ActiveCritic("vanilla")),
            labels,
            None,
        ).folds
        == 12
    )


@pytest.mark.parametrize("level", ["pooled", "sample", "system", "within"])
def test_every_level_is_reported(
    level: Any, server: Any, fake: Any, compiled: Compiled, human: Any
) -> None:
    server.answer = fake.judging(lambda ask: human[ask.mark])
    judge, report = compiled(level=level, candidates=1)
    assert report.heldout.q == pytest.approx(3.0)
    assert (
        report.heldout.objective.n
        == {"pooled": 12, "within": 12, "sample": 3, "system": 4}[level]
    )
    assert f"|{level}|" in judge.provenance["heldout"]["signature"]
    assert report.calibrated_error == pytest.approx(0.0, abs=15)


# -- failures ---------------------------------------------------------------------------------------------------------


def test_rows_that_fail_for_good_are_counted_imputed_and_disqualify(
    server: Any, fake: Any, compiled: Compiled, labels: Labels, human: Any
) -> None:

    def answer(ask: Any) -> Any:
        if ask.step == "score" and int(ask.mark[1:]) % 4 == 1:
            return "I cannot judge this."
        return fake.judging(lambda ask: human[ask.mark])(ask)

    server.answer = answer
    judge, report = compiled(labels)
    failed = sum(int(i[1:]) % 4 == 1 for i in held_out(report))
    assert failed > 0
    assert (
        report.heldout.objective.failed == report.zero_shot.objective.failed == failed
    )
    assert report.heldout.objective.n == 12
    assert 0 < report.heldout.q < 3.0
    missing = [p for p in report.heldout_predictions if p["score"] is None]
    assert len(missing) == failed
    assert all("no score in the answer" in p["failure"] for p in missing)
    assert all(c["disqualified"] == "9 of 36 rows failed" for c in report.candidates)
    assert any("no candidate was fit to be chosen" in note for note in report.notes)
    assert f"failed:{failed}" in judge.provenance["heldout"]["signature"]


def test_a_form_of_answers_that_fails_is_not_chosen(
    server: Any, fake: Any, compiled: Compiled, human: Any
) -> None:

    def answer(ask: Any) -> Any:
        if ask.step == "score" and ask.system.index(
            "Score: <number>"
        ) > ask.system.index("Explanation: <"):
            return "I will not explain myself."
        return fake.judging(lambda ask: (100 - human[ask.mark]) / 2)(
            ask
        )  # a bad judge, but one that answers

    server.answer = answer
    judge, _ = compiled(
        judge=js.ActiveCritic("coarse", task="t", use_criteria=False), optimizer="none"
    )
    assert judge.method.saved_options()["explain"] == "after"


@pytest.mark.parametrize("right", ["fine", "coarse", "both"])
def test_the_fine_variant_is_kept_where_it_is_clearly_better(
    right: str, server: Any, fake: Any, compiled: Compiled, labels: Labels, human: Any
) -> None:

    def score(ask: Any) -> float:
        wrong = right not in (
            "both",
            "fine" if "criteria_scores" in ask.text else "coarse",
        )
        return int(ask.mark[1:]) * 37 % 101 if wrong else human[ask.mark]

    server.answer = lambda ask: (
        CRITERIA if ask.step == "criteria" else fake.judging(score)(ask)
    )
    judge = js.Judge(
        js.ActiveCritic(explain="before", reading="said", task="Judge.", criteria=TWO)
    )
    search = js.CorrelationRandomSearch(candidates=0)
    compiler = Compiler(search, CompileOptions(heldout=SHARE))
    plan = planned(compiler, judge, labels, "openai/fake")
    made, report = compiled(labels, judge, candidates=0)
    assert (made.method.saved_options()["variant"], report.heldout.q) == (
        right.replace("both", "coarse"),
        pytest.approx(3.0),
    )
    assert [form.get("variant") for form in made.provenance["forms"]] == [None, "fine"]
    value, other = (f"{form['q']:.2f}" for form in reversed(made.provenance["forms"]))
    outcome = "kept" if right == "fine" else "left out, since it is not clearly better"
    note = (
        "each criterion scored first (variant fine) was tried without examples, at more calls a row: "
        f"Q {value} against {other} on the training rows; "
    )
    assert note + outcome in report.notes
    assert note + outcome in made.provenance["notes"]
    assert made.provenance["cost"]["calls"] <= plan.calls
    # Embedded models try nothing dearer.
    compiler = Compiler(NoSearch())
    coarse = planned(compiler, js.Judge(js.ActiveCritic("coarse")), labels, None)
    embedded = planned(
        compiler, js.Judge(js.ActiveCritic()), labels, "local/qwen2.5-0.5b"
    )
    assert embedded.calls == coarse.calls


def test_a_budget_without_room_for_the_fine_variant_keeps_coarse_and_says_so(
    server: Any, compiled: Compiled, labels: Labels
) -> None:
    judge = js.Judge(
        js.ActiveCritic(explain="before", reading="said", task="Judge.", criteria=TWO)
    )
    # Probes, a coarse and a fine trial and zero-shot of 36 rows, 12 held-out rows by two judges and asked twice.
    least = 5 + 36 * (1 + 2 + 2) + 12 * 2 * 2 * 2
    for calls in (least - 1, least):
        server.forget()
        compiler = Compiler(options=CompileOptions(max_calls=calls))
        plan = planned(compiler, judge, labels, "openai/fake")
        made, report = compiled(labels, judge, max_calls=calls)
        notes = [note for note in report.notes if "variant fine" in note]
        assert [note in plan.notes for note in notes] == [calls < least]
        assert ("is not tried: that takes a budget of 281 calls" in notes[0]) == (
            calls < least
        )
        assert any(ask.step == "criteria" for ask in server.asks) == (calls == least)
        assert (
            made.method.saved_options()["variant"],
            report.heldout.reached.failed,
        ) == ("coarse", 0)
        assert len(server.asks) <= calls


@pytest.mark.parametrize("refined", [True, False])
def test_nothing_beside_method_and_search_where_nothing_is_to_be_refined(
    refined: bool, compiled: Compiled, labels: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[object] = []
    monkeypatch.setattr(
        "judgesmith.optimizers.learning.refine",
        lambda *given: fitted.append(given) or [],
    )
    judge = js.Judge(js.ActiveCritic("coarse", explain="before", reading="said"))
    made, _ = compiled(labels, judge, candidates=1, refine=refined)
    assert len(fitted) == refined
    assert [form["knowledge"] for form in made.provenance["forms"]] == (
        [True, False] if refined else []
    )
    plans = [
        planned(
            Compiler(options=CompileOptions(refine=one, heldout=SHARE)),
            judge,
            labels,
            None,
        ).calls
        for one in (True, False)
    ]
    assert (
        plans[0] - plans[1] == 2 * 36
    )  # the form that is tried with the inferred task, and without


# -- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "unreadable"),
    [(200, False), (330, False), (400, True)],
    ids=["few", "more", "unreadable"],
)
def test_a_budget_of_calls_is_kept_and_the_best_so_far_reported(
    calls: int,
    unreadable: bool,
    server: Any,
    fake: Any,
    compiled: Compiled,
    labels: Labels,
) -> None:
    if unreadable:  # every answer is asked for twice
        server.answer = lambda ask: (
            "Well."
            if ask.step == "score" and not ask.again
            else fake.judging(lambda a: int(a.mark[1:]))(ask)
        )
    judge, report = compiled(labels, candidates=8, budget=Budget(max_calls=calls))
    assert len(server.asks) <= calls
    assert report.stopped is not None
    assert re.fullmatch(
        r"the budget ran out; [1-9]\d* of 11 candidates were tried", report.stopped
    )
    assert any(report.stopped in note for note in report.notes)
    assert report.heldout.objective.failed == 0
    assert judge.provenance["cost"]["calls"] <= calls


def test_held_out_rows_of_a_variant_that_asks_twice_are_paid_for(
    server: Any, fake: Any, compiled: Compiled, labels: Labels, human: Any
) -> None:
    """What a plan says of the held-out rows and what is set aside for them are the same, and enough."""

    def answer(ask: Any) -> Any:  # only the fine variant's second step is right
        if ask.step == "criteria":
            return CRITERIA
        return fake.judging(
            lambda a: human[a.mark] if "criteria_scores" in a.text else 50
        )(ask)

    server.answer = answer
    judge = js.Judge(
        js.ActiveCritic(
            "coarse", explain="before", reading="said", task="Judge.", criteria=TWO
        )
    )
    search = js.OptunaSearch(trials=40, startup=8, max_demos=2, variants=["fine"])
    compiler = Compiler(search, CompileOptions(heldout=SHARE))
    assert planned(compiler, judge, labels, None).heldout_calls == 12 * (1 + 2)
    made, report = compiled(
        labels, judge, optimizer=search, budget=Budget(max_calls=560)
    )
    assert isinstance(made.method, js.ActiveCritic)
    assert made.method.options.variant == "fine"
    assert report.stopped is not None
    assert report.heldout.objective.failed == 0
    assert report.heldout.q == pytest.approx(3.0)
    assert len(server.asks) <= 560


def test_a_budget_is_shared_by_the_folds(
    server: Any, compiled: Compiled, labels_of: Any
) -> None:
    labels = labels_of(12, 2, lambda n: n * 37 % 101)
    _, report = compiled(labels, candidates=8, budget=Budget(max_calls=700))
    assert len(server.asks) <= 700
    assert report.stopped is not None
    assert len(held_out(report)) == 24


def test_a_teacher_is_paid_from_the_same_budget(
    server: Any, compiled: Compiled, labels: Labels
) -> None:
    teacher = js.language_model(
        "openai/teacher", connection=js.Connection(api_base=server.base)
    )
    _, report = compiled(
        labels, candidates=8, teacher=teacher, budget=Budget(max_calls=300)
    )
    assert any(ask.body["model"] == "teacher" for ask in server.judged)
    assert len(server.asks) <= 300
    assert report.usage.calls == len(server.asks)
    assert teacher.meter.max_calls is None


def test_folds_give_way_to_a_budget_and_the_plan_says_what_they_cost(
    server: Any, compiled: Compiled, labels: Labels
) -> None:
    judge = js.Judge(js.ActiveCritic("coarse", explain="before"))
    search = js.CorrelationRandomSearch(candidates=2)
    held, folds = (
        planned(Compiler(search, CompileOptions(heldout=share)), judge, labels, None)
        for share in (SHARE, None)
    )
    assert (held.folds, folds.folds, folds.runs) == (
        0,
        4,
        1,
    )
    assert 4 * held.calls < folds.calls
    assert (
        f"--heldout 0.25 estimates it on 12 rows, with up to {held.calls} calls"
        in folds.notes[-1]
    )
    assert not any("folds" in note for note in held.notes)
    _, report = compiled(labels, judge, heldout=None, max_calls=folds.calls - 1)
    assert (report.folds, report.heldout_rows, report.stopped) == (0, 12, None)
    enough = Compiler(search, CompileOptions(max_calls=folds.calls))
    assert planned(enough, judge, labels, None).folds == 4
    note = f"agreement is estimated on 12 held-out rows: folds would take up to {folds.calls:,} calls"
    too_few = Compiler(search, CompileOptions(max_calls=folds.calls - 1))
    assert note in planned(too_few, judge, labels, None).notes


@pytest.mark.parametrize("calls", [1, 110])
def test_a_budget_that_is_too_small_says_so(
    calls: int, server: Any, compiled: Compiled, labels: Labels
) -> None:
    with pytest.raises(
        BudgetError,
        match=rf"budget of {calls} calls was used up before .* up to \d+ calls",
    ):
        compiled(labels, candidates=8, budget=Budget(max_calls=calls))
    assert len(server.asks) <= calls


def test_a_budget_of_money(server: Any, compiled: Compiled, labels: Labels) -> None:
    lm = js.language_model(
        "openai/fake", connection=js.Connection(api_base=server.base)
    )
    with pytest.raises(OptionError, match="the price of openai/fake is unknown"):
        compiled(labels, lm=lm, budget=Budget(max_cost=1.0))
    assert server.asks == []
    assert (
        lm.meter.max_cost is None
    )  # and the model can be used without a limit afterwards
    with pytest.raises(OptionError, match="the price of openai/fake is unknown"):
        compiled(
            labels, lm="openai/gpt-4o-mini", teacher=lm, budget=Budget(max_cost=1.0)
        )
    where = js.Connection(api_base=server.base, concurrency=4)
    free = js.language_model("openai/gpt-4o-mini", connection=where)
    _, whole = compiled(labels, candidates=8, lm=free)
    assert whole.stopped is None
    bound = js.language_model("openai/gpt-4o-mini", connection=where)
    limit = free.meter.cost * 0.7
    _, report = compiled(labels, candidates=8, lm=bound, budget=Budget(max_cost=limit))
    assert report.stopped is not None
    assert len(report.candidates) < len(whole.candidates)
    assert 0 < bound.meter.cost <= limit * 1.05  # the calls in flight when it ran out


@pytest.mark.parametrize(
    ("judge", "options"),
    [
        (js.Judge(js.ActiveCritic()), {}),
        (js.Judge(js.ActiveCritic("coarse")), {}),
        (js.Judge(js.ActiveCritic("vanilla", explain="before")), {"optimizer": "none"}),
        (js.Judge(js.ActiveCritic("fine", explain="before")), {"candidates": 1}),
    ],
    ids=["auto", "coarse", "vanilla", "fine"],
)
@pytest.mark.parametrize("share", [SHARE, None], ids=["held out", "folds"])
def test_the_plan_is_an_upper_bound(
    judge: js.Judge,
    options: dict[str, Any],
    share: float | None,
    server: Any,
    compiled: Compiled,
    labels: Labels,
) -> None:
    search: Any = NoSearch()
    if "optimizer" not in options:
        search = js.CorrelationRandomSearch(candidates=options.get("candidates", 2))
    compiler = Compiler(search, CompileOptions(heldout=share))
    plan = planned(compiler, judge, labels, "openai/fake")
    assert server.asks == []
    made, _ = compiled(labels, judge, heldout=share, **options)
    assert made.provenance["cost"]["calls"] <= plan.calls
    # Folds of what learns nothing are free, and of two forms that are planned this model answers one.
    times = 3 if plan.parts.free else 2
    assert plan.calls < times * made.provenance["cost"]["calls"] + 20


# -- the same again ---------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_artifact_and_another_one_another_split(
    server: Any,
    compiled: Compiled,
    labels: Labels,
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm = js.language_model(
        "openai/fake", connection=js.Connection(api_base=server.base)
    )
    first, _ = compiled(labels, lm=lm)
    calls = len(server.asks)
    again, report = compiled(labels, lm=lm)  # an object that was used before
    assert len(server.asks) == calls  # every call came from the disk
    assert report.usage.calls == 0
    assert dateless(again) == dateless(first)
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "other.sqlite"))
    anew, _ = compiled(labels)
    assert len(server.asks) == 2 * calls
    assert dateless(anew) == dateless(first)
    other, _ = compiled(labels, seed=1)
    assert other.provenance["seen"] != first.provenance["seen"]
    assert len(other.provenance["seen"]) == len(first.provenance["seen"]) == 36


# -- the report -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "told"), [(24, "12 rows that were drawn"), (48, "12 of the 12 rows")]
)
def test_rows_that_suggest_chose_are_told(
    chosen: int, told: str, compiled: Compiled, labels: Labels
) -> None:
    rows = tuple(
        replace(row, suggested=n < chosen) for n, row in enumerate(labels.rows)
    )
    judge, report = compiled(replace(labels, rows=rows), optimizer="none")
    assert any(told in note for note in report.notes)
    assert judge.outcome.sureness is not None
    assert judge.outcome.sureness.rows == {24: 24, 48: 48}[chosen]


def test_intervals_for_other_systems_and_the_way_to_a_rater(
    server: Any, fake: Any, compiled: Compiled, labels: Labels, human: Any
) -> None:
    server.answer = fake.judging(
        lambda ask: (human[ask.mark] + int(ask.mark[1:]) * 37 % 101) / 2
    )
    said = [
        {labels.aspect: (score, 0.9 * score + n % 11)}
        for n, score in enumerate(labels.scores.tolist())
    ]
    labels = replace(
        labels,
        rows=tuple(
            replace(r, ratings=one) for r, one in zip(labels.rows, said, strict=True)
        ),
    )
    _, report = compiled(labels, optimizer="none")
    judge, wide = compiled(labels, optimizer="none", new_systems=True)
    assert wide.heldout.low < report.heldout.low
    assert report.heldout.high < wide.heldout.high
    assert str(wide.heldout).endswith("|new-systems")
    assert "and systems" in wide.table().title
    assert judge.provenance["way"] == wide.way == report.way
    assert 0 < wide.way["value"] < 1
    assert wide.way["raters"] == 2
    with pytest.raises(OptionError, match="3 named systems"):
        compiled(
            replace(
                labels, rows=tuple(replace(row, system=None) for row in labels.rows)
            ),
            new_systems=True,
        )


def test_the_report_adds_up(
    server: Any, fake: Any, compiled: Compiled, labels: Labels, human: Any
) -> None:
    server.answer = fake.judging(
        lambda ask: (human[ask.mark] * 3 + int(ask.mark[1:]) * 37 % 101) / 4
    )
    judge, report = compiled(labels)
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["calls"] == len(server.asks) == report.usage.calls
    assert told["tokens"] == told["prompt_tokens"] + told["completion_tokens"] > 0
    assert told["train_rows"] + told["heldout_rows"] == 48
    assert told["heldout"]["low"] <= told["heldout"]["q"] <= told["heldout"]["high"]
    assert told["selected"]["candidate"] in {c["candidate"] for c in told["candidates"]}
    assert told["selected"]["q_corrected"] <= 3
    assert told["selected"] == judge.provenance["selected"]
    assert Counter(c["candidate"] for c in told["candidates"]).most_common(1)[0][1] == 1
    assert any("only 3 documents" in note for note in told["notes"])
