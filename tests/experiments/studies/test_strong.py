"""What labels add beside a judge that says it all, and beside one that misses what people like."""

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from judgesmith.cli.main import app


def test_the_tables_of_a_study(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), []
    for i in range(240):
        words, quality = int(rng.integers(3, 40)), rng.normal()
        judges = {"all": quality + words / 10, "half": quality + rng.normal() / 3, "noise": rng.normal()}
        text = " ".join(f"w{rng.integers(9999)}" for _ in range(words))
        rows.append({"output": text, "source": f"S{i}", "judges": judges, "score": round(quality + words / 10, 3)})
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    common = {"labels": "rows.jsonl", "judge": "planted"}
    tasks = [common | {"family": n, "signals": [f"judges.{n}", "judges.noise"]} for n in ("all", "half")]
    (tmp_path / "tasks.yaml").write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    words = ["study", "strong", tmp_path / "tasks.yaml", "--draws", "3", "-o", tmp_path / "out", "--json"]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    found = {path.stem: json.loads(path.read_text(encoding="utf-8"))["rows"] for path in (tmp_path / "out").iterdir()}
    assert set(found) == {"strong", "strong-candidates", "strong-guard", "strong-uncertainty"}
    perfect, half, *_ = found["strong"]
    assert perfect[3] == perfect[7] > 2.999  # of the own score, and with 40 labels
    assert half[7] > half[3] + 0.5
    assert found["strong-uncertainty"][0][4] > found["strong-uncertainty"][1][4] > 1  # labels that estimate is worth
