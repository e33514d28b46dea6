"""train.py FOLD EPOCHS: adapt layers 10..21 on families the fold does not leave out; a head on the output's states."""

import os, sys, time, pickle, json, math, numpy as np, torch
from pathlib import Path

torch.set_num_threads(int(os.environ.get("T", "1")))
torch.manual_seed(int(os.environ.get("SEED", "0")))
from judgesmith.programs.readings.bindings.torch_reader import open_weights
from reader_rows import OUT

OUT |= {
    "L": {"simplification"},
    "D": {"dialogue", "simplification"},
}  # both of sets alone whose licences allow shipping
LICENSED = set(
    "summeval qags_cnndm topical_chat personachat_usr begin_grounding sfres sfhot bagel hanna mlqe_da cola_acceptability conala roscoe_reasoning squality realsumm summedits triviaqa qa_feedback pandalm wqrm_edits inferential_soundness".split()
)
fold, epochs = sys.argv[1], float(sys.argv[2])
name = sys.argv[3] if len(sys.argv) > 3 else fold
L0, L1 = 10, int(os.environ.get("TOP", "22"))
R = int(os.environ.get("RANK", "16"))
LR = float(os.environ.get("LR", "1e-3"))
WP = float(os.environ.get("WP", "1"))
W = open_weights(Path.home() / ".cache/judgesmith/models/SmolLM2-135M-Instruct.Q4_1.gguf", "bfloat16")
M = W.model.model
rows = pickle.load(open("rows.pkl", "rb"))
ok = lambda r: fold not in "LD" or r["use"] == "test" or r["set"].split(".")[0].split("|")[0] in LICENSED
c = torch.load("cache.pt", weights_only=False, mmap=True)
H, off = c["H"], c["off"]
for p in M.parameters():
    p.requires_grad_(False)


class Lora(torch.nn.Module):
    def __init__(s, base):
        super().__init__()
        s.base = base
        s.A = torch.nn.Parameter(torch.randn(R, base.in_features) / math.sqrt(base.in_features))
        s.B = torch.nn.Parameter(torch.zeros(base.out_features, R))

    def forward(s, x):
        return (
            s.base(x) + torch.nn.functional.linear(torch.nn.functional.linear(x, s.A.to(x.dtype)), s.B.to(x.dtype)) * 2
        )


layers = torch.nn.ModuleList(M.layers[L0:L1])
loras = []
for l in layers:
    for owner, names in (
        (l.self_attn, ("q_proj", "k_proj", "v_proj", "o_proj")),
        (l.mlp, ("gate_proj", "up_proj", "down_proj")),
    ):
        for n in names:
            m = Lora(getattr(owner, n))
            setattr(owner, n, m)
            loras.append(m)


def feats(idx):
    n = max(len(rows[i]["tokens"]) for i in idx)
    h = torch.zeros(len(idx), n, 576, dtype=torch.bfloat16)
    for k, i in enumerate(idx):
        h[k, : off[i + 1] - off[i]] = H[off[i] : off[i + 1]]
    pos = torch.arange(n)[None]
    pe = M.rotary_emb(h, pos)
    for layer in layers:
        o = layer(h, attention_mask=None, position_ids=pos, position_embeddings=pe)
        h = o[0] if isinstance(o, tuple) else o
    f = [
        torch.cat([h[k, rows[i]["a"] : rows[i]["b"]].float().mean(0), h[k, len(rows[i]["tokens"]) - 1].float()])
        for k, i in enumerate(idx)
    ]
    return torch.stack(f)


from torch.utils.checkpoint import checkpoint


def run_layers(h, cos, sin, pos):
    for layer in layers:
        o = layer(h, attention_mask=None, position_ids=pos, position_embeddings=(cos, sin))
        h = o[0] if isinstance(o, tuple) else o
    return h


def feats2(idx, at=4):
    return torch.cat([feats(idx[k : k + at]) for k in range(0, len(idx), at)])


