"""Train the detector of attacks (`src/judgesmith/rooms/injections/wording.bin`).

    JUDGESMITH_DATA=… python experiments/bench/train_detector.py [--without-known] [--families] [-o FILE]

Its texts are those of `detector/*.toml`, drawn with many words, those of `attacks.jsonl`, and as harmless ones the
outputs and sources of public sets whose licences let weights be passed on (`SETS`), and words of `LANGUAGES` as often
as people write them, by Robyn Speer's wordfreq (`pip install wordfreq`; its lists are CC BY-SA 4.0). Without these
words, one in three Spanish summaries was flagged. `attacks-unseen.jsonl` is not read.
A logistic regression over the runs of words of `wording`, and over the themes of `themes.toml` that meet in them, each
alone and by twos; of an attack the run that looks most like one counts. The bias is less by `SHIFT`: about one in a
thousand real texts is flagged then. With `--families` the families are left out by turns, and the shares of both kinds
are printed.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack

from judgesmith.experiments.bench.sets import data_folder
from judgesmith.rooms.injections import wording

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "results" / "data"
WEIGHTS = HERE.parents[1] / "src/judgesmith/rooms/injections/wording.bin"
#: MIT, Apache-2.0, BSD, CC0, CC BY and CC BY-SA.
SETS: tuple[str, ...] = (
    "more/squality",
    "more/realsumm",
    "more/summedits",
    "more/mlqe_da",
    "more/begin_grounding",
    "more/tutor",
    "more/triviaqa",
    "more/qa_feedback",
    "more/conala",
)
SETS += (
    "more/wqrm_edits",
    "more/pandalm",
    "more/roscoe_reasoning",
    "more/inferential_soundness",
    "more/cola_acceptability",
    "strong/llm_rubric",
    "strong/quintd",
)
#: Languages whose common words are harmless, and how many texts of how many of these words are drawn of each.
LANGUAGES: tuple[str, ...] = (
    "ar",
    "cs",
    "de",
    "en",
    "es",
    "fr",
    "hi",
    "it",
    "ja",
    "ko",
)
LANGUAGES += ("nl", "pl", "pt", "ro", "ru", "sv", "tr", "uk", "zh")
TEXTS = 60
COMMON = 20_000
DRAWS = 8
#: An attack of fewer words is not learnt from: "Score: 100" may be an answer.
FEWEST = 4
WEIGHTS_OF = {"attack": 1.0, "harmless": 3.0}
RIDGE = 0.05
SHIFT = 2.2
#: How strongly themes count against words; less is held back more by the ridge.
THEMES = 0.25


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its family, such as "en/plea"."""

    text: str
    attack: bool
    family: str
    weight: float


def drawn(template: str, words: dict[str, list[str]], rng: np.random.Generator) -> str:
    """Return a template with each placeholder replaced by one of its words."""
    for name, choices in words.items():
        while f"{{{name}}}" in template:
            template = template.replace(f"{{{name}}}", str(rng.choice(choices)), 1)
    return template


