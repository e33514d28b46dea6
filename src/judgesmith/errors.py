"""Every error that judgesmith raises on purpose. One tree, so that one `except JudgesmithError` catches all of them.

A message says what is wrong, where (file, row, column) and what to do about it.
"""

from __future__ import annotations

from typing import Any


class JudgesmithError(Exception):
    """Base of every error here. The command line prints its message alone and ends with exit code 2."""


class LabelsError(JudgesmithError):
    """A data file or table cannot be used: a missing column, an empty text, a score off the scale, too few rows.

    problems: what is wrong, each on its own; the message has a line for each.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.problems


class LeakError(JudgesmithError):
    """A row would be judged, or an agreement reported, with its own human score in the prompt or in the search."""


class OptionError(JudgesmithError):
    """An argument or a combination of arguments makes no sense."""


class ModelError(JudgesmithError):
    """A language model cannot be used at all: unknown name, server down, model not pulled, key refused."""


class OutageError(ModelError):
    """A model's server does not answer, or not any more. What is finished is kept.

    The command line ends with exit code 75 (EX_TEMPFAIL): the same command may succeed later.
    """


class CallError(JudgesmithError):
    """One call to a language model failed for good, after its retries. The row it was for has no score."""

    lasting = False
    """True if the same call would fail again."""


class NoScoreError(JudgesmithError):
    """A row has no score, where another framework asks for one; the message says why."""


class BudgetError(JudgesmithError):
    """The next step would go over the calls, the cost or the failed rows that the user allowed."""


class ArtifactError(JudgesmithError):
    """A saved judge cannot be read, or holds what a saved judge may not hold."""


class MissingExtraError(JudgesmithError):
    """An optional package is needed; the message names the command that installs it."""
