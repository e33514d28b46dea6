"""The training loop: batches, losses, early stopping by Q, and checkpoints.

A run resumes from its checkpoint as if it had not been interrupted.

Source: RAFT (Lukasik et al. 2025) and TRACT (Chiang et al. 2025) for the squared error of the expected score under the
model's probabilities; RankNet (Burges et al. 2005) for pairs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesmith.errors import OptionError
from judgesmith.parts import Options, option
from judgesmith.programs.progress import Progress
from judgesmith.programs.prompting.layouts import DIGITS
from judgesmith.rooms.training.distilled.student import (
    Student,
    portions,
    training_modules,
)


class TrainOptions(Options):
    """Settings of training."""

    rank: int = option(16, "Rank of the LoRA adapter.", ge=1, le=1024)
    alpha: float = option(32.0, "Scale of the LoRA adapter, divided by its rank.", gt=0)
    dropout: float = option(
        0.0,
        "Dropout rate of the LoRA adapter's inputs.",
        ge=0,
        lt=1,
    )
    learning_rate: float = option(5e-4, "Peak learning rate of AdamW.", gt=0)
    weight_decay: float = option(0.01, "Weight decay of AdamW.", ge=0)
    warmup: float = option(
        0.05,
        "Share of steps with a rising learning rate. Afterwards it falls to 0.",
        ge=0,
        lt=1,
    )
    epochs: int = option(6, "Maximum number of passes over the training rows.", ge=1)
    batch: int = option(8, "Rows per step.", ge=1)
    target: Literal["score", "annotation"] = option(
        "score",
        "Answer that the student learns. score: the score alone. annotation: error spans and then the score, from "
        "annotated synthetic examples (as in OpeNLGauge).",
    )
    loss: Literal["both", "regression", "cross-entropy"] = option(
        "both",
        "Loss. regression: squared error of the expected digit. cross-entropy: log-probability of the score's "
        "digits. both: their sum.",
    )
    regression_weight: float = option(
        1.0, "Weight of the squared error relative to the cross-entropy.", gt=0
    )
    ranking_weight: float = option(
        0.0,
        "Weight of the ranking loss over pairs of rows of one document.",
        ge=0,
    )
    human_weight: float = option(
        4.0,
        "Weight of a human rating relative to a synthetic example. 0: ratings only decide the last epoch.",
        ge=0,
    )
    stop_share: float = option(
        0.2,
        "Share of the labels (whole documents) for early stopping, not trained on. 0: train all epochs.",
        ge=0,
        lt=0.9,
    )
    patience: int = option(
        2, "Number of epochs without a better Q before training stops.", ge=1
    )
    checkpoint_every: int = option(
        5, "Number of steps between checkpoints. Each epoch ends with one, too.", ge=1
    )
    tokens_at_once: int = option(
        2048,
        "Number of tokens in one forward pass. Lower needs less memory, higher is faster.",
        ge=1,
    )
    longest: int = option(
        3072,
        "Maximum length of a prompt, in tokens. Rows with longer ones are left out and counted.",
        ge=64,
    )
    dtype: Literal["float32", "bfloat16"] = option(
        "float32",
        "Data type of the base model's weights in training. bfloat16 halves the memory. It is over twice as fast on "
        "GPUs and on CPUs with avx512_bf16 or amx_bf16.",
    )
    threads: int | None = option(
        None, "Number of CPU threads. none: one per core.", ge=1
    )


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt (tokens) and its score in [0, 100].

    weight: of the row in the loss. document: rows of one are compared. human: whether people scored it.
    annotation_tokens: number of the prompt's tokens, before the line with the score, that are an annotation to learn.
    """

    prompt: tuple[int, ...]
    percent: float
    document: str
    weight: float = 1.0
    human: bool = True
    annotation_tokens: int = 0

    @property
    def digit(self) -> float:
        """The score on the digits' scale, 1 to 5."""
        return DIGITS.from_percent(self.percent)


@dataclass(frozen=True, slots=True)
class Epoch:
    """Result of a pass over the rows.

    loss: the mean over its steps. q: on the rows that training stops by, NaN if there are none.
    """

    epoch: int
    loss: float
    q: float


@dataclass
class Trained:
    """State and results of training.

    best: the number of the chosen epoch, from 1.
    """

    step: int = 0
    epochs: list[Epoch] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    best: int = 0

    @property
    def ended(self) -> int:
        """The number of finished epochs."""
        return len(self.epochs)


