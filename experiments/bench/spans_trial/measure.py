"""The project's measure on predicted and people's spans; AUC of characters."""
import numpy as np
from common import *
from judgesmith.agreement.spans import span_agreement
from sklearn.metrics import roc_auc_score
def auc(score, yes): return roc_auc_score(yes, score)
from judgesmith.datasets.spans import Span, read_spans

def people(d, name):
    """marks (bool arrays) of each row, and the spans as the project reads them"""
    outs = {r["id"]: r["output"] for r in lines(DATA / f"{name}.jsonl")}
    read = read_spans(DATA / f"{name}.spans.jsonl", outs)
    (marked,) = read.people.values()
    gold = {r["id"]: marked.get(r["id"], ()) for r in d.rows}  # a row without a record is one in which nobody marked anything (score 0)
    marks = []
    for r in d.rows:
        m = np.zeros(len(r["output"]), bool)
        for s in gold[r["id"]]:
            if s.start is not None: m[s.start:s.end] = True
        marks.append(m)
    return gold, marks
def char_scores(d, token):
    out = []
    for r in d.rows:
        v = np.full(len(r["output"]), -1e9)
        for j in range(r["first"], r["first"] + r["tokens"]): v[d.starts[j]:d.ends[j]] = token[j]
        out.append(v)
    return out
def spans_from(text, on):
    """runs of marked characters, without white space at their ends; runs with only white space between them are one"""
    on = on.copy()
    for i, c in enumerate(text):
        if c.isspace() and 0 < i < len(text) - 1: on[i] = on[i - 1] and on[i + 1]
        elif c.isspace(): on[i] = False
    edge = np.flatnonzero(np.diff(np.r_[0, on.astype(int), 0]))
    return tuple(Span(text[s:e], int(s), int(e), 3.0) for s, e in zip(edge[::2], edge[1::2]))
def agreement(d, gold, on, rows=None, rounds=300):
    rows = range(len(d.rows)) if rows is None else rows
    pred = {d.rows[i]["id"]: spans_from(d.rows[i]["output"], on[i]) for i in rows}
    g = {d.rows[i]["id"]: gold[d.rows[i]["id"]] for i in rows}
    a = span_agreement(pred, g, {d.rows[i]["id"]: len(d.rows[i]["output"]) for i in rows}, {d.rows[i]["id"]: d.rows[i]["doc"] for i in rows}, rounds=rounds)
    return a
def aucs(d, marks, chars, rows=None):
    """pooled over all characters, and the mean within outputs that have both"""
    rows = list(range(len(d.rows)) if rows is None else rows)
    pooled = auc(np.concatenate([chars[i] for i in rows]), np.concatenate([marks[i] for i in rows]))
    within = [auc(chars[i], marks[i]) for i in rows if marks[i].any() and not marks[i].all()]
    return float(pooled), float(np.mean(within)), len(within)
def f1(on, marks, rows):
    hit = sum((on[i] & marks[i]).sum() for i in rows); a = sum(on[i].sum() for i in rows); b = sum(marks[i].sum() for i in rows)
    return 2 * hit / max(1, a + b)
def best_threshold(chars, marks, rows):
    v = np.concatenate([chars[i] for i in rows]); m = np.concatenate([marks[i] for i in rows])
    order = np.argsort(-v, kind="stable"); hit = np.cumsum(m[order]); n = np.arange(1, len(v) + 1)
    f = 2 * hit / (n + m.sum()); 
    ok = np.r_[np.diff(v[order]) != 0, True]
    k = np.flatnonzero(ok)[np.argmax(f[ok])]
    return float(v[order][k]), float(f[k])
