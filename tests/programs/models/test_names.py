"""Models that a judge's file may choose.

No name in it reaches anything but its provider's own host or the user's own server, opens a file, or starts a loader.
"""

import asyncio
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from json_places import at, places, put
from judges import whole
from parrot import parrot
from tables import cases

from judgesmith.errors import ArtifactError, JudgesmithError
from judgesmith.programs import artifact, loading
from judgesmith.programs.active_critic.critic import ActiveCritic
from judgesmith.programs.comparing.pairwise import PairwiseDirectScorer
from judgesmith.programs.judge import Judge
from judgesmith.programs.models import engine, local
from judgesmith.programs.models.lm import Connection, language_model
from judgesmith.programs.models.names import check_chosen, is_listed, recorded
from judgesmith.programs.models.provider import beginnings, provider_of
from judgesmith.programs.models.providers import litellm as through_litellm
from judgesmith.programs.models.providers import openai
from judgesmith.programs.models.transport import Request
from judgesmith.programs.openlgauge.judge import OpeNLGauge

CASES = cases(__file__)

ORDINARY = CASES["ordinary"]
FORBIDDEN = CASES["forbidden"]
#: What may stand for a host, an account, a region or a path inside a name; P is the provider.
CRAFTED = CASES["crafted"]
#: The providers of which a file may name a model.
LISTED = {*through_litellm.FORMS} | {
    beginning.removesuffix("/")
    for beginning in beginnings()
    if beginning.endswith("/") and provider_of(beginning).listed is not None
}
OWN = "own-server.example"
#: The host, or what it ends with, by provider; those of the user's own settings are OWN.
HOSTS: dict[str, str | None] = CASES["hosts"]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_names_may_stand_in_a_file(name: str) -> None:
    assert is_listed(name)
    assert recorded(name) == name


@pytest.mark.parametrize(
    "name", [*FORBIDDEN, *(f"{name}\n" for name in ORDINARY[:1]), "openai/" + "x" * 200]
)
def test_all_others_only_the_user_may_choose(name: str) -> None:
    assert not is_listed(name)
    with pytest.raises(ArtifactError, match="--lm"):
        check_chosen(name, "http://127.0.0.1:1")


@pytest.mark.parametrize("provider", ["hosted_vllm", "lm_studio"])
def test_no_name_is_sent_to_openai_for_want_of_an_address(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{provider.upper()}_API_BASE"
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ArtifactError, match=f"--api-base or set {variable}"):
        check_chosen(f"{provider}/x", None)
    check_chosen(f"{provider}/x", "http://127.0.0.1:1/v1")
    monkeypatch.setenv(variable, "http://127.0.0.1:1/v1")
    check_chosen(f"{provider}/x", None)


def test_what_is_recorded_holds_no_address_and_no_path() -> None:
    hosts = (
        "huggingface/https://evil.example/x",
        "bedrock/arn:aws:bedrock:eu-west-1:123:x/y",
    )
    for name in (*hosts, "x\x1b[2J", "gguf:/a/b"):
        made = recorded(name)
        assert "evil" not in made
        assert "arn" not in made
        assert "/a" not in made
        assert made.isprintable()
        assert not is_listed(made)
        assert made != recorded(name + "2")
    assert recorded("petals/some/model") == "petals/some/model"  # shown, never opened


# All of LiteLLM's providers


#: From this port on 127.0.0.1 is a server of another test, which a call that was given up may still look for.
EPHEMERAL = 32_768


