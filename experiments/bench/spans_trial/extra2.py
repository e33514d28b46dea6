"""States of perturbations without sentences, with surprise."""
src = open("final.py").read().replace("final-{", "unused-{"); a = src.index('put("everything"')
exec(src[:a])
p = Probe(("states",), C=.001).fit(train, ty, tw * ~np.isin(fam[train.row], GROUPS["sentences"]))
z = lambda v: (v - v.mean()) / v.std()
both = {n: z(p(d)) + z(col(n, "sA")) for n, d in measured.items()}
put("perturbations without sentences: states, plus surprise", score=lambda n: both[n])
def stacked(n):
    base = [p(measured[n]), *(col(n, c) for c in ("sA", "row.sA", "tokens", "punct"))]
    return lambda lab: people_fit(None, n, lab, .1, base)
put("the same, weighed by 40 rows of people", score=stacked)
json.dump(out["table"], open(HERE / "extra2.json", "w"), indent=1)
