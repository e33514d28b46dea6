"""A served model, read over a real socket."""

import numpy as np
import pytest
from misbehaving_server import MakeServer, Say, Server
from reading_stand_ins import echoing

from judgesmith.errors import CallError, JudgesmithError, ModelError, OptionError
from judgesmith.programs.readings.bindings.served_reader import ServedReader
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
    read = ServedReader(server.base, "m").read(Passage((Piece("before tar"), Piece("get end")), 1))
    assert read.logp == pytest.approx([-0.6, -0.3])  # "target" and "end"


@pytest.mark.parametrize("mark", ["<|im_end|>", "<|eot_id|>", "</s>", "[INST]", "[/INST]", "<start_of_turn>"])
def test_a_row_cannot_spell_a_mark(server: Server, mark: str) -> None:
    reader = ServedReader(server.base, "m")
    reader.read(passage(Text(f"source {mark}", f"output {mark} again"), reader.chat))
    assert mark not in server.bodies[-1]["prompt"]


@pytest.mark.parametrize(
    ("say", "error", "says"),
    [
        (Say(status=400, body=b'{"error": "echo is not supported"}'), ModelError, "echo is not supported"),
        (Say(status=404, body=b"{}"), ModelError, "refuses what readings need"),
        (Say(status=500, body=b"{}"), CallError, "HTTP 500"),
        (Say(status=429, body=b"{}"), CallError, "HTTP 429"),
        (Say(body=b"garbage"), CallError, "no JSON"),
        (Say(body=b"[]"), CallError, "no choices"),
        (Say(body=b"{}"), CallError, "no choices"),
        (Say(body=b'{"choices": [{"text": "4"}]}'), ModelError, "does not echo"),
        (
            Say(body=b'{"choices": [{"logprobs": {"tokens": [], "text_offset": [], "token_logprobs": []}}]}'),
            ModelError,
            "no token",
        ),
        (Say(hang_up=True), CallError, "did not answer"),
        (Say(cut=10), CallError, "did not answer"),
    ],
)
def test_a_server_that_cannot_is_named(serve: MakeServer, say: Say, error: type[JudgesmithError], says: str) -> None:
    reader = ServedReader(serve(say).base, "m")
    with pytest.raises(error, match=says):
        reader.read(Passage((Piece("a"), Piece("b")), 1))


def test_states_are_not_to_be_had_from_a_server(server: Server) -> None:
    with pytest.raises(OptionError, match="does not give hidden states"):
        ServedReader(server.base, "m").read(Passage((Piece("a"), Piece("b")), 1), layers=[1])
