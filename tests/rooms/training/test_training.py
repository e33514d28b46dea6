"""Training a student: a tiny model with random weights learns a rule. Needs the extra `train`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra train")

pytest.importorskip("peft", reason="needs the extra train")
pytest.importorskip("xllamacpp", reason="needs the extra local")

from tiny_model import write_tiny_model  # noqa: E402

import judgesmith as js  # noqa: E402
from judgesmith.datasets.splits import Split, holdout_split  # noqa: E402
from judgesmith.errors import ModelError, OptionError  # noqa: E402
from judgesmith.programs.models.lm import LanguageModel, language_model  # noqa: E402
from judgesmith.programs.progress import Silent  # noqa: E402
from judgesmith.rooms.training.distilled.judge import Distilled  # noqa: E402
from judgesmith.rooms.training.distilled.marking import MOST_TOKENS  # noqa: E402
from judgesmith.rooms.training.distilled.student import ADAPTER, Shape, Student  # noqa: E402
from judgesmith.rooms.training.distilling import Distillation  # noqa: E402
from judgesmith.rooms.training.loop import Example, Training, TrainOptions  # noqa: E402
from judgesmith.rooms.training.synthetic import SyntheticError, SyntheticRow  # noqa: E402
from judgesmith.signatures.values import Item  # noqa: E402

SUPPORT = Path(__file__).parents[2] / "support"
LEVELS = ("dreadful", "poor", "fair", "good", "superb")
FILLERS = (
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "near",
    "some",
    "old",
    "tree",
    "while",
    "rain",
    "fell",
    "and",
    "sang",
)
SMALL: dict[str, Any] = {
    "rank": 8,
    "alpha": 16,
    "learning_rate": 1e-2,
    "batch": 8,
    "tokens_at_once": 8192,
}


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    """Outputs with one word of quality, twice, among others; scores from 1 to 5 follow from it."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        level = int(rng.integers(0, 5))
        words = [LEVELS[level]] * 2 + [str(word) for word in rng.choice(FILLERS, 4)]
        rng.shuffle(words)
        name = f"{seed}-{number}"
        found.append(
            {
                "id": name,
                "doc_id": name,
                "source": f"Source {name}.",
                "output": " ".join(words),
                "score": 1 + level,
            }
        )
    return found


@dataclass(frozen=True)
class Trained:
    judge: js.Judge
    split: Split
    lm: LanguageModel
    folder: Path
    prompts: tuple[tuple[int, ...], ...]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("home")
        patch.setenv("JUDGESMITH_CACHE", str(path / "calls.sqlite"))
        patch.setenv("JUDGESMITH_THREADS", "1")
        yield path


@pytest.fixture(scope="module")
def labels() -> js.Labels:
    return js.read_labels(rows(150, 0), scale=(1, 5))


@pytest.fixture(scope="module")
def base(home: Path, labels: js.Labels) -> Path:
    judge = Distilled("fluency")
    texts = [
        m["content"]
        for row in labels.rows
        for m in judge.messages(Item(row.output, row.source))
    ]
    return write_tiny_model(
        home / "tiny.gguf", [*texts, "Score: 1 2 3 4 5", "system", "user", "assistant"]
    )


@pytest.fixture(scope="module")
def trained(home: Path, labels: js.Labels, base: Path) -> Trained:
    """A student of the rule. Every prompt that reaches a step is kept."""
    split, lm = (
        holdout_split(labels, share=0.25, seed=0),
        language_model(f"gguf:{base}"),
    )
    seen: list[tuple[int, ...]] = []

    def spied(self: Training, batch: Any, own: Any = Training._step) -> float:
        seen.extend(example.prompt for example in batch)
        return own(self, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "_step", spied)
        made, _ = Distillation(
            Distilled("fluency"),
            split,
            lm,
            home / "judge.student",
            TrainOptions(**SMALL, epochs=12, patience=12),
        ).run()
    made.save(home / "judge.json")
    return Trained(made, split, lm, home / "judge.student", tuple(seen))


def test_it_learns_a_rule_and_the_loss_falls(trained: Trained) -> None:
    report = trained.judge.report
    losses = [epoch.loss for epoch in report.trained.epochs]
    assert losses[-1] < losses[0] / 2
    new = rows(40, 1)
    scores = [v.score for v in trained.judge.score_many(new)]
    assert abs(np.corrcoef(scores, [row["score"] for row in new])[0, 1]) > 0.9
    student, plain, *_ = report.contenders
    assert student.agreement.objective.pearson > 0.9
    assert plain.name == "student alone"
    assert plain.agreement.q < student.agreement.q


