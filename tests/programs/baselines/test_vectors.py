"""BERTScore and MoverScore: values by hand, by a tiny BERT of random weights, and by a tiny language model."""

import math
from pathlib import Path
from typing import Any

import pytest
from reading_stand_ins import Letters

from judgesmith.errors import MissingExtraError, ModelError, OptionError
from judgesmith.programs.baselines.vectors import (
    BertScore,
    BertScoreLM,
    Embedded,
    MoverScore,
    bertscore,
    idf_weights,
    moverscore,
)
from judgesmith.programs.readings.reader import Ability

RIGHT, UP, SLANTED = (1.0, 0.0), (0.0, 1.0), (0.6, 0.8)


def test_bertscore_by_hand() -> None:
    output = Embedded.of([1, 2], [RIGHT, UP])
    other = Embedded.of([1, 3, 4], [RIGHT, SLANTED, (5.0, 0.0)])  # lengths do not count
    # cosines: RIGHT 1, .6, 1; UP 0, .8, 0. P = (1 + .8) / 2, R = (1 + .8 + 1) / 3
    precision, recall, f1 = bertscore(output, other)
    assert (precision, recall) == pytest.approx((0.9, 2.8 / 3))
    assert f1 == pytest.approx(2 * 0.9 * (2.8 / 3) / (0.9 + 2.8 / 3))


def test_rare_tokens_weigh_more() -> None:
    weight = idf_weights([[1, 1, 2], [1, 3], [1]])
    # token 1 is in 3 of 3 texts, 2 in 1 of 3, 9 in none
    assert [weight(t) for t in (1, 2, 9)] == pytest.approx([0.0, math.log(4 / 2), math.log(4)])
    output, other = Embedded.of([1, 2], [RIGHT, UP]), Embedded.of([2], [UP])
    # token 1 weighs nothing, so precision is that of token 2 alone
    assert bertscore(output, other, weight) == pytest.approx((1.0, 1.0, 1.0))
    assert bertscore(output, other)[0] == pytest.approx(0.5)


def test_marks_may_be_matched_and_weigh_nothing() -> None:
    output = Embedded.of([0, 1], [UP, RIGHT], [False, True])
    other = Embedded.of([0, 2], [SLANTED, UP], [False, True])
    # RIGHT is nearest to the mark: .6; the other's UP is nearest to the output's mark: 1
    assert bertscore(output, other)[:2] == pytest.approx((0.6, 1.0))


def test_moverscore_by_hand() -> None:
    output, other = Embedded.of([1, 2], [RIGHT, UP]), Embedded.of([1, 3], [RIGHT, RIGHT])
    # half of the weight stays, the other half moves by the distance of RIGHT and UP, √2
    assert moverscore(output, other) == pytest.approx(1 / (1 + math.sqrt(2) / 2))
    assert moverscore(output, output) == pytest.approx(1.0)
    assert math.isnan(moverscore(output, other, lambda token: 0.0))


# By a causal model ---------------------------------------------------------------------------------------------------


def test_texts_are_read_once_and_in_the_middle_layer(letters: Letters) -> None:
    metric = BertScoreLM()
    rows = [{"output": output, "reference": "abc"} for output in ("ab", "xyz", "abc")]
    # ab: P = 1, R = 2/3
    assert [v.score for v in metric.score_many(rows)] == pytest.approx([0.8, 0.0, 1.0])
    assert letters.read == [("ab", 2), ("abc", 2), ("xyz", 2)]
    assert BertScoreLM(of="recall").score("ab", "abc").score == pytest.approx(2 / 3)
    assert BertScoreLM(against="source").score("ab", source="ab").score == pytest.approx(1.0)


def test_idf_is_counted_over_the_references(letters: Letters) -> None:
    rows = [{"output": "ax", "reference": "ab"}, {"output": "ab", "reference": "ac"}]
    first, second = BertScoreLM(idf=True, of="recall").score_many(rows)
    # "a" is in both references and weighs nothing; b and c are missed or not
    assert first.score == pytest.approx(0.0) and second.score == pytest.approx(0.0)
    assert BertScoreLM(idf=True).score("ab", "abc").score == pytest.approx(
        0.8
    )  # a single reference: all weigh the same


def test_a_layer_that_there_is_not_and_a_model_without_states(letters: Letters) -> None:
    with pytest.raises(OptionError, match="layer 5 of letters, which has 1 to 4"):
        BertScoreLM(layer=5).score("a", "b")
    letters.ability = Ability()
    with pytest.raises(ModelError, match="letters gives no hidden states"):
        BertScoreLM().score("a", "b")


# By an encoder -------------------------------------------------------------------------------------------------------


def test_a_missing_package_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"metric/bertscore needs .*pip install 'judgesmith\[torch\]'"):
        BertScore(model="some/other").score("a", "b")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of four small layers with random weights, one token a word."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    transformers = pytest.importorskip("transformers", reason="needs the extra torch")
    path = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(40))]
    (path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=24,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(path)
    return path


def test_bertscore_by_an_encoder(bert: Path) -> None:
    import torch
    import transformers

    model = transformers.BertModel.from_pretrained(bert).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)

    def states(text: str) -> Any:
        with torch.no_grad():
            found = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[2][0]
        return torch.nn.functional.normalize(found, dim=-1)

    made, wanted = states("w1 w2 w3"), states("w3 w4")
    cosines = made @ wanted.T
    # the first and the last row and column are [CLS] and [SEP]
    precision = float(cosines.max(1).values[1:-1].mean())
    recall = float(cosines.max(0).values[1:-1].mean())
    score = {of: BertScore(model=str(bert), layer=2, of=of).score("w1 w2 w3", "w3 w4").score for of in
             ("precision", "recall", "f1")}  # fmt: skip
    assert score == pytest.approx(
        {"precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall)}, abs=1e-5
    )


def test_an_encoders_metrics_hold_what_others_do(bert: Path) -> None:
    rows = [{"output": text, "reference": "w1 w2 w3 w4"} for text in ("w1 w2 w3 w4", "w9 w8", "w1 " * 60, "")]
    for metric in (BertScore(model=str(bert)), MoverScore(model=str(bert))):
        same, other, long, empty = metric.score_many(rows)
        assert same.score == pytest.approx(1.0, abs=1e-6) and other.score < same.score
        assert math.isfinite(long.score) and empty.score == 0
