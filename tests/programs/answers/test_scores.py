"""Each way to state a score belongs to one step, and the list of steps at the head of the module is what happens."""

import re

import pytest

from judgesmith.programs.answers import scores

#: Of the module's head: the step, and an answer that it reads.
LISTED = re.findall(r"^ {4}(\w+) {2,}(\S.*?)(?: {4,}.*)?$", scores.__doc__, re.M)


def test_the_head_lists_every_step_in_its_order() -> None:
    assert [name for name, _ in LISTED] == [step.__name__ for step in scores.STEPS]


@pytest.mark.parametrize(("name", "answer"), LISTED)
def test_a_step_is_the_first_to_read_its_answer(name: str, answer: str) -> None:
    readers = [step for step in scores.STEPS if step(answer) is not None]
    assert readers[0].__name__ == name
    (stated,) = scores.stated_scores(answer)
    assert stated.number == 4
    assert stated.words == "4"
