"""Recompute rows of the papers' tables from recorded metric scores, without a model.

    python experiments/bench/recorded_tables.py [-o experiments/results/data]

Printed values come from `experiments/studies/papers/published`, recorded scores and human ratings from JUDGESMITH_DATA
(SET.jsonl and SET.metrics.jsonl). Each line compares one printed coefficient with that of the rows at hand. For HANNA
the coefficient is also given without the human stories, whose reference is the story itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped,unused-ignore]
from scipy.stats import kendalltau, pearsonr, spearmanr

from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.saving import save

PUBLISHED = Path(__file__).resolve().parents[1] / "studies" / "papers" / "published"
COEFFICIENTS: Mapping[str, Callable[..., Any]] = {
    "pearson": pearsonr,
    "spearman": spearmanr,
    "kendall": kendalltau,
}
HUMAN = "Human"
SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")
#: The recorded prompts of GPT-3.5: reason, then score; multiple choice; each in other words; stars.
PROMPTS = ("rts", "altrts", "mcq", "altmcq", "stareval")


@dataclass(frozen=True)
class Recorded:
    """A set's rows: human scores, recorded scores, and who wrote each row."""

    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, name: str) -> Recorded:
        """Read a set and its recorded scores."""
        metrics = {row["id"]: row["metrics"] for row in read_set(f"{name}.metrics")}
        rows = read_set(name)
        return cls([row | {"metrics": metrics.get(row["id"], {})} for row in rows])

    def without(self, system: str) -> Recorded:
        """Leave out the rows of one system."""
        return Recorded([row for row in self.rows if row.get("system") != system])

    def coefficient(self, name: str, column: str, aspect: str) -> float:
        """Correlate a recorded column with people over all rows that have both."""
        pairs = [
            (row["metrics"][column], row["scores"][aspect])
            for row in self.rows
            if column in row["metrics"] and aspect in row["scores"]
        ]
        recorded, human = np.array(pairs, float).T
        return float(COEFFICIENTS[name](recorded, human).statistic)

    def within_documents(self, name: str, column: str, aspect: str) -> float:
        """Average the coefficient over documents in which neither side is constant."""
        documents = dict[str, list[dict[str, Any]]]()
        for row in self.rows:
            documents.setdefault(row["doc_id"], []).append(row)
        found = [
            Recorded(rows).coefficient(name, column, aspect)
            for rows in documents.values()
            if len({row["scores"][aspect] for row in rows}) > 1
            and len({row["metrics"][column] for row in rows}) > 1
        ]
        return float(np.mean(found))


def published(paper: str, table: str) -> dict[str, Any]:
    """Read a table's printed values."""
    path = PUBLISHED / paper / f"table-{table}.yaml"
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def printed(table: Mapping[str, Any], row: str, column: str, name: str) -> float:
    """Return one printed coefficient."""
    values = table["beside"][row][column]
    return float(values[table["coefficients"].index(name)])


def qags() -> Iterator[list[Any]]:
    """OpeNLGauge's Table 3."""
    table = published("openlgauge", "3")
    rows = Recorded.of("qags_cnndm")
    for metric, column in (
        ("BARTScore", "bart_score_cnn_src_hypo"),
        ("UniEval", "unieval_consistency"),
        ("ROUGE-1", "rouge1_f_src"),
        ("ROUGE-2", "rouge2_f_src"),
        ("ROUGE-L", "rougeL_f_src"),
    ):
        for name in COEFFICIENTS:
            yield [
                "OpeNLGauge 3",
                metric,
                f"QAGS-CNN/DM, {name}",
                printed(table, metric, "QAGS-CNN/DM", name),
                rows.coefficient(name, column, "consistency"),
                None,
            ]


def data_to_text() -> Iterator[list[Any]]:
    """OpeNLGauge's Table 14."""
    table = published("openlgauge", "14")
    for data in ("SFRES", "SFHOT"):
        rows = Recorded.of(data.lower())
        for aspect in ("informativeness", "naturalness"):
            for metric, column in (
                ("UniEval", f"unieval_{aspect}"),
                ("ROUGE-1", "rouge1_f"),
                ("ROUGE-L", "rougeL_f"),
            ):
                title = f"{data} {aspect}"
                yield [
                    "OpeNLGauge 14",
                    metric,
                    f"{title}, spearman",
                    printed(table, metric, title, "spearman"),
                    rows.coefficient("spearman", column, aspect),
                    None,
                ]


def summaries() -> Iterator[list[Any]]:
    """OpeNLGauge's Table 12, whose ROUGE columns carry the names of others."""
    table = published("openlgauge", "12")
    rows = Recorded.of("summeval")
    columns = (
        ("ROUGE-1", "rouge1_f"),
        ("ROUGE-2", "rouge2_f"),
        ("ROUGE-L", "rougeL_f"),
    )
    exchanged = {
        "consistency": "coherence",
        "coherence": "consistency",
        "relevance": "fluency",
        "fluency": "relevance",
    }
    for metric, column in columns:
        for aspect, other in exchanged.items():
            yield [
                "OpeNLGauge 12",
                metric,
                f"SummEval {aspect}, spearman within documents",
                # The file has each value where it belongs, not where it is printed.
                printed(table, metric, other, "spearman"),
                rows.within_documents("spearman", column, aspect),
                f"{other}: {rows.within_documents('spearman', column, other):.3f}",
            ]


