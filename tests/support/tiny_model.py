"""A language model of two small layers with random weights, in a GGUF file that llama.cpp and transformers read."""

from pathlib import Path
from typing import Any

import numpy as np

CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WIDTH, HEADS, GROUPS, INNER, LAYERS, CONTEXT = 64, 4, 2, 128, 2, 1024


def write_tiny_model(path: Path, texts: list[str], *, seed: int = 0) -> Path:
    """texts: what the tokenizer's words are learnt from."""
    import gguf

    tokens, merges = _tokenizer(texts)
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(str(path), "llama")
    about: dict[str, Any] = {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": INNER,
        "head_count": HEADS,
        "head_count_kv": GROUPS,
        "rope_dimension_count": WIDTH // HEADS,
        "layer_norm_rms_eps": 1e-5,
        "rope_freq_base": 10000.0,
        "vocab_size": len(tokens),
        "tokenizer_model": "gpt2",
        "tokenizer_pre": "smollm",
        "token_list": tokens,
        "token_types": [3] * 3 + [1] * (len(tokens) - 3),
        "token_merges": merges,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unk_token_id": 0,
        "add_bos_token": False,
        "chat_template": CHAT,
    }
    for name, value in about.items():
        getattr(writer, f"add_{name}")(value)

    def tensor(name: str, *shape: int, scale: float = 1.0) -> None:
        writer.add_tensor(
            f"{name}.weight",
            rng.normal(0, scale * shape[-1] ** -0.5, shape).astype(np.float32),
        )

    tensor("token_embd", len(tokens), WIDTH)
    tensor("output", len(tokens), WIDTH, scale=4.0)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    narrow = WIDTH * GROUPS // HEADS
    for layer in range(LAYERS):
        for name, rows, columns in (
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", narrow, WIDTH),
            ("attn_v", narrow, WIDTH),
            ("attn_output", WIDTH, WIDTH),
            ("ffn_gate", INNER, WIDTH),
            ("ffn_up", INNER, WIDTH),
            ("ffn_down", WIDTH, INNER),
        ):
            tensor(f"blk.{layer}.{name}", rows, columns)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
    for part in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{part}_to_file")()
    writer.close()
    return path


def _tokenizer(texts: list[str]) -> tuple[list[str], list[str]]:
    """Tokens, the three marks first, and merges of byte-level BPE."""
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    made: Any = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=600, special_tokens=marks, initial_alphabet=alphabet
        ),
    )
    said = json.loads(made.to_str())["model"]
    tokens = [
        token for token, _ in sorted(said["vocab"].items(), key=lambda pair: pair[1])
    ]
    return tokens, [m if isinstance(m, str) else " ".join(m) for m in said["merges"]]
