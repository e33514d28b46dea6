"""States below the trained layers, of every row: python cache.py 10"""

import os, sys, time, pickle, numpy as np, torch

torch.set_num_threads(int(os.environ.get("T", "1")))
from pathlib import Path
from judgesmith.programs.readings.bindings.torch_reader import open_weights
from reader_rows import build

W = open_weights(Path.home() / ".cache/judgesmith/models/SmolLM2-135M-Instruct.Q4_1.gguf", "bfloat16")
rows = build(W)
print(
    len(rows),
    "rows",
    np.mean([len(r["tokens"]) for r in rows]),
    "tokens",
    {u: sum(r["use"] == u for r in rows) for u in ("train", "test", "pair")},
    flush=True,
)
pickle.dump(rows, open("rows.pkl", "wb"))
t0 = time.time()
M = W.model.model
L0 = int(sys.argv[1])
off = np.cumsum([0] + [len(r["tokens"]) for r in rows])
H = torch.empty((off[-1], 576), dtype=torch.bfloat16)
order = sorted(range(len(rows)), key=lambda i: len(rows[i]["tokens"]))
done = 0
with torch.inference_mode():
    cur = []

    def flush():
        global done
        n = max(len(rows[i]["tokens"]) for i in cur)
        ids = torch.zeros(len(cur), n, dtype=torch.long)
        for k, i in enumerate(cur):
            ids[k, : len(rows[i]["tokens"])] = torch.tensor(rows[i]["tokens"])
        h = M.embed_tokens(ids)
        pos = torch.arange(n)[None]
        pe = M.rotary_emb(h, pos)
        for layer in M.layers[:L0]:
            o = layer(h, attention_mask=None, position_ids=pos, position_embeddings=pe)
            h = o[0] if isinstance(o, tuple) else o
        for k, i in enumerate(cur):
            H[off[i] : off[i + 1]] = h[k, : len(rows[i]["tokens"])]
        done += len(cur)
        if done % 512 < len(cur):
            print(done, round(time.time() - t0), flush=True)

    for i in order:
        if cur and (len(cur) + 1) * len(rows[i]["tokens"]) > 2000:
            flush()
            cur = []
        cur.append(i)
    flush()
torch.save(dict(H=H, off=off), "cache.pt")
print("done", time.time() - t0, H.shape)
