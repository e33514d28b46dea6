"""The model that DSPy's own optimizers write prompts with, as they know models: ours, with its budget and cache."""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import re
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, Self
from unittest import mock

import dspy
import tqdm
from dspy.utils.exceptions import AdapterParseError

from judgesmith.disarming import disarm
from judgesmith.optimizers.fitting.weights import quiet_optuna
from judgesmith.programs.models.as_dspy import plain_text
from judgesmith.programs.models.lm import LanguageModel

#: Characters of an instruction at most. A model that is asked for one sometimes writes pages, and every row pays.
LONGEST = 2000
#: Tokens of one proposal at most.
PROPOSAL_TOKENS = 1500


class Ended(BaseException):
    """The search is over, because of `error`. No `Exception`, so that DSPy does not take it for a failed row."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


_MARKER = re.compile(r"\[\[\s*##\s*\w+\s*##\s*\]\]")
_FENCE = re.compile(r"^\s*```\w*\s*|\s*```\s*$")


def cleaned(text: str) -> str:
    """Return a proposed instruction as one paragraph that is safe in a prompt.

    DSPy's own field markers and code fences are gone, it cannot close our tags, and it has at most `LONGEST` characters
    (cut after a sentence if one ends in time).
    """
    before, *_ = re.split(r"\[\[\s*##\s*completed\s*##\s*\]\]", text, maxsplit=1)
    flat = " ".join(_MARKER.sub(" ", _FENCE.sub("", before)).split()).strip('" ')
    flat = disarm(flat.encode("utf-8", "replace").decode())
    if len(flat) <= LONGEST:
        return flat
    cut = flat[:LONGEST]
    end = max(cut.rfind(mark) for mark in (". ", "! ", "? ")) + 1
    return cut[:end] if end > LONGEST // 2 else cut


class PlainAdapter(dspy.ChatAdapter):  # type: ignore[misc]
    """DSPy's chat form; where a small model ignores it and one text was asked for, its whole answer is that text.

    One call each: what a search may spend on proposals is known beforehand.
    """

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Parse an answer; take the whole text if the signature has one text field and the answer no markers."""
        try:
            result: dict[str, Any] = super().parse(signature, completion)
            return result
        except AdapterParseError:
            (name, only), *others = signature.output_fields.items()
            text = cleaned(completion)
            if others or only.annotation is not str or not text:
                raise
            return {name: text}


class PromptModel(dspy.BaseLM):  # type: ignore[misc]
    """Our `LanguageModel` as DSPy's: its budget, cache, retries and connection hold for proposals, too."""

    def __init__(
        self, lm: LanguageModel, paid: Callable[[Callable[[], Any]], Any]
    ) -> None:
        super().__init__(
            model=lm.name, cache=False, temperature=lm.sampling.temperature
        )
        self.lm = lm
        self._paid = paid

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __call__(
        self, prompt: str | None = None, *, messages: Any = None, **options: Any
    ) -> list[str]:
        """Return the model's answers to a prompt of DSPy's proposers, with control tokens of rows' texts disarmed."""
        settings = {**self.kwargs, **options, "max_tokens": PROPOSAL_TOKENS}
        conversation = messages or [{"role": "user", "content": prompt or ""}]
        # Texts of rows stand in these prompts as they are: their control tokens must not speak.
        sent = [
            {"role": m["role"], "content": disarm(plain_text(m["content"]))}
            for m in conversation
        ]
        answered: list[str] = self._paid(
            lambda: self.lm.acall(messages=sent, **settings)
        )
        return answered


@contextlib.contextmanager
def quiet_dspy() -> Iterator[None]:
    """DSPy's and GEPA's reports, bars and tables do not belong on a user's screen."""
    loggers = [logging.getLogger(name) for name in ("dspy", "gepa")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        # Some bars are drawn on stderr, where ours is, and there is no way to turn them off.
        no_bars = (
            _no_bar(module)
            for module in ("dspy.teleprompt.bootstrap", "gepa.core.engine")
        )
        with (
            quiet_optuna(),
            contextlib.redirect_stdout(io.StringIO()),
            next(no_bars),
            next(no_bars),
        ):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _no_bar(name: str) -> Iterator[None]:
    """A module, where it is installed, without its bars."""
    try:
        module: Any = importlib.import_module(name)
    except ImportError:
        yield
        return
    silent = partial(tqdm.tqdm, disable=True)
    with mock.patch.object(
        module, "tqdm", SimpleNamespace(tqdm=silent) if module.tqdm is tqdm else silent
    ):
        yield