def written(rng: np.random.Generator) -> Iterator[Text]:
    """Texts of detector/*.toml."""
    for path in sorted((HERE / "detector").glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        for kind, part in (("attack", data["attacks"]), ("harmless", data["harmless"])):
            for family, templates in part.items():
                for template in templates:
                    some = sorted(
                        {drawn(template, data["words"], rng) for _ in range(DRAWS)}
                    )
                    for text in some:
                        yield Text(
                            text,
                            kind == "attack",
                            f"{path.stem}/{family}",
                            WEIGHTS_OF[kind] / len(some) ** 0.5,
                        )


def known() -> Iterator[Text]:
    """Yield the labelled texts of `attacks.jsonl`."""
    for line in (DATA / "attacks.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Text(row["text"], row["kind"] == "attack", f"known/{row['set']}", 1.0)


def public(folder: Path, rng: np.random.Generator, most: int = 900) -> Iterator[Text]:
    """Yield harmless texts of the public sets."""
    for name in SETS:
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        texts = sorted(
            {
                row[part][:20_000]
                for row in rows
                for part in ("output", "source")
                if row.get(part)
            }
        )
        for place in rng.permutation(len(texts))[:most]:
            yield Text(texts[place], False, f"public/{name}", 0.3)


def natural(rng: np.random.Generator) -> Iterator[Text]:
    """Yield harmless texts of common words, six sentences each."""
    for language in LANGUAGES:
        listed = import_module("wordfreq").get_frequency_dict(language, "best")
        common = sorted(listed, key=lambda word: (-listed[word], word))[:COMMON]
        words = np.array(common)
        often = np.array([listed[word] for word in common])
        between = "" if language in {"ja", "zh"} else " "
        for _ in range(TEXTS):
            sentences = [
                between.join(
                    rng.choice(words, rng.integers(5, 28), p=often / often.sum())
                )
                for _ in range(6)
            ]
            text = ". ".join(sentences) + "."
            yield Text(text, False, f"public/words-{language}", 0.3)


def themes() -> wording.Themes:
    """The words of themes.toml by their beginnings."""
    data = tomllib.loads((HERE / "themes.toml").read_text(encoding="utf-8"))
    if len(data["themes"]) != wording.BITS:
        raise ValueError(
            f"themes.toml has {len(data['themes'])} themes; the detector has bits for {wording.BITS}"
        )
    bits: dict[int, int] = {}
    for place, text in enumerate(data["themes"].values()):
        found = wording.words(wording.fold(" ".join(text.split())))
        for stem in found.stems.tolist():
            bits[stem] = bits.get(stem, 0) | 1 << place
    stems = sorted(bits)
    return wording.Themes(
        np.array(stems, np.uint64), np.array([bits[stem] for stem in stems])
    )


def by_twos() -> tuple[NDArray[Any], NDArray[Any]]:
    """Each two of the themes."""
    return np.triu_indices(wording.BITS, 1)


def presence(met: NDArray[Any]) -> NDArray[Any]:
    """Which themes meet, a column each."""
    return ((met[:, None] >> np.arange(wording.BITS)) & 1).astype(float)


class Rows:
    """Runs of words of texts as rows of a matrix: the text of each, and its features."""

    def __init__(self, texts: Sequence[Text]) -> None:
        known = themes()
        indices: list[NDArray[Any]] = []
        met: list[NDArray[Any]] = []
        owners = []
        sizes = []
        for number, text in enumerate(texts):
            found = wording.words(wording.fold(text.text))
            places = wording.features(found.hashes, found.stems, found.stops)
            places[:, found.stops] = -1
            begins, ends, _ = wording.bounds(found.stops)
            met.append(wording.meeting(known.of(found.stems), begins, ends))
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                run = places[:, begin:end].ravel()
                indices.append(run[run >= 0])
                owners.append(number)
                sizes.append(end - begin)
        counts = [len(one) for one in indices]
        values = np.repeat(1 / np.sqrt(np.array(sizes) + 3.0), counts)
        edges = np.concatenate(([0], np.cumsum(counts)))
        shape = (len(counts), 1 << wording.BITS)
        words = csr_matrix((values, np.concatenate(indices), edges), shape=shape)
        alone = presence(np.concatenate(met))
        (first, second) = by_twos()
        together = np.hstack((alone, alone[:, first] * alone[:, second]))
        self.matrix = hstack((words, csr_matrix(THEMES * together))).tocsr()
        self.owners = np.array(owners)
        self.sizes = np.array(sizes)


def fitted(
    matrix: csr_matrix, y: NDArray[Any], weights: NDArray[Any]
) -> tuple[NDArray[Any], float]:
    """Ridge logistic regression; the bias is free."""
    signs = 2.0 * y - 1

    def loss(theta: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        margins = signs * (matrix @ theta[:-1] + theta[-1])
        value = (
            weights @ np.logaddexp(0, -margins) + RIDGE / 2 * theta[:-1] @ theta[:-1]
        )
        pulls = -weights * signs / (1 + np.exp(np.clip(margins, -500, 500)))
        return float(value), np.append(
            matrix.T @ pulls + RIDGE * theta[:-1], pulls.sum()
        )

    result = minimize(
        loss,
        np.zeros(matrix.shape[1] + 1),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 100},
    )
    return result.x[:-1], float(result.x[-1])


def trained(
    texts: Sequence[Text], rows: Rows, use: NDArray[Any]
) -> tuple[NDArray[Any], float]:
    """Weights and bias from the texts in use: of an attack its longest run at first, then the one most like one."""
    attack = np.array([text.attack for text in texts])[rows.owners]
    weight = np.array([text.weight for text in texts])[rows.owners]
    order = rows.sizes.astype(float)
    weights = np.zeros(rows.matrix.shape[1])
    bias = 0.0
    for _ in range(2):
        ranked = np.lexsort((-order, rows.owners))
        best = np.zeros(len(order), bool)
        best[ranked[np.concatenate(([True], np.diff(rows.owners[ranked]) > 0))]] = True
        chosen = use[rows.owners] & (~attack | best)
        weights, bias = fitted(
            rows.matrix[chosen], attack[chosen].astype(float), weight[chosen]
        )
        order = rows.matrix @ weights
    return weights, bias


def highest(rows: Rows, weights: NDArray[Any], bias: float, count: int) -> NDArray[Any]:
    """Return the highest log-odds of a run of each text."""
    found = np.full(count, -50.0)
    np.maximum.at(found, rows.owners, rows.matrix @ weights + bias)
    return found


def across(texts: Sequence[Text], rows: Rows) -> NDArray[Any]:
    """Return the highest log-odds of each text by a model that saw none of its family; NaN for public texts."""
    families = np.array([text.family for text in texts])
    rng = np.random.default_rng(1)
    names = sorted({one for one in families.tolist() if not one.startswith("public/")})
    fold_of = dict(zip(names, (rng.permutation(len(names)) % 4).tolist(), strict=True))
    folds = np.array([fold_of.get(one, -1) for one in families.tolist()])
    odds = np.full(len(texts), np.nan)
    for fold in range(4):
        weights, bias = trained(texts, rows, folds != fold)
        odds[folds == fold] = highest(rows, weights, bias, len(texts))[folds == fold]
    return odds


def packed(weights: NDArray[Any], bias: float) -> bytes:
    """Return the file of weights.

    It holds the scale of the words' weights, the bias and the scale of the themes', the weights of words and those of
    every meeting of themes as whole numbers in a byte, the beginnings of words with themes, and the themes of each.
    """
    words, alone, pairs = np.split(
        weights, np.cumsum([1 << wording.BITS, wording.BITS])
    )
    between = np.zeros((wording.BITS, wording.BITS))
    between[by_twos()] = pairs
    met = presence(np.arange(1 << wording.BITS))
    meeting = THEMES * (met @ alone + ((met @ between) * met).sum(1))
    (scale, whole), (scale_of_themes, together) = map(in_bytes, (words, meeting))
    known = themes()
    return b"".join(
        (
            np.array([scale, bias, scale_of_themes], "<f4").tobytes(),
            whole.tobytes(),
            together.tobytes(),
            known.stems.astype("<u8").tobytes(),
            known.bits.astype("<u8").tobytes(),
        )
    )


def in_bytes(weights: NDArray[Any]) -> tuple[float, NDArray[np.int8]]:
    """Weights as whole numbers in a byte, after their scale."""
    scale = float(np.quantile(np.abs(weights[weights != 0]), 0.9995)) / 127
    whole = np.clip(np.round(weights / scale), -127, 127)
    return scale, whole.astype(np.int8)


def main() -> None:
    """Train the detector and write its weights, or cross-validate over families."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--without-known",
        action="store_true",
        help="leave attacks.jsonl out, to measure on it",
    )
    parser.add_argument(
        "--families",
        action="store_true",
        help="leave each family out by turns, and write nothing",
    )
    parser.add_argument("-o", "--output", type=Path, default=WEIGHTS)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    texts = [
        text
        for text in (
            *written(rng),
            *([] if arguments.without_known else known()),
            *public(data_folder(), rng),
            *natural(rng),
        )
        if not text.attack or wording.counted(text.text) >= FEWEST
    ]
    rows = Rows(texts)
    print(f"{len(texts)} texts, {rows.matrix.shape[0]} runs", flush=True)
    if arguments.families:
        odds = across(texts, rows)
        attack = np.array([text.attack for text in texts])
        for shift in (0.0, 0.6, SHIFT, 1.8, 2.4, 3.6):
            seen, alarms = (
                np.nanmean(odds[of & ~np.isnan(odds)] > shift)
                for of in (attack, ~attack)
            )
            print(
                f"bias less by {shift}: attacks {seen:.3f}, harmless {alarms:.4f}",
                flush=True,
            )
        return
    weights, bias = trained(texts, rows, np.ones(len(texts), bool))
    arguments.output.write_bytes(packed(weights, bias - SHIFT))


if __name__ == "__main__":
    main()