def test_no_held_out_row_nor_one_that_training_stops_by_reaches_a_batch(
    trained: Trained, labels: js.Labels
) -> None:
    run = Distillation(
        trained.judge, trained.split, trained.lm, trained.folder, TrainOptions(**SMALL)
    )
    learnt, stopping, _ = run.rows()
    assert stopping is not None
    student = Student(trained.lm.weights, Shape(8, 16), threads=1)  # type: ignore[arg-type]

    def prompts(several: Any) -> set[tuple[int, ...]]:
        return {
            tuple(
                student.tokens(trained.judge.method.messages(Item(r.output, r.source)))
            )
            for r in several
        }

    batched = set(trained.prompts)
    assert batched == prompts(one.row for one in learnt)
    for apart in (trained.split.heldout.rows, stopping.rows):
        assert apart
        assert batched.isdisjoint(prompts(apart))


def test_a_student_that_learnt_nothing_is_said_not_to_be_worth_it(
    trained: Trained, tmp_path: Path
) -> None:
    options = TrainOptions(**SMALL | {"learning_rate": 1e-9}, epochs=1, stop_share=0)
    judge = Distilled("fluency")
    _, report = Distillation(
        judge, trained.split, trained.lm, tmp_path / "x.student", options
    ).run()
    assert any(
        "student alone (Q" in note and ("not worth it" in note or "not sure" in note)
        for note in report.notes
    )
    assert not any("student alone (Q" in note for note in trained.judge.report.notes)
    assert report.trained.best == 1
    assert report.rows["human"] == len(trained.split.train)


def test_synthetic_rows_of_held_out_documents_are_left_out(trained: Trained) -> None:
    held = trained.split.heldout.rows[0]
    fresh = js.read_labels(rows(8, 5), scale=(1, 5)).rows
    extra = [(synthetic(row), row) for row in (held, *fresh)]
    run = Distillation(
        trained.judge,
        trained.split,
        trained.lm,
        trained.folder,
        TrainOptions(**SMALL),
        extra,
    )
    learnt, _, notes = run.rows()
    assert {one.row.id for one in learnt if one.example} <= {row.id for row in fresh}
    assert "share a document or a text" in notes[-1]


def synthetic(row: Any, errors: Any = ()) -> SyntheticRow:
    (score,) = row.scores.values()
    return SyntheticRow(
        id=row.id,
        source=row.source,
        output=row.output,
        doc_id=row.doc_id,
        aspect="fluency",
        percent=25 * (score - 1),
        judge="rule",
        errors=list(errors),
        messages=[{"role": "user", "content": "Rate."}] * 2,
    )


def test_it_marks_errors_which_llama_and_torch_write_alike(
    trained: Trained, labels: js.Labels, tmp_path: Path
) -> None:
    bad = {"dreadful": 5.0, "poor": 3.0}

    def errors(text: str) -> list[SyntheticError]:
        return [
            SyntheticError(
                text=word, explanation="It is bad.", severity=severity, how="exact"
            )
            for word, severity in bad.items()
            if word in text
        ]

    few = js.read_labels(rows(24, 8), scale=(1, 5))
    extra = [(synthetic(row, errors(row.output)), row) for row in labels.rows]
    options = TrainOptions(**SMALL, target="annotation", epochs=20, stop_share=0)
    run = Distillation(
        Distilled("fluency"),
        holdout_split(few, share=0.5, seed=0),
        trained.lm,
        tmp_path / "m.student",
        options,
        extra,
    )
    made, report = run.run()
    assert report.rows["human"] == 0
    assert made.method.options.answer == "annotation"
    new = rows(12, 9)
    by_llama = list(made.score_many(new))
    assert trained.lm.weights is not None
    student = Student(
        trained.lm.weights,
        Shape(8, 16),
        adapter=tmp_path / "m.student" / ADAPTER,
        threads=1,
    )
    for row, verdict in zip(new, by_llama, strict=True):
        said, percent = student.write(
            made.method.messages(Item(row["output"], row["source"])), MOST_TOKENS
        )
        assert verdict.failure is None
        assert verdict.percent == pytest.approx(percent, abs=1.0)
        assert {e.text for e in verdict.errors} == {
            word for word in bad if word in row["output"]
        }
        assert all(
            row["output"][e.start : e.end] == e.text and e.severity == bad[e.text]
            for e in verdict.errors
        )
        assert all(f"Location: {e.text}" in said for e in verdict.errors)
    assert (
        np.corrcoef([v.percent for v in by_llama], [row["score"] for row in new])[0, 1]
        > 0.9
    )


