"""What the page shows. Reads what read.py read; writes final.json (the table), families.json, kinds.json."""
src = open("main.py").read(); exec(src[: src.index('if __name__ == "__main__":')])
DRAWS = 1000
def measure(n, score, threshold="40", count=40, sm=.5):
    d, (gold, marks) = measured[n], P[n]
    docs = sorted(set(d.doc)); at = np.array([docs.index(x) for x in d.doc]); sums, nums = [], []
    fixed = None if callable(score) else char_scores(d, smooth(score, d, sm))
    for seed in SEEDS:
        on, within, pooled = [None] * len(d.rows), [], []
        for own, other in itertools.permutations(halves(d, seed)):
            lab = labelled(own, seed, count); chars = fixed or char_scores(d, smooth(score(lab), d, sm))
            t = best_threshold(chars, marks, lab)[0] if threshold == "40" else threshold
            for i in other: on[i] = chars[i] >= t
            p, w, _ = aucs(d, marks, chars, other); pooled.append(p); within.append(w)
        on = [np.asarray(o) for o in on]
        c = np.array([[(spans_on(d, i, on) & marks[i]).sum(), spans_on(d, i, on).sum(), marks[i].sum()] for i in range(len(on))], float)
        sums.append(np.stack([np.bincount(at, c[:, k]) for k in range(3)], 1))
        nums.append((np.mean(within), np.mean(pooled)))
        if seed == 0: check = agreement(d, gold, on, rounds=0).micro.f1.value; mine = 2 * c[:, 0].sum() / (c[:, 1] + c[:, 2]).sum(); assert abs(check - mine) < 1e-9, (check, mine)
    S = np.stack(sums)  # seeds, docs, 3
    whole = np.bincount(at, [len(r["output"]) for r in d.rows])
    def f(w):  # w: draws, docs
        t = np.einsum("qd,sdk->qsk", w, S); return (2 * t[..., 0] / (t[..., 1] + t[..., 2])).mean(1), (w @ S[0][:, 2]) * 2 / (w @ whole + w @ S[0][:, 2]), t
    one = np.ones((1, len(docs))); f1, every, t = f(one)
    w = np.random.default_rng(0).multinomial(len(docs), np.ones(len(docs)) / len(docs), DRAWS); fb, eb, _ = f(w)
    q = lambda x: [float(v) for v in np.quantile(x, (.025, .975))]
    p = float(np.mean(t[0, :, 0] / np.maximum(t[0, :, 1], 1))); r = float(np.mean(t[0, :, 0] / t[0, :, 2]))
    return dict(p=p, r=r, f1=[float(f1[0]), *q(fb)], more=[float(f1[0] - every[0]), *q(fb - eb)], within=float(np.mean([x[0] for x in nums])), pooled=float(np.mean([x[1] for x in nums])))
def spans_on(d, i, on):
    m = np.zeros(len(on[i]), bool)
    for s in spans_from(d.rows[i]["output"], on[i]): m[s.start:s.end] = True
    return m
out = {"train": dict(rows=len(train.rows), texts=len(set(train.doc)), tokens=len(ty), share=float(ty.mean()), families=dict(collections.Counter(fam.tolist()))), "sets": {}, "table": {}}
def put(name, **how):
    for n in measured:
        r = out["table"].setdefault(name, {})[n] = measure(n, how["score"](n), **{k: (v(n) if callable(v) else v) for k, v in how.items() if k != "score"})
        print(f"{name:60s} {n[-4:]} P {r['p']:.3f} R {r['r']:.3f} F1 {r['f1'][0]:.3f} [{r['f1'][1]:.3f}, {r['f1'][2]:.3f}] more {r['more'][0]:+.3f} [{r['more'][1]:+.3f}, {r['more'][2]:+.3f}] AUC {r['within']:.3f} {r['pooled']:.3f}", flush=True)
    json.dump(out, open(HERE / f"final-{len(train.rows)}.json", "w"), indent=1)
col = lambda n, c: measured[n].sc[:, measured[n].names.index(c)]
for n, d in measured.items():
    marks = P[n][1]; out["sets"][n] = dict(rows=len(d.rows), documents=len(set(d.doc)), with_spans=int(sum(m.any() for m in marks)), share=float(sum(m.sum() for m in marks) / sum(map(len, marks))))
    L = sum(map(len, marks)); g = sum(m.sum() for m in marks); print(n, out["sets"][n], "everything F1", 2 * g / (L + g))
put("everything", score=lambda n: np.zeros(len(measured[n].row)), threshold=-1e10)
put("surprise of a token", score=lambda n: col(n, "sA"), sm=0)
put("surprise, neighbours weighed in", score=lambda n: col(n, "sA"))
put("surprise without the source", score=lambda n: col(n, "sB"))
put("what the source takes away from it", score=lambda n: -col(n, "pmi"))
put("surprise when the text is written again", score=lambda n: col(n, "sC"))
logits = {}
for label, kind, C, group in (("numbers", ("local",), .01, None), ("states", ("states",), .001, None), ("numbers and states", ("local", "states"), .003, None), ("numbers, of letters alone", ("local",), .01, "letters")):
    use = tw if group is None else tw * np.isin(fam[train.row], (*GROUPS[group], "clean"))
    p = Probe(kind, C=C).fit(train, ty, use)
    for n, d in measured.items(): logits[label, n] = p(d)
    put(f"perturbations: {label}", score=lambda n: logits[label, n])
    if label == "numbers and states":
        keep = [i for i in range(len(tm))]; t = best_threshold(char_scores(train, smooth(p(train), train, .5)), tm, keep)[0]
        put(f"perturbations: {label}, their threshold", score=lambda n: logits[label, n], threshold=t)
def stacked(n):
    base = [logits["numbers", n], logits["states", n], *(col(n, c) for c in ("sA", "row.sA", "row.pmi", "tokens", "punct"))]
    return lambda lab: people_fit(None, n, lab, .1, base)
put("40 rows of people: numbers", score=lambda n: (lambda lab: people_fit(("scalars",), n, lab, .001)))
put("perturbations, then 40 rows of people", score=stacked)
put("140 rows of people: numbers and states", score=lambda n: (lambda lab: people_fit(("scalars", "states"), n, lab, .0003)), count=1000)
rest = src[src.index("    # which kinds of errors"):]
import textwrap; rest = textwrap.dedent(rest).replace('logits[("local",), .01, n]', 'logits["numbers", n]').replace('logits[("states",), .001, n]', 'logits["states", n]')
exec(rest)
