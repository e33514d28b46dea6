"""Train a small reader on differences within documents, summaries left out, and score SummEval by it.

    python experiments/bench/train_within.py pack FOLDER
    python experiments/bench/train_within.py heads FOLDER
    python experiments/bench/train_within.py train FOLDER [--steps 140]
    python experiments/bench/train_within.py score FOLDER

Needs the extras `local`, `train` and `discern`, and JUDGESMITH_DATA. `within_gains.py` measures what the scores add.

SmolLM2-135M reads "source, context, reference, output, aspect" up to its sixteenth layer of thirty; a linear head on
the output's mean state and on the last state gives the score. All outputs of a document share one beginning, and all
aspects of an output its text, so that a document is read in one pass, each branch blind to the others. `heads` trains
the head alone, in several ways; `train` adds low-rank weights in the last two layers, and resumes.

The loss is that of RankNet for pairs of outputs, weighted by the difference of their ratings: pairs of one document, of
one document or system, or all. Good texts and their perturbed copies are pairs, too, as UniEval has them: shuffled
sentences lower coherence, swapped names consistency, dropped words fluency, sentences of other texts relevance. In
aspects that a perturbation leaves as they are, both copies are to have one score.

Source: RankNet (Burges et al. 2005), UniEval (Zhong et al. 2022).
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]

from judgesmith.datasets.perturbations.registry import (
    Pair,
    Text,
    find_perturbations,
    pairs_of,
)
from judgesmith.experiments.bench.sets import read_set
from judgesmith.experiments.studies.experience import (
    chosen_rows,
    located,
    read_specs,
)
from judgesmith.programs.models.files import model_path
from judgesmith.programs.readings.bindings.torch_reader import open_weights
from judgesmith.programs.readings.passages import Piece

MODEL = "smollm2-135m"
#: Layers below are computed once for all; those in between have low-rank weights; the state after the last is read.
FIRST, LAST, RANK, SCALE = 14, 16, 16, 2.0
#: The most tokens of each text.
MOST = {"source": 200, "context": 80, "reference": 70, "output": 150}
#: Tokens of one pass and of one step, and rows of a step.
PASS, STEP = 1100, 3000
RATE, HEAD_RATE, CLIP = 6e-4, 3e-4, 6.0
#: What the penalty for a difference in an unharmed aspect weighs.
STEADY = 0.3
#: The largest difference of ratings that counts, in standard deviations; the penalty of a head's squares.
MOST_AHEAD, PENALTY = 3.0, 0.5
#: What the reader is called whose last layers are trained, too.
TRAINED = "either and copies, two layers too"
#: Which pairs a head is trained on, and whether on perturbed copies, too.
HEADS = (
    ("document", False),
    ("either", False),
    ("all", False),
    ("document", True),
    ("either", True),
    ("all", True),
)


#: The scores of outputs by id and by aspect.
Scores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class SetSpec:
    """A rated set: what its outputs are, the aspects to learn as words, and how many documents and outputs of each."""

    name: str
    job: str
    words: str
    documents: int
    outputs: int = 8

    @property
    def aspects(self) -> list[str]:
        """Return the aspects."""
        return self.words.split()


_DATA, _TALK = "saying data in words", "the next turn of a dialogue"
_STORY, _SIMPLER, _ANSWER = "a story", "a simpler sentence", "an answer to a question"
_TRANSLATION, _SUMMARY = "a translation", "a summary"
#: No summaries, which are left out.
SETS = (
    SetSpec("sfres", _DATA, "informativeness naturalness", 14),
    SetSpec("sfhot", _DATA, "informativeness naturalness", 14),
    SetSpec("bagel", _DATA, "informativeness naturalness", 10),
    SetSpec("more/webnlg2020", _DATA, "correctness coverage fluency relevance", 15, 7),
    SetSpec("more/e2e_nlg", _DATA, "quality naturalness", 8, 6),
    SetSpec(
        "topical_chat", _TALK, "coherence engagingness naturalness groundedness", 11
    ),
    SetSpec(
        "personachat_usr", _TALK, "coherence engagingness naturalness groundedness", 11
    ),
    SetSpec("more/dailydialog_gupta", _TALK, "overall", 8),
    SetSpec("more/grade", _TALK, "coherence", 18),
    SetSpec("more/dailydialog_zhao", _TALK, "overall", 6),
    SetSpec("more/persona_zhao", _TALK, "overall", 6),
    SetSpec("more/tutor", _TALK, "coherence guidance mistake_identification", 5, 5),
    SetSpec("hanna", _STORY, "coherence relevance engagement", 8, 5),
    SetSpec("openmeva_roc", _STORY, "overall", 8),
    SetSpec("more/wqrm_edits", _STORY, "overall", 4),
    SetSpec("mqm_ted_zhen", _TRANSLATION, "overall", 4, 7),
    SetSpec("more/mqm23_zhen", _TRANSLATION, "overall", 3, 7),
    SetSpec("wiki_da", _SIMPLER, "meaning fluency simplicity", 20),
    SetSpec("more/simpeval_past", _SIMPLER, "overall", 3, 10),
    SetSpec("more/simpda_2022", _SIMPLER, "meaning fluency simplicity", 7),
    SetSpec(
        "more/qgeval",
        "a question about a text",
        "fluency relevance consistency answerability",
        9,
        7,
    ),
    SetSpec("more/triviaqa", _ANSWER, "correctness", 5),
    SetSpec("more/qa_feedback", _ANSWER, "preferred", 3),
    SetSpec("more/lfqa_experts", _ANSWER, "preferred", 6),
    SetSpec("more/pandalm", "an answer to an instruction", "preferred", 8),
    SetSpec("more/seeda", "a corrected sentence", "overall", 7, 6),
)
#: Good texts to perturb: the set, what they are, which field or which best output, how many. No ratings of summaries.
GOOD = (
    ("dhp_sumpubmed", _SUMMARY, "output", 13),
    ("qags_cnndm", _SUMMARY, "output", 12),
    ("newsroom", _SUMMARY, "reference", 8),
    ("hanna", _STORY, "best", 3),
    ("topical_chat", _TALK, "best", 5),
    ("more/webnlg2020", _DATA, "best", 8),
    ("more/lfqa_experts", _ANSWER, "best", 4),
)
OF_SUMMARIES = "coherence consistency fluency relevance"
JUDGED = f"{OF_SUMMARIES} overall"


@dataclass(frozen=True)
class Effect:
    """What a perturbation lowers, and what it leaves as it is."""

    lowers: tuple[str, ...]
    leaves: tuple[str, ...] = ()


EFFECTS = {
    "shuffle": Effect(("coherence",), ("consistency", "fluency", "relevance")),
    "entities-rules": Effect(("consistency",), ("coherence", "fluency")),
    "numbers": Effect(("consistency",), ("coherence", "fluency", "relevance")),
    "negation": Effect(("consistency",), ("coherence", "fluency")),
    "word-deletion": Effect(("fluency",), ("relevance",)),
    "grammar-rules": Effect(("fluency",), ("consistency", "relevance")),
    "typos": Effect(("fluency",), ("consistency", "relevance")),
    "irrelevant": Effect(("relevance", "coherence"), ("fluency",)),
    "random-ending": Effect(("relevance", "coherence", "consistency"), ("fluency",)),
    "random-answer": Effect(("relevance", "consistency"), ("fluency",)),
}
#: Perturbed copies of one text.
COPIES = 6


@dataclass(frozen=True)
class Pack:
    """A document with some of its outputs, each under all aspects, as one pass takes them.

    branches: the output and the aspect that each token belongs to, -1 for what is shared. spans: each output's first
    token and the one after its last. ends: the last token of each output under each aspect. ratings: standardised
    within the set, NaN where there is none. lowered, left: (output, aspect, weight) of perturbed copies of output 0.
    """

    set: str
    document: str
    tokens: list[int]
    places: list[int]
    branches: list[tuple[int, int]]
    spans: list[tuple[int, int]]
    ends: list[list[int]]
    aspects: list[str]
    ids: list[str]
    systems: list[str] = field(default_factory=list)
    ratings: list[list[float]] = field(default_factory=list)
    lowered: list[tuple[int, int, float]] = field(default_factory=list)
    left: list[tuple[int, int, float]] = field(default_factory=list)


# Packing --------------------------------------------------------------------------------------------------------------


class Packer:
    """Puts documents into passes by a tokenizer."""

    def __init__(self, tokens: Callable[[Piece], list[int]]) -> None:
        self._tokens = tokens

    def of(self, text: str, most: int = 10**6) -> list[int]:
        """Return a text's tokens, without the middle of a longer one: three quarters are from its beginning."""
        found = self._tokens(Piece(text[: 12 * most]))
        end = most // 4
        return found if len(found) <= most else found[: most - end] + found[-end:]

    def beginning(self, job: str, row: Mapping[str, Any]) -> list[int]:
        """Return the tokens that all outputs of a document share."""
        result = self.of(f"Is this {job} good?\n")
        for part in ("source", "context", "reference"):
            if text := row.get(part):
                shown = self.of(str(text), MOST[part])
                result += [*self.of(f"{part.title()}: "), *shown, *self.of("\n")]
        return result + self.of("Output: ")

    def packs(
        self, spec: SetSpec, document: str, rows: Sequence[Mapping[str, Any]]
    ) -> Iterator[Pack]:
        """Yield the passes of a document: as many outputs in each as it holds."""
        start = self.beginning(spec.job, rows[0])
        ends = [
            self.of(f"\nAspect: {aspect.replace('_', ' ')}. Score:")
            for aspect in spec.aspects
        ]
        pack = _started(spec, document, start)
        for row in rows:
            output = self.of(str(row["output"]), MOST["output"])
            longer = len(output) + sum(map(len, ends))
            if pack.spans and len(pack.tokens) + longer > PASS:
                yield pack
                pack = _started(spec, document, start)
            _append(pack, row, output, ends)
        yield pack