def test_the_weights_survive_gguf(trained: Trained) -> None:
    new = rows(12, 2)
    assert trained.lm.weights is not None
    student = Student(
        trained.lm.weights, Shape(8, 16), adapter=trained.folder / ADAPTER, threads=1
    )
    prompts = [
        student.tokens(
            trained.judge.method.messages(Item(row["output"], row["source"]))
        )
        for row in new
    ]
    by_torch = student.percents(prompts, 8192)
    assert [v.percent for v in trained.judge.score_many(new)] == pytest.approx(
        by_torch, abs=1.0
    )


def test_a_saved_judge_finds_its_weights_by_their_hash(
    trained: Trained, home: Path, tmp_path: Path
) -> None:
    loaded = js.load(home / "judge.json", lm=f"gguf:{trained.lm.weights}")
    row = rows(1, 3)[0]
    assert loaded.score(row["source"], row["output"]).percent == pytest.approx(
        trained.judge.score(row["source"], row["output"]).percent
    )
    saved = json.loads((home / "judge.json").read_text())
    assert str(home) not in json.dumps(saved)
    assert saved["student"]["rank"] == 8
    assert str(home) not in (trained.folder / "adapter_config.json").read_text()
    (tmp_path / "judge.json").write_text(json.dumps(saved))
    with pytest.raises(ModelError, match=r"weights are not there: no adapter\.gguf"):
        list(
            js.load(
                tmp_path / "judge.json", lm=f"gguf:{trained.lm.weights}"
            ).score_many([row])
        )


def test_another_base_and_another_served_name_are_refused(
    trained: Trained, home: Path, base: Path
) -> None:
    other = write_tiny_model(home / "other.gguf", ["other words"] * 3, seed=7)
    with pytest.raises(ModelError, match="trained on another base model"):
        list(js.load(home / "judge.json", lm=f"gguf:{other}").score_many(rows(1, 3)))
    served = js.load(
        home / "judge.json", lm="openai/gpt-4o-mini", api_base="http://127.0.0.1:9/v1"
    )
    with pytest.raises(ModelError, match="a server has to offer it as judge-"):
        list(served.score_many(rows(1, 3)))


# Checkpoints ---------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from test_training import checkpointed, Training
after = int(sys.argv[3])
own = Training._save
def save(self):
    own(self)
    if self.done.step >= after:
        os.kill(os.getpid(), signal.SIGKILL)
