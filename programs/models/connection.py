"""How a model is reached and drawn from, and what it was seen to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgesmith.errors import OptionError


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options for drawing answers.

    temperature: 0 to 2. max_tokens: a cap on the tokens of an answer; None leaves that to the judge. Raises OptionError
    for values outside these limits.
    """

    temperature: float = 0.0
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 2.0:
            raise OptionError(f"temperature {self.temperature:g} is outside 0..2")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise OptionError(f"max tokens must be positive; got {self.max_tokens}")


@dataclass(frozen=True, slots=True)
class Connection:
    """Address and limits of a model. Never saved in an artifact.

    api_base, api_key: the server's address and key; None takes them from the provider's environment variables.
    timeout: seconds for one call. attempts: tries of one call, the first included. concurrency: calls under way at
    once; None takes what suits the model. rpm: requests a minute at most. cache: whether answers are kept on disk and
    taken from there. Raises OptionError for values that are not positive.
    """

    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    attempts: int = 5
    concurrency: int | None = None
    rpm: float | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        for name in ("timeout", "attempts", "concurrency", "rpm"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise OptionError(f"{name} must be positive; got {value}")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities that a model showed when it was probed.

    without: parameters of requests that it refused, and is asked without.
    """

    logprobs: bool = False
    json_schema: bool = False
    system_prompt: bool = True
    grammar: bool = False
    without: tuple[str, ...] = ()