def allfeats(which, cap=2000):
    order = sorted(which, key=lambda i: len(rows[i]["tokens"]))
    out = {}
    cur = []
    with torch.inference_mode():
        for i in order + [None]:
            if cur and (i is None or (len(cur) + 1) * len(rows[i]["tokens"]) > cap):
                for j, f in zip(cur, feats(cur)):
                    out[j] = f
                cur = []
            if i is not None:
                cur.append(i)
    return out


from scipy.stats import pearsonr, spearmanr, kendalltau


def Q(a, b):
    return float(sum(np.nan_to_num(f(a, b)[0]) for f in (pearsonr, spearmanr, kendalltau)))


train = [i for i, r in enumerate(rows) if r["use"] == "train" and ok(r) and r["family"] not in OUT[fold]]
pairs = {}
for i, r in enumerate(rows):
    if r["use"] == "pair" and (ok(r) or r["family"] in OUT[fold]):
        pairs.setdefault(r["pair"], {})[r["side"]] = i
inp = [p for p in pairs.values() if rows[p["o"]]["family"] not in OUT[fold]]
outp = [p for p in pairs.values() if rows[p["o"]]["family"] in OUT[fold]]
test = [i for i, r in enumerate(rows) if r["use"] == "test" and r["family"] in OUT[fold]]
print(
    len(train),
    "train",
    len(inp),
    "pairs",
    len(test),
    "test",
    len(outp),
    "test pairs",
    sum(p.numel() for m in loras for p in (m.A, m.B)),
    "weights",
    flush=True,
)
t0 = time.time()
kept = Path(f"frozen{L1}.{fold}.pt")
if kept.exists():
    F = torch.load(kept, weights_only=False)
else:
    F = allfeats([train[k] for k in np.random.default_rng(1).permutation(len(train))[:2500]])
    torch.save(F, kept)
fr = [i for i in train if i in F]
X = torch.stack([F[i] for i in fr])
mu, sd = X.mean(0), X.std(0) + 1e-3
# ridge within sets: centre features by set
sets = np.array([rows[i]["set"] for i in fr])
Z = ((X - mu) / sd).clamp(-6, 6).numpy()
y = np.array([rows[i]["y"] for i in fr])
Zc = Z.copy()
for s in set(sets):
    Zc[sets == s] -= Zc[sets == s].mean(0)
w = np.linalg.solve(Zc.T @ Zc + 3000 * np.eye(Z.shape[1]), Zc.T @ y)
w = w / (Zc @ w).std() * 0.5
print("frozen", round(time.time() - t0), "s; fit on training rows r", np.corrcoef(Zc @ w, y)[0, 1], flush=True)
head = torch.nn.Parameter(torch.tensor(w, dtype=torch.float32))
norm = lambda f: ((f - mu) / sd).clamp(-6, 6)


def evaluate(tag, both=True):
    ps = outp[::4] if both else []
    G = allfeats(test)
    P = allfeats([i for p in ps for i in p.values()])
    v = {i: float(norm(f) @ head) for i, f in {**G, **P}.items()}
    res = {}
    for s in sorted(set(rows[i]["set"] for i in test)):
        ii = [i for i in test if rows[i]["set"] == s]
        res[s] = Q([v[i] for i in ii], [rows[i]["y"] for i in ii])
    d = {}
    for p in ps:
        d.setdefault(rows[p["o"]]["kind"], []).append(v[p["o"]] - v[p["p"]])
    spread = np.std([v[i] for i in test])
    st = {k: (float(np.mean(np.array(x) > 0)), float(np.mean(x) / spread), len(x)) for k, x in d.items()}
    print(
        tag,
        round(time.time() - t0),
        "Q",
        round(np.mean(list(res.values())), 3),
        {k: round(x, 2) for k, x in res.items()},
        st,
        flush=True,
    )
    return dict(tag=tag, q=res, pairs=st, values={i: v[i] for i in test})


