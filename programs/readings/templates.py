"""A model's chat template, rendered as its maker's libraries render it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ...errors import ModelError

__all__ = ["PLAIN_TURNS", "JinjaChat"]

#: For models without a template of their own.
PLAIN_TURNS = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


class JinjaChat:
    """A chat template in Jinja, as GGUF files and tokenizers carry it. It comes with the model and is not trusted: it
    runs in a sandbox, where it reaches nothing but the messages.

    Raises: ModelError if the template is no Jinja.
    """

    def __init__(self, template: str, *, bos: str = "", eos: str = "") -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: ""  # a date in the prompt would change the readings daily
        try:
            self._template = environment.from_string(template)
        except jinja2.TemplateError as error:
            raise ModelError(f"the model's chat template cannot be read: {error}") from error
        self._marks = {"bos_token": bos, "eos_token": eos}

    def __call__(self, messages: Sequence[tuple[str, str]], *, answer: bool) -> str:
        """See `Chat`. Raises: ValueError where the template refuses the messages, for example a system's."""
        turns: list[dict[str, Any]] = [{"role": role, "content": content} for role, content in messages]
        try:
            return self._template.render(messages=turns, add_generation_prompt=answer, **self._marks)
        except jinja2.TemplateError as error:
            raise ValueError(str(error)) from error


def _refuse(message: str) -> str:
    raise jinja2.TemplateError(message)
