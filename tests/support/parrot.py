"""A model that says the same to everything."""

from judgesmith.programs.models.lm import Connection, LanguageModel
from judgesmith.programs.models.transport import Reply, Request


class Parrot:
    async def send(self, request: Request) -> Reply:
        return Reply("Score: 3", prompt_tokens=1, completion_tokens=1)


def parrot(name: str = "openai/parrot") -> LanguageModel:
    return LanguageModel(name, Parrot(), identity="parrot", connection=Connection(cache=False, attempts=1))
