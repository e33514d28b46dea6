"""evalx.py DRAWS NAME=TABLES... -- A.pkl B.pkl: what a trained score is worth beside readings, families left out."""

import sys, pickle, numpy as np, json, re, ast
from pathlib import Path
from dataclasses import replace
from judgesmith.experiments.studies import experience as E
from judgesmith.programs.readings.experience import Card
from judgesmith.programs.readings.head import Readings
from judgesmith.optimizers.fitting.readings import agreement

draws = int(sys.argv[1])
cut = sys.argv.index("--")
specs = E.read_specs(None)
rows = pickle.load(open("rows.pkl", "rb"))
vals = {}
for f in sys.argv[cut + 1 :]:
    for i, v in pickle.load(open(f, "rb"))["curve"][-1]["values"].items():
        vals.setdefault(rows[i]["set"], {})[rows[i]["row"]] = v
frozen = {}
for log in ("A.log", "B.log"):
    for line in open(log):
        if line.startswith("0 ") and " Q " in line:
            frozen |= ast.literal_eval(re.search(r"\{.*?\}", line)[0])
res = {}
for arg in sys.argv[2:cut]:
    name, folder = arg.split("=")
    base, new = [], []
    for s in (*specs.tasks, *specs.measured):
        t = f"{Path(s.labels).stem}.{s.aspect}"
        p = Path(folder) / f"{t}.npz"
        if not p.exists() or t not in vals:
            continue
        task = E.Task(t, s.family, s.licence, *E.load(p))
        v = vals[t]
        if len(v) != len(task.scores):
            print("rows differ", t)
            continue
        x = np.array([v[k] for k in range(len(v))])
        x = 50 + 20 * (x - x.mean()) / x.std()
        old = task.table
        names = [n for n in old.names if n != "asked.yes"]
        V = old.columns(names).copy()
        old = Readings(tuple(names), V.copy(), old.groups, old.states)
        k = names.index("direct")
        own = V[:, k].copy()
        V[:, k] = x
        ok = s in specs.tasks
        base.append((ok, replace(task, table=old), own, x))
        new.append((ok, replace(task, table=Readings(tuple(names), V, old.groups, old.states)), own, x))
    for label, tasks in (("without", base), ("with", new)):
        for ok, t, own, x in tasks:
            known = E.fit_experience([o for k, o, *_ in tasks if k and o.family != t.family], Card())
            use = set(t.table.names) - ({"direct"} if label == "without" else set())
            zero = agreement(known.head(use, t.table.states)(t.table), t.scores)
            w = E.worth(t, known, draws, (3, 8, 20, 40))
            r = res.setdefault(
                t.name,
                {
                    "rows": len(t.scores),
                    "family": t.family,
                    "own": {},
                    "trained": agreement(x, t.scores),
                    "frozen": frozen.get(t.name),
                },
            )
            r["own"][name] = agreement(np.nan_to_num(own), t.scores)
            r[f"{name} {label}"] = [zero, *[w.by_labels.get(k, (None,))[0] for k in (3, 8, 20, 40)]]
        print(
            name,
            label,
            np.nanmean(
                [
                    [np.nan if z is None else z for z in r[f"{name} {label}"]]
                    for r in res.values()
                    if f"{name} {label}" in r
                ],
                0,
            ).round(3),
            "tasks",
            len(tasks),
            flush=True,
        )
json.dump(res, open("evalx.json", "w"), indent=1)
print("frozen, trained", np.mean([[r["frozen"] or np.nan, r["trained"]] for r in res.values()], 0))
