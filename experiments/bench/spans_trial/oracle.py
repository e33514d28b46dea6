"""What would be gained by knowing which outputs have an error."""
src = open("main.py").read(); src = src[: src.index('if __name__ == "__main__":')].replace("project(train, measured.values())", "")
exec(src)
res = {}
for n, d in measured.items():
    gold, marks = P[n]; bad = np.array([m.any() for m in marks])
    whole = agreement(d, gold, [np.full(len(m), b) for m, b in zip(marks, bad)], rounds=500)
    sm = char_scores(d, smooth(d.sc[:, d.names.index("sA")], d, .5)); on = [None] * len(marks)
    for own, other in itertools.permutations(halves(d, 0)):
        lab = [i for i in labelled(own, 0) if bad[i]]
        t = best_threshold(sm, marks, lab)[0]
        for i in other: on[i] = (sm[i] >= t) & bad[i]
    part = agreement(d, gold, on, rounds=500)
    row = d.sc[[r["first"] for r in d.rows], d.names.index("row.sA")]
    print(n, "whole outputs with an error", whole.micro.f1, "surprise in them", part.micro.f1, part.micro.precision.value, part.micro.recall.value, "AUC of outputs by mean surprise", auc(row, bad))
    res[n] = dict(whole=[whole.micro.f1.value, whole.micro.f1.low, whole.micro.f1.high], part=[part.micro.f1.value, part.micro.f1.low, part.micro.f1.high], outputs=float(auc(row, bad)))
json.dump(res, open(HERE / "oracle.json", "w"), indent=1)
