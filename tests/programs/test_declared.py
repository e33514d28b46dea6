"""What every judge method declares reaches the judge, its settings and the artifact, and is refused elsewhere."""

import inspect
import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.errors import ArtifactError, OptionError
from judgesmith.parts import from_text
from judgesmith.programs import artifact, loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.active_critic.scoring import TaskContext
from judgesmith.programs.aspects import aspects
from judgesmith.programs.capabilities import Choice, HasChoices, HasForms, InfersTask
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Method
from judgesmith.programs.one_aspect import OneAspect
from judgesmith.programs.openlgauge.judge import Member, OpeNLGauge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.registry import methods
from judgesmith.signatures.values import Criterion

CLARITY, TRUTH = (
    Criterion("Clarity", "It is easy to follow."),
    Criterion("Truth", "It is true."),
)
#: Those of the package: other tests register judges of their own.
JUDGES = {
    kind: part
    for kind, part in methods.parts().items()
    if part.__module__.startswith("judgesmith.")
}
OPTIONS = [
    (kind, name) for kind, part in JUDGES.items() for name in part.Options.model_fields
]
#: Values of options whose type does not say what they may be.
OTHERS: dict[str, Any] = {
    "family": "dialogue",
    "material": "context",
    "annotators": ["openai/a@0.5"],
    "kinds": ["likelihood"],
    "signals": ["gpt4=1..5"],
    "forms": ["words", "percent"],
    "models": ["openai/other"],
    "of": "g-eval",
}
#: Options that go only with others.
WITH = {"combine": {"variant": "fine"}}


def other(part: type[Method], name: str) -> Any:
    """A value of an option that is not its default."""
    if name in OTHERS:
        return OTHERS[name]
    field = part.Options.model_fields[name]
    kinds = [
        k
        for k in (field.annotation, *get_args(field.annotation))
        if get_origin(k) is Literal
    ]
    if kinds:
        return next(
            value
            for kind in kinds
            for value in get_args(kind)
            if value != field.default
        )
    if isinstance(field.default, bool):
        return not field.default
    if isinstance(field.default, int):
        return field.default - 1 if field.default else 1
    return field.default / 2 if isinstance(field.default, float) else "openai/other"


def make(part: type[Method], **options: Any) -> Judge:
    name = options.pop("aspect", "Clarity")
    kind: Any = part
    # What is to be inferred is not stated.
    criteria = [Criterion(name, "")] if options.get("infer") else [CLARITY]
    return Judge(kind(aspect=name, criteria=criteria, **options))


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
def test_an_option_reaches_the_judge_its_settings_and_the_artifact(
    kind: str, name: str, tmp_path: Path
) -> None:
    part = methods.get(kind)
    options = WITH.get(name, {})
    plain, judge = (
        make(part, **options),
        make(part, **options, **{name: other(part, name)}),
    )
    changed = {
        n
        for n, value in judge.method.settings().items()
        if plain.method.settings()[n] != value
    }
    assert changed == {name}
    judge.save(tmp_path / "judge.json")
    loaded = loading.build(artifact.read(tmp_path / "judge.json"))
    assert loaded.method.settings() == judge.method.settings()
    assert (
        artifact.fingerprint(loaded)
        == artifact.fingerprint(judge)
        != artifact.fingerprint(plain)
    )
    # The same value as the text of NAME=VALUE.
    value = other(part, name)
    text = (
        ",".join(map(str, value))
        if isinstance(value, list)
        else "no"
        if value is False
        else str(value)
    )
    read = make(
        part, **options, **{name: from_text(part.Options.model_fields[name], text)}
    )
    assert read.method.settings() == judge.method.settings()


@pytest.mark.parametrize(("kind", "name"), OPTIONS)
def test_an_option_is_refused_where_it_would_do_nothing(
    kind: str, name: str, tmp_path: Path
) -> None:
    value = other(methods.get(kind), name)
    for lacking in (p for p in JUDGES.values() if name not in p.Options.model_fields):
        with pytest.raises(
            OptionError, match=f"{lacking.__name__} has no option '{name}'"
        ):
            lacking(**{name: value})
        with pytest.raises(
            OptionError, match=f"--method {lacking.kind} has no option '{name}'"
        ):
            lacking.from_options({name: value}, labels_aspect="fluency")
        saved = artifact.to_dict(make(lacking))
        saved["program"]["options"][name] = value
        (tmp_path / "judge.json").write_text(json.dumps(saved))
        with pytest.raises(ArtifactError, match=f"unknown option '{name}'"):
            loading.build(artifact.read(tmp_path / "judge.json"))


