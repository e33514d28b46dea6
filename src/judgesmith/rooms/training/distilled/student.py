"""A model with low-rank weights of its own (LoRA), by transformers, torch and peft. Extra: `train`.

The base model's weights stay as they are, at the precision that was asked for; the low-rank ones are full floats.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesmith.errors import ModelError
from judgesmith.extras import from_extra
from judgesmith.programs.models.files import file_sha256
from judgesmith.programs.models.transport import Message
from judgesmith.programs.prompting.layouts import DIGITS, SCORE_LINE
from judgesmith.programs.readings.bindings.torch_reader import open_weights
from judgesmith.programs.readings.passages import Message as Turn
from judgesmith.programs.readings.passages import Piece, rendered

#: The answers, the worst first.
ANSWERS = tuple(SCORE_LINE.replace("<number>", digit) for digit in "12345")
#: The file of the low-rank weights, by the name that other tools look for.
ADAPTER = "adapter_model.safetensors"


@dataclass(frozen=True, slots=True)
class Shape:
    """rank and alpha of LoRA (Hu et al. 2022): a weight W becomes W + alpha / rank * B A."""

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0


class Student:
    """A base model, and low-rank weights beside all of its linear layers but the last.

    Args:
        base: a GGUF file.
        adapter: a file of such weights; None draws new ones by `seed`, which change nothing before they are trained.
        dtype: of the base model: "float32", or "bfloat16" for half the memory and, where the processor computes with
            it, more than twice the speed.
        threads: that compute; None leaves torch's choice.
        device: where it computes; None takes a graphics card if there is one.

    Raises:
        MissingExtraError: If the extra is not installed.
        ModelError: If the file does not belong to this base and shape, or the model's answers (`Score: 4`) do not
            differ in their last token alone.
    """

    def __init__(
        self,
        base: Path,
        shape: Shape,
        *,
        adapter: Path | None = None,
        dtype: str = "float32",
        threads: int | None = None,
        seed: int = 0,
        device: Any = None,
    ) -> None:
        torch, peft = training_modules()
        if threads is not None:
            torch.set_num_threads(threads)
        self._torch = torch
        self.shape = shape
        self.base = file_sha256(base)
        self._weights = open_weights(base, dtype)
        self.device = device or torch.device(
            "cuda" if torch.cuda.is_available() else "cpu"
        )
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # of names inside transformers that peft uses
            self.model = peft.get_peft_model(
                self._weights.model.to(self.device),
                peft.LoraConfig(
                    r=shape.rank,
                    lora_alpha=shape.alpha,
                    lora_dropout=shape.dropout,
                    target_modules="all-linear",
                    task_type="CAUSAL_LM",
                ),
            )
        self._plain = self.model.get_base_model()
        self._opening, digits = self._answers()
        self._digits = torch.tensor(digits, device=self.device)
        self._values = torch.arange(1.0, len(ANSWERS) + 1, device=self.device)
        if adapter is not None:
            self._load(adapter)
        self.model.eval()

    def _answers(self) -> tuple[list[int], list[int]]:
        """The tokens with which every answer begins, and the one with which each ends."""
        result = [self._weights.tokens(Piece(answer)) for answer in ANSWERS]
        openings = {tuple(tokens[:-1]) for tokens in result}
        ends = [tokens[-1] for tokens in result]
        if len(openings) != 1 or len(set(ends)) != len(ends):
            raise ModelError(
                f"unsupported tokenizer: {ANSWERS[0]!r} and the other answers differ before their last token"
            )
        return list(openings.pop()), ends

    # -- reading a prompt

    def tokens(self, messages: Sequence[Message], written: str = "") -> list[int]:
        """Return the tokens of the prompt and of the answer, up to its digit.

        written: the answer's text before the line with the score.
        """
        return [
            *self._prompt_tokens(messages),
            *self.annotation_tokens(written),
            *self._opening,
        ]

    def annotation_tokens(self, written: str) -> list[int]:
        """The tokens of what an answer says before the line with the score; nothing in it is a control token."""
        return self._weights.tokens(Piece(f"{written}\n\n")) if written else []

    def _prompt_tokens(self, messages: Sequence[Message]) -> list[int]:
        turns = [Turn(message["role"], (message["content"],)) for message in messages]
        return [
            *itertools.chain.from_iterable(
                map(self._weights.tokens, rendered(self._weights.chat, turns))
            )
        ]

    def log_answers(
        self, prompts: Sequence[Sequence[int]], annotation_tokens: Sequence[int] = ()
    ) -> tuple[Any, Any, Any]:
        """Return natural logs of probabilities among all tokens, with gradients if these are on.

        prompts x 5, of each digit at its place; prompts, of the line before it in an answer; prompts, the mean over the
        tokens before that line, of which `said` counts those of each prompt that belong to the answer (0 by default).
        """
        torch = self._torch
        before = len(self._opening)
        annotation_tokens = annotation_tokens or [0] * len(prompts)
        most = before + max(annotation_tokens)
        states, start = self._states(prompts, most + 1)
        ends = torch.tensor(
            [len(prompt) - 1 - start for prompt in prompts], device=self.device
        )
        places = (ends[:, None] + torch.arange(-most, 1, device=self.device)).clamp(
            min=0
        )
        rows = torch.arange(len(prompts), device=self.device)[:, None]
        logp = torch.log_softmax(self._plain.lm_head(states[rows, places]).float(), -1)
        follows = torch.tensor(
            [[*[0] * most, *prompt][-most:] for prompt in prompts], device=self.device
        )
        each = logp[:, :-1].gather(-1, follows[..., None])[..., 0]
        counts = torch.tensor(annotation_tokens, device=self.device)
        own = (
            torch.arange(most - before, device=self.device)
            >= (most - before - counts)[:, None]
        )
        mean = (each[:, : most - before] * own).sum(-1) / counts.clamp(min=1)
        return logp[:, -1][:, self._digits], each[:, most - before :].sum(-1), mean

    def _states(self, prompts: Sequence[Sequence[int]], own: int) -> tuple[Any, int]:
        """The last layer's states, and the place from which on they are given.

        What all prompts begin with is computed once; their `own` last tokens are never taken for a part of that.
        """
        torch = self._torch
        if len(prompts) == 1:
            shared = 0
        else:
            shared = max(0, min(_common(prompts), min(map(len, prompts)) - own))
        longest = max(map(len, prompts))
        # Filled up on the right: no token sees what comes after it.
        filled = [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts]
        mask = [[1] * len(prompt) + [0] * (longest - len(prompt)) for prompt in prompts]
        cache = None
        if shared > 0:
            beginning = torch.tensor([prompts[0][:shared]], device=self.device)
            cache = self._plain.base_model(beginning, use_cache=True).past_key_values
            cache.batch_repeat_interleave(len(prompts))
        done = self._plain.base_model(
            torch.tensor(filled, device=self.device)[:, shared:],
            attention_mask=torch.tensor(mask, device=self.device)
            if len(prompts) > 1
            else None,
            past_key_values=cache,
            use_cache=cache is not None,
        )
        return done.last_hidden_state, shared

    def expected(self, log_digits: Any) -> Any:
        """The expected digit in [1, 5] of each row, the digits' probabilities made to sum to 1."""
        return (self._torch.softmax(log_digits, -1) * self._values).sum(-1)

    def write(self, messages: Sequence[Message], most: int) -> tuple[str, float]:
        """Return a generated annotation and the score after it, in [0, 100].

        The text is the likeliest token at each place; the score is NaN if none came within `most` tokens.
        """
        torch = self._torch
        prompt = self._prompt_tokens(messages)
        written: list[int] = []
        with torch.inference_mode():
            cache = None
            new = prompt
            while len(written) < most:
                done = self._plain.base_model(
                    torch.tensor([new], device=self.device),
                    past_key_values=cache,
                    use_cache=True,
                )
                cache = done.past_key_values
                logits = self._plain.lm_head(done.last_hidden_state[0, -1]).float()
                if written[-len(self._opening) :] == self._opening:
                    digits = torch.log_softmax(logits, -1)[self._digits]
                    text = self._weights.tokenizer.decode(
                        written[: -len(self._opening)]
                    )
                    return text.strip(), DIGITS.to_percent(float(self.expected(digits)))
                token = int(logits.argmax())
                if token == self._weights.tokenizer.eos_token_id:
                    break
                written.append(token)
                new = [token]
        return self._weights.tokenizer.decode(written).strip(), math.nan

    def percents(
        self, prompts: Sequence[Sequence[int]], tokens_at_once: int
    ) -> list[float]:
        """The scores of many prompts, as many tokens at a time."""
        result: list[float] = []
        with self._torch.inference_mode():
            for part in portions([len(prompt) for prompt in prompts], tokens_at_once):
                digits = self.expected(self.log_answers([prompts[i] for i in part])[0])
                result += [DIGITS.to_percent(digit) for digit in digits.tolist()]
        return result

    # -- weights

    def parameters(self) -> dict[str, Any]:
        """The low-rank weights by name."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def weights(self) -> dict[str, Any]:
        """The low-rank weights as a file has them, by peft's names."""
        from peft import get_peft_model_state_dict  # type: ignore[import-not-found,unused-ignore]

        # Otherwise peft asks the hub whether the base model's vocabulary is as it was.
        state = get_peft_model_state_dict(self.model, save_embedding_layers=False)
        return {name: p.detach().cpu().contiguous() for name, p in state.items()}

    def save(self, folder: Path, base: str) -> Path:
        """Write the adapter as peft reads it: weights and configuration. base: the base model's name.

        Returns the weights' file.
        """
        self.model.peft_config["default"].base_model_name_or_path = base
        self.model.save_pretrained(str(folder), save_embedding_layers=False)
        (folder / "README.md").unlink(missing_ok=True)  # a form to fill in
        return folder / ADAPTER

    def _load(self, file: Path) -> None:
        from peft import set_peft_model_state_dict
        from safetensors.torch import load_file  # type: ignore[import-not-found,unused-ignore]

        weights = load_file(str(file))
        own = self.weights()
        if {name: p.shape for name, p in weights.items()} != {
            name: p.shape for name, p in own.items()
        }:
            raise ModelError(
                f"{file.name} holds weights for another base model or another rank than {self.shape.rank}; "
                "train it again with --overwrite"
            )
        set_peft_model_state_dict(self.model, weights)


def portions(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """The indices in their order, in portions whose lengths sum to `most` or that hold one index."""
    part: list[int] = []
    for index, length in enumerate(lengths):
        if part and sum(lengths[i] for i in part) + length > most:
            yield part
            part = []
        part.append(index)
    if part:
        yield part


def _common(prompts: Sequence[Sequence[int]]) -> int:
    """Return the number of tokens that all prompts begin with."""
    length = 0
    for tokens in zip(*prompts, strict=False):
        if len(set(tokens)) > 1:
            break
        length += 1
    return length


def training_modules() -> tuple[Any, Any]:
    """Return torch and peft.

    Raises:
        MissingExtraError: If they are not installed.
    """
    purpose = "training a model"
    torch = from_extra("train", purpose, "torch")
    return torch, from_extra("train", purpose, "peft")
