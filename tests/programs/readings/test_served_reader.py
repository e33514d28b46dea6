"""A served model, read over a real socket."""

import json
from typing import Any

import numpy as np
import pytest
from misbehaving_server import MakeServer, Say, Server
from reading_stand_ins import echoing

from judgesmith.errors import CallError, JudgesmithError, ModelError, OptionError
from judgesmith.programs.readings.bindings.served_reader import ServedReader
from judgesmith.programs.readings.kinds import read_row
from judgesmith.programs.readings.passages import Passage, Piece, Text, passage


@pytest.fixture
def server(serve: MakeServer) -> Server:
    return serve(echoing)


def test_the_targets_tokens_alone_are_measured(server: Server) -> None:
    reader = ServedReader(server.base, "m")
    read = reader.read(Passage((Piece("Some words before"), Piece(" two targets.")), 1))
    assert read.logp == pytest.approx([-0.3, -0.8])  # "two" has 3 letters, "targets." 8
    assert server.bodies[-1]["max_tokens"] == 1
    assert read.ends == (4, 13)
    assert np.isnan(read.entropy).all()
    reader.close()


def test_a_token_across_the_border_counts(server: Server) -> None:
    read = ServedReader(server.base, "m").read(
        Passage((Piece("before tar"), Piece("get end")), 1)
    )
    assert read.logp == pytest.approx([-0.6, -0.3])  # "target" and "end"


@pytest.mark.parametrize(
    "mark", ["<|im_end|>", "<|eot_id|>", "</s>", "[INST]", "[/INST]", "<start_of_turn>"]
)
def test_a_row_cannot_spell_a_mark(server: Server, mark: str) -> None:
    reader = ServedReader(server.base, "m")
    reader.read(passage(Text(f"source {mark}", f"output {mark} again"), reader.chat))
    assert mark not in server.bodies[-1]["prompt"]


@pytest.mark.parametrize(
    ("say", "error", "says"),
    [
        (
            Say(status=400, body=b'{"error": "echo is not supported"}'),
            ModelError,
            "echo is not supported",
        ),
        (Say(status=404, body=b"{}"), ModelError, "refuses what readings need"),
        (Say(status=500, body=b"{}"), CallError, "HTTP 500"),
        (Say(status=429, body=b"{}"), CallError, "HTTP 429"),
        (Say(body=b"garbage"), CallError, "no JSON"),
        (Say(body=b"[]"), CallError, "no choices"),
        (Say(body=b"{}"), CallError, "no choices"),
        (Say(body=b'{"choices": [{"text": "4"}]}'), ModelError, "does not echo"),
        (
            Say(
                body=b'{"choices": [{"logprobs": {"tokens": [], "text_offset": [], "token_logprobs": []}}]}'
            ),
            ModelError,
            "no token",
        ),
        (Say(hang_up=True), CallError, "did not answer"),
        (Say(cut=10), CallError, "did not answer"),
    ],
)
def test_a_server_that_cannot_is_named(
    serve: MakeServer, say: Say, error: type[JudgesmithError], says: str
) -> None:
    reader = ServedReader(serve(say).base, "m")
    with pytest.raises(error, match=says):
        reader.read(Passage((Piece("a"), Piece("b")), 1))


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 2048 tokens. However, your prompt has 5000.",
        "the request exceeds the available context size, try increasing it",
        "The prompt is too long",
    ],
)
def test_a_row_that_is_too_long_for_a_server_is_that_rows_failure(
    serve: MakeServer, said: str
) -> None:
    reader = ServedReader(
        serve(
            Say(status=400, body=json.dumps({"error": {"message": said}}).encode())
        ).base,
        "m",
    )
    with pytest.raises(
        CallError, match=r"longer than the model's context \(HTTP 400: .*longer context"
    ):
        reader.read(Passage((Piece("a"), Piece("b")), 1))


@pytest.mark.parametrize("told", ["max_model_len", "context_length", None])
def test_long_rows_are_read_in_windows_where_a_server_says_what_it_holds(
    serve: MakeServer, told: str | None
) -> None:
    def answer(number: int, body: dict[str, Any]) -> Say:
        listed = {"id": "m", **({told: 301} if told else {})}
        return (
            echoing(number, body)
            if body
            else Say(body=json.dumps({"data": [listed]}).encode())
        )

    server = serve(answer)
    reader = ServedReader(server.base, "m")
    reader.look()
    text = Text("A source of it. " * 200, "Every word of it counts. " * 100)
    row = read_row(reader, text, layers=0, counted=False)
    sent = [body["prompt"] for body in server.bodies if body]
    if told is None:
        assert len(sent) == 1
        assert row.source == 1
    else:
        assert len(sent) > 4
        assert max(map(len, sent)) <= 3 * 301
        assert row.source < 1
    assert len(row.tokens.logp) == pytest.approx(500, abs=2)
    assert row.tokens.ends[-1] in (len(text.judged) - 1, len(text.judged))


def test_states_are_not_to_be_had_from_a_server(server: Server) -> None:
    with pytest.raises(OptionError, match="does not give hidden states"):
        ServedReader(server.base, "m").read(
            Passage((Piece("a"), Piece("b")), 1), layers=[1]
        )
