#!/usr/bin/env python3
"""A step of tutti's resnet50 and ViT-small, and of torchvision's in PyTorch, eager and by torch.compile: the
same sizes, threads and optimizer. Runs alternate; prints each round's ratio of tutti's median step to the
other's.

Needs a Python with torch and torchvision (--python).
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
SMALL = dict(patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536)
MODELS = {"resnet50": ('kind = "resnet"\ndepth = 50', "torchvision.models.resnet50()"),
          "vit_small": ('kind = "vit"\n' + "\n".join(f"{name} = {value}" for name, value in SMALL.items()),
                        f"torchvision.models.VisionTransformer(image_size=224, **{SMALL})")}

PEER = """
import json, sys, time, torch, torchvision
batch, steps, threads = map(int, sys.argv[3:6])
torch.set_num_threads(threads)
torch.manual_seed(0)
model = eval(sys.argv[2]).train()
images, targets = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))
if "resnet" in sys.argv[2]:
    model, images = (one.to(memory_format=torch.channels_last) for one in (model, images))
forward = torch.compile(model) if sys.argv[1] == "compile" else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
took = []
for step in range(steps):
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(forward(images), targets)
    loss.backward()
    optimizer.step()
    loss.item()
    took.append(1e3 * (time.perf_counter() - begin))
print(json.dumps(took))
"""

RECIPE = """
seed = 1
[model]
{model}
[data.train]
kind = "synthetic"
samples = 512
batch_size = {batch}
shape = [3, 224, 224]
classes = 1000
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
    parser.add_argument("--python", default=default_python(), help="one that has torch and torchvision")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--what", nargs="+", choices=["eager", "compile"], default=["eager", "compile"])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main():
    args = arguments()
    for name in args.models:
        model, client = MODELS[name]
        for what in args.what:
            ratios = []
            with tempfile.TemporaryDirectory() as scratch:
                recipe = Path(scratch) / "recipe.toml"
                recipe.write_text(RECIPE.format(model=model, batch=args.batch, steps=args.steps))
                for number in range(args.rounds):
                    own = tutti_step(args, recipe, Path(scratch) / f"run{number}")
                    took = run([args.python, "-c", PEER, what, client, args.batch, args.steps, args.threads])
                    other = statistics.median(json.loads(took)[args.warmup:])
                    ratios.append(own / other)
                    print(f"{name}: tutti {own:.1f} ms, {what} {other:.1f} ms, ratio {own / other:.3f}",
                          flush=True)
            print(f"{name}: median ratio to {what} {statistics.median(ratios):.3f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"zoo.py: {failed}")
