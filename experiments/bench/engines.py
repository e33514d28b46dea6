"""Check that engines give the scores of one process, by the examples of experiments/PRODUCTION.md.

    pip install 'judgesmith[ray]' pyspark 'dask[dataframe]' datasets daft polars     # Spark needs Java
    python experiments/bench/engines.py [--json] [--rows 20000] [ray spark dask datasets daft polars]

A made-up model answers at once, with a score that is a function of the prompt. Each engine runs in a process of its
own, from rows of which one in a thousand is empty. same: rows whose score is that of one process, bit for bit, or
absent where that has none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import judgesmith as js
from judgesmith.experiments.bench.waiting import waiting
from judgesmith.experiments.studies.saving import save

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments/results/data"
PAGE = ROOT / "experiments/PRODUCTION.md"
ENGINES = ("ray", "spark", "dask", "datasets", "daft", "polars")
Scores = dict[str, float | None]


def example(word: str, **changed: str) -> str:
    """Return the page's example that has a word.

    Args:
        word: A word of the example.
        **changed: Replacements, such as fewer processes.
    """
    blocks = re.findall(
        r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    (found,) = (block for block in blocks if word in block)
    for name, value in changed.items():
        found = re.sub(rf"{name}=\d+", f"{name}={value}", found)
    return str(found)


def run(code: str, **names: Any) -> Any:
    """Run an example and return its `scored`."""
    exec(code, names)  # noqa: S102
    return names["scored"]


def scores(table: pa.Table) -> Scores:
    """Return the scores of a table by id."""
    return dict(
        zip(table["id"].to_pylist(), table["judge_score"].to_pylist(), strict=True)
    )


def by_ray(scorer: js.BatchScorer, rows: Path) -> Scores:
    """Score the rows by the example for Ray Data."""
    os.environ |= {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    # Not this folder's ray.py.
    sys.path[:] = [
        place
        for place in sys.path
        if Path(place).resolve() != Path(__file__).resolve().parent
    ]
    ray = import_module("ray")
    ray.init(address="local", include_dashboard=False, num_cpus=5, log_to_driver=False)
    code = example("ray.data").replace('"rows"', repr(str(rows)))
    found = run(
        re.sub(r"concurrency=\d+", "concurrency=2", code), ray=ray, scorer=scorer
    )
    result = scores(
        pa.Table.from_pandas(found.select_columns(["id", "judge_score"]).to_pandas())
    )
    ray.shutdown()
    return result


def by_spark(scorer: js.BatchScorer, rows: Path) -> Scores:
    """Score the rows by the example for Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    for name in ("driver.bindAddress", "driver.host"):
        builder = builder.config(f"spark.{name}", "127.0.0.1")
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    found = run(
        example("mapInPandas"),
        frame=session.read.parquet(str(rows)).repartition(4),
        scorer=scorer,
    )
    result = scores(pa.Table.from_pandas(found.select("id", "judge_score").toPandas()))
    session.stop()
    return result


def by_dask(scorer: js.BatchScorer, rows: Path) -> Scores:
    """Score the rows by the example for Dask."""
    frame = import_module("dask.dataframe").from_pandas(
        pq.read_table(rows).to_pandas(), npartitions=16
    )
    found = run(example("map_partitions"), frame=frame, scorer=scorer)
    return scores(
        pa.Table.from_pandas(found.compute(scheduler="processes", num_workers=2))
    )


def by_datasets(scorer: js.BatchScorer, rows: Path) -> Scores:
    """Score the rows by the example for Hugging Face's datasets."""
    found = run(
        example("with_format", num_proc="2"),
        rows=import_module("datasets").Dataset(pq.read_table(rows)),
        scorer=scorer,
    )
    return scores(found.data.table)


