from analyse import *
import time
SEEDS = (0, 1, 2)
TRAINB = (HERE / "trainb.npz").exists()
train = Set(*[n for n in ("train", "trainb") if (HERE / f"{n}.npz").exists()]); ONLY = sys.argv[1:] or SETS; TAG = "-".join(n[-4:] for n in ONLY) + ("" if TRAINB else "-128")
measured = {n: Set(n) for n in ONLY}
for d in (train, *measured.values()): d.names, d.sc, d.word = scalars(d)
project(train, measured.values())
tm = marks_of(train.rows); ty = train.gold(tm); tw = weights(train)
fam = np.array([r["family"] for r in train.rows])
P = {n: people(d, n) for n, d in measured.items()}
Y = {n: d.gold(P[n][1]) for n, d in measured.items()}
GROUPS = {"letters": ("typos", "deletions"), "words": ("word-deletion", "grammar-rules", "entities-rules", "numbers", "negation"),
          "sentences": ("irrelevant", "rewrite-rules", "random-ending"), "ours": ("foreign", "untranslated", "swapped"), "model's": ("lm",)}
results = {}
def halves(d, seed):
    docs = sorted(set(d.doc)); random.Random(seed).shuffle(docs)
    a = set(docs[: len(docs) // 2]); return [[i for i, x in enumerate(d.doc) if (x in a) == side] for side in (True, False)]
def labelled(half, seed, count=40):
    order = list(half); random.Random(seed + 7).shuffle(order); return order[:count]
def run(name, n, score, *, threshold="40", count=40, sm=0, seeds=SEEDS):
    """score: token scores, or a function of the labelled rows. threshold: "40" (best F1 on the labelled rows) or a number."""
    d, (gold, marks) = measured[n], P[n]
    nums, firsts = [], None
    fixed = None if callable(score) else char_scores(d, smooth(score, d, sm))
    for seed in (seeds if threshold == "40" or callable(score) else (0,)):
        on, pooled, within = [None] * len(d.rows), [], []
        for own, other in itertools.permutations(halves(d, seed)):
            lab = labelled(own, seed, count)
            chars = fixed or char_scores(d, smooth(score(lab), d, sm))
            t = best_threshold(chars, marks, lab)[0] if threshold == "40" else threshold
            for i in other: on[i] = chars[i] >= t
            p, w, c = aucs(d, marks, chars, other); pooled.append(p); within.append(w)
        a = agreement(d, gold, on, rounds=500 if firsts is None else 0)
        firsts = firsts or a
        nums.append((a.micro.precision.value, a.micro.recall.value, a.micro.f1.value, np.mean(pooled), np.mean(within), a.touching.value, a.found.value, np.mean([o.mean() for o in on])))
    m = np.nanmean(nums, 0)
    r = dict(zip(("precision", "recall", "f1", "pooled", "within", "touching", "found", "share"), map(float, m)), low=firsts.micro.f1.low, high=firsts.micro.f1.high, f1s=[x[2] for x in nums])
    results.setdefault(name, {})[n] = r
    print(f"{name:52s} {n[-4:]} P {m[0]:.3f} R {m[1]:.3f} F1 {m[2]:.3f} [{r['low']:.3f},{r['high']:.3f}] AUC {m[3]:.3f} within {m[4]:.3f} touching {m[5]:.2f} found {m[6]:.2f} marked {m[7]:.2f}", flush=True)
    json.dump(results, open(HERE / f"results-{TAG}.json", "w"), indent=1)
def people_fit(kind, n, lab, C, base=None):
    """from labelled rows of people's spans (beside other token scores)"""
    d = measured[n]; s = subset(d, lab); y = s.gold([P[n][1][i] for i in lab])
    p = Probe(kind, C=C)
    if base is None: return p.fit(s, y, np.ones(len(y)))(d)
    at = np.concatenate([np.arange(d.rows[i]["first"], d.rows[i]["first"] + d.rows[i]["tokens"]) for i in lab])
    x = np.stack(base, 1); mu, sd = x.mean(0), x.std(0) + 1e-6; x = (x - mu) / sd
    yy = np.r_[np.ones(len(at)), np.zeros(len(at))]; w = np.r_[y, 1 - y]; keep = w > 0
    return LogisticRegression(C=C).fit(np.r_[x[at], x[at]][keep], yy[keep], sample_weight=w[keep]).decision_function(x)
if __name__ == "__main__":
    t0 = time.time()
    print("train", len(train.rows), collections.Counter(fam.tolist()), "tokens", len(ty), "in error", round(ty.mean(), 3))
    for n, d in measured.items():
        marks = P[n][1]
        print(n, len(d.rows), "rows,", len(set(d.doc)), "docs, with spans", sum(m.any() for m in marks), "share of characters", round(sum(m.sum() for m in marks) / sum(map(len, marks)), 4))
        run("everything", n, np.random.default_rng(0).normal(size=len(d.row)), threshold=-1e9 - 1)
        N = dict(zip(d.names, d.sc.T))
        for s, sm in (("sA", 0), ("sA", .5), ("sB", .5), ("sC", .5), ("-pmi", .5), ("row.sA", 0)):
            v = -N[s[1:]] if s[0] == "-" else N[s]
            run(f"{s} smooth {sm}", n, v, sm=sm)
    logits = {}
    for kind, C in ((("surprise",), .1), (("local",), .01), (("states",), .001), (("local", "states"), .003)):
        p = Probe(kind, C=C).fit(train, ty, tw)
        tv = p(train); t_train = best_threshold(char_scores(train, smooth(tv, train, .5)), tm, range(len(tm)))
        for n, d in measured.items():
            v = p(d); logits[kind, C, n] = v
            for sm in (.5,): run(f"perturbations {'+'.join(kind)} C={C} smooth {sm}", n, v, sm=sm)
            run(f"perturbations {'+'.join(kind)} C={C} smooth .5, their threshold", n, v, sm=.5, threshold=t_train[0])
        print("F1 on its own training texts", round(t_train[1], 3), round(time.time() - t0), "s", flush=True)
    for n, d in measured.items():
        N = dict(zip(d.names, d.sc.T))
        for kind, C in ((("scalars",), .001),):
            run(f"40 rows of people {'+'.join(kind)}", n, lambda lab: people_fit(kind, n, lab, C), sm=.5)
        base = [logits[("local",), .01, n], logits[("states",), .001, n], N["sA"], -N["pmi"], N["row.sA"], N["row.pmi"], N["tokens"], N["punct"]]
        run("perturbations, then 40 rows of people", n, lambda lab: people_fit(None, n, lab, .1, base), sm=.5)
        run("perturbations, then half of the rows of people", n, lambda lab: people_fit(None, n, lab, .1, base), sm=.5, count=1000)
        for kind, C in ((("scalars", "states"), .0003),):
            run(f"half of the rows of people {'+'.join(kind)}", n, lambda lab: people_fit(kind, n, lab, C), sm=.5, count=1000)
    print(round(time.time() - t0), "s")
    # which kinds of errors: characters of one kind against unmarked ones of the same outputs
    import re as _re
    kinds = {}
    for n, d in measured.items():
        recs = {r["id"]: r for r in lines(DATA / f"{n}.spans.jsonl")}
        N = dict(zip(d.names, d.sc.T))
        for what, v in (("surprise", N["sA"]), ("perturbations", logits[("local",), .01, n]), ("states", logits[("states",), .001, n])):
            chars = char_scores(d, smooth(v, d, .5)); of = collections.defaultdict(lambda: ([], []))
            for i, r in enumerate(d.rows):
                clean = ~P[n][1][i]
                for e in recs.get(r["id"], {"errors": []})["errors"]:
                    at = 0; m = np.zeros(len(clean), bool)
                    for k, piece in enumerate(_re.split(r"</?v>", e["target"])):
                        if k % 2: m[at:at + len(piece)] = True
                        at += len(piece)
                    if m.any() and clean.any():
                        c = e["category"]
                        a = auc(np.r_[chars[i][m], chars[i][clean]], np.r_[np.ones(m.sum()), np.zeros(clean.sum())])
                        of[c][0].append(a); of[e["severity"]][0].append(a); of[f"length {min(2, m.sum() // 15)}"][0].append(a)
            kinds[n, what] = {c: (len(x[0]), float(np.mean(x[0]))) for c, x in of.items()}
        for c in sorted(kinds[n, "surprise"], key=lambda c: -kinds[n, "surprise"][c][0]):
            print(n[-4:], c, kinds[n, "surprise"][c][0], *(f"{w} {kinds[n, w][c][1]:.2f}" for w in ("surprise", "perturbations", "states")))
    json.dump({f"{n} {w}": v for (n, w), v in kinds.items()}, open(HERE / f"kinds-{TAG}.json", "w"), indent=1)
    # families: trained on one group of families, tested on the texts of the others and on people's
    fr = fam[train.row]
    docs = sorted(set(train.doc)); random.Random(0).shuffle(docs); left = np.isin(train.doc, docs[: len(docs) // 2])[train.row]
    table = {}
    for g, names in (*GROUPS.items(), ("all", sum(GROUPS.values(), ()))):
        for kind, C in ((("local",), .01), (("states",), .001)):
            use = np.isin(fr, (*names, "clean")) & left
            p = Probe(kind, C=C).fit(train, ty, tw * use); v = smooth(p(train), train, .5)
            line = {}
            for g2, names2 in GROUPS.items():
                test = np.isin(fr, names2) & ~left & (tw > 0)
                line[g2] = float(auc(v[test], ty[test] > .5)) if (ty[test] > .5).any() else None
            for n, d in measured.items():
                line[n] = float(np.mean([aucs(d, P[n][1], char_scores(d, smooth(p(d), d, .5)))[1]]))
            table[f"{g} {kind[0]}"] = line; print(g, kind[0], {k: round(x, 3) if x else x for k, x in line.items()}, flush=True)
    json.dump(table, open(HERE / f"families-{TAG}.json", "w"), indent=1)
