"""JSON in answers is read also where it is broken, and in little time however broken it is."""

import pytest

from judgesmith.programs.answers.objects import json_parts, lenient_json


def test_broken_json_of_many_errors_is_repaired_whole() -> None:
    error = "{'location': \"it's \"red\" there\", 'severity': 4,}"
    text = '{"errors": [' + ", ".join([error] * 300) + "]"

    repaired = lenient_json(text)

    assert len(text) > 14_000
    assert [entry["severity"] for entry in repaired["errors"]] == [4] * 300


def test_a_long_string_that_is_not_closed_is_read_to_its_end() -> None:
    assert lenient_json('{"score": 3, "why": "' + "word " * 3_000)["score"] == 3


@pytest.mark.parametrize(
    "text", ["[" + 'f"' * 10_000, "[" + "'a " * 6_600, "[" + ":}(" * 6_600]
)
def test_json_that_takes_repair_without_end_is_given_up(text: str) -> None:
    # Without a limit on repair the first takes 12 seconds.
    assert lenient_json(text) is None
    assert json_parts(text) == []


def test_brackets_of_another_kind_close_nothing() -> None:
    assert lenient_json('{"a":' + "{4)" * 9) is None
    assert lenient_json('{"score": 3, "why": "(a) (b) (c) :) :)"')["score"] == 3
