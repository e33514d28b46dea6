"""Six people who are new here, each with a file as they have it and the commands that they would type.

A server on loopback stands for the model; its scores follow the length of a text, so that none of them says how good a
judge is.
"""

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

TOPICS = (
    "parcel",
    "shoes",
    "invoice",
    "opening hours",
    "second charge",
    "shipping abroad",
)
FAST = "--method active-critic --variant vanilla --optimizer zero-shot"


def asked(n: int) -> str:
    return f"{'abcdefghijklmnopqrst'[n % 20] * 4} {TOPICS[n % 6]} {n}?"


def said(n: int) -> str:
    return (
        " ".join(
            f"{word}{n * 7919 % 97}"
            for word in ("thanks", "see", "your", "mail")[: 1 + n % 4]
        )
        + "."
    )


def table(name: str, rows: list[dict[str, Any]]) -> None:
    with Path(name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


#: Who, the file of labels, and the commands with what each of them says.
ROLES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "a support team": (
        [
            {
                "Customer question": asked(n),
                "Bot answer": said(n),
                "Model": "ab"[n % 2],
                "QA result (Pass/Fail)": ("Fail", "Pass", "Pass")[n % 3],
            }
            for n in range(36)
        ],
        [
            ("compile labels.csv --dry-run", "fail ▇"),
            (
                f"compile labels.csv {FAST} --cost-of-missed-fail 5 -o judge.json",
                "Saved judge.json",
            ),
            (
                "evaluate labels.csv --judge judge.json -o agreement.html",
                "people: fail",
            ),
            ("score labels.csv --judge judge.json -o s.jsonl", "36 scored"),
            ("report s.jsonl", "Wrote"),
        ],
    ),
    "two annotators": (
        [
            {
                "text": said(n),
                "prompt": asked(n),
                "annotator": who,
                "rating": 1 + (n + k) % 5,
            }
            for n in range(30)
            for k, who in enumerate(("Anna", "Bob"))
        ],
        [
            (
                "compile labels.csv --dry-run",
                "60 rows in the file, 60 of them labels of 30 outputs",
            ),
            (f"compile labels.csv {FAST} -o judge.json", "30 rows of labels.csv"),
            ("evaluate labels.csv --judge judge.json", "human ceiling"),
        ],
    ),
    "somebody with one sentence": (
        [
            {"question": asked(n), "answer": said(n), "polite": ("no", "yes")[n % 2]}
            for n in range(24)
        ],
        [
            ("new 'The reply is polite.' --pass-fail -o judge.json", "pass or fail"),
            ("evaluate labels.csv --judge judge.json", "people: yes"),
            (
                "compile labels.csv --start judge.json --optimizer zero-shot -o better.json",
                "Saved better.json",
            ),
        ],
    ),
    "a researcher with preferences": (
        [
            {
                "prompt": asked(n // 2),
                "response_a": said(n),
                "response_b": said(n + 1) + " More.",
                "Which is better?": "AB"[n % 3 == 0],
            }
            for n in range(24)
        ],
        [
            (f"compile labels.csv {FAST} -o judge.json", "kind: preference"),
            ("score labels.csv --judge judge.json -o s.jsonl", "24 scored"),
            ("evaluate s.jsonl", "pairwise acc."),
            ("report s.jsonl", "rows: 24"),
        ],
    ),
    "a manager with few ratings": (
        [
            {"id": f"r{n}", "output": said(n), "model": "ab"[n % 2], "human": 1 + n % 5}
            for n in range(30)
        ],
        [
            ("new helpfulness -o judge.json", "1..5"),
            ("score labels.csv --judge judge.json -o s.jsonl", "30 scored"),
            ("estimate s.jsonl --human few.csv", "labels only"),
            ("suggest s.jsonl --labels labels.csv --n 2", "label"),
        ],
    ),
    "somebody from another tool": (
        [
            {
                "inputs": json.dumps({"question": asked(n)}),
                "outputs": json.dumps({"answer": said(n)}),
                "correct": n % 2 == 0,
            }
            for n in range(24)
        ],
        [
            (f"compile labels.csv {FAST} -o judge.json", "output = 'outputs'"),
            (
                "evaluate labels.csv --judge judge.json --fail-under 'accuracy>=0.05'",
                "people: true",
            ),
        ],
    ),
}


@pytest.mark.parametrize("role", ROLES)
def test_the_first_hour(
    role: str, cli: Any, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (
        ("JUDGESMITH_LM", "openai/fake"),
        ("OPENAI_BASE_URL", server.base),
        ("OPENAI_API_KEY", "x"),
    ):
        monkeypatch.setenv(name, value)
    server.answer = lambda ask: (
        f"Explanation: It says so.\nScore: {len(ask.last) * 37 % 101}"
    )
    rows, commands = ROLES[role]
    table("labels.csv", rows)
    table("few.csv", [{"id": f"r{n}", "human": 1 + n % 5} for n in range(0, 30, 3)])
    for command, words in commands:
        done = cli(*shlex.split(command))
        assert done.code == 0, f"{command}: {done.err}"
        assert words in " ".join(done.out.split()), f"{command}: {done.out}"
