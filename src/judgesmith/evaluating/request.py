"""One evaluation, as a command or a program asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judgesmith.evaluating.options import EvaluateOptions
from judgesmith.running.settings import ReachOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateRequest:
    """Rows with scores, the human ratings and the judges in them, and what is to become of the numbers."""

    sources: Sequence[str]
    """Files, or benchmark sets; the human ratings come from the first."""
    options: EvaluateOptions
    human: Sequence[str] = ()
    judges: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column names by role."""
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Words of a column, worst first."""
    scale: tuple[float, float] | None = None
    limit: int | None = None
    unseen: bool = False
    spans: str | None = None
    """Error spans of people, to be compared with those of the one source."""
    output: Path | None = None
    """The report."""
    fail_under: Sequence[str] = ()
    """The gates."""
    plan: bool = False
    """Print what more labels would buy."""
    baseline: Path | None = None
    """The verdicts of a run that passed its gates."""
    certificate: Path | None = None
    """One page on what the judge may be used for."""
    lm: str | None = None
    api_base: str | None = None
    reach: ReachOptions = field(default_factory=ReachOptions)
    as_json: bool = False
