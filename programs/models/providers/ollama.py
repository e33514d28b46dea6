"""The models of an Ollama server."""

from __future__ import annotations

from judgesmith.programs.models.connection import Connection
from judgesmith.programs.models.ollama import check_ollama, ollama_host
from judgesmith.programs.models.provider import TAGGED, Provider, Reached, providers
from judgesmith.programs.models.reaching import checked_address


@providers.register
class Ollama(Provider):
    """Models that an Ollama server runs."""

    name = "ollama_chat/"
    aliases = ("ollama/",)
    about = "Models of an Ollama server, at OLLAMA_HOST or on this machine."
    free = True
    listed = TAGGED

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a model that the server has.

        Raises:
            ModelError: If the server does not answer, or has no such model.
        """
        from judgesmith.programs.models.through_ollama import ThroughOllama

        model = cls.model_of(name)
        place = ollama_host(connection.api_base)
        host = checked_address("the address of Ollama", place)
        longest = check_ollama(model, host)
        transport = ThroughOllama(host, model, longest, timeout=connection.timeout)
        return Reached(name=name, transport=transport, identity=host, longest=longest)

    @classmethod
    def qualified(cls, name: str) -> str:
        """Return a name with its tag.

        >>> Ollama.qualified("ollama/llama3.1")
        'ollama_chat/llama3.1:latest'
        """
        model = name.partition("/")[2]
        tag = "" if ":" in model else ":latest"
        return f"{cls.name}{model}{tag}"
