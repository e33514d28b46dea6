"""DSPy's optimizers that train a model are refused for judges, before they ask or spend anything.

They lay prompts out by DSPy's adapters, and a judge never sends such prompts: the model would learn a form in which it
is never asked. DSPy has no place where a program can say so; hence its `compile` is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from dspy.teleprompt.bootstrap_finetune import BootstrapFinetune
from dspy.teleprompt.grpo import GRPO

from judgesmith.errors import OptionError


def refuse_training(of_judges: type) -> None:
    """Have DSPy's optimizers that train refuse programs with predictors of this class."""
    for part in (BootstrapFinetune, GRPO):
        part.compile = _refusing(part.compile, part.__name__, of_judges)


def _refusing(compile: Callable[..., Any], name: str, of_judges: type) -> Any:
    @wraps(compile)
    def checked(self: Any, student: Any, *args: Any, **named: Any) -> Any:
        if any(isinstance(one, of_judges) for one in student.predictors()):
            raise OptionError(
                f"{name} trains a model on DSPy's own prompts, and judges ask in others; `judgesmith distill` trains a "
                "small model from a judge"
            )
        return compile(self, student, *args, **named)

    return checked