@pytest.mark.parametrize("part", methods.parts().values(), ids=lambda part: part.kind)
def test_how_it_is_made_can_be_read(part: type[Method]) -> None:
    shown = inspect.signature(part).parameters
    assert set(part.Options.model_fields) <= set(shown)
    assert {"task", "criteria"} <= set(shown)
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in shown.values())


def test_options_are_chosen_together_and_checked() -> None:
    method = DirectScorer("fluency")
    copy = method.with_(reading="said")
    assert (method.options.reading, copy.options.reading) == ("auto", "said")
    with pytest.raises(
        OptionError,
        match="DirectScorer, reading: Input should be 'said', 'expected' or 'auto'; got 'guessed'",
    ):
        method.choose(reading="guessed")
    method.choose(reading="expected")
    assert method.settings() == {
        "kind": "direct",
        "aspect": "fluency",
        "material": "output",
        "reading": "expected",
    }
    with pytest.raises(
        OptionError, match=r"no option 'readin' \(did you mean 'reading'\?\)"
    ):
        DirectScorer("fluency", readin="said")
    with pytest.raises(
        OptionError,
        match=r"a judge has a model and a scale: Judge\(DirectScorer\(…\), lm=…\)",
    ):
        DirectScorer("fluency", lm="openai/none")
    with pytest.raises(AttributeError, match="no attribute 'beam'"):
        method.options.beam  # noqa: B018
    # Together they make sense, one after the other they would not.
    critic = ActiveCritic("fine", combine="mean", criteria=[CLARITY])
    assert critic.with_(variant="coarse", combine="os-e").options.variant == "coarse"
    with pytest.raises(OptionError, match="only the fine variant"):
        critic.choose(variant="coarse")


# From a command line or a settings file ------------------------------------------------------------------------------


def test_an_aspect_comes_from_the_labels_the_library_or_the_users_words() -> None:
    by_name = DirectScorer.from_options({}, labels_aspect="fluency")
    assert by_name.options.aspect == "fluency"
    assert (
        DirectScorer.from_options({}, labels_aspect="human_score").options.aspect
        == "overall"
    )
    named = OpeNLGauge.from_options(
        {"rules": "no"}, labels_aspect="score", library_aspect="summarization/coherence"
    )
    known = aspects().find("summarization/coherence")
    assert (named.options.aspect, named.options.low, named.options.rules) == (
        "coherence",
        known.low,
        False,
    )
    own = DirectScorer.from_options(
        {}, labels_aspect="score", criteria=[CLARITY], task="Answers are judged."
    )
    assert (own.options.aspect, own.knowledge.criteria, own.knowledge.description) == (
        "Clarity",
        (CLARITY,),
        "Answers are judged.",
    )


@pytest.mark.parametrize(
    ("method", "words", "problem"),
    [
        ("direct", {}, "which aspect is judged"),
        ("direct", {"labels_aspect": "flunecy"}, "did you mean"),
        ("direct", {"criteria": [CLARITY, TRUTH]}, "one aspect is judged at a time"),
        ("pairs", {"criteria": [CLARITY], "library_aspect": "fluency"}, "give one"),
        (
            "active-critic",
            {"labels_aspect": "fluency", "library_aspect": "fluency"},
            "--as is for",
        ),
        ("active-critic", {}, "say what is judged"),
        ("active-critic fine", {"task": "T."}, "give --criteria FILE"),
    ],
)
def test_what_a_method_cannot_be_told_is_said(
    method: str, words: dict[str, Any], problem: str
) -> None:
    kind, _, variant = method.partition(" ")
    with pytest.raises(OptionError, match=problem):
        methods.get(kind).from_options(
            {"variant": variant} if variant else {}, **({"labels_aspect": None} | words)
        )


