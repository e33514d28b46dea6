"""The names of models that a saved judge may choose, and those that it may only show.

To LiteLLM a name is more than a name: part of it may become a host (`bedrock/agentcore/arn:…`,
`huggingface/https://…`), a region, a path, or code and weights to load (`petals/…`, `vllm/…`). Whoever wrote a judge's
file must not choose any of these. So a file may name only models of the providers below, each in its own form: such a
name reaches the provider's own host or the server that the user's settings name. Every other model the user names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from judgesmith.errors import ArtifactError
from judgesmith.programs.models.provider import provider_of

_EXAMPLES = "openai/MODEL, ollama_chat/MODEL, local/MODEL and the like"
_LONGEST = 200
_SHOWN = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*"
_FILE = r"(?:gguf|hf):[A-Za-z0-9][A-Za-z0-9._+-]*"


def is_listed(name: str) -> bool:
    """Return True if a file may choose the model of this name."""
    return len(name) <= _LONGEST and provider_of(name).lists(name)


def _listed(name: str) -> str:
    if not is_listed(name):
        raise ValueError(
            f"a file may not choose the model {name[:80]!r}, only plain names of known providers ({_EXAMPLES})"
        )
    return name


def _showable(name: str) -> str:
    if not re.fullmatch(_SHOWN, name) or re.search(r"https?:|//", name, re.IGNORECASE):
        raise ValueError(f"{name[:80]!r} is not a model's name")
    if name.lower().startswith("gguf:") and not re.fullmatch(_FILE, name):
        raise ValueError(f"{name[:80]!r} is a path; only a file's name may stand here")
    return name


#: For a model that is opened because a file names it: every such field of an artifact has this type.
ListedName = Annotated[
    str, StringConstraints(max_length=_LONGEST), AfterValidator(_listed)
]
#: For a model that a file was made with: shown, and opened only where it is listed.
ShownName = Annotated[
    str, StringConstraints(max_length=_LONGEST), AfterValidator(_showable)
]


def recorded(name: str) -> str:
    """Return a model's name as an artifact records it.

    A name that holds an address, an ARN or a path is replaced by its provider and twelve hex digits of its hash.
    """
    try:
        if len(name) <= _LONGEST and "arn:" not in name.lower():
            return _showable(name)
    except ValueError:
        pass
    provider = re.match(r"[A-Za-z0-9_-]{1,40}[/:]", name)
    return f"{provider[0] if provider else ''}unlisted-{sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


@lru_cache(maxsize=256)
def qualified(name: str) -> str:
    """Return a served model's name with its provider, by which it is the same model wherever it is served.

    >>> qualified("gpt-4o-mini"), qualified("ollama/llama3.1")
    ('openai/gpt-4o-mini', 'ollama_chat/llama3.1:latest')
    """
    if not name:
        return name
    name = recorded(name)
    return provider_of(name).qualified(name)


def check_listed(names: Iterable[str]) -> None:
    """Check that a file may choose all of these, the models that a judge calls beside its own.

    Raises:
        ArtifactError: For a model that it may not choose.
    """
    for name in names:
        if not is_listed(name):
            raise ArtifactError(
                f"a judge cannot be saved or loaded with the model {name[:80]!r}; use a model of a known "
                f"provider by its plain name ({_EXAMPLES})"
            )


def check_chosen(name: str, api_base: str | None) -> None:
    """Check a model that a file names, before it is opened.

    Args:
        name: The model.
        api_base: The address that the user gave, if any.

    Raises:
        ArtifactError: If only the user may choose it, or must name its server.
    """
    if not is_listed(name):
        kind, _, path = name.partition(":")
        wanted = "gguf:PATH" if kind == "gguf" else "MODEL"
        if wanted == "MODEL":
            file = f"{name[:80]!r}, which no file may choose"
        else:
            file = f"the file {path[:80]!r}"
        raise ArtifactError(
            f"the judge was compiled with {file}; give it with --lm {wanted}, in Python lm='{wanted}'"
        )
    variable = provider_of(name).unplaced(api_base)
    if variable:
        raise ArtifactError(
            f"the judge asks for {name}, and nothing says where its server is; give --api-base or set {variable}"
        )