class Network:
    """Stands where names are resolved and connections made: notes hosts, lets nothing through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hosts: set[str] = set()
        connect = socket.socket.connect

        def resolve(host: Any, *_: Any, **__: Any) -> Any:
            self.hosts.add(host.decode() if isinstance(host, bytes) else str(host))
            raise socket.gaierror(socket.EAI_NONAME, "no network in this test")

        def refuse(sock: socket.socket, address: Any) -> None:
            if sock.family not in (socket.AF_INET, socket.AF_INET6):
                return connect(sock, address)
            if address[0] != "127.0.0.1" or address[1] < EPHEMERAL:
                self.hosts.add(str(address[0]))
            raise ConnectionRefusedError("no network in this test")

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(socket.socket, "connect", refuse)

    def reached(self, names: list[str], connection: Connection) -> set[str]:
        """The hosts that calls of these models look for."""
        self.hosts.clear()

        async def call(name: str) -> None:
            try:
                model = await asyncio.to_thread(
                    language_model, name, connection=connection
                )
                await model.complete(Request([{"role": "user", "content": "x"}], 1))
            except JudgesmithError:
                pass

        async def calls() -> None:
            await asyncio.gather(*map(call, names))

        engine.run(calls())
        return set(self.hosts)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, providers: list[str]) -> Network:
    for name in providers:
        upper = name.upper().replace("-", "_")
        for key in ("API_KEY", "KEY", "TOKEN", "API_TOKEN"):
            monkeypatch.setenv(f"{upper}_{key}", "dummy")
        for base in ("API_BASE", "BASE_URL", "API_URL"):
            monkeypatch.delenv(f"{upper}_{base}", raising=False)
    own = {
        "AWS_ACCESS_KEY_ID": "dummy",
        "AWS_SECRET_ACCESS_KEY": "dummy",
        "AWS_SESSION_TOKEN": "dummy",
        "AWS_REGION_NAME": "us-east-1",
        "TOGETHERAI_API_KEY": "dummy",
        "AZURE_API_BASE": f"https://{OWN}",
        "AZURE_API_VERSION": "2024-02-01",
        "OLLAMA_HOST": f"http://{OWN}",
    }
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    for delay in ("INITIAL_RETRY_DELAY", "MAX_RETRY_DELAY"):
        monkeypatch.setattr(f"openai._base_client.{delay}", 0.0)
    return Network(monkeypatch)


@pytest.fixture(scope="module")
def providers() -> list[str]:
    import litellm

    return sorted(
        {str(getattr(p, "value", p)) for p in litellm.provider_list} | set(LISTED)
    )


def test_the_stubbed_network_sees_a_host(network: Network) -> None:
    for host in ("evil.example", "10.9.8.7"):
        assert network.reached(
            ["deepseek/x"],
            Connection(api_base=f"http://{host}", attempts=1, cache=False),
        ) == {host}
        assert network.reached(
            ["openai/x"], Connection(api_base=f"http://{host}", attempts=1, cache=False)
        ) == {host}


def test_no_name_of_a_file_reaches_anything_but_its_providers_own_host(
    network: Network, providers: list[str]
) -> None:
    assert set(HOSTS) == set(LISTED)
    assert len(providers) > 100
    for provider in providers:
        names = [name.replace("P", provider, 1) for name in CRAFTED]
        names += [
            name
            for name in ORDINARY
            if name.startswith(f"{provider}/") and provider != "local"
        ]
        names = [name for name in names if is_listed(name)]
        if provider not in LISTED:
            assert names == []
            continue
        assert names
        # "openai/…" is the one that another of our own connections takes over where there is an address.
        base = (
            f"http://{OWN}/v1"
            if provider in ("hosted_vllm", "lm_studio", "llamafile")
            else None
        )
        for name in names:
            check_chosen(name, base)
        reached = network.reached(
            names, Connection(api_base=base, attempts=1, cache=False, timeout=5)
        )
        assert reached == ({HOSTS[provider]} - {None}), provider


def test_plain_names_are_openais_and_anthropics_in_litellms_tables() -> None:
    import litellm

    providers = set()
    for name in {
        *litellm.model_list_set,
        *litellm.model_cost,
        *ORDINARY,
        "gpt-4.evil.example",
        "o1.evil.example",
    }:
        if "/" not in name and is_listed(name):
            with suppress(litellm.exceptions.BadRequestError):  # nobody's
                providers.add(litellm.get_llm_provider(name)[1])
    assert (
        {"openai", "anthropic"}
        <= providers
        <= {"openai", "text-completion-openai", "anthropic", "anthropic_text"}
    )


def test_no_azure_deployment_is_taken_for_a_model_of_openais_own_host() -> None:
    import litellm
    from litellm.litellm_core_utils.get_llm_provider_logic import (
        is_non_openai_azure_model,
    )

    named = {
        name.rpartition("/")[2]
        for name in (*litellm.model_list_set, *litellm.model_cost)
    }
    elsewhere = [
        f"azure/{name}" for name in named if is_non_openai_azure_model(f"azure/{name}")
    ]
    assert len(elsewhere) > 10
    assert [name for name in elsewhere if is_listed(name)] == []


# Every text of a file


def test_no_text_of_a_file_opens_a_model_it_may_not_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def note(name: str, *_: Any, **__: Any) -> Any:
        opened.append(name)
        raise JudgesmithError("not opened in this test")

    class Noted:
        def __init__(self, name: str, *_: Any, **__: Any) -> None:
            note(name)

    monkeypatch.setattr(through_litellm, "ThroughLiteLLM", Noted)
    monkeypatch.setattr(openai, "OpenAIStyle", lambda base, model, **_: note(model))
    monkeypatch.setattr(local, "embedded", note)
    monkeypatch.setenv("JUDGESMITH_REFERENCES", str(tmp_path / "references.sqlite"))
    path, outcomes = tmp_path / "judge.json", set()
    for judge in whole():
        if judge.provenance:
            judge.set_lm(parrot())
        data = artifact.to_dict(judge)
        for place in (
            place for place in places(data) if isinstance(at(data, place), str)
        ):
            for name in ("gguf:/etc/shadow", FORBIDDEN[0]):
                path.write_text(json.dumps(put(data, place, name)))
                try:
                    loading.load(path)
                    loading.load(path, lm=parrot()).score("source", "output")
                    outcomes.add("loaded")
                except ArtifactError:
                    outcomes.add("refused")
                except (
                    JudgesmithError
                ):  # an annotator that may be chosen, not opened here
                    outcomes.add("opened")
    assert outcomes == {"loaded", "refused", "opened"}
    assert (
        {"openai/a", "openai/writer"}
        <= set(opened)
        <= {"openai/a", "openai/b", "openai/writer", "openai/parrot"}
    )


@pytest.mark.parametrize("field", ["member", "writer"])
def test_annotators_and_writers_that_a_file_may_not_choose_are_refused(
    field: str, tmp_path: Path
) -> None:
    name = FORBIDDEN[0]
    if field == "writer":
        data = artifact.to_dict(Judge(PairwiseDirectScorer("summarization/coherence")))
        data["program"]["options"]["writer"] = name
    else:
        data = artifact.to_dict(Judge(OpeNLGauge("fluency", annotators=["openai/a"])))
        data["ensemble"][0]["model"] = name
    (tmp_path / "judge.json").write_text(json.dumps(data))
    with pytest.raises(
        ArtifactError, match=r"may not choose|cannot be saved or loaded|an address"
    ) as caught:
        loading.load(tmp_path / "judge.json", lm=parrot())
    assert len(str(caught.value).splitlines()) == 1


def test_the_users_model_stands_in_for_one_that_the_file_may_not_choose(
    tmp_path: Path,
) -> None:
    judge = Judge(ActiveCritic("coarse", task="Summaries."))
    judge.set_lm(parrot("petals/some/model"))
    judge.save(tmp_path / "judge.json")
    assert (
        json.loads((tmp_path / "judge.json").read_text())["lm"]["model"]
        == "petals/some/model"
    )
    with pytest.raises(
        ArtifactError,
        match=r"'petals/some/model', which no file may choose; give it with --lm MODEL",
    ):
        loading.load(tmp_path / "judge.json")
    assert loading.load(tmp_path / "judge.json", lm=parrot()).lm.name == "openai/parrot"


def test_a_judge_with_an_annotator_of_this_machine_works_here_and_is_not_saved(
    tmp_path: Path,
) -> None:
    judge = Judge(OpeNLGauge("fluency", annotators=["gguf:/home/me/x.gguf"]))
    with pytest.raises(
        ArtifactError,
        match=r"cannot be saved or loaded with .* 'gguf:/home/me/x\.gguf'",
    ):
        judge.save(tmp_path / "judge.json")
    assert artifact.fingerprint(judge) != artifact.fingerprint(
        Judge(OpeNLGauge("fluency"))
    )
