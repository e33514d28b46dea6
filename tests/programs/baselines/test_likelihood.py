"""GPTScore and BARTScore: by a reader that is written here, by a served model, and by a tiny BART of random weights."""

import math
from pathlib import Path
from typing import Any

import pytest
from reading_stand_ins import Copyist, echoing

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs.baselines.likelihood import BartScore, GptScore
from judgesmith.programs.baselines.metrics import reference_metric

SOURCE = "the council repairs the bridge"


def test_the_directions_by_hand(copyist: Copyist) -> None:
    row = {"source": SOURCE, "output": "the council sleeps", "reference": "the council repairs it"}

    def value(direction: str) -> float:
        return next(BartScore(direction=direction).score_many([row])).score

    assert value("source-output") == pytest.approx((-1 - 1 - 3) / 3)  # the, council | sleeps
    assert value("reference-output") == pytest.approx((-1 - 1 - 3) / 3)
    assert value("output-reference") == pytest.approx((-1 - 1 - 3 - 3) / 4)  # the, council | repairs, it
    assert value("f") == pytest.approx((-5 / 3 - 2) / 2)


def test_percent_is_the_mean_probability(copyist: Copyist) -> None:
    verdict = next(BartScore().score_many([{"source": SOURCE, "output": SOURCE}]))
    assert verdict.score == -1 and verdict.percent == pytest.approx(100 * math.exp(-1))


def test_gptscore_asks_for_the_aspect(copyist: Copyist) -> None:
    GptScore(aspect="summarization/coherence").score("the council", source=SOURCE)
    (asked,) = copyist.asked
    assert "Summarize the article." in asked and "excellent in coherence:" in asked and SOURCE in asked
    GptScore(instruction="Say it shorter.", against="reference").score("the council", SOURCE)
    assert "Say it shorter." in copyist.asked[1]
    with pytest.raises(OptionError, match="no aspect 'beauty'"):
        GptScore(aspect="summarization/beauty").score("x", source="y")


def test_the_best_reference_counts_and_an_empty_output_has_no_likelihood(copyist: Copyist) -> None:
    best = BartScore(direction="reference-output").score("the council", ["nobody", "the council"])
    assert best.score == -1
    (empty, nothing) = BartScore().score_many([{"source": SOURCE, "output": " "}, {"output": "x"}])
    assert empty.failure == "an empty output has no likelihood"
    assert nothing.failure == "no source to compare with" and math.isnan(nothing.score)


def test_without_a_model_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGESMITH_LM", raising=False)
    with pytest.raises(OptionError, match=r"write metric/gptscore:local/qwen2.5-0.5b, or set JUDGESMITH_LM"):
        reference_metric("gptscore").score("x", source="y")


def test_a_served_model_reads_by_its_prompt_log_probabilities(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(echoing)
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", server.base)
    verdict = GptScore(model="hosted_vllm/some-model").score("four times", source="Two and two")
    assert verdict.score == pytest.approx((-0.4 - 0.5) / 2)  # 4 and 5 letters


# BART ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BART of two small layers with random weights, one token a word."""
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    transformers = pytest.importorskip("transformers", reason="needs the extra torch")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    path = tmp_path_factory.mktemp("bart")
    words = ["<s>", "<pad>", "</s>", "<unk>", *SOURCE.split(), *(f"w{n}" for n in range(30))]
    plain = Tokenizer(models.WordLevel({word: n for n, word in enumerate(dict.fromkeys(words))}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    plain.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=len(words), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=16,
        bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2, init_std=0.5,
    )  # fmt: skip
    transformers.BartForConditionalGeneration(config).save_pretrained(path)
    return path


def test_bartscore_is_the_mean_loss_of_the_authors_program(bart: Path) -> None:
    import torch
    import transformers

    model = transformers.BartForConditionalGeneration.from_pretrained(bart).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bart)
    given, target = (tokenizer(text, return_tensors="pt") for text in (SOURCE, "the bridge w3"))
    with torch.no_grad():  # transformers' own loss is the mean over the target's tokens, marks included
        loss = model(**given, labels=target.input_ids).loss
    metric = BartScore(model=str(bart))
    assert metric.score("the bridge w3", source=SOURCE).score == pytest.approx(-float(loss), abs=1e-5)
    row = {"output": "the bridge w3", "reference": SOURCE}
    value = {d: next(BartScore(model=str(bart), direction=d).score_many([row])).score for d in
             ("reference-output", "output-reference", "f")}  # fmt: skip
    assert value["reference-output"] == pytest.approx(-float(loss), abs=1e-5)
    assert value["output-reference"] != pytest.approx(value["reference-output"])
    assert value["f"] == pytest.approx((value["reference-output"] + value["output-reference"]) / 2)


def test_what_is_longer_than_the_model_reads_is_cut(bart: Path) -> None:
    metric = BartScore(model=str(bart))
    long = " ".join(["w1"] * 100)
    assert math.isfinite(metric.score(long, source=long).score)
    assert metric.score("w2", source=long).score == metric.score("w2", source=long + " w3").score


def test_a_folder_without_a_model_is_named(bart: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"metric/bartscore: the model .* cannot be fetched or opened"):
        BartScore(model=str(tmp_path)).score("x", source="y")
