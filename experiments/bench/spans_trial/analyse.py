"""Train on perturbations (and 40 rows of people's), measure on people's spans. -> results.json, printed tables"""
import sys, warnings, itertools, collections
import numpy as np
warnings.filterwarnings("ignore")
from sklearn.linear_model import LogisticRegression
from common import *
from features import *
from measure import *
SETS = ("mqm_ted_ende", "mqm_ted_zhen")

class Probe:
    """Standardise, (states: PCA), logistic regression; the logit of each token."""
    def __init__(self, kind, C=0.05, comps=48): self.kind, self.C, self.comps = kind, C, comps
    def raw(self, d):
        if not hasattr(d, "sc"): d.names, d.sc, d.word = scalars(d)
        return d.sc
    def design(self, d):
        sc = self.raw(d)
        cols = []
        names = np.array(d.names)
        if "surprise" in self.kind: cols.append(sc[:, [list(names).index(n) for n in ("sA", "sB", "pmi")]])
        if "scalars" in self.kind: cols.append(sc)
        if "local" in self.kind: cols.append(sc[:, [not n.startswith("row.") and n not in ("tokens",) for n in names]])
        if "states" in self.kind: cols.append(d.proj)
        return np.concatenate(cols, 1)
    def fit(self, d, y, w, extra=None):
        x = self.design(d)
        if extra: 
            xs, ys, ws = [x], [y], [w]
            for e, ye, we in extra: xs.append(self.design(e)); ys.append(ye); ws.append(we)
            x, y, w = np.concatenate(xs), np.concatenate(ys), np.concatenate(ws)
        ok = w > 0
        self.m, self.s = x[ok].mean(0), x[ok].std(0) + 1e-6
        z = np.clip((x - self.m) / self.s, -6, 6)
        yy = np.r_[np.ones(ok.sum()), np.zeros(ok.sum())]; ww = np.r_[w[ok] * y[ok], w[ok] * (1 - y[ok])]
        keep = ww > 0
        self.lr = LogisticRegression(C=self.C, max_iter=200).fit(np.r_[z[ok], z[ok]][keep], yy[keep], sample_weight=ww[keep])
        return self
    def __call__(self, d):
        z = np.clip((self.design(d) - self.m) / self.s, -6, 6)
        return self.lr.decision_function(z)
BLOCKS = (1, 2, 3, 7)  # layers 12, 16, 20 given the source; 16 when the output is written again
def project(first, others, comps=48):
    """principal components of the first set's states, standardised; the same of the others"""
    parts = {id(d): [] for d in (first, *others)}
    for b in BLOCKS:
        x = first.S[:, b].astype(np.float32); mu, sd = x.mean(0), x.std(0) + 1e-3; z = (x - mu) / sd
        e, u = np.linalg.eigh(z.T @ z / len(z)); V = u[:, -comps:] / np.sqrt(e[-comps:])
        for d in (first, *others): parts[id(d)].append(((d.S[:, b].astype(np.float32) - mu) / sd) @ V)
    for d in (first, *others): d.proj = np.concatenate(parts[id(d)], 1)
def smooth(v, d, how):
    """how: 0, or the share of the neighbours' mean (two on each side), or "word": a word's largest"""
    if how == "word":
        mx = np.full(d.word.max() + 1, -1e9); np.maximum.at(mx, d.word, v); return mx[d.word]
    if not how: return v
    n = sum(shift_in(v, d.row, k) * wt for k, wt in ((-2, .5), (-1, 1), (1, 1), (2, .5)))
    t = sum(shift_in(np.ones_like(v), d.row, k) * wt for k, wt in ((-2, .5), (-1, 1), (1, 1), (2, .5)))
    return (1 - how) * v + how * n / np.maximum(t, 1)
def weights(d):
    w = np.ones(len(d.row))
    for i, r in enumerate(d.rows):
        for g in r["gaps"]:
            for j in range(r["first"], r["first"] + r["tokens"]):
                if d.starts[j] - 1 <= g <= d.ends[j] + 1: w[j] = 0
    return w
def subset(d, rows):
    """the rows of a set as a set of their own"""
    s = object.__new__(Set); rows = list(rows)
    at = np.concatenate([np.arange(d.rows[i]["first"], d.rows[i]["first"] + d.rows[i]["tokens"]) for i in rows])
    s.rows = []; f = 0
    for i in rows: r = dict(d.rows[i]); r["first"] = f; f += r["tokens"]; s.rows.append(r)
    s.N, s.S, s.starts, s.ends = d.N[at], d.S[at], d.starts[at], d.ends[at]
    s.row = np.repeat(np.arange(len(rows)), [r["tokens"] for r in s.rows]); s.doc = [r["doc"] for r in s.rows]
    if hasattr(d, "proj"): s.proj = d.proj[at]
    if hasattr(d, "sc"): s.names, s.sc = d.names, d.sc[at]; _, s.word = np.unique(d.word[at], return_inverse=True)
    return s