def _started(spec: SetSpec, document: str, start: Sequence[int]) -> Pack:
    return Pack(
        spec.name,
        document,
        list(start),
        list(range(len(start))),
        [(-1, -1)] * len(start),
        [],
        [],
        spec.aspects,
        [],
    )


def _append(
    pack: Pack, row: Mapping[str, Any], output: list[int], ends: list[list[int]]
) -> None:
    number, before = len(pack.spans), pack.branches.count((-1, -1))
    first = len(pack.tokens)
    pack.spans.append((first, first + len(output)))
    pack.tokens.extend(output)
    pack.places.extend(range(before, before + len(output)))
    pack.branches.extend([(number, -1)] * len(output))
    pack.ends.append([])
    after = before + len(output)
    for aspect, end in enumerate(ends):
        pack.tokens.extend(end)
        pack.places.extend(range(after, after + len(end)))
        pack.branches.extend([(number, aspect)] * len(end))
        pack.ends[-1].append(len(pack.tokens) - 1)
    pack.ids.append(str(row["id"]))
    pack.systems.append(str(row.get("system") or ""))


def rated_packs(packer: Packer, spec: SetSpec, seed: int) -> Iterator[Pack]:
    """Yield the passes of documents drawn from a rated set, those with one output left out."""
    rng = np.random.default_rng(seed)
    records = read_set(spec.name)
    standard = standardised(records, spec.aspects)
    documents = defaultdict[str, list[dict[str, Any]]](list)
    for record in records:
        documents[record["doc_id"]].append(record)
    several = [name for name, rows in documents.items() if len(rows) > 1]
    for place in rng.permutation(len(several))[: spec.documents]:
        rows = documents[several[place]]
        chosen = [rows[i] for i in rng.permutation(len(rows))[: spec.outputs]]
        for pack in packer.packs(spec, several[place], chosen):
            pack.ratings.extend(standard[one] for one in pack.ids)
            if len(pack.spans) > 1:
                yield pack


