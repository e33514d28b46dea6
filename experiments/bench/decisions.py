"""Decision models beside human ratings, with 0, 8 and 40 labels: by replay, and by a server of other people.

    python experiments/bench/decisions.py replay FOLDER [--draws 10] [--rows 200]
    python experiments/bench/decisions.py served FOLDER --sets … --api-base http://127.0.0.1:4750/v1 --rows 100
    python experiments/bench/decisions.py compare FOLDER [--save FOLDER]

No weights of a model that answers typed questions could be had. `replay` has a server on loopback answer yes-or-no
questions by probabilities that others recorded of such models: UniEval's p(yes), detectors of hallucinations, NLI.
`served` asks a running server how good each output is. Rows go through `judgesmith new`, `score` and
`compile --signal` as users have them: the mean answer first, then each. Each draw labels documents and is measured on
all others. Needs JUDGESMITH_DATA. `compare` shows mean Q = r + ρ + τ-b over draws, with intervals over documents.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz import process
from typer.testing import CliRunner

from judgesmith.agreement.resampling import Agreement, interval_of
from judgesmith.cli.main import app
from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.experience import draws_of
from judgesmith.experiments.studies.saving import save

SIZES = (8, 40)
#: What the questions ask, by name.
WORDS = {
    "naturalness": "It reads as if a fluent speaker had written it.",
    "coherence": "It goes on from what stands before it.",
    "groundedness": "It uses the fact that was given.",
    "understandability": "It can be understood in its place.",
    "informativeness": "It says all that it was to say.",
    "consistency": "It says only what the source says.",
    "answerability": "The question can be answered from the source.",
    "simplicity": "It is easy to read.",
    "meaning": "It keeps the meaning of the source.",
}


@dataclass(frozen=True)
class Task:
    """A set, what people rated, and who answered which question: question -> (its words' name, recorded column)."""

    file: str
    aspect: str
    questions: Mapping[str, tuple[str, str]]

    @property
    def name(self) -> str:
        """The set and the aspect."""
        return f"{Path(self.file).stem}, {self.aspect}"


UNIEVAL = ("naturalness", "coherence", "groundedness", "understandability")
OF_DIALOGUE = {name: (name, f"unieval_{name}") for name in UNIEVAL}
OF_DATA = {
    name: (name, f"unieval_{name}") for name in ("informativeness", "naturalness")
}
DETECTORS = {
    name: ("consistency", name)
    for name in ("true_nli", "hhemv1", "hhem_2_1", "trueteacher")
}
RECORDED = (
    Task("topical_chat", "overall", OF_DIALOGUE),
    Task("sfres", "informativeness", OF_DATA),
    Task("sfhot", "informativeness", OF_DATA),
    Task(
        "qags_cnndm",
        "consistency",
        {"consistency": ("consistency", "unieval_consistency")},
    ),
    Task("strong/faithbench", "faithfulness", DETECTORS),
    Task(
        "strong/qgeval_answerability",
        "answerability",
        {"answerability": ("answerability", "unieval")},
    ),
)
SERVED = {
    "wiki_da": Task(
        "wiki_da",
        "meaning",
        {n: (n, "") for n in ("meaning", "simplicity", "naturalness")},
    ),
    "sfres": Task("sfres", "informativeness", {n: (n, "") for n in OF_DATA}),
}


def run(*words: object) -> None:
    """Run a command of judgesmith. Raises RuntimeError where it fails."""
    done = CliRunner().invoke(app, list(map(str, words)))
    if done.exit_code:
        raise RuntimeError(f"{words}: {done.output[-600:]}{done.exception or ''}")


def rows_of(task: Task, most: int) -> list[dict[str, Any]]:
    """Return some rows of whole documents that have a score, with what was recorded of them."""
    rows = read_set(task.file)
    recorded = dict[str, Any]()
    columns = [column for _, column in task.questions.values() if column]
    if columns:
        lines = read_set(f"{task.file}.metrics")
        recorded = {one["id"]: one["metrics"] for one in lines}
    by: dict[str, list[dict[str, Any]]] = {}
    first = dict[str, str]()
    for row in rows:
        texts = _letters(row.get("source") or "", row["output"])
        if first.setdefault(texts, row["id"]) != row["id"]:
            continue  # the same texts again
        scores = recorded.get(row["id"], {})
        if task.aspect in row["scores"] and all(
            scores.get(c) is not None for c in columns
        ):
            row["scores"] = {task.aspect: row["scores"][task.aspect]}
            by.setdefault(row["doc_id"], []).append(row | {"recorded": scores})
    result = list[dict[str, Any]]()
    for name in np.random.default_rng(0).permutation(sorted(by)):
        if len(result) + len(by[name]) <= most:
            result += by[name]
    return result


def _letters(*texts: str) -> str:
    """Texts without the signs that are changed where they could act in a prompt."""
    return re.sub(r"\W+", "", " ".join(texts))


@contextmanager
def replaying(task: Task, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A server that answers questions about an output by what was recorded of it; yields its address."""
    columns = {name: column for name, (_, column) in task.questions.items()}
    of_texts = {
        _letters(row.get("source") or "", row["output"]): row["recorded"]
        for row in rows
    }
    if len(of_texts) < len(rows):
        raise RuntimeError(f"{task.name}: outputs are not told apart")
    # A row that seems to address the judge is asked about once more, without that.
    of_output = {_letters(row["output"]): row["recorded"] for row in rows}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state = body["state"]
            texts = _letters(state.get("source", ""), state["output"])
            nearest = process.extractOne(_letters(state["output"]), list(of_output))
            row = of_texts.get(texts) or of_output[nearest[0]]
            answers = {
                name: {"type": "noul", "noul": min(1.0, max(0.0, row[columns[name]]))}
                for name in body["questions"]
            }
            sent = json.dumps({"model": body["model"], "answers": answers}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def scored(
    task: Task,
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    base: str,
    question: str,
) -> list[dict[str, Any]]:
    """Return the rows with the verdicts of a judge that asks the model at an address."""
    words = "".join(
        f"{name}: {WORDS[key]}\n" for name, (key, _) in task.questions.items()
    )
    (folder / "criteria.txt").write_text(words)
    plain = [{k: v for k, v in row.items() if k != "recorded"} for row in rows]
    lines = "".join(json.dumps(row) + "\n" for row in plain)
    (folder / "rows.jsonl").write_text(lines)
    judge = folder / "asked.json"
    out = folder / "scored.jsonl"
    model = "recorded" if question == "yes-no" else "served"
    where = ("--lm", f"decision:{model}", "--api-base", base)
    run(
        "new",
        "--method",
        "decisions",
        "--question",
        question,
        "--criteria",
        folder / "criteria.txt",
        *where,
        "-o",
        judge,
    )
    run(
        "score",
        folder / "rows.jsonl",
        "--judge",
        judge,
        *where,
        "--any-server",
        "-o",
        out,
    )
    return [json.loads(line) for line in out.open()]


def learnt(
    rows: Sequence[Mapping[str, Any]],
    train: np.ndarray,
    left: np.ndarray,
    signals: Sequence[str],
    folder: Path,
) -> list[float]:
    """Return the scores of other rows by a judge that is compiled from labelled ones."""
    labels = folder / "labels.jsonl"
    judge = folder / "judge.json"
    rest = folder / "rest.jsonl"
    out = folder / "out.jsonl"
    for path, places in ((labels, train), (rest, left)):
        path.write_text("".join(json.dumps(rows[i]) + "\n" for i in places))
    run("compile", labels, *signals, "-o", judge)
    run("score", rest, "--judge", judge, "--overwrite", "-o", out)
    return [json.loads(line)["verdict"]["percent"] for line in out.open()]


def measured(
    task: Task, rows: Sequence[Mapping[str, Any]], folder: Path, draws: int
) -> dict[str, Any]:
    """Return scores without labels and by judges compiled from each draw's labels, with the places of their rows."""
    groups = [row["doc_id"] for row in rows]
    everywhere = list(range(len(rows)))
    found: dict[str, Any] = {
        "documents": groups,
        "human": [row["scores"][task.aspect] for row in rows],
        "0": [[everywhere, [row["verdict"]["percent"] for row in rows]]],
    }
    for name in task.questions:
        alone = [row["verdict"]["criteria"][name]["score"] for row in rows]
        found[f"alone {name}"] = [[everywhere, alone]]
    several = [f"criteria.{name}.score" for name in task.questions]
    columns = ["percent", *(several if len(several) > 1 else [])]
    signals = [f"--signal=verdict.{column}=0..100" for column in columns]
    for size in SIZES:
        found[str(size)] = []
        for number, (_, train, left) in enumerate(draws_of(groups, size, draws)):
            kept = folder / f"{size}-{number}.json"
            if not kept.exists():
                percents = learnt(rows, train, left, signals, folder)
                kept.write_text(json.dumps([left.tolist(), percents]))
            found[str(size)].append(json.loads(kept.read_text()))
    return found


def agreement(found: Mapping[str, Any], key: str) -> list[float]:
    """Return mean Q over draws with its interval over documents."""
    documents = np.unique(found["documents"], return_inverse=True)[1]
    human = np.array(found["human"], float)
    sets = [
        (np.array(x, float), human[at], documents[at], None) for at, x in found[key]
    ]
    value = interval_of(
        Agreement.of_mean(sets, int(documents.max()) + 1, "pooled", "sum")
    )
    return [value.value, value.low, value.high]


def compare(folder: Path, target: Path | None) -> None:
    """Print and save the table, the smallest gain first."""
    table = list[list[Any]]()
    for file in sorted(folder.glob("*.json")):
        kept = json.loads(file.read_text())
        found = kept["found"]
        alone = {
            key: agreement(found, key)[0] for key in found if key.startswith("alone")
        }
        best = max(alone, key=alone.__getitem__)
        shown = f"{best.removeprefix('alone ')} {alone[best]:.2f}"
        counts = Counter(found["documents"])
        qs = [agreement(found, key) for key in ("0", *map(str, SIZES))]
        row = [kept["task"], kept["by"], len(found["human"]), len(counts), *qs, shown]
        table.append(row)
        print(*row, flush=True)
    table.sort(key=lambda row: row[6][0] - row[4][0])
    interval = "{:.2f} [{:.2f}, {:.2f}]"
    columns = {"set and aspect": "", "answers by": "", "rows": "{}", "documents": "{}"}
    columns |= dict.fromkeys(("no labels", "8 labels", "40 labels"), interval)
    columns |= {"the best question alone, of all rows": ""}
    command = "python experiments/bench/decisions.py"
    commands = [f"{command} {what} FOLDER" for what in ("replay", "served", "compare")]
    save(target, "decisions", columns, table, commands=commands)


def done(
    folder: Path, task: Task, rows: Sequence[Any], by: str, base: str, draws: int
) -> None:
    """Score and measure one task, and keep the result."""
    recorded = any(column for _, column in task.questions.values())
    question = "yes-no" if recorded else "levels"
    kept = folder / f"{Path(task.file).stem}.{question}.json"
    work = folder / f"{kept.stem}-work"
    work.mkdir(exist_ok=True)
    settings = json.dumps({"by": by, "draws": draws, "rows": len(rows)})
    of_work = work / "settings.json"
    if of_work.exists() and of_work.read_text() != settings:
        raise ValueError(f"{work} is of other settings; take another folder")
    of_work.write_text(settings)
    if kept.exists():
        return
    asked = scored(task, rows, work, base, question)
    found = measured(task, asked, work, draws)
    kept.write_text(json.dumps({"task": task.name, "by": by, "found": found}))
    reached = [round(agreement(found, key)[0], 2) for key in ("0", "8", "40")]
    print(task.name, reached, flush=True)


def main() -> None:
    """Run one of the three parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("replay", "served", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--sets", default=",".join(SERVED))
    parser.add_argument("--api-base", default="")
    parser.add_argument("--by", default="a served model")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.action == "compare":
        compare(options.folder, options.save)
    elif options.action == "served":
        for task in map(SERVED.__getitem__, options.sets.split(",")):
            rows = rows_of(task, options.rows)
            done(
                options.folder, task, rows, options.by, options.api_base, options.draws
            )
    else:
        for task in RECORDED:
            by = "detectors" if task.questions is DETECTORS else "UniEval"
            rows = rows_of(task, options.rows)
            with replaying(task, rows) as base:
                done(options.folder, task, rows, f"{by}, replayed", base, options.draws)


if __name__ == "__main__":
    main()
