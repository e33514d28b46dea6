"""Two servers never share their answers, whichever of LiteLLM's providers they are reached by and wherever it finds
their address."""

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from misbehaving_server import MakeServer, Server

from judgesmith.errors import JudgesmithError
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.transport import _WAYS, Request, _names_a_place

#: These begin with a login in a browser, or load a model into this process.
LEFT_OUT = {"github_copilot", "chatgpt", "petals"}


def ask_all(models: dict[str, LanguageModel]) -> dict[str, bool]:
    """One request through each model, a few at the same time: whether an answer came."""
    few = asyncio.Semaphore(8)

    async def one(provider: str, lm: LanguageModel) -> bool:
        async with few:
            try:
                await lm.complete(Request([{"role": "user", "content": f"row of {provider}."}], 3))
            except JudgesmithError:
                return False
            return True

    async def together() -> list[bool]:
        return await asyncio.gather(*(one(provider, lm) for provider, lm in models.items()))

    return dict(zip(models, engine.run(together()), strict=True))


def all_models() -> dict[str, LanguageModel]:
    import litellm

    made = {}
    for listed in litellm.provider_list:
        provider = str(getattr(listed, "value", listed))
        if provider in LEFT_OUT or provider.startswith("ollama"):  # Ollama's address is looked up, and used, by us
            continue
        try:
            connection = Connection(api_key="k", timeout=20, attempts=1)
            made[provider] = language_model(f"{provider}/{provider}-m", connection=connection)
        except JudgesmithError:  # a server of one's own, without an address
            continue
    return made


@pytest.fixture
def closed_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    """No host but this one has an address. The names of environment variables that are looked up from now on."""
    looked_up: set[str] = set()
    environ, real = type(os.environ), socket.getaddrinfo
    get = environ.__getitem__

    def watched(self: Any, name: Any) -> Any:
        if isinstance(name, str):
            looked_up.add(name)
        return get(self, name)

    def resolve(host: Any, *rest: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "localhost"):
            raise socket.gaierror(socket.EAI_NONAME, "not in this test")
        return real(host, *rest, **options)

    for name in list(os.environ):
        if _names_a_place(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    import litellm  # reads its own settings now, not while it is watched

    assert litellm.provider_list
    monkeypatch.setattr(environ, "__getitem__", watched)
    return looked_up


def rows_at(server: Server) -> str:
    return json.dumps(server.bodies)


@pytest.mark.filterwarnings("ignore")  # LiteLLM's own
def test_whatever_variable_names_a_server_its_answers_are_its_own(
    serve: MakeServer, monkeypatch: pytest.MonkeyPatch, closed_world: set[str]
) -> None:
    """All variables that any provider looks up are found by watching. Those that do not count for the identity lead no
    call anywhere; those that do are pointed at one server, then at another: both get their calls."""
    one, two, nobody = serve(), serve(), serve()
    ask_all(all_models())
    names = {name for name in closed_world if name not in os.environ and name.upper() not in _WAYS}
    places = {name for name in names if _names_a_place(name)}
    assert {"DEEPSEEK_API_BASE", "GROQ_API_BASE", "ANTHROPIC_BASE_URL", "AWS_REGION_NAME"} <= places

    with monkeypatch.context() as patch:
        for name in names - places:
            patch.setenv(name, nobody.base)
        ask_all(all_models())
    assert nobody.bodies == []

    identities, answered = [], {}
    for server in (one, two):
        for name in places | {"HOSTED_VLLM_API_BASE", "LM_STUDIO_API_BASE", "OPENAI_LIKE_API_BASE"}:
            monkeypatch.setenv(name, server.base)
        models = all_models()
        identities.append({provider: lm.identity for provider, lm in models.items()})
        answered = ask_all(models)
    assert set(identities[0]) == set(identities[1])
    assert [p for p in identities[0] if identities[0][p] == identities[1][p]] == []
    reached = {p for p in identities[0] if f"row of {p}." in rows_at(one)}
    assert {p for p in identities[1] if f"row of {p}." in rows_at(two)} == reached
    # Of some 160 providers those that need no login or package of their own; most speak OpenAI's form.
    assert {"openai", "deepseek", "hosted_vllm", "lm_studio", "groq", "mistral", "anthropic", "together_ai"} <= reached
    assert sum(answered[p] for p in reached) > 40
    ask_all(all_models())
    fresh = {p for p in reached if answered[p]}
    assert all(rows_at(two).count(f"row of {p}.") == 1 for p in fresh)  # and now they come from the disk


def test_librarys_own_settings_count_too(monkeypatch: pytest.MonkeyPatch, closed_world: set[str]) -> None:
    import litellm

    lm = language_model("deepseek/m", connection=Connection(cache=False))
    before = lm.identity
    assert lm.identity == before
    monkeypatch.setattr(litellm, "api_base", "http://127.0.0.1:1/v1")
    assert lm.identity != before
    given = [language_model("deepseek/m", connection=Connection(f"http://h:{n}/", cache=False)) for n in (1, 2)]
    assert given[0].identity != given[1].identity


@pytest.mark.parametrize("provider", ["hosted_vllm", "vllm", "lm_studio", "openai_like", "custom_openai"])
def test_a_server_of_ones_own_needs_an_address(
    provider: str, monkeypatch: pytest.MonkeyPatch, serve: MakeServer, closed_world: set[str]
) -> None:
    """LiteLLM would send the row to OpenAI, or load a model into this process."""
    name = f"{provider.upper()}_API_BASE"
    with pytest.raises(JudgesmithError, match=f"--api-base or {name}"):
        language_model(f"{provider}/m", connection=Connection(cache=False))
    server = serve()
    monkeypatch.setenv(name, server.base)
    assert ask_all({provider: language_model(f"{provider}/m", connection=Connection(cache=False))}) == {provider: True}
    assert len(server.bodies) == 1
    monkeypatch.setenv(name, "nowhere")
    with pytest.raises(JudgesmithError, match=name):
        language_model(f"{provider}/m", connection=Connection(cache=False))