def standardised(
    records: Sequence[Mapping[str, Any]], aspects: Sequence[str]
) -> dict[str, list[float]]:
    """Return each row's ratings, by its id, in standard deviations of the set."""
    table = list[list[float]]()
    for record in records:
        table.append([record["scores"].get(aspect, np.nan) for aspect in aspects])
    values = np.array(table, float)
    values = (values - np.nanmean(values, axis=0)) / np.nanstd(values, axis=0)
    ids = [str(record["id"]) for record in records]
    return dict(zip(ids, np.round(values, 4).tolist(), strict=True))


def good_texts(name: str, which: str, count: int) -> list[Text]:
    """Return good texts of a set: outputs, references, or the best-rated output of a document."""
    best = dict[str, tuple[float, dict[str, Any]]]()
    for record in read_set(name):
        rated = (
            float(np.mean(list(record["scores"].values()))) if which == "best" else 0
        )
        found = best.get(record["doc_id"])
        if found is None or rated > found[0]:
            best[record["doc_id"]] = (rated, record)
    field_name = "reference" if which == "reference" else "output"
    return [
        Text(document, record[field_name], record["source"], record.get("context"))
        for document, (_, record) in list(best.items())[:count]
        if record.get(field_name)
    ]


def perturbed_packs(
    packer: Packer, name: str, job: str, which: str, count: int, seed: int
) -> Iterator[Pack]:
    """Yield a pass for each good text: the text, and some perturbed copies."""
    texts = good_texts(name, which, count)
    copies = defaultdict[str, list[Pair]](list)
    for perturbation, degrees in find_perturbations(list(EFFECTS)):
        for pair in pairs_of(perturbation, texts, degrees=degrees, seed=seed):
            if isinstance(pair, Pair):
                copies[pair.id].append(pair)
    rng = np.random.default_rng(seed)
    spec = SetSpec(f"perturbed {name}", job, JUDGED, count)
    for text in texts:
        pairs = copies[text.id]
        chosen = [pairs[i] for i in rng.permutation(len(pairs))[:COPIES]]
        rows = [_row(text, text.text, "good")]
        rows += [
            _row(text, pair.perturbed, f"{pair.perturbation} {pair.degree}")
            for pair in chosen
        ]
        for pack in packer.packs(spec, text.id, rows):
            _expect(pack, first=pack.ids[0].endswith("|good"))
            if pack.lowered:
                yield pack


