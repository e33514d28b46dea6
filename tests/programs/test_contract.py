"""What holds for every judge, whatever its method."""

import ast
import math
from pathlib import Path
from typing import Any, Literal

import dspy
import pytest
from judges import JUDGES, Make

from judgesmith.errors import ArtifactError, LeakError, OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.method import Cost, Method
from judgesmith.programs.models.lm import LanguageModel
from judgesmith.programs.models.transport import Request
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.programs.registry import methods
from judgesmith.programs.simple import judge
from judgesmith.signatures.values import Item, Usage, Verdict
from judgesmith.testing import JudgeContract
from judgesmith.testing.judges import obliging
from judgesmith.testing.scripted import scripted_models


def test_the_core_compares_with_no_name_of_a_part() -> None:
    """What a part is, fits or saves it declares; code that asks for its name would have to know all of them."""
    names = set(methods.names())
    root = Path(__file__).resolve().parents[2]
    core = [*(root / "programs").glob("*.py"), *(root / "optimizers").rglob("*.py")]
    core += [
        path
        for room in ("models", "prompting")
        for path in (root / "programs" / room).glob("*.py")
    ]
    wrong = []
    for path in core:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asked: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "methods.get":
                asked = node.args
            wrong += [
                f"{path.name}:{node.lineno}"
                for a in asked
                if isinstance(a, ast.Constant) and a.value in names
            ]
    assert wrong == []


class TestEveryJudge(JudgeContract):
    @pytest.fixture(params=JUDGES)
    def make(self, request: pytest.FixtureRequest) -> Make:
        """make(lm=…, scale=…): a new judge of one kind."""
        made: Make = JUDGES[request.param]
        return made


@judge("printable", about="would an editor print it?")
class Printable(dspy.Signature):  # type: ignore[misc]
    """Decide whether an editor would print the text."""

    source: str = dspy.InputField()
    output: str = dspy.InputField()
    reason: str = dspy.OutputField()
    printed: Literal["no", "yes"] = dspy.OutputField()


class TestOfASignature(JudgeContract):
    part = Printable
    aspect = None


# Each of these judges breaks one promise; the suite finds it.


class _Forgetful(Printable):
    """Counts nothing: the base counts for it, so that no test needs to fail."""

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        return (await super().judge(item, lm)).model_copy(update={"usage": Usage()})


class _Talkative(Printable):
    """Makes two calls, and announces one."""

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        await super().judge(item, lm)
        return await super().judge(item, lm)


class _Leaking(DirectScorer):
    """Writes its demonstrations into the prompt by itself."""

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        shown = "\n".join(str(demo["output"]) for demo in self.scorer.predict.demos)
        await lm.complete(
            Request(
                [{"role": "user", "content": f"{shown}\n{item.output}\nScore it."}], 10
            )
        )
        return await super().judge(item, lm)

    def cost(self) -> Cost:
        return Cost(2)


class _Silent(DirectScorer):
    """Makes two calls, counts both, and gives one of the answers."""

    def cost(self) -> Cost:
        return Cost(2)

    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        first = await super().judge(item, lm)
        other = Item(f"{item.output} Once more.", item.source)
        second = await super().judge(other, lm)
        return second.model_copy(update={"usage": first.usage + second.usage})


class _ByText(DirectScorer):
    """Names its prompts after the text."""

    def prompts(self, item: Item) -> Any:
        prompts = super().prompts(item)
        return {f"{name} of {len(item.output)}": one for name, one in prompts.items()}


class _Doubling(Printable):
    async def judge(self, item: Item, lm: LanguageModel) -> Verdict:
        verdict = await super().judge(item, lm)
        return verdict.model_copy(update={"percent": 2 * verdict.percent + 150})


@pytest.mark.parametrize(
    ("part", "test", "error"),
    [
        (
            _Leaking,
            JudgeContract.test_no_prompt_that_is_sent_shows_the_rows_own_document,
            LeakError,
        ),
        (
            _Talkative,
            JudgeContract.test_what_was_sent_is_reported_and_was_announced,
            AssertionError,
        ),
        (
            _Silent,
            JudgeContract.test_what_was_sent_is_reported_and_was_announced,
            AssertionError,
        ),
        (
            _Doubling,
            JudgeContract.test_rows_get_verdicts_in_their_order_on_the_users_scale,
            AssertionError,
        ),
    ],
)
def test_the_suite_finds_a_judge_that_breaks_a_promise(
    part: type[Method], test: Any, error: type[Exception]
) -> None:
    with scripted_models() as scripted, pytest.raises(error):
        test(JudgeContract(), lambda **given: Judge(part(), **given), scripted)


def test_usage_is_reported_for_a_judge_that_does_not() -> None:
    with scripted_models() as scripted:
        lm, _ = scripted(obliging())
        verdict = Judge(_Forgetful(), lm=lm).score("A source.", "An output.")
        assert (verdict.failure, verdict.usage.calls) == (None, 1)
        JudgeContract().test_what_was_sent_is_reported_and_was_announced(
            lambda **given: Judge(_Forgetful(), **given), scripted
        )


def test_an_answer_that_dspy_cannot_read_is_nan_with_a_reason() -> None:
    with scripted_models() as scripted:
        lm, _ = scripted(lambda _: "I would rather not.")
        verdict = Judge(Printable(), lm=lm).score("A source.", "An output.")
        assert math.isnan(verdict.score)
        assert "cannot be read" in (verdict.failure or "")
        assert verdict.raw
        assert verdict.usage.calls == len(verdict.raw)
        assert list(Judge(Printable()).previews(Item("An output.", "A source."))) == [
            "first call"
        ]


def test_a_plain_predictors_demonstrations_of_the_rows_document_are_left_out_and_not_saved(
    tmp_path: Path,
) -> None:
    with scripted_models() as scripted:
        lm, transport = scripted(obliging())
        judge = Judge(Printable(), lm=lm)
        judge.method.predict.demos = [
            {
                "source": "S.",
                "output": "This marked text is of g.",
                "reason": "r",
                "printed": "no",
                "group": "g",
            }
        ]
        verdicts = list(
            judge.score_many([Item("Fine.", "New.", group=group) for group in "gh"])
        )
        assert [v.failure for v in verdicts] == [None, None]
        shown = [
            any("This marked text" in m["content"] for m in r.messages)
            for r in transport.requests
        ]
        assert sorted(shown) == [False, True]
        with pytest.raises(ArtifactError, match=r"plain dspy\.Predict"):
            judge.save(tmp_path / "judge.json")


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        (dspy.Signature("question -> score: bool"), "'question'"),
        (dspy.Signature("output -> words: str"), "got 0"),
        (dspy.Signature("output -> a: bool, b: bool"), "got 2"),
    ],
)
def test_a_signature_that_is_not_a_judges_is_refused(
    signature: Any, reason: str
) -> None:
    with pytest.raises(OptionError, match=reason):
        judge("refused", about="nothing")(signature)


def test_names_of_prompts_that_depend_on_the_text_are_told() -> None:
    test = JudgeContract.test_a_text_stays_inside_its_tags_and_a_documents_own_demonstration_out_of_its_prompt
    with pytest.raises(AssertionError, match="may not depend on the text"):
        test(JudgeContract(), lambda **given: Judge(_ByText("fluency"), **given))


def test_answers_of_a_method_that_keeps_no_account_are_kept() -> None:
    with scripted_models() as scripted:
        lm, transport = scripted(obliging(), grammar=True)
        verdict = Judge(_Forgetful(), lm=lm).score("A source.", "An output.")
    assert verdict.usage.calls == len(verdict.raw) > 0
    assert transport.requests