# What compiling asks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part", [p for p in methods.parts().values() if issubclass(p, OneAspect)]
)
def test_a_judge_of_one_aspect_leaves_nothing_to_infer_or_to_choose(
    part: type[Method],
) -> None:
    method = part("fluency")
    assert not isinstance(method, HasForms | HasChoices)
    if isinstance(method, InfersTask):
        assert method.inquiry() is None


def test_forms_come_in_the_order_of_preference() -> None:
    def forms(**options: Any) -> list[tuple[str, str]]:
        found = ActiveCritic(**options).forms(logprobs=options.get("reading") != "said")
        return [(form.values["explain"], form.values["reading"]) for form in found]

    assert forms() == [
        ("before", "expected"),
        ("after", "expected"),
        ("before", "said"),
    ]
    assert forms(explain="none") == [("none", "expected"), ("none", "said")]
    assert forms(reading="said") == [("before", "said"), ("after", "said")]
    assert [
        form.values["reading"] for form in ActiveCritic().forms(logprobs=False)
    ] == ["said", "said"]
    with pytest.raises(OptionError, match="no log-probabilities"):
        ActiveCritic(reading="expected").forms(logprobs=False)


CRITICS = st.tuples(
    st.sampled_from(["vanilla", "coarse", "fine"]),
    st.sampled_from(["", "Summaries are judged."]),
    st.sampled_from([(), (CLARITY,), (CLARITY, TRUTH)]),
    st.booleans(),
    st.booleans(),
)


@given(CRITICS, st.sets(st.sampled_from(["vanilla", "coarse", "fine"])), st.data())
def test_whatever_a_search_chooses_is_a_judge(
    drawn: Any, variants: set[str], data: st.DataObject
) -> None:
    variant, task, criteria, use_task, use_criteria = drawn
    critic = ActiveCritic(
        variant,
        task=task,
        criteria=criteria,
        use_task=use_task,
        use_criteria=use_criteria or variant == "fine",
    )
    made: dict[str, Any] = {}
    choices = critic.choices(variants=sorted(variants))
    space = choices.space()
    for choice in space:
        if choice.open(made):
            made[choice.name] = data.draw(st.sampled_from(choice.values))
    chosen = choices.chosen(made)
    assert chosen is not critic
    assert chosen.cost().calls_per_row <= choices.most_calls_per_row()
    assert chosen.options.variant == made.get("variant", critic.options.variant)
    if critic.knowledge.criteria:
        assert chosen.knowledge.criteria
        assert set(chosen.knowledge.criteria) <= set(critic.knowledge.criteria)
    if made.get("use_task") is False:
        assert not TaskContext.of(chosen.knowledge, chosen.options).task
    # The judge's own values stand first: chosen throughout, nothing changes.
    own = choices.chosen({choice.name: choice.values[0] for choice in space})
    assert own.settings() == critic.settings()
    assert own.knowledge.criteria == critic.knowledge.criteria


def test_a_choice_is_open_where_the_others_give_it_an_effect() -> None:
    choice = Choice(
        "criterion 1",
        (True, False),
        {"variant": ("coarse", "fine"), "use_criteria": (True,)},
    )
    assert choice.open({})
    assert choice.open({"variant": "fine"})
    assert choice.open({"use_criteria": True})
    assert not choice.open({"variant": "vanilla"})
    assert not choice.open({"variant": "fine", "use_criteria": False})


def test_what_was_fitted_comes_back_as_numbers() -> None:
    judge = OpeNLGauge(
        "fluency", annotators=["openai/a", Member("openai/b", 0.5, 0.25)]
    )
    assert len(judge.refiners()) == 1
    assert OpeNLGauge("fluency").refiners() == []
    fitted = json.loads(json.dumps(judge.fitted()))
    fitted["ensemble"][0]["weight"] = 0.75
    judge.load_fitted("ensemble", fitted["ensemble"])
    assert [m.weight for m in judge.options.annotators] == [0.75, 0.25]
    for part in JUDGES.values():
        saved = artifact.to_dict(make(part)) | {"horoscope": {}}
        with pytest.raises(ArtifactError, match="takes no horoscope"):
            artifact.Artifact.of(saved)
