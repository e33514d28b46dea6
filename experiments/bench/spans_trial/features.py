"""What is read of a token, as columns."""
import numpy as np
from common import *

class Set:
    """Rows with tokens: rows (dicts), X numbers, S states, starts, ends, row index of each token, gold of each token."""
    def __init__(self, *names):
        self.rows, X, S, a, b = [], [], [], [], []
        shift = 0
        for n in names:
            z = np.load(HERE / f"{n}.npz")
            rows = lines(HERE / f"{n}.read.jsonl")
            for r in rows: r["first"] += shift
            self.rows += rows; X.append(z["numbers"]); S.append(z["states"]); a.append(z["starts"]); b.append(z["ends"])
            shift += len(z["numbers"])
        self.N, self.S = np.concatenate(X), np.concatenate(S)
        self.starts, self.ends = np.concatenate(a), np.concatenate(b)
        self.row = np.repeat(np.arange(len(self.rows)), [r["tokens"] for r in self.rows])
        self.doc = [r["doc"] for r in self.rows]
    def gold(self, marks):
        """share of each token's characters (spaces aside) inside the spans; marks: row index -> bool array"""
        y = np.zeros(len(self.row))
        for i, r in enumerate(self.rows):
            m = marks[i]; t = r["output"]
            for j in range(r["first"], r["first"] + r["tokens"]):
                s, e = self.starts[j], self.ends[j]
                while s < e and t[s].isspace(): s += 1
                y[j] = m[s:e].mean() if e > s else 0
        return y
def marks_of(rows):
    out = []
    for r in rows:
        m = np.zeros(len(r["output"]), bool)
        for s, e in r["spans"]: m[s:e] = True
        out.append(m)
    return out
def shift_in(v, row, k):
    w = np.zeros_like(v)
    if k > 0: w[k:] = v[:-k]; ok = np.r_[np.zeros(k, bool), row[k:] == row[:-k]]
    else: w[:k] = v[-k:]; ok = np.r_[row[:k] == row[-k:], np.zeros(-k, bool)]
    return np.where(ok, w, 0)
def scalars(d):
    A, B, C = d.N[:, :4], d.N[:, 4:8], d.N[:, 8:12]
    sA, sB, sC = -A[:, 0], -B[:, 0], -C[:, 0]
    cols = {"sA": sA, "sB": sB, "sC": sC, "pmi": sB - sA, "eA": A[:, 1], "eB": B[:, 1], "eC": C[:, 1], "gapA": A[:, 2] - A[:, 0], "gapB": B[:, 2] - B[:, 0],
            "gapC": C[:, 2] - C[:, 0], "rA": A[:, 3], "rB": B[:, 3], "rC": C[:, 3], "exA": sA - A[:, 1], "exC": sC - C[:, 1]}
    base = dict(cols)
    for n in ("sA", "sB", "sC", "pmi", "eA", "rA", "eB"):
        for k in (-2, -1, 1, 2): cols[f"{n}{k:+d}"] = shift_in(base[n], d.row, k)
    word, begins, punct, number, upper, inside, length = [], [], [], [], [], [], []
    w = -1
    for i, r in enumerate(d.rows):
        t, src = r["output"], r["source"].casefold()
        spaced = None
        for j in range(r["first"], r["first"] + r["tokens"]):
            s, e = d.starts[j], d.ends[j]
            piece = t[s:e]; bare = piece.strip()
            new = j == r["first"] or piece[:1].isspace() or not (bare[:1].isalnum() and t[s-1:s].isalnum())
            w += new; word.append(w); begins.append(new); punct.append(not any(c.isalnum() for c in bare)); number.append(any(c.isdigit() for c in bare))
            upper.append(bare[:1].isupper()); inside.append(len(bare) > 2 and bare.casefold() in src); length.append(len(bare))
    word = np.array(word)
    count = np.bincount(word)
    for n in ("sA", "sB", "sC", "pmi", "exA"):
        cols["word." + n] = (np.bincount(word, base[n]))[word]
        mx = np.full(len(count), -1e9); np.maximum.at(mx, word, base[n]); cols["wmax." + n] = mx[word]
    cols |= {"begins": begins, "punct": punct, "number": number, "upper": upper, "inside": inside, "length": length, "pieces": count[word]}
    nrow = np.bincount(d.row)
    place = np.arange(len(d.row)) - np.array([r["first"] for r in d.rows])[d.row]
    cols |= {"place": place / nrow[d.row], "first": place == 0, "last": place == nrow[d.row] - 1, "tokens": np.log(nrow)[d.row]}
    for n in ("sA", "sB", "sC", "pmi", "eA", "exA"):
        m = np.bincount(d.row, base[n]) / nrow; cols["row." + n] = m[d.row]
    m = np.array([np.log(len(r["output"]) / len(r["source"])) for r in d.rows]); cols["row.ratio"] = m[d.row]
    names = list(cols)
    return names, np.stack([np.asarray(cols[n], np.float32) for n in names], 1), word
