"""Good translations of mlqe_da and mqm23_*, perturbed: texts with gold spans. -> train.jsonl"""
import difflib
from common import *
from judgesmith.datasets.perturbations.registry import PERTURBATIONS, Pair, Text, pairs_of
from judgesmith.datasets.perturbations.base import Amounts

rng = random.Random(0)
good = []
for r in lines(DATA / "more/mlqe_da.jsonl"):
    pair = r["task"].split()[-1]
    if pair in LANG and r["scores"]["overall"] >= 80:
        good.append((pair, r))
for name, pair in (("mqm23_ende", "en-de"), ("mqm23_zhen", "zh-en")):
    seen = set()
    rows = lines(DATA / f"more/{name}.jsonl"); rng.shuffle(rows)
    for r in rows:
        if r["scores"]["overall"] >= -0.4 and len(r["output"]) <= 420 and len(r["output"]) >= 30 and r["doc_id"] not in seen:
            seen.add(r["doc_id"]); good.append((pair, r))
by = {}
for pair, r in good: by.setdefault(pair.split("-")[1], []).append((pair, r))
print({k: len(v) for k, v in by.items()})
WORDS = re.compile(r"\w+|[^\w\s]|\s+")
def spans(a, b):
    """places of b that are not in a; and places (points) where something of a is missing"""
    x, y = WORDS.findall(a), WORDS.findall(b)
    at = [0]
    for w in y: at.append(at[-1] + len(w))
    found, gaps = [], []
    for op, i1, i2, j1, j2 in difflib.SequenceMatcher(None, x, y, autojunk=False).get_opcodes():
        if op in ("replace", "insert") and b[at[j1]:at[j2]].strip():
            s, e = at[j1], at[j2]
            while b[s].isspace(): s += 1
            while b[e-1].isspace(): e -= 1
            found.append([s, e])
        elif op == "delete": gaps.append(at[j1])
    return found, gaps
PHRASE = re.compile(r"\S+")
def foreign(own, others, rng):
    """1-4 words replaced by 1-4 words of another text"""
    w = list(PHRASE.finditer(own)); 
    n = min(rng.choice([1,1,2,2,3,4]), len(w)//3)
    if n < 1: return None
    i = rng.randrange(len(w)-n+1)
    o = PHRASE.findall(rng.choice(others)); m = min(rng.choice([1,1,2,2,3,4]), len(o)); j = rng.randrange(len(o)-m+1)
    return own[:w[i].start()] + " ".join(o[j:j+m]).strip('.,"') + own[w[i+n-1].end():]
def untranslated(own, source, rng):
    w = list(PHRASE.finditer(own)); o = PHRASE.findall(source)
    if len(o) < 4: o = [source[i:i+3] for i in range(0, len(source), 3)]
    n = min(rng.choice([1,1,2]), len(w)//3)
    if n < 1: return None
    i = rng.randrange(len(w)-n+1); j = int(i/len(w)*len(o)); 
    return own[:w[i].start()] + " ".join(o[j:j+n]) + own[w[i+n-1].end():]
def swapped(own, rng):
    """two neighbouring stretches of words in the other order"""
    w = list(PHRASE.finditer(own)); n, m = rng.choice([1,2,3]), rng.choice([1,2,3])
    if len(w) < 2*(n+m): return None
    i = rng.randrange(len(w)-n-m+1)
    a, b = own[w[i].start():w[i+n-1].end()], own[w[i+n].start():w[i+n+m-1].end()]
    s, e = w[i].start(), w[i+n+m-1].end()
    return own[:s] + b + " " + a + own[e:], [[s, s+len(b)+1+len(a)]]
FAMILIES = ["deletions", "typos", "word-deletion", "grammar-rules", "entities-rules", "numbers", "negation", "random-ending", "irrelevant", "rewrite-rules"]
out = []
for lang, rows in by.items():
    rng.shuffle(rows)
    rows = rows[:62]
    texts = [Text(r["id"], r["output"], r["source"], group=r["doc_id"]) for _, r in rows]
    made = {}
    for f in FAMILIES:
        for p in pairs_of(PERTURBATIONS[f], texts, seed=0, language=lang):
            if isinstance(p, Pair): made.setdefault(p.id, []).append((f, p.degree, p.perturbed))
    for t, (pair, r) in zip(texts, rows):
        base = dict(set="train", pair=pair, doc=r["doc_id"], source=r["source"])
        out.append(base | dict(id=r["id"], family="clean", degree="only", output=t.text, spans=[], gaps=[]))
        mine = []
        options = made.get(r["id"], []); rng.shuffle(options)
        taken = set()
        for f, d, text in options:
            if f not in taken and len(taken) < 3: taken.add(f); mine.append((f, d, text, *spans(t.text, text)))
        others = [o.text for o in texts if o.group != t.group]
        x = foreign(t.text, others, rng)
        if x: mine.append(("foreign", "only", x, *spans(t.text, x)))
        if rng.random() < .5:
            x = untranslated(t.text, r["source"], rng)
            if x: mine.append(("untranslated", "only", x, *spans(t.text, x)))
        else:
            x = swapped(t.text, rng)
            if x: mine.append(("swapped", "only", x[0], x[1], []))
        for f, d, text, s, g in mine:
            out.append(base | dict(id=f"{r['id']}#{f}:{d}", family=f, degree=d, output=text, spans=s, gaps=g))
        out.append(base | dict(id=f"{r['id']}#lm", family="lm", degree="only", output=t.text, spans=[], gaps=[]))  # made in read.py
import collections
print(len(out), collections.Counter(o["family"] for o in out))
order = list(dict.fromkeys(o["doc"] for o in out)); rng.shuffle(order)
out.sort(key=lambda o: order.index(o["doc"]))
with open(HERE / "train.jsonl", "w", encoding="utf-8") as f:
    for o in out: f.write(json.dumps(o, ensure_ascii=False) + "\n")
# measured rows: six systems of each document, drawn
for name, pair in (("mqm_ted_ende", "en-de"), ("mqm_ted_zhen", "zh-en")):
    docs = {}
    for r in lines(DATA / f"{name}.jsonl"): docs.setdefault(r["doc_id"], []).append(r)
    gen = random.Random(1)
    with open(HERE / f"{name}.jsonl", "w", encoding="utf-8") as f:
        for d, rows in docs.items():
            for r in gen.sample(rows, 4):
                f.write(json.dumps(dict(set=name, pair=pair, doc=d, source=r["source"], id=r["id"], family="people", output=r["output"], spans=[], gaps=[]), ensure_ascii=False) + "\n")
