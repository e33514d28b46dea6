"""final-N.json, families-*.json and kinds-*.json -> the project's data files."""
import json, sys, importlib.metadata as im
from pathlib import Path
from common import HERE
n = sys.argv[1]; DATA = HERE
f = json.load(open(HERE / f"final-{n}.json")); tag = sys.argv[2]
Z, E = "mqm_ted_zhen", "mqm_ted_ende"
head = dict(date="2026-11-25", versions={k: im.version(k) for k in ("judgesmith", "numpy", "scikit-learn", "torch", "transformers")}, model="local/qwen2.5-0.5b (bfloat16)", seed=0)
run = "python experiments/bench/spans.py  # of commit COMMIT"
rd = lambda x, k=3: [round(v, k) for v in x] if isinstance(x, list) else None if x is None else round(x, k)
def save(name, notes, columns, rows):
    lines = ",\n  ".join(json.dumps(r, ensure_ascii=False) for r in rows)
    body = json.dumps({"commands": [run], **head, "notes": notes, "columns": columns}, indent=1, ensure_ascii=False)
    (DATA / f"{name}.json").write_text(body[:-2] + ',\n "rows": [\n  ' + lines + "\n ]\n}\n", encoding="utf-8")
cols = {"marked by": ""}
for s in ("zh-en", "en-de"): cols |= {f"{s}: precision, recall": "{:.2f}, {:.2f}", f"{s}: F1": "{:.3f} [{:.3f}, {:.3f}]", f"{s}: more than everything": "{:+.3f} [{:+.3f}, {:+.3f}]", f"{s}: AUC": "{:.2f}"}
rows = []
more = json.load(open(HERE / "extra.json")) | json.load(open(HERE / "extra2.json"))
table = {}
for name, r in f["table"].items():
    table[name] = r
    if name == "perturbations: numbers, of letters alone": table |= more
for name, r in table.items():
    row = [name]
    for s in (Z, E): x = r[s]; row += [[rd(x["p"]), rd(x["r"])], rd(x["f1"]), None if name == "everything" else rd(x["more"]), rd(x["within"])]
    rows.append(row)
o = json.load(open(HERE / "oracle.json")); oz, oe = o[Z], o[E]
for name, key, pr in (("told which outputs have an error: these, whole", "whole", {}), ("told which outputs have an error: surprise in them", "part", {Z: [.226, .903], E: [.237, .963]})):
    row = [name]
    for s in (Z, E):
        x = o[s][key]; row += [pr.get(s) or [round(x[0] / (2 - x[0]), 3), 1.0], rd(x), None, None]
    rows.append(row)
save("spans-learnt", "280 outputs a set, 3 divisions of its documents, 1,000 resamples", cols, rows)
g = json.load(open(HERE / f"families-{tag}.json")); heads = {"letters": "letters", "words": "words", "sentences": "sentences", "ours": "phrases", "model's": "the model's words", Z: "people, zh-en", E: "people, en-de"}
nm = {"local": "numbers", "states": "states"}
save("spans-families", "half of the texts to learn from, the other half to measure", {"learnt from": "", **{v: "{:.2f}" for v in heads.values()}},
     [[f"{heads.get(k.rsplit(' ', 1)[0], 'all')}: {nm[k.rsplit(' ', 1)[1]]}", *(rd(r[h]) for h in heads)] for k, r in g.items()])
kinds = json.load(open(HERE / f"kinds-{tag}.json")); rows = []
names = {"length 0": "under 15 characters", "length 1": "15 to 29 characters", "length 2": "30 characters and more"}
for c in ("Accuracy/Mistranslation", "Accuracy/Addition", "Terminology/Inappropriate for context", "Style/Awkward", "Fluency/Grammar", "Fluency/Punctuation", "Minor", "Major", *names):
    row = [names.get(c, c)]
    for s in (Z, E):
        for k, w in enumerate(("surprise", "perturbations", "states")):
            got = kinds[f"{s} {w}"].get(c)
            if k == 0: row.append(got[0] if got else 0)
            row.append(rd(got[1]) if got else None)
    rows.append(row)
save("spans-kinds", "characters of one marked span against the unmarked ones of its output", {"marked as": "", **{f"{s}: {w}": x for s in ("zh-en", "en-de") for w, x in (("spans", "{}"), ("surprise", "{:.2f}"), ("numbers", "{:.2f}"), ("states", "{:.2f}"))}}, rows)
