"""A recorded model reads its file line by line, and only newlines end one."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgesmith as js
from judgesmith.errors import ModelError, OptionError
from judgesmith.lines import json_lines
from judgesmith.signatures.values import Item, Verdict

SIGNS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"]


@pytest.mark.parametrize("sign", SIGNS)
def test_scores_of_texts_with_odd_ends_of_lines_are_found(
    sign: str, tmp_path: Path
) -> None:
    records = [
        {"source": "Ask.", "output": f"One{sign}two {n}.", "gpt4": n} for n in (1, 5)
    ]
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    if sign < " ":  # JSON itself writes these as escapes
        assert sign not in lines[0]
    (file := tmp_path / "rows.jsonl").write_text("\r\n".join(lines) + "\n\n")
    judge = js.Judge(js.DirectScorer("overall"), lm=f"recorded:{file}#gpt4=1..5")
    verdicts = [judge.score(row["source"], row["output"]) for row in records]
    assert [verdict.score for verdict in verdicts] == [0.0, 100.0]


class _Twice(js.DirectScorer):
    """Judges the text, and its first word alone."""

    async def judge(self, item: Item, lm: Any) -> Verdict:
        first = Item(item.output.split()[0], item.source)
        verdicts = [await super(_Twice, self).judge(one, lm) for one in (item, first)]
        return min(verdicts, key=lambda verdict: verdict.percent)


def test_a_method_of_several_prompts_is_refused(tmp_path: Path) -> None:
    record = {"source": "Ask.", "output": "One two.", "gpt4": 3}
    (file := tmp_path / "rows.jsonl").write_text(json.dumps(record))
    judge = js.Judge(_Twice("overall"), lm=f"recorded:{file}#gpt4=1..5")
    with pytest.raises(ModelError, match="one number for a row, and this judge asks"):
        judge.score("Ask.", "One two.")


def test_a_bad_line_is_named_by_its_number(tmp_path: Path) -> None:
    (file := tmp_path / "rows.jsonl").write_bytes(b'\n{"output": "\xff"}\n')
    with pytest.raises(OptionError, match=r"rows.jsonl, line 2: "):
        js.language_model(f"recorded:{file}#gpt4")


def test_blank_lines_are_passed_over_and_counted() -> None:
    assert list(json_lines(b"1\n \r\n2\xe2\x80\xa8\n")) == [
        (1, b"1"),
        (3, b"2\xe2\x80\xa8"),
    ]
