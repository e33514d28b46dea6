"""The names of models that a saved judge may choose, and those that it may only show.

To LiteLLM a name is more than a name: part of it may become a host (`bedrock/agentcore/arn:…`,
`huggingface/https://…`), a region, a path, or code and weights to load (`petals/…`, `vllm/…`). Whoever wrote a judge's
file must not choose any of these. So a file may name only models of the providers below, each in its own form: such a
name reaches the provider's own host or the server that the user's settings name. Every other model the user names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from judgesmith.errors import ArtifactError

_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_PATH = rf"{_WORD}(?:/{_WORD}){{0,3}}"
_TAGGED = rf"{_PATH}(?::{_WORD})?"
_VENDORS = (
    "ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|"
    "mistral|moonshot|moonshotai|nvidia|openai|qwen|writer"
)

#: Providers that each have one host, whose own plain names lead there.
ONE_HOST = (
    "anthropic",
    "cerebras",
    "codestral",
    "cohere",
    "cohere_chat",
    "dashscope",
    "deepinfra",
    "deepseek",
    "fireworks_ai",
    "gemini",
    "github",
    "groq",
    "mistral",
    "moonshot",
    "nvidia_nim",
    "openai",
    "openrouter",
    "perplexity",
    "sambanova",
    "together_ai",
    "xai",
    "zai",
)
#: The form of a model's name by provider.
LISTED = {
    # On this machine, or on a server that the user's settings name.
    "local": _WORD,
    "ollama": _TAGGED,
    "ollama_chat": _TAGGED,
    "hosted_vllm": _TAGGED,
    "lm_studio": _TAGGED,
    "llamafile": _TAGGED,
    # LiteLLM sends deployments that are called like models of some others (Mistral's, Cohere's) to OpenAI.
    "azure": rf"(?:o_series/|gpt5_series/)?(?=\S*gpt|o\d){_WORD}",
    "bedrock": rf"(?:converse/)?(?:[a-z-]{{2,6}}\.)?(?:{_VENDORS})\.{_WORD}(?::\d+k?){{0,2}}",
    **dict.fromkeys(ONE_HOST, _PATH),
    "openai": rf"{_PATH}(?::[A-Za-z0-9._-]*){{0,5}}",  # ft:MODEL:ORGANISATION::ID
    "openrouter": _TAGGED,
}
#: Names without a provider, which LiteLLM finds in its tables: OpenAI's and Anthropic's. And no model at all.
_BARE = r"(?:gpt-\d|o\d|claude-)[A-Za-z0-9.-]*|none"
#: Without the address of a server, LiteLLM would send these to OpenAI.
_NEED_ADDRESS = {
    "hosted_vllm": "HOSTED_VLLM_API_BASE",
    "lm_studio": "LM_STUDIO_API_BASE",
}
_EXAMPLES = "openai/MODEL, ollama_chat/MODEL, local/MODEL and the like"
_LONGEST = 200
_SHOWN = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*"
_FILE = r"(?:gguf|hf):[A-Za-z0-9][A-Za-z0-9._+-]*"


def is_listed(name: str) -> bool:
    """Return True if a file may choose the model of this name."""
    provider, slash, model = name.partition("/")
    form = LISTED.get(provider, r"(?!)") if slash else _BARE
    return (
        len(name) <= _LONGEST
        and re.fullmatch(form, model if slash else name) is not None
    )


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
    provider, slash, model = name.partition("/")
    if not slash:
        known = re.match(r"(?P<openai>gpt-|chatgpt-|o\d)|(?P<anthropic>claude-)", name)
        return name if known is None else f"{known.lastgroup}/{name}"
    if provider in ("ollama", "ollama_chat"):
        tag = "" if ":" in model else ":latest"
        return f"ollama_chat/{model}{tag}"
    return name


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
    variable = _NEED_ADDRESS.get(name.partition("/")[0])
    if variable and not (api_base or os.environ.get(variable)):
        raise ArtifactError(
            f"the judge asks for {name}, and nothing says where its server is; give --api-base or set {variable}"
        )
