"""reader_experience.py FILE=TABLES...: the numbers' weights beside the trained reader's score, from scores of models that had never seen the family."""

import sys, pickle, json, numpy as np
from pathlib import Path
from dataclasses import replace
from judgesmith.experiments.studies import experience as E
from judgesmith.programs.readings.experience import Card
from judgesmith.programs.readings.head import Readings

specs = E.read_specs(None)
rows = pickle.load(open("rows.pkl", "rb"))
vals = {}
for f in ("A.pkl", "B.pkl", "D.pkl"):
    for i, v in pickle.load(open(f, "rb"))["curve"][-1]["values"].items():
        vals.setdefault(rows[i]["set"], {})[rows[i]["row"]] = v
for arg in sys.argv[1:]:
    asset, folder = arg.split("=")
    tasks = []
    for s in specs.tasks:
        t = f"{Path(s.labels).stem}.{s.aspect}"
        p = Path(folder) / f"{t}.npz"
        if not p.exists():
            print("no table", t)
            continue
        task = E.Task(t, s.family, s.licence, *E.load(p))
        v = vals.get(t)
        old = task.table
        x = np.full(len(task.scores), np.nan)
        if v is not None and len(v) == len(x):
            x = np.array([v[k] for k in range(len(v))])
            x = 50 + 20 * (x - x.mean()) / x.std()
        else:
            print("no trained score", t)
        names = tuple(n for n in old.names if n not in ("asked.yes", "direct"))
        tasks.append(
            replace(
                task,
                table=Readings(
                    ("trained.score", *names), np.column_stack([x, old.columns(names)]), old.groups, old.states
                ),
            )
        )
    e = E.fit_experience(tasks, Card())
    path = Path(asset)
    d = json.loads(path.read_text())
    d["trained"] = {k: list(v) for k, v in e.numbers.items()}
    print(
        asset,
        len(tasks),
        "tasks; trained.score",
        e.numbers["trained.score"],
        "level",
        e.level,
        d["level"],
        "points",
        e.points,
        d["points"],
        "numbers same names",
        set(e.numbers) - set(d["numbers"]),
        set(d["numbers"]) - set(e.numbers),
    )
    order = ["format", "model", "card", "level", "points", "numbers", "trained", "states"]
    d = {k: d[k] for k in order}
    path.write_text(json.dumps(d, separators=(",", ":"), ensure_ascii=False))