def _row(text: Text, output: str, kind: str) -> dict[str, Any]:
    return {
        "id": f"{text.id}|{kind}",
        "source": text.source,
        "context": text.context,
        "output": output,
    }


def _expect(pack: Pack, *, first: bool) -> None:
    """Note what the copies in a pass have lower than the good text, which is its first output."""
    if not first:
        return
    for number, one in enumerate(pack.ids[1:], 1):
        kind, _, degree = one.rpartition("|")[2].rpartition(" ")
        effect = EFFECTS[kind]
        weight = 0.5 if degree == "minor" else 1.0
        for place, aspect in enumerate(pack.aspects):
            if aspect in effect.lowers or aspect == "overall":
                pack.lowered.append((number, place, weight))
            if aspect in effect.leaves:
                pack.left.append((number, place, weight))


def write_packs(path: Path, packs: Sequence[Pack]) -> None:
    """Write passes as JSON lines."""
    lines = (json.dumps(asdict(pack)) for pack in packs)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_packs(path: Path) -> list[Pack]:
    """Read what `write_packs` wrote."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Pack(**json.loads(line)) for line in lines]


def summeval_packs(packer: Packer) -> Iterator[Pack]:
    """Yield the passes of the documents of SummEval that experience is measured on."""
    task = next(task for task in read_specs(None).tasks if "summeval" in task.labels)
    rows = chosen_rows(task, located(task.labels, None)).rows
    spec = SetSpec("summeval", _SUMMARY, OF_SUMMARIES, 100, 16)
    chosen = {row.doc_id for row in rows}
    documents = defaultdict[str, list[dict[str, Any]]](list)
    for record in read_set("summeval"):
        if record["doc_id"] in chosen:
            documents[record["doc_id"]].append(record)
    for name, records in documents.items():
        yield from packer.packs(spec, name, records)


def pack_all(folder: Path) -> None:
    """Write the passes to learn from, and those of SummEval."""
    weights = open_weights(model_path(MODEL), "bfloat16")
    packer = Packer(weights.tokens)
    packs = list[Pack]()
    for number, spec in enumerate(SETS):
        packs += rated_packs(packer, spec, number)
    for number, (name, job, which, count) in enumerate(GOOD):
        packs += perturbed_packs(packer, name, job, which, count, number)
    write_packs(folder / "train.jsonl", packs)
    by_set = defaultdict[str, list[int]](list)
    for pack in packs:
        by_set[pack.set].append(len(pack.tokens))
    for name, lengths in by_set.items():
        print(name, len(lengths), sum(lengths))
    print(len(packs), "passes", sum(len(pack.tokens) for pack in packs), "tokens")
    held_out = list(summeval_packs(packer))
    write_packs(folder / "score.jsonl", held_out)
    print("to score", sum(len(pack.tokens) for pack in held_out), "tokens")


# The model ------------------------------------------------------------------------------------------------------------


class LowRank(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A linear layer with low-rank weights beside it (Hu et al. 2022)."""

    def __init__(self, base: Any) -> None:
        super().__init__()
        self.base = base
        spread = 1 / math.sqrt(base.in_features)
        self.down = torch.nn.Parameter(torch.randn(RANK, base.in_features) * spread)
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, RANK))

    def forward(self, x: Any) -> Any:
        """Return the layer's result with what the low-rank weights add."""
        within = torch.nn.functional.linear(x, self.down.to(x.dtype))
        added = torch.nn.functional.linear(within, self.up.to(x.dtype))
        return self.base(x) + added * SCALE


