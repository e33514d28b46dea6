"""Rows of all sets as token sequences. prompt: aspect, task, source..., output; span of the output's tokens."""

import json, sys, zlib
import numpy as np
from pathlib import Path
from scipy.stats import rankdata
from judgesmith.datasets.loading import read_labels
from judgesmith.optimizers.examples import examples_of, item_of, groups, humans
from judgesmith.datasets.perturbations.registry import find_perturbations, pairs_of, Text, Pair
from judgesmith.experiments.studies.experience import whole_groups
import os

D = Path(os.environ["JUDGESMITH_DATA"])
TABLES = Path("experience/tables")  # of `judgesmith study experience … -o experience`
SETS = [  # file, aspects, family, rows for training
    ("sfres", "informativeness naturalness", "data-to-text", 120),
    ("sfhot", "informativeness naturalness", "data-to-text", 120),
    ("bagel", "informativeness naturalness", "data-to-text", 120),
    ("more/webnlg2020", "correctness coverage fluency relevance", "data-to-text", 80),
    ("more/e2e_nlg", "quality naturalness", "data-to-text", 120),
    ("topical_chat", "overall engagingness coherence naturalness", "dialogue", 80),
    ("personachat_usr", "overall", "dialogue", 200),
    ("more/begin_grounding", "groundedness", "dialogue", 200),
    ("more/dailydialog_gupta", "overall", "dialogue", 200),
    ("more/grade", "coherence", "dialogue", 200),
    ("more/dailydialog_zhao", "overall", "dialogue", 200),
    ("more/persona_zhao", "overall", "dialogue", 200),
    ("more/conture", "overall", "dialogue", 150),
    ("more/tutor", "guidance coherence mistake_identification", "dialogue", 80),
    ("summeval", "coherence consistency fluency relevance", "summaries", 70),
    ("qags_cnndm", "consistency", "summaries", 150),
    ("more/squality", "overall", "summaries", 150),
    ("more/realsumm", "coverage", "summaries", 120),
    ("more/rank19", "consistency", "summaries", 200),
    ("more/summedits", "consistency", "summaries", 200),
    ("newsroom", "informativeness fluency", "summaries", 80),
    ("hanna", "coherence engagement", "stories", 80),
    ("openmeva_roc", "overall", "stories", 200),
    ("more/wqrm_edits", "overall", "stories", 120),
    ("more/mlqe_da", "overall", "translation", 250),
    ("mqm_ted_ende", "overall", "translation", 120),
    ("mqm_ted_zhen", "overall", "translation", 120),
    ("more/mqm23_zhen", "overall", "translation", 200),
    ("more/mqm23_ende", "overall", "translation", 150),
    ("more/wmt19_darr", "preferred", "translation", 200),
    ("more/wmt24_esa", "overall", "translation", 150),
    ("wiki_da", "meaning fluency simplicity", "simplification", 120),
    ("more/simpeval_past", "overall", "simplification", 200),
    ("more/simpda_2022", "meaning fluency simplicity", "simplification", 80),
    ("more/qgeval", "fluency relevance answerability answer_consistency", "questions", 70),
    ("more/simqg", "answerability similarity", "questions", 80),
    ("more/triviaqa", "correctness", "answers", 200),
    ("more/qa_feedback", "preferred", "answers", 160),
    ("more/lfqa_experts", "preferred", "answers", 150),
    ("more/conala", "usefulness", "code", 200),
    ("more/seeda", "overall", "grammar", 200),
    ("more/pandalm", "preferred", "instructions", 250),
    ("more/autoj_pairs", "preferred", "instructions", 200),
    ("more/roscoe_reasoning", "quality coherency complete consistent", "reasoning", 80),
    ("more/inferential_soundness", "sound", "reasoning", 100),
    ("more/cola_acceptability", "acceptable", "acceptability", 300),
]
OUT = {
    "A": {"dialogue", "stories", "simplification", "reasoning"},
    "B": {"summaries", "data-to-text", "translation", "code", "acceptability"},
}
TASKS = {
    "data-to-text": "saying data in words",
    "dialogue": "the next turn of a dialogue",
    "summaries": "a summary",
    "stories": "a story",
    "translation": "a translation",
    "simplification": "a simpler sentence",
    "questions": "a question about a text",
    "answers": "an answer to a question",
    "code": "code for an intent",
    "grammar": "a corrected sentence",
    "instructions": "an answer to an instruction",
    "reasoning": "a chain of reasoning",
    "acceptability": "a sentence",
}


