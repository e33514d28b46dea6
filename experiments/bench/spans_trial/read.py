"""Read rows once: FILE.jsonl -> FILE.npz (tokens one after the other) and FILE.read.jsonl (rows, with their tokens' places)."""
import time
import numpy as np, torch
from common import *
from judgesmith.programs.readings.bindings.torch_reader import TorchReader
from judgesmith.programs.readings.passages import Message, rendered

name = sys.argv[1]; part = sys.argv[2] if len(sys.argv) > 2 else "0/1"
LIMIT = float(sys.argv[3]) if len(sys.argv) > 3 else 1e9
k, n = map(int, part.split("/"))
torch.set_num_threads(1)
R = TorchReader(MODEL, threads=1, dtype="bfloat16")
def pieces(source, pair, output, again=True):
    a, b = LANG[pair]
    ask = f"Translate this text from {a} into {b}.\n\n{source}" if source else f"Write one text in {b}."
    turns = [Message("system", ("You are a helpful assistant.",)), Message("user", (ask,)), Message("assistant", (output,))]
    if again:
        turns += [Message("user", ("Is every word of it right? Write your translation again, with all errors corrected.",)), Message("assistant", (output,))]
    ps = rendered(R.chat, turns, answer=False)
    where = [i for i, p in enumerate(ps) if not p.mark and p.text == output]
    return ps, where
def numbers(states, target):
    with torch.inference_mode():
        logits = R._model.lm_head(states).float()
        lp = torch.log_softmax(logits, -1)
        t = torch.tensor(target)
        own = lp[torch.arange(len(t)), t]
        ent = -(lp.exp() * lp).sum(-1)
        rank = (lp > own[:, None]).sum(-1)
        return torch.stack([own, ent, lp.max(-1).values, (rank + 1).float().log()], 1).numpy()
def tokens_of(ps): return [R.tokens(p) for p in ps]
def offsets(text):
    return R._tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)["offset_mapping"]
gen = random.Random(f"{name}{part}")
def lm_phrase(row):
    """a stretch of words replaced by what the model writes there without the source"""
    text = row["output"]; w = list(re.finditer(r"\S+", text))
    if len(w) < 5: return None
    i = gen.randrange(1, len(w) - 2); size = gen.choice([1, 1, 2, 2, 3, 4, 6]); end = min(i + size, len(w) - 1)
    head = text[: w[i].start()].rstrip()
    ps, where = pieces("", row["pair"], head, again=False)
    ids = [t for p in tokens_of(ps[: where[0] + 1]) for t in p]
    x = torch.tensor([ids])
    with torch.inference_mode():
        y = R._model.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=4 + 3 * size, do_sample=True, temperature=0.9, top_p=0.95, pad_token_id=R._tokenizer.eos_token_id)
    new = R._tokenizer.decode(y[0, x.shape[1]:], skip_special_tokens=True)
    new = " ".join(re.findall(r"\S+", new.split("\n")[0])[:max(1, size + gen.choice([-1, 0, 0, 1]))]).strip('".,')
    old = text[w[i].start(): w[end - 1].end()]
    if not new or new == old: return None
    s = w[i].start()
    return text[:s] + new + text[w[end - 1].end():], [[s, s + len(new)]]
rows = lines(HERE / f"{name}.jsonl")
docs = list(dict.fromkeys(r["doc"] for r in rows)); mine = set(docs[k::n])
nums, states, kept, starts, ends, t0 = [], [], [], [], [], time.time()
for count, row in enumerate(r for r in rows if r["doc"] in mine):
    if row["family"] == "lm":
        torch.manual_seed(count)
        made = lm_phrase(row)
        if made is None: continue
        row["output"], row["spans"] = made
    text = row["output"]
    ps, where = pieces(row["source"], row["pair"], text)
    if len(where) < 2: continue
    where = [where[-2], where[-1]]
    parts = tokens_of(ps); ids = [t for p in parts for t in p]
    at = [sum(map(len, parts[:w])) for w in where]; target = parts[where[0]]; m = len(target)
    if parts[where[1]] != target or not target: continue
    offs = offsets(text)
    if len(offs) != m: print("offsets differ", row["id"]); continue
    first = at[0] - 1
    hs = R._states(ids[: at[1] + m], first, True)
    A = numbers(hs[-1][:m], target); C = numbers(hs[-1][at[1] - 1 - first : at[1] - 1 - first + m], target)
    pb, wb = pieces("", row["pair"], text, again=False)
    pt = tokens_of(pb[: wb[-1] + 1]); idb = [t for p in pt for t in p]
    hb = R._states(idb, len(idb) - m - 1, True)
    B = numbers(hb[-1][:m], target)
    nums.append(np.concatenate([A, B, C], 1).astype(np.float32))
    sA = [hs[l][1 : m + 1] for l in LAYERS]; c0 = at[1] - first; sC = [hs[l][c0 : c0 + m] for l in LAYERS]
    states.append(torch.stack(sA + sC, 1).to(torch.float16).numpy())  # tokens, 10, 896
    row["first"] = sum(len(x) for x in nums[:-1]); row["tokens"] = m
    starts += [a for a, b in offs]; ends += [b for a, b in offs]
    kept.append(row)
    if time.time() - t0 > LIMIT: break
    if count % 50 == 0: print(count, len(kept), round(time.time() - t0), "s", flush=True)
suffix = f".{k}" if n > 1 else ""
np.savez(HERE / f"{name}{suffix}.npz", numbers=np.concatenate(nums), states=np.concatenate(states), starts=np.array(starts), ends=np.array(ends))
with open(HERE / f"{name}{suffix}.read.jsonl", "w", encoding="utf-8") as f:
    for r in kept: f.write(json.dumps(r, ensure_ascii=False) + "\n")
print("done", len(kept), round(time.time() - t0))