class Reader:
    """The model: layers that are read once, layers under low-rank weights, and a head.

    The states below the low-rank weights are kept in a file.
    """

    def __init__(self, packs: Sequence[Pack], kept: Path) -> None:
        torch.manual_seed(0)
        self._body = open_weights(model_path(MODEL), "bfloat16").model.model
        for parameter in self._body.parameters():
            parameter.requires_grad_(False)
        self.lower = self._body.layers[:FIRST]
        self.upper = self._body.layers[FIRST:LAST]
        self.low_rank = [
            LowRank(module)
            for layer in self.upper
            for module in layer.modules()
            if isinstance(module, torch.nn.Linear)
        ]
        self._place_low_rank()
        width = self._body.config.hidden_size
        self.mean, self.spread = torch.zeros(2 * width), torch.ones(2 * width)
        self.head = torch.nn.Parameter(torch.zeros(2 * width))
        self.packs = packs
        self._starts = np.cumsum([0, *(len(pack.tokens) for pack in packs)])
        shape = int(self._starts[-1]), width
        self._kept = _kept(kept, np.int16, shape)
        self._done = _kept(kept.with_suffix(".done"), np.bool_, (len(packs),))

    def _place_low_rank(self) -> None:
        of = {id(module.base): module for module in self.low_rank}
        for layer in self.upper:
            for part in (layer.self_attn, layer.mlp):
                for name, module in list(part.named_children()):
                    if id(module) in of:
                        setattr(part, name, of[id(module)])

    def parameters(self) -> list[Any]:
        """Return the low-rank weights."""
        return [p for module in self.low_rank for p in (module.down, module.up)]

    def _through(self, layers: Any, states: Any, pack: Pack) -> Any:
        places = torch.tensor([pack.places])
        turned = self._body.rotary_emb(states, places)
        mask = seen(pack, states.dtype)
        for layer in layers:
            result = layer(
                states,
                attention_mask=mask,
                position_ids=places,
                position_embeddings=turned,
            )
            states = result[0] if isinstance(result, tuple) else result
        return states

    def below(self, number: int) -> Any:
        """Return a pass's states below the low-rank weights, from the file if they are there."""
        pack = self.packs[number]
        rows = slice(self._starts[number], self._starts[number + 1])
        if not self._done[number]:
            with torch.no_grad():
                states = self._body.embed_tokens(torch.tensor([pack.tokens]))
                states = self._through(self.lower, states, pack)[0]
            self._kept[rows] = states.view(torch.int16).numpy()
            self._done[number] = True
        kept = torch.from_numpy(np.array(self._kept[rows]))
        return kept.view(torch.bfloat16)[None]

    def features(self, number: int) -> Any:
        """Return a pass's features: outputs x aspects x (mean state of the output, last state)."""
        pack = self.packs[number]
        states = self._through(self.upper, self.below(number), pack)[0].float()
        means = torch.stack([states[first:last].mean(0) for first, last in pack.spans])
        ends = states[torch.tensor(pack.ends)]
        wide = means[:, None].expand(-1, ends.shape[1], -1)
        return torch.cat([wide, ends], dim=-1)

    def standard(self, features: Any) -> Any:
        """Return standardised features, without extremes."""
        return ((features - self.mean) / self.spread).clamp(-CLIP, CLIP)

    def standardise(self, pause: Callable[[], None]) -> list[Any]:
        """Take means and spreads from all passes, and return their standardised features."""
        found = list[Any]()
        for number in range(len(self.packs)):
            with torch.no_grad():
                found.append(self.features(number))
            pause()
        every = torch.cat([one.flatten(0, 1) for one in found])
        self.mean, self.spread = every.mean(0), every.std(0) + 1e-3
        return [self.standard(one) for one in found]

    def scores(self, number: int) -> Any:
        """Return a pass's scores: outputs x aspects."""
        return self.standard(self.features(number)) @ self.head


