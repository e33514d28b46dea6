"""Models that say the same to everything."""

from collections.abc import Callable
from typing import Any

import dspy

from judgesmith.programs.answers.reply import Reply
from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Request


class Parrot:
    async def send(self, request: Request) -> Reply:
        return Reply("Score: 3", prompt_tokens=1, completion_tokens=1)


def parrot(name: str = "openai/parrot") -> LanguageModel:
    return LanguageModel(
        name,
        Parrot(),
        identity="parrot",
        connection=Connection(cache=False, attempts=1),
    )


class Forward(dspy.BaseLM):  # type: ignore[misc]
    """A caller's model that has `forward` and nothing else: what it answers is a function of the messages."""

    def __init__(self, answer: Callable[[Any], str]) -> None:
        super().__init__("scripted/model", cache=False)
        self.answer = answer

    def forward(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        from litellm import ModelResponse

        text = self.answer(messages or [{"role": "user", "content": prompt}])
        choice = {
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        used = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        return ModelResponse(choices=[choice], usage=used, model="scripted/model")


class Foreign(dspy.BaseLM):  # type: ignore[misc]
    """A caller's own LM object; an exception is raised."""

    def __init__(self, output: Any = "Score: 4") -> None:
        super().__init__("mine/m")
        self.output = output
        self.asked: list[dict[str, Any]] = []

    async def acall(
        self, prompt: Any = None, messages: Any = None, **options: Any
    ) -> list[Any]:
        self.asked.append({"messages": messages, **options})
        if isinstance(self.output, Exception):
            raise self.output
        return [self.output]
