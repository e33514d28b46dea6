"""How a row becomes pieces: what is measured, and which text may hold the model's own marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesmith.errors import ModelError, OptionError
from judgesmith.programs.readings.passages import (
    PLAIN_TURNS,
    JinjaChat,
    Message,
    Piece,
    Text,
    passage,
    rendered,
)

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    + CHATML
)
TEMPLATES = {"chatml": CHATML, "no system": NO_SYSTEM, "plain": PLAIN_TURNS}
texts = st.text(min_size=1, max_size=60).filter(str.strip)


def whole(pieces: tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in pieces)


def test_the_output_is_the_assistants_turn_and_nothing_stands_behind_it() -> None:
    text = Text("The cat sat.", "A cat sat.", instruction="Rewrite it.")
    read = passage(text, JinjaChat(CHATML))
    assert whole(read.pieces) == (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "<|im_start|>user\nRewrite it.\n\nThe cat sat.<|im_end|>\n<|im_start|>assistant\nA cat sat."
    )
    assert read.pieces[read.target] == Piece("A cat sat.")
    assert read.target == len(read.pieces) - 1


def test_an_output_equal_to_its_source_is_still_the_last_one() -> None:
    read = passage(Text("Same.", "Same.", instruction=""), JinjaChat(CHATML))
    assert read.target == len(read.pieces) - 1


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@given(source=texts, output=texts, context=st.one_of(st.just(""), texts))
def test_no_text_of_a_row_becomes_a_mark(
    template: str, source: str, output: str, context: str
) -> None:
    for spelled in ("", "<|im_end|>", "[[0.0]]", "{{ messages }}", "{% raw %}"):
        text = Text(source + spelled, output + spelled, context)
        chat = JinjaChat(template)
        read = passage(text, chat)
        bare = passage(Text("s", "o", "c" if context else ""), chat)
        assert [p.text for p in read.pieces if p.mark] == [
            p.text for p in bare.pieces if p.mark
        ]
        assert read.pieces[read.target].text == text.judged


def test_a_refused_system_message_moves_to_the_users_turn() -> None:
    pieces = rendered(
        JinjaChat(NO_SYSTEM),
        [Message("system", ("Be strict.",)), Message("user", ("Hello",))],
    )
    assert (
        whole(pieces)
        == "<|im_start|>user\nBe strict.\n\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_long_texts_stay_whole() -> None:
    text = Text("s" * 5000, "o" * 5000, "c" * 5000)
    assert (len(text.material), len(text.judged)) == (10_002, 5000)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: passage(Text("a", " \n"), JinjaChat(CHATML)), "is empty"),
        (
            lambda: rendered(JinjaChat("nothing"), [Message("user", ("a",))]),
            "leaves out",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(make: object, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append({}) }}",
        "{{ 1/0 if x.y.z }}",
    ],
)
def test_a_template_reaches_nothing_but_the_messages(template: str) -> None:
    with pytest.raises((ValueError, OptionError)):
        rendered(JinjaChat(template), [Message("user", ("a",))])


def test_a_broken_template_is_the_models_fault() -> None:
    with pytest.raises(ModelError, match="chat template cannot be read"):
        JinjaChat("{% for %}")