def stories() -> Iterator[list[Any]]:
    """OpeNLGauge's Tables 15 to 17, with and without the human stories."""
    table = published("openlgauge", "15")
    rows = Recorded.of("hanna")
    others = rows.without(HUMAN)
    for metric, column in (
        ("BLEU", "BLEU"),
        ("ROUGE-1", "ROUGE-1 F-Score"),
        ("METEOR", "METEOR"),
        ("BERTScore", "BERTScore F1"),
        ("MoverScore", "MoverScore"),
    ):
        for aspect in ("coherence", "complexity"):
            left = others.coefficient("pearson", column, aspect)
            yield [
                "OpeNLGauge 15",
                metric,
                f"HANNA {aspect}, pearson",
                printed(table, metric, aspect, "pearson"),
                rows.coefficient("pearson", column, aspect),
                f"without human stories: {left:.3f}",
            ]


def overall() -> Iterator[list[Any]]:
    """Active-Critic's Tables 1 and 2, of recorded scores."""
    sfres = Recorded.of("sfres")
    table = published("active-critic", "1")
    for name in COEFFICIENTS:
        yield [
            "Active-Critic 1",
            "UniEval",
            f"SFRES overall, {name}",
            printed(table, "UniEval", "SFRES", name),
            sfres.coefficient(name, "unieval_overall", "overall"),
            None,
        ]
    yield from plain_prompts()


def plain_prompts() -> Iterator[list[Any]]:
    """Active-Critic's Table 2 beside every recorded prompt of GPT-3.5 and GPT-4, their mean, and panels of them."""
    older = "gpt-3.5-turbo-0301"
    newer = "gpt-4-0314"
    every = [f"{older}.{name}.{aspect}" for name in PROMPTS for aspect in SUMMEVAL]
    every += [f"{newer}.rts.{aspect}" for aspect in SUMMEVAL]
    rows = [
        row for row in Recorded.of("summeval").rows if row["metrics"].keys() >= {*every}
    ]
    human = np.mean([[row["scores"][a] for a in SUMMEVAL] for row in rows], axis=1)
    documents = np.array([row["doc_id"] for row in rows])
    five = {name: _of_aspects(rows, f"{older}.{name}") for name in PROMPTS}
    four = _of_aspects(rows, f"{newer}.rts")
    singles = {f"{older}, {name}": scores for name, scores in five.items()}
    panels = {
        f"{older}, panel of the five": _panel([*five.values()]),
        f"{older} and {newer}, panel of the six": _panel([*five.values(), four]),
    }
    table = published("active-critic", "2")["rows"]["fine"]["SummEval"]
    for place, name in enumerate(COEFFICIENTS):
        beside = f"AC-Fine on GPT-3.5, printed: {table[place]:.3f}"
        what = f"SummEval mean of four aspects, {name}"
        found = {one: _coefficient(name, s, human) for one, s in singles.items()}
        found[f"{older}, mean of the five"] = float(np.mean([*found.values()]))
        found[f"{newer}, rts"] = _coefficient(name, four, human)
        for one, value in found.items():
            yield ["Active-Critic 2", one, what, None, value, beside]
        for one, scores in panels.items():
            value = _coefficient(name, scores, human)
            low, high = _interval(name, scores, human, documents)
            said = f"{beside}; interval [{low:.3f}, {high:.3f}]"
            yield ["Active-Critic 2", one, what, None, value, said]


def _of_aspects(rows: list[dict[str, Any]], prompt: str) -> Any:
    """Return the mean of the four aspects' scores by a prompt."""
    columns = [f"{prompt}.{aspect}" for aspect in SUMMEVAL]
    return np.mean([[row["metrics"][c] for c in columns] for row in rows], axis=1)


def _panel(members: list[Any]) -> Any:
    """Return the mean of the members' scores, each in standard deviations."""
    return np.mean([(one - one.mean()) / one.std() for one in members], axis=0)


def _coefficient(name: str, scores: Any, human: Any) -> float:
    return float(COEFFICIENTS[name](scores, human).statistic)


def _interval(
    name: str, scores: Any, human: Any, documents: Any
) -> tuple[float, float]:
    """Return a 95 % interval, by drawing whole documents a thousand times."""
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(documents == one) for one in np.unique(documents)]
    values = []
    for _ in range(1000):
        drawn = rng.integers(len(places), size=len(places))
        rows = np.concatenate([places[n] for n in drawn])
        values.append(_coefficient(name, scores[rows], human[rows]))
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    """Recompute the papers' rows from recorded scores, and save them on request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = [*qags(), *summaries(), *data_to_text(), *stories(), *overall()]
    for row in rows:
        print(*row, sep=" | ")
    save(
        options.output,
        "papers-recorded",
        {
            "table": "",
            "metric": "",
            "column": "",
            "printed": "{:.3f}",
            "from recorded scores": "{:.3f}",
            "beside": "",
        },
        rows,
        commands=[
            "python experiments/bench/recorded_tables.py -o experiments/results/data"
        ],
    )


if __name__ == "__main__":
    main()
