"""Searches over DSPy programs that are no judges, from plain examples."""

import re
from typing import Any

import dspy
import pytest
from dspy.teleprompt import SIMBA, BootstrapFewShot

import judgesmith as js
from judgesmith.errors import LeakError, OptionError


class Rating(dspy.LM):  # type: ignore[misc]
    """A model that reads a text's mark: with demonstrations it repeats the mark, without it is half at random."""

    def __init__(self) -> None:
        super().__init__("rating/m", cache=False)
        self.prompts: list[str] = []

    def forward(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        from litellm import ModelResponse

        self.prompts.append("\n".join(m["content"] for m in messages))
        mark = int(re.findall(r"mark (\d+)", messages[-1]["content"])[-1])
        said = mark if len(messages) > 2 else mark * 37 % 101 / 4 + mark / 4
        text = f"[[ ## reasoning ## ]]\nIt says {mark}.\n\n[[ ## stars ## ]]\n{said}\n\n[[ ## completed ## ]]"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return ModelResponse(choices=[choice], usage={"prompt_tokens": 1, "completion_tokens": 1}, model="rating/m")

    async def aforward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        return self.forward(prompt, messages, **options)


class Reviewer(dspy.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.rate = dspy.ChainOfThought("review -> stars: float")

    def forward(self, review: str) -> dspy.Prediction:
        return self.rate(review=review)


def rows(n: int = 24, start: int = 0) -> list[dspy.Example]:
    """Reviews of n // 3 books; people's stars are the mark, which is in the text."""
    return [
        dspy.Example(
            review=f"Book {i // 3}, " + f"word{i} " * (4 + i % 5) + f"mark {i * 29 % 101}",
            human=i * 29 % 101,
            book=i // 3,
        ).with_inputs("review")
        for i in range(start, start + n)
    ]


@pytest.fixture(autouse=True)
def model() -> Any:
    lm = Rating()
    with dspy.context(lm=lm, num_threads=4):
        yield lm


def search(**given: Any) -> js.CorrelationRandomSearch:
    fields = {"score_of": "stars", "human_of": "human", "group_of": "book"}
    return js.CorrelationRandomSearch(**{**fields, "candidates": 3, "max_demos": 3, **given})


def test_any_program_is_compiled_from_plain_examples(model: Rating, tmp_path: Any) -> None:
    optimizer, student = search(), Reviewer()
    program = optimizer.compile(student, trainset=rows())
    assert type(program) is Reviewer and program is not student and program._compiled
    assert student.predictors()[0].demos == []
    assert optimizer.record is not None
    assert optimizer.record.selected.agreement.q == pytest.approx(3.0)  # it repeats the mark: r = rho = tau = 1
    assert optimizer.record.zero_shot.percents.std() > 0 and optimizer.record.selected.demos > 0
    assert {c["candidate"] for c in program.candidate_programs} >= {"zero-shot", "labels only", "bootstrapped"}
    assert program(review="A new book, mark 12").stars == 12
    program.save(tmp_path / "program.json")
    fresh = Reviewer()
    fresh.load(tmp_path / "program.json")
    assert fresh(review="A new book, mark 12").stars == 12
    assert all(
        set(demo.keys()) <= {"review", "reasoning", "stars", "augmented"} for demo in fresh.predictors()[0].demos
    )


def test_bootstrapped_demonstrations_are_what_the_program_said(model: Rating) -> None:
    optimizer = search()
    optimizer.compile(Reviewer(), trainset=rows())
    assert optimizer.record is not None
    (found,) = (t for t in optimizer.record.tried if t.candidate.name == "bootstrapped")
    (predictor,) = found.program.taught()
    assert len(predictor.demos) == 3
    for demo in predictor.demos:
        assert re.fullmatch(r"It says \d+\.", demo["reasoning"]) and demo["augmented"]
    (labels,) = (t for t in optimizer.record.tried if t.candidate.name == "labels only")
    for demo in labels.program.taught()[0].demos:
        assert f"mark {demo['stars']:.0f}" in demo["review"]  # the human score, in the field that is the score


def test_no_row_is_run_with_its_own_group_in_the_prompt(model: Rating) -> None:
    search().compile(Reviewer(), trainset=rows())
    shown = 0
    for prompt in model.prompts:
        *others, own = re.findall(r"Book (\d+),", prompt)
        shown += len(others)
        assert own not in others
    assert shown > 100


def test_rows_of_nearly_the_same_text_are_kept_apart_without_a_group(model: Rating) -> None:
    train = rows()
    twin = train[0].review
    train.append(dspy.Example(review=twin + "!", human=50, book=99).with_inputs("review"))
    search(group_of=None, candidates=4, max_demos=8).compile(Reviewer(), trainset=train)
    for prompt in model.prompts:
        *others, own = re.findall(r"(Book \d+,[^\n]*mark \d+)", prompt)
        if own == twin:
            assert twin not in others


def test_functions_say_what_is_read(model: Rating) -> None:
    optimizer = search(
        score_of=lambda said: 100 - said.stars, human_of=lambda row: -row.human, group_of=lambda row: f"b{row.book}"
    )
    optimizer.compile(Reviewer(), trainset=rows(12), valset=rows(12, start=12))
    assert optimizer.record is not None and len(optimizer.record.scored.percents) == 12
    with pytest.raises(LeakError):
        search().compile(Reviewer(), trainset=rows(12), valset=rows(12, start=11))


def test_what_is_missing_is_said(model: Rating) -> None:
    with pytest.raises(OptionError, match=r"score_of="):
        js.CorrelationRandomSearch().compile(Reviewer(), trainset=rows())
    with pytest.raises(OptionError, match="no 'score'; there are: reasoning, stars"):
        search(score_of="score").compile(Reviewer(), trainset=rows())
    with pytest.raises(OptionError, match="no 'people'"):
        search(human_of="people").compile(Reviewer(), trainset=rows())
    with pytest.raises(OptionError, match="with_inputs"):
        search().compile(Reviewer(), trainset=[dspy.Example(review="x", human=1, book=1)])
    with pytest.raises(OptionError, match="no score on any row"):
        search(score_of=lambda said: said.nothing).compile(Reviewer(), trainset=rows())


# The objective over DSPy's own evaluation, and as a stand-in for its optimizers


def evaluated(program: Any, devset: list[dspy.Example]) -> Any:
    evaluate = dspy.Evaluate(
        devset=devset, metric=lambda row, said, trace=None: said.stars, num_threads=2, display_progress=False
    )
    return evaluate(program)


def test_agreement_guides_stock_optimizers(model: Rating) -> None:
    train = rows(36)
    fields = {"score_of": "stars", "human_of": "human", "group_of": "book"}
    metric = js.Agreement(**fields, panel=evaluated(Reviewer(), train))
    dspy.GEPA(metric, auto="light", reflection_lm=model)  # its signature is the one that GEPA asks for
    simba = SIMBA(metric=metric, bsize=12, num_candidates=2, max_steps=1, max_demos=2, num_threads=1)
    simba.strategies = simba.strategies[:1]
    assert type(simba.compile(Reviewer(), trainset=train, seed=0)) is Reviewer
    few = BootstrapFewShot(metric=metric, metric_threshold=0.6, max_bootstrapped_demos=2, max_labeled_demos=0)
    assert len(few.compile(Reviewer(), trainset=train).predictors()[0].demos) == 2
    stock = dspy.BootstrapFewShotWithRandomSearch(
        js.Agreement(**fields, scale=(0, 100)), max_bootstrapped_demos=2, max_labeled_demos=2, num_candidate_programs=1
    )
    best = stock.compile(Reviewer(), trainset=train)
    assert best.candidate_programs[0]["score"] == 300 > best.candidate_programs[-1]["score"]