curve = [evaluate(0)] if os.environ.get("START") else []
opt = torch.optim.AdamW(
    [
        {"params": [p for m in loras for p in (m.A, m.B)], "lr": LR, "weight_decay": 0.01},
        {"params": [head], "lr": LR / 2, "weight_decay": 0.0},
    ],
    betas=(0.9, 0.98),
)
rng = np.random.default_rng(int(os.environ.get("SEED", "0")))
by = {}
for i in train:
    by.setdefault(rows[i]["set"], []).append(i)
BS = 16


def epoch():
    b = []
    for s, v in by.items():
        v = (
            list(v)
            if rows[v[0]]["set"].split(".")[0]
            in ("e2e_nlg", "seeda", "qa_feedback", "wmt19_darr", "pandalm", "autoj_pairs", "lfqa_experts", "rank19")
            else [v[k] for k in rng.permutation(len(v))]
        )
        b += [("set", v[k : k + BS]) for k in range(0, len(v) - BS // 2, BS)]
    q = [inp[k] for k in rng.permutation(len(inp))]
    b += [("pair", q[k : k + BS // 2]) for k in range(0, len(q), BS // 2)]
    return [b[k] for k in rng.permutation(len(b))]


per = len(epoch())
total = int(epochs)
print(per, "steps an epoch", total, flush=True)
k = 0
log = []
losses = []
todo = []
params = [p for m in loras for p in (m.A, m.B)] + [head]
rel = {"minor": 0.5, "major": 1.0}
while k < total:
    if not todo:
        todo = epoch()
    kind, b = todo.pop()
    warm = min(1, (k + 1) / (0.06 * total)) * max(0.05, 1 - k / total)
    for g, base in zip(opt.param_groups, (LR, LR / 2)):
        g["lr"] = base * warm
    if kind == "set":
        b = sorted(b, key=lambda i: len(rows[i]["tokens"]))
        v = norm(feats2(b)) @ head
        t = torch.tensor([rows[i]["y"] for i in b], dtype=torch.float32)
        vc, tc = v - v.mean(), t - t.mean()
        if tc.norm() < 1e-3:
            k += 1
            continue
        corr = (vc @ tc) / (vc.norm() + 0.3) / (tc.norm() + 1e-6)
        loss = (1 - corr) + 0.2 * ((vc - 0.5 * tc / t.std()) ** 2).mean()
        log.append(("corr", float(corr)))
    else:
        flat = [i for p in b for i in (p["o"], p["p"])]
        v = norm(feats2(flat)) @ head
        d = v[::2] - v[1::2]
        deg = torch.tensor([rows[p["o"]]["kind"] == "d" for p in b])
        big = torch.tensor([0.35 if rows[p["o"]]["degree"] == "minor" else 0.8 for p in b])
        loss = WP * (torch.where(deg, torch.relu(big - d) ** 2, 1.0 * d**2)).mean()
        log.append(("pair", float(loss)))
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    k += 1
    if k % 50 == 0:
        print(
            k,
            total,
            "corr",
            round(np.mean([x for n, x in log[-50:] if n == "corr"]), 3),
            "pair",
            round(np.mean([x for n, x in log[-50:] if n == "pair"] or [np.nan]), 3),
            round(time.time() - t0),
            "s",
            flush=True,
        )
    if k % 100 == 0:
        torch.save(
            dict(lora=[(m.A.data, m.B.data) for m in loras], head=head.data, mu=mu, sd=sd, k=k), f"{name}.part.pt"
        )
    if k == total:
        curve.append(evaluate(k, k == total))
        pickle.dump(
            dict(curve=curve, log=log, args=dict(fold=fold, epochs=epochs, LR=LR, R=R, L0=L0, L1=L1)),
            open(f"{name}.pkl", "wb"),
        )
        torch.save(dict(lora=[(m.A.data, m.B.data) for m in loras], head=head.data, mu=mu, sd=sd), f"{name}.pt")
print("done", flush=True)
