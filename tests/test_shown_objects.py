"""What objects show of themselves: one line, and in notebooks a table in which no text is markup."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judgesmith.agreement.correlation import CorrelationSum
from judgesmith.agreement.meta.evaluation import meta_evaluate
from judgesmith.agreement.metric import AgreementValue
from judgesmith.agreement.objectives import Q, Reached
from judgesmith.experiments.studies.analysis import Analysis, Line
from judgesmith.optimizers.report import CompileReport
from judgesmith.programs.judge import Judge
from judgesmith.programs.pointwise.direct import DirectScorer
from judgesmith.signatures.values import (
    Criterion,
    ErrorSpan,
    Scale,
    ScoreInterval,
    Usage,
    Verdict,
)

HOSTILE = "<img src=x onerror=alert(1)> \x1b[31m </table>"


def one_line(shown: str) -> bool:
    return "\n" not in shown and "\x1b" not in shown and len(shown) <= 240


def escaped(shown: str) -> bool:
    return "<img" not in shown and "\x1b" not in shown and "&lt;img" in shown


def test_a_judge_says_method_scale_model_and_agreement() -> None:
    judge = Judge(
        DirectScorer(task=HOSTILE * 50, criteria=[Criterion(HOSTILE, HOSTILE)]),
        scale=Scale(1, 5),
        lm="openai/fake",
    )
    assert repr(judge) == "Judge(direct, scale=1..5, lm='openai/fake')"
    judge.provenance = {"heldout": {"signature": f"Q=1.31 [0.92, 1.63] {HOSTILE}"}}
    assert "held out: Q=1.31 [0.92, 1.63]" in repr(judge)
    assert one_line(repr(judge))
    shown = judge._repr_html_()
    assert escaped(shown)
    assert "openai/fake" in shown
    assert "Q=1.31" in shown


@pytest.mark.parametrize(
    "provenance", [{}, {"heldout": None}, {"heldout": "text"}, {"heldout": {}}]
)
def test_a_judge_that_was_not_compiled_says_nothing_of_agreement(
    provenance: dict[str, Any],
) -> None:
    judge = Judge(DirectScorer())
    judge.provenance = provenance
    assert repr(judge) == "Judge(direct, scale=0..100)"


def test_a_verdict_says_score_interval_and_what_is_suspicious() -> None:
    verdict = Verdict(
        score=4.2,
        explanation=HOSTILE * 9,
        interval=ScoreInterval(3.5, 4.9, 0.9, 0.4),
        suspicious=HOSTILE,
        errors=(ErrorSpan("x", HOSTILE, 3),),
        raw=("long " * 999,),
    )
    assert repr(verdict).startswith(
        "Verdict(score=4.2 [3.5, 4.9], 1 error, suspicious='<img"
    )
    assert one_line(repr(verdict))
    assert str(verdict) == repr(verdict)
    assert escaped(verdict._repr_html_())
    assert "90% interval" in verdict._repr_html_()
    assert repr(Verdict.failed("cut off")) == "Verdict(score=no score: cut off)"


def agreement() -> AgreementValue:
    human = np.arange(12.0)
    found = CorrelationSum("pooled")(human, human, [str(k) for k in range(12)], None)
    return AgreementValue(Q(), Reached(found.q, 12, 1), 2.5, 3.0, 0, found)


def test_an_agreement_and_a_compile_report_say_their_numbers() -> None:
    found = agreement()
    assert (
        repr(found)
        == "Agreement(Q=3.00 [2.50, 3.00] r+rho+tau|pooled|n:12|failed:1|seed:0)"
    )
    assert "<td" in found._repr_html_()
    assert "Pearson r" in found._repr_html_()
    report = CompileReport(
        found,
        found,
        (0.4, 0.1, 0.7, 0.01),
        found,
        0,
        24,
        12,
        {"candidate": HOSTILE},
        (),
        (HOSTILE,),
        Usage(1234),
        1.0,
        0.4,
        0.5,
        heldout_predictions=({"long": "list"},) * 99,
    )
    assert one_line(repr(report))
    assert "+0.40 [0.10, 0.70] against the model alone; 1,234 calls" in repr(report)
    shown = report._repr_html_()
    assert escaped(shown)
    assert "length and overlap" in shown
    assert "p = 0.010" in shown


def test_a_meta_evaluation_shows_judges_against_coefficients() -> None:
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 30).astype(float)
    found = meta_evaluate(
        {HOSTILE: human + rng.normal(size=30), "flat": np.full(30, 2.0)},
        human,
        rounds=20,
    )
    assert one_line(repr(found))
    assert "flat" in repr(found)
    shown = found._repr_html_()
    assert escaped(shown)
    assert shown.count("<tr>") >= 3
    assert "–" in shown


def test_a_study_says_what_is_done() -> None:
    config: Any = SimpleNamespace(baseline="none", study="labels")
    line = Line(
        HOSTILE, "m", "none", 10, {0: {"q": 1.2, "calls": 30}}, 1, 0.9, math.nan
    )
    found = Analysis(config, [line], [], missing=2, notes=[HOSTILE])
    assert repr(found) == "Analysis(labels study, 1 lines, 1 cells done, 2 missing)"
    assert escaped(found._repr_html_())
    assert "1.20" in found._repr_html_()