def by_daft(scorer: js.BatchScorer, rows: Path) -> Scores:
    """Score the rows by the example for Daft."""
    daft = import_module("daft")
    table = run(
        example("daft.func"),
        daft=daft,
        pa=pa,
        frame=daft.read_parquet(str(rows)),
        scorer=scorer,
    ).to_arrow()
    judged = [
        None if one is None else one["judge_score"]
        for one in table["judged"].to_pylist()
    ]
    return dict(zip(table["id"].to_pylist(), judged, strict=True))


def by_polars(scorer: js.BatchScorer, rows: Path) -> Scores:
    """Score the rows as a polars frame."""
    return scores(scorer(import_module("polars").read_parquet(rows)).to_arrow())


def in_one_process(judge: Path, base: str, rows: Path) -> Scores:
    """Score the rows by `score_many`, as the reference."""
    judge_there = js.load(
        judge, connection=js.Connection(base, concurrency=64, cache=False)
    )
    records = pq.read_table(rows).to_pylist()
    verdicts = judge_there.score_many(records, progress=False)
    found = [None if verdict.failure else verdict.score for verdict in verdicts]
    return {row["id"]: score for row, score in zip(records, found, strict=True)}


def by(engine: str, folder: Path, base: str) -> None:
    """Write an engine's scores."""
    if engine == "one":
        reference = in_one_process(folder / "judge.json", base, folder / "rows.parquet")
    else:
        scorer = js.BatchScorer(
            folder / "judge.json",
            connection=js.Connection(base, concurrency=64, cache=False),
        )
        reference = globals()[f"by_{engine}"](scorer, folder / "rows.parquet")
    (folder / f"{engine}.json").write_text(json.dumps(reference), encoding="utf-8")


def main() -> None:
    """Run the engines, print how many rows agree, and save the table on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engines", nargs="*", default=ENGINES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument(
        "--save", action="store_true", help="into experiments/results/data"
    )
    parser.add_argument(
        "--run", nargs=3, metavar=("ENGINE", "FOLDER", "BASE"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.run:
        by(arguments.run[0], Path(arguments.run[1]), arguments.run[2])
        return
    results: dict[str, dict[str, Any]] = {}
    expected: Scores = {}
    with TemporaryDirectory() as name, waiting(0, 0) as model:
        folder = Path(name)
        js.Judge(js.DirectScorer("fluency", reading="said"), lm="openai/made-up").save(
            folder / "judge.json"
        )
        numbers = range(arguments.rows)
        outputs = ["" if n % 1000 == 999 else f"text number {n}" for n in numbers]
        columns = {
            "id": [f"r{n}" for n in numbers],
            "source": [f"source {n % 50}" for n in numbers],
            "output": outputs,
        }
        pq.write_table(
            pa.table(columns | {"label": [n % 5 for n in numbers]}),
            folder / "rows.parquet",
        )
        for engine in ("one", *arguments.engines):
            started = time.monotonic()
            subprocess.run(
                [sys.executable, __file__, "--run", engine, name, model.base],
                check=True,
            )
            scored = json.loads((folder / f"{engine}.json").read_text(encoding="utf-8"))
            expected = expected or scored
            same = sum(
                scored.get(row, "gone") == score for row, score in expected.items()
            )
            seconds = round(time.monotonic() - started, 1)
            results[engine] = {
                "rows": len(scored),
                "same": same,
                "null": list(scored.values()).count(None),
                "s": seconds,
            }
            print(engine, results[engine], file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps(results))
    rows = [
        [engine, *(one[key] for key in ("rows", "same", "null"))]
        for engine, one in results.items()
    ]
    titles = {
        "engine": "{}",
        "rows": "{:,}",
        "the score of one process": "{:,}",
        "no score": "{:d}",
    }
    command = f"python experiments/bench/engines.py --rows {arguments.rows} --save {' '.join(arguments.engines)}"
    save(
        RESULTS if arguments.save else None,
        "engines",
        titles,
        rows,
        commands=[command],
        seed=0,
    )


if __name__ == "__main__":
    main()