def _kept(path: Path, kind: Any, shape: tuple[int, ...]) -> Any:
    """Return an array that is kept in a file, which is made if it is not there."""
    if path.exists():
        return np.memmap(path, kind, "r+", shape=shape)
    return np.memmap(path, kind, "w+", shape=shape)


def seen(pack: Pack, dtype: Any) -> Any:
    """Return the attention mask of a pass: a token sees what is before it in its own branch, and what is shared."""
    output, aspect = torch.tensor(pack.branches).T
    same = (output[None] == -1) | (output[None] == output[:, None])
    same &= (aspect[None] == -1) | (aspect[None] == aspect[:, None])
    same &= torch.ones(len(output), len(output), dtype=torch.bool).tril()
    mask = torch.zeros(same.shape, dtype=dtype)
    return mask.masked_fill(~same, float("-inf"))[None, None]


# Losses ---------------------------------------------------------------------------------------------------------------


def rated_loss(packs: Sequence[Pack], scores: Sequence[Any], kind: str) -> Any:
    """Return the loss over pairs of rated outputs, a mean over aspects."""
    found = torch.cat(list(scores))
    ratings = torch.tensor([row for pack in packs for row in pack.ratings])
    counts = chosen_pairs(packs, kind)
    losses = list[Any]()
    for aspect in range(found.shape[1]):
        rated = ratings[:, aspect]
        known = ~torch.isnan(rated)
        ahead = torch.nan_to_num(rated[:, None] - rated[None]).clamp(0, MOST_AHEAD)
        weight = ahead * (counts & known[:, None] & known[None])
        lead = found[:, aspect, None] - found[None, :, aspect]
        if float(weight.sum()) > 0:
            cost = torch.nn.functional.softplus(-lead) * weight
            losses.append(cost.sum() / weight.sum())
    return torch.stack(losses).mean() if losses else found.sum() * 0


def chosen_pairs(packs: Sequence[Pack], kind: str) -> Any:
    """Return which outputs of some passes are compared: outputs x outputs."""
    documents = _alike([pack.document for pack in packs for _ in pack.spans])
    if kind == "document":
        return documents
    systems = [system for pack in packs for system in pack.systems]
    if kind == "either":
        named = torch.tensor([bool(system) for system in systems])
        return documents | (_alike(systems) & named)
    return torch.ones_like(documents)


def _alike(names: Sequence[str]) -> Any:
    codes = torch.tensor(np.unique(names, return_inverse=True)[1])
    return codes[:, None] == codes[None]


def perturbed_loss(packs: Sequence[Pack], scores: Sequence[Any]) -> Any:
    """Return the loss over good texts and their copies, in harmed aspects and in those left as they are."""
    costs, weights = list[Any](), 0.0
    for pack, found in zip(packs, scores, strict=True):
        for number, aspect, weight in pack.lowered:
            lead = found[0, aspect] - found[number, aspect]
            costs.append(weight * torch.nn.functional.softplus(-lead))
            weights += weight
        for number, aspect, weight in pack.left:
            lead = found[0, aspect] - found[number, aspect]
            costs.append(STEADY * weight * lead.clamp(-3, 3) ** 2)
    return torch.stack(costs).sum() / weights


