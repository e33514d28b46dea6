"""reader_ship.py: L.pt as llama.cpp reads it, its head, and its Q on rows that it was not trained on."""

import sys, json, hashlib, pickle, torch, os, re
import numpy as np

sys.argv = ["reader_train.py", "L", "0", "Lx"]
src = open(__file__.replace("ship", "train")).read()
head = src[: src.index("train=[i for i,r in enumerate(rows)")]  # model, loras, feats, Q
exec(head)
d = torch.load("L.pt", weights_only=False)
for m, (A, B) in zip(loras, d["lora"], strict=True):
    m.A.data = A
    m.B.data = B
mu, sd, h = d["mu"], d["sd"], d["head"].detach()
norm = lambda f, c=6: ((f - mu) / sd).clamp(-c, c)
lic = lambda r: r["set"].split(".")[0] in LICENSED
seen = {tuple(r["tokens"]) for r in rows if r["use"] == "train"}
idx = [
    i
    for i, r in enumerate(rows)
    if r["use"] == "test" and ((lic(r) and tuple(r["tokens"]) not in seen) or r["family"] == "simplification")
]
F = allfeats(idx)
v = {i: float(norm(F[i]) @ h) for i in idx}
u = {i: float(norm(F[i], 1e9) @ h) for i in idx}
res = {}
for s in sorted({rows[i]["set"] for i in idx}):
    ii = [i for i in idx if rows[i]["set"] == s]
    res[s] = (
        len(ii),
        Q([v[i] for i in ii], [rows[i]["y"] for i in ii]),
        Q([u[i] for i in ii], [rows[i]["y"] for i in ii]),
        float(np.mean([v[i] for i in ii])),
        float(np.std([v[i] for i in ii])),
    )
    print(s, [round(x, 3) for x in res[s]], flush=True)
L = [x for s, x in res.items() if s.split(".")[0] in LICENSED]
mean, sdw = np.mean([x[3] for x in L]), np.sqrt(np.mean([x[4] ** 2 for x in L]))
print("mean", mean, "sd within", sdw, "Q licensed", np.mean([x[1] for x in L]), "unclipped", np.mean([x[2] for x in L]))
pickle.dump(dict(res=res, v=v), open("L_eval.pkl", "wb"))
points = 20 / sdw
level = 50 - points * mean
from pathlib import Path
from types import SimpleNamespace
import gguf
from judgesmith.training.distilled import gguf_adapter as GA

out = Path("trained")
out.mkdir(exist_ok=True)
names = [
    (l, m)
    for l in range(10, 22)
    for m in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    )
]
W = {}
for (l, m), (A, B) in zip(names, d["lora"], strict=True):
    W[f"base_model.model.model.layers.{l}.{m}.lora_A.weight"] = A.float().numpy()
    W[f"base_model.model.model.layers.{l}.{m}.lora_B.weight"] = B.float().numpy()
code = (
    Path(GA.__file__)
    .read_text()
    .replace("np.ascontiguousarray(array, np.float32)", "np.ascontiguousarray(array, np.float16)")
    .replace("from ...errors import ModelError", "from judgesmith.errors import ModelError")
    .replace("from .student import Shape", "from judgesmith.training.distilled.student import Shape")
)
ns = {}
exec(compile(code, "ga", "exec"), ns)
ns["write_gguf_adapter"](
    out / "judgesmith-135m.gguf",
    W,
    Path.home() / ".cache/judgesmith/models/SmolLM2-135M-Instruct.Q4_1.gguf",
    SimpleNamespace(alpha=32.0),
)
sha = hashlib.sha256((out / "judgesmith-135m.gguf").read_bytes()).hexdigest()
LICENCES = {
    "summeval": "MIT",
    "qags_cnndm": "MIT (UniEval)",
    "topical_chat": "MIT (UniEval)",
    "personachat_usr": "MIT (zepo)",
    "begin_grounding": "CC BY 4.0",
    "sfres": "MIT (UniEval)",
    "sfhot": "MIT (UniEval)",
    "bagel": "Apache-2.0 (BARTScore)",
    "hanna": "MIT",
    "mlqe_da": "CC0 1.0",
    "cola_acceptability": "CC0 1.0",
    "conala": "Apache-2.0 (CodeJudge)",
    "roscoe_reasoning": "MIT (JUDGE-BENCH)",
    "squality": "CC BY 4.0",
    "realsumm": "CC BY 4.0, Apache-2.0 (BARTScore)",
    "summedits": "Apache-2.0",
    "triviaqa": "Apache-2.0",
    "qa_feedback": "Apache-2.0",
    "pandalm": "Apache-2.0",
    "wqrm_edits": "BSD-3-Clause",
    "inferential_soundness": "CC BY 4.0",
}
import collections

cnt = collections.Counter(r["set"] for r in rows if r["use"] == "train" and lic(r))
card = {
    "reader": f"SmolLM2-135M-Instruct (Q4_1, Apache-2.0) under low-rank weights, SHA-256 {sha}",
    "date": "2026-11-26",
    "sets": {f"{s} ({n} rows)": LICENCES[s.split(".")[0]] for s, n in cnt.items()},
}
n = 576
f = lambda x: [float(f"{float(y):.6g}") for y in x]
mu, sd, h = (x.float().numpy() for x in (mu, sd, h))
states = {
    "output": {"means": f(mu[:n]), "spreads": f(sd[:n]), "weights": f(h[:n])},
    "end": {"means": f(mu[n:]), "spreads": f(sd[n:]), "weights": f(h[n:])},
}
from judgesmith.programs.models.files import file_sha256

base = file_sha256(Path.home() / ".cache/judgesmith/models/SmolLM2-135M-Instruct.Q4_1.gguf")
(out / "judgesmith-135m.json").write_text(
    json.dumps(
        {
            "format": "judgesmith.experience/1",
            "model": base,
            "card": card,
            "level": round(level, 4),
            "points": round(points, 4),
            "states": states,
        },
        separators=(",", ":"),
        ensure_ascii=False,
    )
    + "\n"
)
print("shipped", os.path.getsize(out / "judgesmith-135m.gguf"), sha, sum(cnt.values()), len(cnt))
