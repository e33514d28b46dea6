"""Two servers never share their answers.

That holds for all of LiteLLM's providers, and wherever it finds their address.
"""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from misbehaving_server import MakeServer

from judgesmith.errors import JudgesmithError
from judgesmith.programs.models import engine
from judgesmith.programs.models.lm import Connection, LanguageModel, language_model
from judgesmith.programs.models.providers.litellm import ONE_HOST
from judgesmith.programs.models.transport import Request

OWN = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}


def ask(lm: LanguageModel, text: str = "Is it good?") -> bool:
    """Whether an answer came."""
    try:
        engine.run(lm.complete(Request([{"role": "user", "content": text}], 3)))
    except JudgesmithError:
        return False
    return True


def model(name: str, address: str | None = None) -> LanguageModel:
    return language_model(
        name, connection=Connection(address, api_key="k", timeout=20, attempts=1)
    )


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
        if name.endswith(("BASE", "URL", "HOST", "ENDPOINT")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("JUDGESMITH_CACHE", str(tmp_path / "calls.sqlite"))
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    import litellm  # reads its own settings now, not while it is watched

    assert litellm.provider_list
    assert not litellm.api_base
    monkeypatch.setattr(environ, "__getitem__", watched)
    return looked_up


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # LiteLLM's own
def test_a_provider_that_some_variable_sends_elsewhere_keeps_no_answers(
    serve: MakeServer, monkeypatch: pytest.MonkeyPatch, closed_world: set[str]
) -> None:
    """All variables that a provider looks up are found by watching. Those that do not count lead no call anywhere."""
    elsewhere, moved = serve(), set()
    for provider in ONE_HOST:
        lm, before = model(f"{provider}/m"), set(os.environ)
        assert lm.identity == ""
        closed_world.clear()
        assert not ask(lm, f"a row of {provider}")
        names = {
            name
            for name in closed_world - before
            if name.upper() not in OWN and "KEY" not in name
        }
        counting = set()
        for name in names:
            with monkeypatch.context() as patch:
                patch.setenv(name, elsewhere.base)
                counting |= {name} if lm.identity is None else set()
        for some in (names - counting, counting):
            elsewhere.bodies.clear()
            with monkeypatch.context() as patch:
                for name in some:
                    patch.setenv(name, elsewhere.base)
                ask(lm, f"{provider} {len(some)}")
            moved |= {(provider, some is counting)} if elsewhere.bodies else set()
    assert not {provider for provider, known in moved if not known}
    assert {"deepseek", "groq", "mistral", "anthropic", "together_ai"} <= {
        provider for provider, _ in moved
    }


def test_answers_are_kept_for_an_address_that_was_given_and_for_no_other(
    serve: MakeServer, monkeypatch: pytest.MonkeyPatch, closed_world: set[str]
) -> None:
    one, two = serve(), serve()
    for server in (one, two, one):
        assert ask(model("deepseek/m", server.base))
    assert (len(one.bodies), len(two.bodies)) == (1, 1)
    lm = model("deepseek/m")
    assert lm.identity == ""
    monkeypatch.setenv("DEEPSEEK_API_BASE", one.base)
    assert lm.identity is None
    assert ask(lm)
    assert ask(lm)
    assert len(one.bodies) == 3
    monkeypatch.delenv("DEEPSEEK_API_BASE")
    import litellm

    monkeypatch.setattr(litellm, "api_base", "http://127.0.0.1:1/v1")
    assert lm.identity is None
    assert [
        model(name).identity
        for name in ("bedrock/meta.llama3", "watsonx/m", "vertex_ai/m")
    ] == [None, None, None]


@pytest.mark.parametrize(
    "provider", ["hosted_vllm", "vllm", "lm_studio", "openai_like", "custom_openai"]
)
def test_a_server_of_ones_own_needs_an_address(
    provider: str,
    monkeypatch: pytest.MonkeyPatch,
    serve: MakeServer,
    closed_world: set[str],
) -> None:
    """LiteLLM would send the row to OpenAI, or load a model into this process."""
    name = f"{provider.upper()}_API_BASE"
    with pytest.raises(JudgesmithError, match=f"--api-base or {name}"):
        language_model(f"{provider}/m", connection=Connection(cache=False))
    server = serve()
    monkeypatch.setenv(name, server.base)
    assert ask(language_model(f"{provider}/m", connection=Connection(cache=False)))
    assert len(server.bodies) == 1
    monkeypatch.setenv(name, "nowhere")
    with pytest.raises(JudgesmithError, match=name):
        language_model(f"{provider}/m", connection=Connection(cache=False))


@pytest.mark.parametrize(
    "name", ["openai/m", "hosted_vllm/m", "ollama_chat/m", "mistral/m", "deepseek/m"]
)
@pytest.mark.parametrize(
    "base",
    [
        "http://user:hunter22@127.0.0.1:9/v1",
        "https://user@host",
        "http://:hunter22@host/v1",
        "ftp://user:hunter22@host/v1",
        "http://user:hun/ter22@host/v1",
        "http://user:hunter22@[::1",
    ],
)
def test_an_address_holds_no_credentials(
    name: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They met the key's header inside the client: an internal error, once a key was there."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-one")
    with pytest.raises(
        JudgesmithError, match="holds a user name or a password"
    ) as caught:
        language_model(name, connection=Connection(base, cache=False))
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("http://host/v1?api_key=hunter22", r"http://host/v1\?… has a query"),
        ("http://host/v1#hunter22", "http://host/v1#… has a fragment"),
        ("http://a b/v1", "is not an http"),
        ("http://host\n/v1", "is not an http"),
        ("http://ho\u200bst/v1", "is not an http"),
    ],
)
def test_an_address_is_nothing_but_an_address(base: str, said: str) -> None:
    with pytest.raises(JudgesmithError, match=said) as caught:
        language_model("openai/m", connection=Connection(base, cache=False))
    assert "hunter22" not in str(caught.value)


def test_blanks_around_an_address_do_no_harm(
    serve: MakeServer, closed_world: set[str]
) -> None:
    connection = Connection(f" {serve().base}\n", cache=False)
    assert ask(language_model("openai/m", connection=connection))