# Training -------------------------------------------------------------------------------------------------------------


def batches(packs: Sequence[Pack], seed: int) -> list[list[int]]:
    """Return the passes of each step of an epoch: all of one set, up to a number of tokens."""
    rng = np.random.default_rng(seed)
    by_set = defaultdict[str, list[int]](list)
    for number, pack in enumerate(packs):
        by_set[pack.set].append(number)
    result = list[list[int]]()
    for members in by_set.values():
        batch, tokens = list[int](), 0
        for place in rng.permutation(len(members)):
            length = len(packs[members[place]].tokens)
            if batch and tokens + length > STEP:
                result.append(batch)
                batch, tokens = [], 0
            batch.append(members[place])
            tokens += length
        result.append(batch)
    return [result[place] for place in rng.permutation(len(result))]


def fit_head(
    packs: Sequence[Pack], features: Sequence[Any], kind: str, *, copies: bool
) -> Any:
    """Return a head trained on standardised features: by rated pairs, and by perturbed copies on request."""
    by_set = defaultdict[str, list[int]](list)
    for number, pack in enumerate(packs):
        if pack.ratings or copies:
            by_set[pack.set].append(number)
    head = torch.zeros(features[0].shape[-1], requires_grad=True)
    search = torch.optim.LBFGS([head], max_iter=40, line_search_fn="strong_wolfe")

    def closure() -> Any:
        search.zero_grad()
        losses = list[Any]()
        for members in by_set.values():
            of_set = [packs[number] for number in members]
            scores = [features[number] @ head for number in members]
            losses.append(loss_of(of_set, scores, kind))
        loss = torch.stack(losses).mean() + PENALTY / 2 * (head @ head)
        loss.backward()
        return loss

    search.step(closure)
    return head.detach()


def loss_of(packs: Sequence[Pack], scores: Sequence[Any], kind: str) -> Any:
    """Return the loss of some passes of one set."""
    if packs[0].ratings:
        return rated_loss(packs, scores, kind)
    return perturbed_loss(packs, scores)


class Training:
    """The run: its start, its steps and its checkpoints."""

    def __init__(self, folder: Path, steps: int, kind: str) -> None:
        self.steps, self.step, self._kind = steps, 0, kind
        self.losses = list[tuple[str, float]]()
        self._checkpoint = folder / "trained.pt"
        self.packs = read_packs(folder / "train.jsonl")
        self.reader = Reader(self.packs, folder / "train.states")
        self._optimizer = torch.optim.AdamW(
            [
                {"params": self.reader.parameters(), "weight_decay": 0.01},
                {"params": [self.reader.head], "weight_decay": 0.0},
            ],
            betas=(0.9, 0.98),
        )

    def run(self, pause: Callable[[], None] = lambda: None) -> None:
        """Train to the last step; `pause` is called after each."""
        if self._checkpoint.exists():
            self._take_up()
        else:
            self._start(pause)
            self._save()
        while self.step < self.steps:
            batch = self._batch(self.step)
            self.losses.append((self.packs[batch[0]].set, self._step(batch)))
            self.step += 1
            if self.step % 20 == 0 or self.step == self.steps:
                self._save()
                print(self.step, self._text(), flush=True)
            pause()

    def _batch(self, step: int) -> list[int]:
        epoch, orders = 0, batches(self.packs, 0)
        while step >= len(orders):
            step -= len(orders)
            epoch += 1
            orders = batches(self.packs, epoch)
        return orders[step]

    def _text(self) -> str:
        kinds = defaultdict[str, list[float]](list)
        for name, loss in self.losses[-60:]:
            kind = "copies" if name.startswith("perturbed ") else "ratings"
            kinds[kind].append(loss)
        return " ".join(f"{kind} {np.mean(x):.3f}" for kind, x in kinds.items())

    def _start(self, pause: Callable[[], None]) -> None:
        """Standardise the features, and train the head alone."""
        features = self.reader.standardise(pause)
        self.reader.head.data = fit_head(self.packs, features, self._kind, copies=True)

    def _step(self, batch: Sequence[int]) -> float:
        rising = (self.step + 1) / (0.06 * self.steps)
        share = min(1.0, rising) * max(0.03, 1 - self.step / self.steps)
        rates = (RATE, HEAD_RATE)
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * share
        packs = [self.packs[number] for number in batch]
        scores = [self.reader.scores(number) for number in batch]
        loss = loss_of(packs, scores, self._kind)
        self._optimizer.zero_grad()
        loss.backward()
        weights = [*self.reader.parameters(), self.reader.head]
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        self._optimizer.step()
        return float(loss.detach())

    def _save(self) -> None:
        state = {
            "step": self.step,
            "losses": self.losses,
            "mean": self.reader.mean,
            "spread": self.reader.spread,
            "head": self.reader.head.data,
            "low_rank": [p.data for p in self.reader.parameters()],
            "optimizer": self._optimizer.state_dict(),
        }
        part = self._checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self._checkpoint)

    def _take_up(self) -> None:
        state = load_weights(self.reader, self._checkpoint)
        self.step, self.losses = state["step"], state["losses"]
        self._optimizer.load_state_dict(state["optimizer"])