def cut(ids, n):
    return ids if len(ids) <= n else ids[: n // 2] + ids[-(n - n // 2) :]


def tokens(W, aspect, family, it):
    t = lambda s: W.tokenizer(s, add_special_tokens=False).input_ids
    head = t(f"Is this {TASKS[family]} good? Aspect: {aspect.replace('_', ' ')}.\n")
    parts = []
    if it.source and family != "acceptability":
        parts += t("Source: ") + cut(t(it.source), 200) + t("\n")
    if it.context:
        parts += t("Context: ") + cut(t(it.context), 120) + t("\n")
    if it.reference:
        parts += t("Reference: ") + cut(t(it.reference), 90) + t("\n")
    body = cut(t(it.output), 180)
    pre = [W.tokenizer.bos_token_id or 1] + head + parts + t("Output: ")
    end = t("\nScore:")
    return pre + body + end, len(pre), len(pre) + len(body)


def build(W, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    degr = find_perturbations(["degradation"])
    inv = find_perturbations(["invariance"])
    tables = set(p.name[:-4] for p in TABLES.glob("*.npz"))
    for f, aspects, fam, n in SETS:
        name = f.split("/")[-1]
        goods = None
        for a in aspects.split():
            l = read_labels(D / f"{f}.jsonl", aspect=a)
            e = examples_of(l)
            y = humans(e)
            key = f"{name}.{a}"
            z = rankdata(y)
            z = (z - z.mean()) / (z.std() + 1e-9)
            idx = list(rng.permutation(len(e)))
            if name in (
                "e2e_nlg",
                "seeda",
                "qa_feedback",
                "wmt19_darr",
                "pandalm",
                "autoj_pairs",
                "lfqa_experts",
                "rank19",
            ):
                idx = [i for i in whole_groups([r.doc_id for r in l.rows], n, 5)]
            for i in idx[:n]:
                t, b, c = tokens(W, a, fam, item_of(e[i]))
                rows.append(dict(set=key, family=fam, use="train", tokens=t, a=b, b=c, y=float(z[i])))
            if key in tables:
                T = np.load(TABLES / f"{key}.npz")
                s = T["scores"]
                for rowcount in (150, 140, 160, 110, 100, 88, 91, 101, 144, 151, 165, 188, 200, 90, 120):
                    sub = sorted(whole_groups(l.groups, rowcount, 11))
                    if len(sub) == len(s) and np.allclose(y[sub], s):
                        break
                else:
                    docs = [r.doc_id for r in l.rows]
                    for rowcount in (150, 140, 160, 110, 100, 88, 91, 101):
                        sub = sorted(whole_groups(docs, rowcount, 11))
                        if len(sub) == len(s) and np.allclose(y[sub], s):
                            break
                    else:
                        print("no match", key, len(s))
                        sub = []
                for k, i in enumerate(sub):
                    t, b, c = tokens(W, a, fam, item_of(e[i]))
                    rows.append(dict(set=key, family=fam, use="test", tokens=t, a=b, b=c, y=float(s[k]), row=k))
            if goods is None:
                goods = [(e[i], z[i]) for i in rng.permutation(len(e)) if z[i] > 0.4 and len(e[i].output) > 25][:40]
        texts = [Text(str(i), g.output, g.source or "", group=str(i)) for i, (g, _) in enumerate(goods)]
        k = 0
        for kind, ps in (("d", degr), ("i", inv)):
            for p, deg in ps:
                if getattr(p, "method", "rules") != "rules" or len(texts) < 3:
                    continue
                sub = {texts[i].id for i in rng.permutation(len(texts))[:3]}
                try:
                    made = [
                        x
                        for x in pairs_of(p, texts, degrees=deg, seed=1)
                        if isinstance(x, Pair) and x.id in sub and x.kind != "attack"
                    ]
                except Exception as err:
                    continue
                for x in made:
                    if rng.random() > 0.8:
                        continue
                    g = item_of(goods[int(x.id)][0])
                    h = (
                        g.model_copy(update={"output": x.perturbed})
                        if hasattr(g, "model_copy")
                        else __import__("dataclasses").replace(g, output=x.perturbed)
                    )
                    for side, it in (("o", g), ("p", h)):
                        t, b, c = tokens(W, "overall", fam, it)
                        rows.append(
                            dict(
                                set=f"{name}|pairs",
                                family=fam,
                                use="pair",
                                tokens=t,
                                a=b,
                                b=c,
                                y=0.0,
                                pair=f"{name}{k}",
                                side=side,
                                kind=kind,
                                degree=str(x.degree),
                            )
                        )
                    k += 1
        print(name, fam, len(rows), k, flush=True)
    return rows