class Training:
    """Training of a student's low-rank weights.

    judged: Q of the student's scores of the rows that training stops by, given the student; None: the last epoch is
    taken. checkpoint: a file that is written as it goes, and taken up again where it is there.

    Raises:
        OptionError: If the checkpoint is of another run.
    """

    def __init__(
        self,
        student: Student,
        examples: Sequence[Example],
        options: TrainOptions,
        *,
        seed: int,
        checkpoint: Path,
        judged: Callable[[Student], float] | None,
        progress: Progress,
    ) -> None:
        torch, _ = training_modules()
        self._torch = torch
        self.student = student
        self.examples = examples
        self.options = options
        self.seed = seed
        self.checkpoint = checkpoint
        self._judged = judged
        self._progress = progress
        self._parameters = student.parameters()
        self._optimizer = torch.optim.AdamW(
            list(self._parameters.values()),
            lr=options.learning_rate,
            weight_decay=options.weight_decay,
        )
        self._best = {name: p.detach().clone() for name, p in self._parameters.items()}
        self.steps_an_epoch = math.ceil(len(examples) / options.batch)
        self.done = Trained()

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return self.steps_an_epoch * self.options.epochs

    def run(self) -> Trained:
        """Train to the end, and leave the student with the chosen epoch's weights."""
        self._take_up()
        self._progress.stage("training", self.steps)
        for _ in range(self.done.step):
            self._progress.step()
        while not self._over():
            epoch = self.done.step // self.steps_an_epoch
            for number, batch in enumerate(self._batches(epoch)):
                if epoch * self.steps_an_epoch + number < self.done.step:
                    continue  # it was done before this run
                self.done.losses.append(self._step([self.examples[i] for i in batch]))
                self.done.step += 1
                self._progress.step()
                self._progress.tell(self._progress_text())
                if (
                    self.done.step % self.options.checkpoint_every == 0
                    and self.done.step % self.steps_an_epoch
                ):
                    self._save()
            self._end_epoch()
        with self._torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(self._best[name])
        self.student.model.eval()
        return self.done

    # -- one step

    def _batches(self, epoch: int) -> list[list[int]]:
        """Return the rows of each step.

        The order depends on the seed and the epoch alone; rows of a document stay together where pairs of them count.
        """
        rng = np.random.default_rng([self.seed, epoch])
        order: list[int] = rng.permutation(len(self.examples)).tolist()
        if self.options.ranking_weight:
            first: dict[str, int] = {}
            for place, i in enumerate(order):
                first.setdefault(self.examples[i].document, place)
            order.sort(key=lambda i: first[self.examples[i].document])
        return [
            order[start : start + self.options.batch]
            for start in range(0, len(order), self.options.batch)
        ]

    def _step(self, batch: Sequence[Example]) -> float:
        torch = self._torch
        student = self.student
        options = self.options
        # Dropout is the same after a restart.
        torch.manual_seed(self.seed * 1_000_003 + self.done.step)
        student.model.train()
        for group in self._optimizer.param_groups:
            group["lr"] = options.learning_rate * self._rate()
        self._optimizer.zero_grad(set_to_none=True)
        total = sum(example.weight for example in batch)
        loss_sum = 0.0
        pull = self._ranking(batch)
        for part in portions(
            [len(example.prompt) for example in batch], options.tokens_at_once
        ):
            loss = self._loss([batch[i] for i in part], [pull[i] for i in part]) / total
            loss.backward()
            loss_sum += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), 1.0)
        self._optimizer.step()
        return loss_sum

    def _loss(self, rows: Sequence[Example], pull: Sequence[float]) -> Any:
        """Return the sum of the rows' losses, each times its weight.

        pull: slope from pairs in each row's expected digit.
        """
        torch = self._torch
        options = self.options
        digits, opening, annotation = self.student.log_answers(
            [row.prompt for row in rows], [row.annotation_tokens for row in rows]
        )
        expected = self.student.expected(digits)
        wanted = torch.tensor([row.digit for row in rows], device=expected.device)
        weight = torch.tensor([row.weight for row in rows], device=expected.device)
        loss = (
            -opening - annotation
        )  # it has to begin as an answer does, whatever is fitted
        if options.loss != "regression":
            # A score between two digits is shared by both.
            places = torch.arange(1.0, digits.shape[1] + 1, device=expected.device)
            shares = (1 - (wanted[:, None] - places).abs()).clamp(min=0)
            loss = loss - (shares * digits).sum(-1)
        else:
            loss = loss - torch.logsumexp(digits, -1)  # some digit has to follow
        if options.loss != "cross-entropy":
            loss = loss + options.regression_weight * (expected - wanted) ** 2
        return (weight * loss).sum() + (
            torch.tensor(pull, device=expected.device) * expected
        ).sum()

    def _ranking(self, batch: Sequence[Example]) -> list[float]:
        """Return the slope of the ranking loss in each row's expected digit.

        Pairs need all rows of a batch at once, of which the memory holds the numbers, but not their graphs.
        """
        pairs = [
            (i, j)
            for i, one in enumerate(batch)
            for j, other in enumerate(batch)
            if one.document == other.document and one.percent > other.percent
        ]
        if not pairs or not self.options.ranking_weight:
            return [0.0] * len(batch)
        torch = self._torch
        percents = self.student.percents(
            [example.prompt for example in batch], self.options.tokens_at_once
        )
        expected = torch.tensor(
            [DIGITS.from_percent(p) for p in percents], requires_grad=True
        )
        better, worse = (torch.tensor(side) for side in zip(*pairs, strict=True))
        loss = torch.nn.functional.softplus(expected[worse] - expected[better]).mean()
        loss.backward()
        scale = self.options.ranking_weight * sum(example.weight for example in batch)
        return [scale * slope for slope in expected.grad.tolist()]

    def _rate(self) -> float:
        """Return the share of the highest learning rate: rising, then falling to 0, linearly."""
        rising = max(1, math.ceil(self.options.warmup * self.steps))
        if self.done.step < rising:
            return (self.done.step + 1) / rising
        return (self.steps - self.done.step) / max(1, self.steps - rising)

    # -- epochs

    def _end_epoch(self) -> None:
        self.student.model.eval()
        q = math.nan if self._judged is None else self._judged(self.student)
        losses = self.done.losses[-self.steps_an_epoch :]
        self.done.epochs.append(
            Epoch(self.done.ended + 1, sum(losses) / len(losses), q)
        )
        before = [_rank(epoch.q) for epoch in self.done.epochs[:-1]]
        if self._judged is None or not before or _rank(q) > max(before):
            self.done.best = self.done.ended
            self._best = {
                name: p.detach().clone() for name, p in self._parameters.items()
            }
            if self._judged is not None:
                self._progress.best(
                    f"{q:.2f} after epoch {self.done.best}, on the rows that training stops by"
                )
        self._save()

    def _over(self) -> bool:
        if self.done.step >= self.steps:
            return True
        return (
            self._judged is not None
            and self.done.ended - self.done.best >= self.options.patience
        )

    def _progress_text(self) -> str:
        loss = f"loss {self.done.losses[-1]:.3f}"
        if not self.done.epochs or math.isnan(q := self.done.epochs[-1].q):
            return loss
        return f"{loss}, Q {q:.2f}"

    # -- checkpoints

    @property
    def _mark(self) -> str:
        """Identity of this run: another one's checkpoint does not fit."""
        rows = [
            (e.prompt, round(e.percent, 9), e.document, e.weight, e.annotation_tokens)
            for e in self.examples
        ]
        key = json.dumps(
            [self.student.base, self.options.settings(), self.seed, rows],
            sort_keys=True,
        )
        return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

    def _save(self) -> None:
        from safetensors.torch import save_file  # type: ignore[import-not-found,unused-ignore]

        tensors: dict[str, Any] = {}
        for name, parameter in self._parameters.items():
            state = self._optimizer.state[parameter]
            tensors |= {
                f"now/{name}": parameter.detach(),
                f"best/{name}": self._best[name],
            }
            tensors |= {
                f"mean/{name}": state["exp_avg"],
                f"square/{name}": state["exp_avg_sq"],
            }
        done = self.done
        data = {
            "mark": self._mark,
            "step": done.step,
            "best": done.best,
            "losses": done.losses,
            "epochs": [
                [e.epoch, e.loss, None if math.isnan(e.q) else e.q] for e in done.epochs
            ],
        }
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        beside = self.checkpoint.with_suffix(".new")
        save_file(
            {name: t.cpu().contiguous() for name, t in tensors.items()},
            beside,
            {"training": json.dumps(data)},
        )
        beside.replace(self.checkpoint)

    def _take_up(self) -> None:
        if not self.checkpoint.exists():
            return
        from safetensors import SafetensorError, safe_open  # type: ignore[import-not-found,unused-ignore]

        try:
            with safe_open(self.checkpoint, framework="pt") as file:
                data = json.loads((file.metadata() or {})["training"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, KeyError, ValueError) as error:
            raise OptionError(
                f"{self.checkpoint.name} is not a judgesmith checkpoint ({error}); delete it, or name another -o"
            ) from None
        if data["mark"] != self._mark:
            raise OptionError(
                f"{self.checkpoint.name} is of a run with other labels or other settings; give those, or --overwrite "
                "to start over"
            )
        with self._torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(tensors[f"now/{name}"])
                self._best[name] = tensors[f"best/{name}"].to(parameter.device)
                self._optimizer.state[parameter] = {
                    "step": self._torch.tensor(float(data["step"])),
                    "exp_avg": tensors[f"mean/{name}"].to(parameter.device),
                    "exp_avg_sq": tensors[f"square/{name}"].to(parameter.device),
                }
        epochs = [
            Epoch(n, loss, math.nan if q is None else q)
            for n, loss, q in data["epochs"]
        ]
        self.done = Trained(data["step"], epochs, data["losses"], data["best"])


def _rank(q: float) -> float:
    """Return Q for a comparison: undefined agreement counts 0, as in a search."""
    return 0.0 if math.isnan(q) else q