def load_weights(reader: Reader, checkpoint: Path) -> dict[str, Any]:
    """Give a reader the weights of a checkpoint, and return all that it holds."""
    state: dict[str, Any] = torch.load(checkpoint, weights_only=True)
    reader.mean, reader.spread = state["mean"], state["spread"]
    reader.head.data = state["head"]
    for parameter, kept in zip(reader.parameters(), state["low_rank"], strict=True):
        parameter.data = kept
    return state


def named_scores(packs: Sequence[Pack], scores: Sequence[Any]) -> Scores:
    """Return the scores of passes by the ids of their outputs and by aspect."""
    result = dict[str, dict[str, float]]()
    for pack, found in zip(packs, scores, strict=True):
        for one, row in zip(pack.ids, found.tolist(), strict=True):
            result[one] = dict(zip(pack.aspects, row, strict=True))
    return result


def score(folder: Path, pause: Callable[[], None] = lambda: None) -> None:
    """Write the scores of SummEval's rows by the trained reader: id -> aspect -> score."""
    packs = read_packs(folder / "score.jsonl")
    reader = Reader(packs, folder / "score.states")
    load_weights(reader, folder / "trained.pt")
    scores = list[Any]()
    for number in range(len(packs)):
        with torch.no_grad():
            scores.append(reader.scores(number))
        pause()
    found = json.dumps({TRAINED: named_scores(packs, scores)})
    (folder / "scores.json").write_text(found, encoding="utf-8")


def heads(folder: Path, pause: Callable[[], None] = lambda: None) -> None:
    """Write the scores by heads that were trained alone: way -> id -> aspect -> score."""
    packs = read_packs(folder / "train.jsonl")
    held_out = read_packs(folder / "score.jsonl")
    reader = Reader(packs, folder / "train.states")
    features = reader.standardise(pause)
    scorer = Reader(held_out, folder / "score.states")
    to_read = list[Any]()
    for number in range(len(held_out)):
        with torch.no_grad():
            to_read.append(reader.standard(scorer.features(number)))
        pause()
    result = dict[str, Scores]()
    for kind, copies in HEADS:
        head = fit_head(packs, features, kind, copies=copies)
        way = f"{kind} and copies" if copies else kind
        result[way] = named_scores(held_out, [one @ head for one in to_read])
        print(way, flush=True)
        pause()
    (folder / "heads.json").write_text(json.dumps(result), encoding="utf-8")


def main() -> None:
    """Do one part of the work."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("pack", "heads", "train", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--pairs", choices=("document", "either", "all"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.part == "pack":
        pack_all(options.folder)
    elif options.part == "heads":
        heads(options.folder)
    elif options.part == "train":
        Training(options.folder, options.steps, options.pairs or "either").run()
    else:
        score(options.folder)


if __name__ == "__main__":
    main()
