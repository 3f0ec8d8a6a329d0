#!/usr/bin/env python3
"""A step of exported models in tutti, and of the same modules in PyTorch eager: the same weights, batches,
threads and optimizer. Runs alternate; prints each round's ratio of tutti's median step to PyTorch's.

Needs a Python with torch and timm (--python).
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from compare import default_python
from gpu import run
from measure import Failed

HERE = Path(__file__).resolve().parent
MODELS = {"convnext": ("convnext_atto", 64, 16), "vit": ("vit_tiny_patch16_224", 224, 4)}  # size, batch

PEER = """
import json, sys, time, torch, timm
name, size, batch, steps, threads, to = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
torch.set_num_threads(threads)
torch.manual_seed(0)
model = timm.create_model(name, num_classes=10).train()
images = torch.randn(batch, 3, size, size)
if to != "-":
    free = torch.export.Dim("batch", min=2, max=63)
    torch.export.save(torch.export.export(model, (images,), dynamic_shapes=({0: free},), strict=False), to)
    sys.exit()
targets = torch.randint(0, 10, (batch,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
took = []
for step in range(steps):
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), targets)
    loss.backward()
    optimizer.step()
    loss.item()
    took.append(1e3 * (time.perf_counter() - begin))
print(json.dumps(took))
"""

RECIPE = """
seed = 1
[model]
kind = "exported"
path = "{path}"
[data.train]
kind = "synthetic"
samples = 512
batch_size = {batch}
shape = [3, {size}, {size}]
[optimizer]
kind = "sgd"
lr = 0.01
momentum = 0.9
[train]
max_duration = "{steps}ba"
[checkpoint]
interval = "0ba"
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--python", default=default_python(), help="one that has torch and timm")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def peer(args, model, to="-"):
    name, size, batch = MODELS[model]
    return run([args.python, "-c", PEER, name, size, batch, args.steps, args.threads, to])


def tutti_step(args, recipe, folder):
    run([args.tutti, "train", recipe, "--run-dir", folder, "--set", f"device.threads={args.threads}"])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["step_ms"] for line in lines if "step_ms" in line][args.warmup:])


def main():
    args = arguments()
    for model in args.models:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            peer(args, model, folder / "model.pt2")
            _, size, batch = MODELS[model]
            recipe = folder / "recipe.toml"
            recipe.write_text(RECIPE.format(path=folder / "model.pt2", size=size, batch=batch,
                                            steps=args.steps))
            ratios = []
            for number in range(args.rounds):
                own = tutti_step(args, recipe, folder / f"run{number}")
                other = statistics.median(json.loads(peer(args, model))[args.warmup:])
                ratios.append(own / other)
                print(f"{model}: tutti {own:.1f} ms, eager {other:.1f} ms, ratio {own / other:.3f}",
                      flush=True)
            print(f"{model}: median ratio {statistics.median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"exported.py: {failed}")
