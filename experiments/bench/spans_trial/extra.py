"""The perturbations without those of sentences, which three fifths of the marked tokens come from."""
src = open("final.py").read().replace("final-{", "unused-{"); a = src.index('put("everything"'); b = src.index("logits = {}")
exec(src[:a])
for label, kind, C in (("numbers", ("local",), .01), ("states", ("states",), .001), ("numbers and states", ("local", "states"), .003)):
    p = Probe(kind, C=C).fit(train, ty, tw * ~np.isin(fam[train.row], GROUPS["sentences"]))
    v = {n: p(d) for n, d in measured.items()}
    put(f"perturbations without sentences: {label}", score=lambda n: v[n])
json.dump(out["table"], open(HERE / "extra.json", "w"), indent=1)
