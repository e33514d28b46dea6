"""`judgesmith synthesize`: what is annotated, what is kept, and that it goes on after a stop."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from judgesmith.errors import BudgetError, OptionError
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.rooms.training.synthesizing import Synthesis, SynthesisOptions
from judgesmith.rooms.training.synthetic import read_synthetic
from judgesmith.running.console import Watch
from judgesmith.running.limits import Limits

WORDS = (
    "the",
    "old",
    "ferry",
    "left",
    "a",
    "harbour",
    "at",
    "dawn",
    "and",
    "reached",
    "some",
    "island",
    "before",
    "noon",
    "in",
    "heavy",
    "rain",
    "with",
    "few",
    "people",
)


def told(seed: int) -> str:
    """Fourteen words; no two seeds give texts that are nearly equal."""
    return " ".join(random.Random(seed).sample(WORDS, 14))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Twelve inputs with two outputs each, of which the number says how good they are."""
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(
            json.dumps(
                {
                    "id": f"{d}-{s}",
                    "source": f"Story {d}: {told(d)}.",
                    "doc_id": f"d{d}",
                    "system": f"s{s}",
                    "output": f"{told(100 + 2 * d + s)}, grade {(d + s) % 5 + 1} of story {d} by {s}.",
                }
            )
            + "\n"
            for d in range(12)
            for s in range(2)
        )
    )
    return file


def grade(request: Any) -> str:
    found = re.search(r"grade (\d)", request.messages[-1]["content"])
    return f"Score: {20 * int(found[1]) - 10}" if found else "Score: 5"


def judge_of(scripted: Any, aspect: str = "fluency", answer: Any = grade) -> Judge:
    lm, _ = scripted(answer)
    return Judge(DirectScorer(aspect, reading="said"), lm=lm)


def synthesis(
    rows: Path, *judges: Judge, options: dict[str, Any] | None = None, **given: Any
) -> Synthesis:
    chosen = SynthesisOptions(
        **{"perturbed": 1, "perturbations": ("character",)} | (options or {})
    )
    return Synthesis(
        rows=rows,
        judges=judges,
        output=rows.with_name("synthetic.jsonl"),
        options=chosen,
        **given,
    )


def run(one: Synthesis) -> Any:
    with Watch("test") as watch:
        return one.run(watch)


def test_outputs_are_drawn_perturbed_annotated_and_written_as_chats(
    scripted: Any, rows: Path
) -> None:
    made = run(
        synthesis(
            rows,
            judge_of(scripted),
            judge_of(scripted, "coherence"),
            options={"step": 5, "answer": "percent"},
        )
    )
    found = [
        example for example, _ in read_synthetic(rows.with_name("synthetic.jsonl"))
    ]
    assert len(found) == made.kept
    assert {e.aspect for e in found} == {"fluency", "coherence"}
    perturbed = [e for e in found if e.made.startswith("perturbed by")]
    assert perturbed
    assert all(e.output not in rows.read_text() for e in perturbed)
    for e in found:
        assert e.percent % 5 == 0
        assert [m.role for m in e.messages] == ["system", "user", "assistant"]
        assert e.messages[-1].content == f"Score: {e.percent:.0f}"
        assert e.output in e.messages[1].content


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])
def test_a_text_may_hold_signs_that_end_lines_elsewhere(
    scripted: Any, rows: Path, sign: str
) -> None:
    plain = run(synthesis(rows, judge_of(scripted)))
    rows.with_name("synthetic.jsonl").unlink()
    held = rows.read_text().replace(" of story", f"{json.dumps(sign)[1:-1]}of story")
    rows.write_text(held)
    assert run(synthesis(rows, judge_of(scripted))).kept == plain.kept
    found = read_synthetic(rows.with_name("synthetic.jsonl"))
    assert any(sign in example.output for example, _ in found)


def test_rows_held_apart_are_never_sent_to_a_judge(scripted: Any, rows: Path) -> None:
    lm, transport = scripted(grade)
    method = DirectScorer("fluency", reading="said", material="all")
    judge = Judge(method, lm=lm)
    everything = synthesis(rows, judge).inputs[0]
    apart = everything["d3"] + everything["d7"]
    made = run(synthesis(rows, judge, apart=apart))
    sent = "\n".join(
        m["content"] for request in transport.requests for m in request.messages
    )
    assert "Story 4:" in sent
    assert "Story 3:" not in sent
    assert "Story 7:" not in sent
    assert {
        row.doc_id for _, row in read_synthetic(rows.with_name("synthetic.jsonl"))
    }.isdisjoint({"d3", "d7"})
    assert "4 rows share documents or texts" in made.notes[0]


def test_a_run_resumes_where_its_budget_ended(scripted: Any, rows: Path) -> None:
    lm, transport = scripted(grade)
    lm.concurrency = 1  # of rows judged at once, any may be the one too many
    judge = Judge(DirectScorer("fluency", reading="said"), lm=lm)
    with pytest.raises(BudgetError):
        run(synthesis(rows, judge, limits=Limits(max_calls=10)))
    run(synthesis(rows, judge))
    file = rows.with_name("synthetic.jsonl")
    assert len(transport.requests) == len(read_synthetic(file)) == 36
    written, asked = file.read_bytes(), len(transport.requests)
    run(synthesis(rows, judge))
    assert file.read_bytes() == written
    assert len(transport.requests) == asked


def test_the_mean_of_the_annotators_counts_and_what_none_can_score_is_left_out(
    scripted: Any, rows: Path
) -> None:
    other = judge_of(
        scripted,
        answer=lambda r: "?" if "story 2 by" in str(r.messages) else "Score: 100",
    )
    other.method.knowledge.description = "Another annotator."
    run(synthesis(rows, judge_of(scripted), other, options={"perturbed": 0}))
    for example, _ in read_synthetic(rows.with_name("synthetic.jsonl")):
        own = 20 * int(re.search(r"grade (\d)", example.output)[1]) - 10  # type: ignore[index]
        assert example.percent == (
            own if "story 2 by" in example.output else (own + 100) / 2
        )
    assert run(synthesis(rows, other, options={"perturbed": 0})).left == {"no score": 2}


def test_a_plan_asks_nobody_and_another_file_is_not_overwritten(
    scripted: Any, rows: Path
) -> None:
    one = synthesis(rows, judge_of(scripted, answer=lambda _: None))
    assert one.plan()["examples at most"] == 36
    one.output.write_text("my own notes\n")
    with pytest.raises(OptionError, match="holds no synthetic examples"):
        run(one)
