"""Models inside this process: `local/NAME` of the catalog, and `gguf:PATH`."""

from __future__ import annotations

import re
from pathlib import Path

from judgesmith.programs.models.connection import Capabilities, Connection
from judgesmith.programs.models.provider import WORD, Provider, Reached, providers
from judgesmith.programs.models.providers.openai import OpenAIStyle
from judgesmith.programs.models.transport import Transport

#: Seconds that an answer may take at least: others compute on the same cores.
PATIENCE = 600.0
#: Calls under way at once, unless answers are chosen.
AT_ONCE = 4


class InProcess(Provider):
    """Base of models that llama.cpp, or an engine that chooses answers, computes in this process."""

    grammars = True
    free = True
    in_process = True

    @classmethod
    def open(cls, name: str, connection: Connection) -> Reached:
        """Open a model; one of the catalog is fetched first if it is not here.

        Raises:
            ModelError: If it is unknown, cannot be fetched or cannot be started.
            MissingExtraError: Without `xllamacpp`.
        """
        return opened(name, cls.shown(name), connection)

    @classmethod
    def shown(cls, name: str) -> str:
        """Return the name that an artifact records, without a path of this machine."""
        return name

    @classmethod
    def context(cls) -> int | None:
        """Return the tokens of prompt and answer together."""
        from judgesmith.programs.models.local import CONTEXT

        return CONTEXT


@providers.register
class Local(InProcess):
    """Small models of the catalog."""

    name = "local/"
    about = "Small models of the catalog, in this process (extra `local`)."
    catalog = True
    listed = WORD

    @classmethod
    def size(cls, name: str) -> int:
        """Return the bytes of a model's file, as the catalog has them."""
        from judgesmith.programs.models.files import find_model

        return find_model(name.removeprefix(cls.name)).bytes


@providers.register
class GGUF(InProcess):
    """Any file in llama.cpp's format."""

    name = "gguf:"
    about = "A GGUF file, in this process (extra `local`)."

    @classmethod
    def size(cls, name: str) -> int:
        """Return the bytes of the file."""
        return Path(name.removeprefix(cls.name)).stat().st_size

    @classmethod
    def shown(cls, name: str) -> str:
        """Return the name of the file without its folder."""
        return cls.name + re.split(r"[\\/]", name)[-1]


def opened(
    name: str, shown: str, connection: Connection, adapter: Path | None = None
) -> Reached:
    """Open a model.

    Args:
        name: The model.
        shown: The name that artifacts record.
        connection: Its limits.
        adapter: A GGUF file of low-rank weights (LoRA) that are added to the model's.
    """
    from judgesmith.programs.models import choosing, local
    from judgesmith.programs.models.begun import Begun

    path, digest, model_id = local.identified(name, adapter)

    def served() -> Transport:
        endpoint = local.embedded(name, adapter)
        style = OpenAIStyle(
            endpoint.base_url + "/v1",
            endpoint.model_id,
            key=endpoint.api_key,
            timeout=max(connection.timeout, PATIENCE),
            label=name,
        )
        return Begun(local.SharedMemory(style, endpoint))

    chooser = None if adapter else choosing.chooser_of(path, shown)
    if chooser is None:
        return Reached(
            name=shown,
            transport=served(),
            identity=model_id,
            concurrency=AT_ONCE,
            weights=path,
            digest=digest,
            computed_by=local.LLAMA_CPP,
            one_by_one=True,
        )
    return Reached(
        name=shown,
        transport=choosing.Choosing(chooser, local.Lazily(served)),
        identity=f"{model_id} {chooser.way}",
        concurrency=choosing.AT_ONCE,
        able=Capabilities(True, True, chooser.system_prompt, True),
        weights=path,
        digest=digest,
        computed_by=chooser.way,
    )
