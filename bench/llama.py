#!/usr/bin/env python3
"""A training step of a Llama of four blocks in tutti, and of transformers' in PyTorch, eager and by
torch.compile; and `tutti generate` beside transformers' generate with its cache: the same weights, tokens,
threads and optimizer. Runs alternate; prints each round's ratio of tutti's time to the other's.

Needs a Python with torch and transformers (--python).
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from compare import default_python
from exported import tutti_step
from gpu import run
from measure import Failed

HERE = Path(__file__).resolve().parent

PEER = """
import json, sys, time, torch, transformers
what, folder, steps, batch, length, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])
torch.set_num_threads(threads)
torch.manual_seed(0)
config = transformers.LlamaConfig(vocab_size=1024, hidden_size=256, intermediate_size=688,
    num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=1024,
    bos_token_id=None, eos_token_id=None, use_cache=what == "generate")
model = transformers.LlamaForCausalLM(config)
if what == "save":
    model.save_pretrained(folder)
    sys.exit()
took = []
if what == "generate":
    model.eval()
    tokens = torch.randint(0, 1024, (batch, length))
    for _ in range(steps):
        begin = time.perf_counter()
        model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=64, do_sample=False,
                       pad_token_id=0)
        took.append(1e3 * (time.perf_counter() - begin))
else:
    forward = torch.compile(model) if what == "compile" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(0, 1024, (batch, length))
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        scores = forward(input_ids=tokens).logits
        loss = torch.nn.functional.cross_entropy(scores.view(-1, 1024), tokens.view(-1))
        loss.backward()
        optimizer.step()
        loss.item()
        took.append(1e3 * (time.perf_counter() - begin))
print(json.dumps(took))
"""

RECIPE = """
seed = 1
[model]
kind = "hf"
path = "{folder}/hub"
[data.train]
kind = "synthetic"
samples = 2048
batch_size = {batch}
shape = [{length}]
classes = 1024
targets = "sequence"
[optimizer]
kind = "adamw"
lr = 1e-3
[train]
max_duration = "{steps}ba"
[checkpoint]
interval = "0ba"
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parent / "build")
    parser.add_argument("--python", default=default_python(), help="one that has torch and transformers")
    parser.add_argument("--what", nargs="+", choices=["eager", "compile", "generate"],
                        default=["eager", "compile", "generate"])
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    args = parser.parse_args()
    args.tutti = args.build / "tutti"
    return args


def peer(args, what, folder, steps, batch, length):
    words = [args.python, "-c", PEER, what, folder / "hub", steps, batch, length, args.threads]
    return statistics.median(json.loads(run(words))[min(args.warmup, steps - 1):])


def report(name, own, other, ratios):
    ratios.append(own / other)
    print(f"{name}: tutti {own:.1f} ms, transformers {other:.1f} ms, ratio {own / other:.3f}", flush=True)


def train(args, what, folder):
    (folder / "recipe.toml").write_text(RECIPE.format(folder=folder, batch=args.batch, length=args.length,
                                                      steps=args.steps))
    ratios = []
    for number in range(args.rounds):
        report(what, tutti_step(args, folder / "recipe.toml", folder / f"run{what}{number}"),
               peer(args, what, folder, args.steps, args.batch, args.length), ratios)
    print(f"{what}: median ratio {statistics.median(ratios):.3f}", flush=True)


def generate(args, folder):
    for batch in 1, 8:
        ratios = []
        for _ in range(args.rounds):
            own = run([args.build / "bench/generation_bench", batch, 32, 64, args.threads])
            other = peer(args, "generate", folder, 6, batch, 32)
            report(f"generate, batch {batch}", float(own), other, ratios)
        print(f"generate, batch {batch}: median ratio {statistics.median(ratios):.3f}", flush=True)


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run([args.python, "-c", PEER, "save", folder / "hub", 0, 0, 0, 1])
        for what in args.what:
            generate(args, folder) if what == "generate" else train(args, what, folder)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"llama.py: {failed}")
