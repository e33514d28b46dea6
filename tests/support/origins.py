"""Small files in the formats of the benchmark sets' origins, made up, and a server in GitHub's place that has them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from misbehaving_server import Say, Server

from judgesmith.datasets.benchmarks import catalog, registry
from judgesmith.datasets.benchmarks.catalog import list_benchmarks

ACTS = ["inform(a)", "inform(b)", "inform(a)", "inform(c)"] * 3
#: The first and the third context are cut from one conversation; the second begins alike and is another one.
CHATS = [
    ("do you fly ? \n no , never . \n why ? \n\n", "_nofact"),
    ("do you fly ? \n yes , often . \n\n", "planes have wings\n"),
    ("do you fly ? \n no , never . \n\n", "birds have feathers\n"),
]
TALK = (
    "understandability",
    "naturalness",
    "coherence",
    "engagingness",
    "groundedness",
    "overall",
)
STORY = ("relevance", "coherence", "empathy", "engagement", "surprise", "complexity")
QAGS = [
    {
        "doc_id": n,
        "system_id": 0,
        "source": f"Article {n} .",
        "reference": f"Article {n} .",
        "system_output": f"Summary {n} .",
        "scores": {"consistency": n / 11},
    }
    for n in range(12)
]
SENTENCES = [
    {
        "doc_id": n,
        "source": act,
        "reference": f"Reference {n} .",
        "system_output": f"Said {n} .",
        "scores": {
            "informativeness": 1 + n % 5,
            "naturalness": 6.0 - n % 2,
            "overall": 1.5 + n % 4,
        },
    }
    for n, act in enumerate(ACTS)
]
CHAT = [
    {
        "source": source,
        "context": context,
        "system_id": system,
        "system_output": f"{system} on {n} \n",
        "scores": dict.fromkeys(TALK, 1 + (n + len(system)) % 3),
    }
    for n, (source, context) in enumerate(CHATS)
    for system in ("Original Ground Truth", "Argmax Decoding", "New Human Generated")
]
NEWS = [
    {
        "doc_id": document,
        "source": f"One of {document}.</p><p>&quot;Two&quot; &amp; three.",
        "system_output": f"It&#x27;s <UNK> {place}",
        "scores": {
            "coherence": 1 + place % 5,
            "fluency": 4.0,
            "informativeness": 3.5,
            "relevance": 2,
        },
    }
    for document, places in (("71", 7), ("8", 2))
    for place in range(places)
]
STORIES = [
    {
        "id": n,
        "inputs": {"Writing Prompt": f"Prompt {n % 96}"},
        "outputs": {"Story": f"Story {n}"},
        "system": "Human" if n < 96 else "GPT",
        "score": dict.fromkeys(STORY, 1 + n % 5),
    }
    for n in (0, 1, 2, 3, 95, 96, 97, 98, 99, 191)
]
WIKI = "\r\n".join(
    [
        "sent_id,sys_name,orig_sent,simp_sent,fluency,fluency_zscore,meaning,meaning_zscore,simplicity,simplicity_zscore"
    ]
    + [
        f'{n},Sys-{n % 2},"A ""long"", sentence {n}.","Short, {n}.",{n * 9}.5,0.{n}25,50,-1.5,{n},0'
        for n in range(10)
    ]
)
SYNTHETIC = {
    "qags_cnndm": json.dumps(QAGS),
    "qags_xsum": json.dumps(QAGS),
    "sfres": json.dumps(SENTENCES),
    "sfhot": json.dumps(SENTENCES),
    "topical_chat": json.dumps(CHAT),
    "newsroom": json.dumps(NEWS),
    "hanna": json.dumps(STORIES),
    "wiki_da": WIKI,
}


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data folder, an empty cache, no proxy between the test and its server."""
    monkeypatch.delenv("JUDGESMITH_DATA", raising=False)
    monkeypatch.setenv("JUDGESMITH_DATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def origins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server with the made-up files in GitHub's place; cards have their checksums instead of the real ones."""
    cards = {card.key: card for card in list_benchmarks()}
    files = {}
    for name, content in SYNTHETIC.items():
        data = content.encode()
        origin = cards[name].origin
        assert origin is not None
        origin = replace(
            origin, bytes=len(data), sha256=hashlib.sha256(data).hexdigest()
        )
        cards[name] = replace(cards[name], origin=origin)
        files[f"/v1/{origin.repository}/{origin.commit}/{origin.path}"] = data
    server = Server(
        lambda number, _: Say(body=files[server.headers[number - 1].split()[1]])
    )
    monkeypatch.setattr(catalog, "_cards", lambda: cards)
    monkeypatch.setattr(registry, "GITHUB", server.base)
    yield server
    server.close()