Training._save = save
checkpointed(*sys.argv[1:3])
"""


def checkpointed(base: str, checkpoint: str, **changed: Any) -> dict[str, Any]:
    """The weights after two short epochs."""
    options = {
        "rank": 4,
        "alpha": 8,
        "dropout": 0.1,
        "batch": 4,
        "epochs": 2,
        "checkpoint_every": 2,
    } | changed
    student = Student(Path(base), Shape(4, 8, options["dropout"]), threads=1, seed=3)
    judge = Distilled("fluency")
    examples = [
        Example(
            tuple(student.tokens(judge.messages(Item(r["output"], r["source"])))),
            25.0 * (r["score"] - 1),
            r["id"],
        )
        for r in rows(16, 4)
    ]
    Training(
        student,
        examples,
        TrainOptions(**options),
        seed=3,
        checkpoint=Path(checkpoint),
        judged=None,
        progress=Silent(),
    ).run()
    return student.weights()


@pytest.mark.parametrize("after", [2, 6])  # in the first epoch, and in the second
def test_after_a_kill_it_ends_with_the_weights_of_an_uninterrupted_run(
    after: int, base: Path, tmp_path: Path
) -> None:
    whole = checkpointed(str(base), str(tmp_path / "whole.safetensors"))
    broken = str(tmp_path / "broken.safetensors")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(base), broken, str(after)],
        env={**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{SUPPORT}"},
    )
    assert killed.returncode == -signal.SIGKILL
    again = checkpointed(str(base), broken)
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_a_checkpoint_of_another_run_is_refused(base: Path, tmp_path: Path) -> None:
    checkpointed(str(base), str(tmp_path / "c.safetensors"), epochs=1)
    with pytest.raises(OptionError, match="other labels or other settings"):
        checkpointed(str(base), str(tmp_path / "c.safetensors"), epochs=2)
    (tmp_path / "c.safetensors").write_bytes(b"nothing")
    with pytest.raises(OptionError, match="not a judgesmith checkpoint"):
        checkpointed(str(base), str(tmp_path / "c.safetensors"))


# Losses --------------------------------------------------------------------------------------------------------------


def losses(
    base: Path, tmp_path: Path, **options: Any
) -> tuple[Training, list[Example]]:
    student = Student(base, Shape(4, 8), threads=1, seed=3)
    judge = Distilled("fluency")
    examples = [
        Example(
            tuple(student.tokens(judge.messages(Item(r["output"], r["source"])))),
            percent,
            document,
        )
        for r, percent, document in zip(
            rows(4, 6), (0.0, 100.0, 40.0, 40.0), "aabb", strict=True
        )
    ]
    return Training(
        student,
        examples,
        TrainOptions(rank=4, alpha=8, **options),
        seed=0,
        checkpoint=tmp_path / "c.safetensors",
        judged=None,
        progress=Silent(),
    ), examples


def test_the_regression_loss_is_the_squared_error_of_the_expected_digit(
    base: Path, tmp_path: Path
) -> None:
    both, examples = losses(base, tmp_path)
    plain, _ = losses(base, tmp_path, loss="cross-entropy")
    row = examples[2:3]  # 40 percent is 2.6 of 1 to 5
    with torch.inference_mode():
        digits, opening, _ = both.student.log_answers([row[0].prompt])
        expected = float(both.student.expected(digits)[0])
        gap = float(both._loss(row, [0.0])) - float(plain._loss(row, [0.0]))
        entropy = -(0.4 * float(digits[0, 1]) + 0.6 * float(digits[0, 2])) - float(
            opening[0]
        )
    assert gap == pytest.approx((expected - 2.6) ** 2, abs=1e-4)
    assert float(plain._loss(row, [0.0])) == pytest.approx(entropy, abs=1e-4)


def test_the_ranking_loss_pulls_the_rows_of_a_document_apart(
    base: Path, tmp_path: Path
) -> None:
    pairs, examples = losses(base, tmp_path, ranking_weight=1.0)
    worse, better, *level = pairs._ranking(examples)
    assert worse > 0 > better
    assert worse == pytest.approx(-better)
    assert level == [0.0, 0.0]
    assert losses(base, tmp_path)[0]._ranking(examples) == [0.0] * 4


def test_an_annotation_adds_its_mean_log_probability_a_token(
    base: Path, tmp_path: Path
) -> None:
    training, (first, second, *_) = losses(base, tmp_path)
    student = training.student
    said = student.annotation_tokens("No Error")
    longer = replace(
        first,
        prompt=(*first.prompt[: -len(student._opening)], *said, *student._opening),
        annotation_tokens=len(said),
    )
    with torch.inference_mode():
        _, opening, mean = student.log_answers(
            [longer.prompt, second.prompt], [longer.annotation_tokens, 0]
        )
        alone = torch.log_softmax(
            student._plain(torch.tensor([longer.prompt])).logits[0].float(), -1
        )
    start = len(longer.prompt) - len(student._opening) - len(said)
    by_hand = [float(alone[start + i - 1, token]) for i, token in enumerate(said)]
    assert float(mean[0]) == pytest.approx(sum(by_hand) / len(by_hand), abs=1e-4)
    assert float(mean[1]) == 0.0
    assert float(opening[0]) == pytest.approx(
        sum(
            float(alone[start + len(said) + i - 1, t])
            for i, t in enumerate(student._opening)
        ),
        abs=1e-4,
    )


def test_prompts_that_share_a_beginning_read_as_they_do_alone(
    base: Path, tmp_path: Path
) -> None:
    training, examples = losses(base, tmp_path)
    prompts = [e.prompt for e in examples]
    together = training.student.percents(prompts, 100_000)
    assert together == pytest.approx(
        [training.student.percents([p], 1)[0] for p in prompts], abs=1e-3
    )


def test_weights_of_another_rank_are_refused(trained: Trained, base: Path) -> None:
    with pytest.raises(ModelError, match="another base model or another rank than 4"):
        Student(base, Shape(4, 8), adapter=trained.folder / ADAPTER, threads=1)
