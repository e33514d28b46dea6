"""The reader by transformers, with a small model of random weights. Needs the extra `torch`."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
transformers = pytest.importorskip("transformers", reason="needs the extra torch")

from judgesmith.programs.readings.bindings.torch_reader import TorchReader, open_weights  # noqa: E402
from judgesmith.programs.readings.passages import Passage, Piece  # noqa: E402

WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder as transformers writes it: four layers, one token a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    path = tmp_path_factory.mktemp("model")
    vocabulary = {word: place for place, word in enumerate(["<s>", "</s>", *WORDS])}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<s>"))
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(path)
    config = transformers.GPT2Config(
        vocab_size=len(vocabulary),
        n_positions=256,
        n_embd=32,
        n_layer=4,
        n_head=4,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(path)
    return path


def passages(count: int) -> list[Passage]:
    """Rows of some lengths, several with one beginning."""
    rng = np.random.default_rng(3)
    return [
        Passage(
            (
                Piece(" ".join(WORDS[: 5 + row % 3])),
                Piece(" ".join(rng.choice(WORDS, 3 + row % 7))),
            ),
            1,
        )
        for row in range(count)
    ]


def logp(folder: Path, passage: Passage) -> Any:
    """What the model says in one plain forward pass."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    before, target = (
        tokenizer(piece.text, add_special_tokens=False).input_ids
        for piece in passage.pieces
    )
    with torch.inference_mode():
        every = torch.log_softmax(model(torch.tensor([before + target])).logits[0], -1)
    return [
        float(every[len(before) - 1 + place, token])
        for place, token in enumerate(target)
    ]


def test_it_reads_what_a_plain_pass_says(folder: Path) -> None:
    reader = TorchReader(folder, threads=1)
    for passage in passages(4):
        assert reader.read(passage, layers=(2,)).logp == pytest.approx(
            logp(folder, passage), abs=1e-4
        )


def test_threads_read_the_same_as_one(folder: Path) -> None:
    """The slots that hold beginnings are shared: two rows at once broke each other's."""
    rows = passages(40)
    alone = [TorchReader(folder, threads=1).read(row, layers=(2,)) for row in rows]
    shared = TorchReader(folder, threads=1)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda row: shared.read(row, layers=(2,)), rows))
    for one, other in zip(alone, together, strict=True):
        assert one.logp == pytest.approx(other.logp, abs=1e-4)
        assert one.means[2] == pytest.approx(other.means[2], abs=1e-4)


def test_half_the_digits_change_little(folder: Path) -> None:
    whole, half = (
        TorchReader(folder, threads=1, dtype=dtype) for dtype in ("float32", "bfloat16")
    )
    row = passages(1)[0]
    assert half.read(row).logp.mean() == pytest.approx(
        whole.read(row).logp.mean(), abs=0.05
    )


def test_a_control_token_in_a_text_is_split_whatever_other_threads_read(
    folder: Path,
) -> None:
    weights = open_weights(folder)
    pieces = [Piece("w1<s>w2"), Piece("w1<s>w2", mark=True)]
    alone = [weights.tokens(piece) for piece in pieces]
    assert alone[0] != alone[1]
    assert 0 in alone[1]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(weights.tokens, pieces * 500)) == alone * 500
    finally:
        sys.setswitchinterval(before)
