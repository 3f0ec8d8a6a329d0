#!/usr/bin/env python3
"""Where trainings end, in tutti and in PyTorch by the same recipe: a segmentation (MIoU) and a regression
(mean squared error) of examples/, with the same seeds. PyTorch draws other weights and orders, so the
spreads over seeds are compared: the means must be less than two standard deviations of PyTorch's apart.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from compare import default_python
from ends import ROOT, are_apart, last_value, print_ends, train
from gpu import run
from measure import Failed

PEER = """
import json, sys, h5py, torch, torch.nn as nn, torch.nn.functional as F
task, path, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
group, batch, epochs = {"segmentation": ("masks", 32, 10), "regression": ("wine", 24, 30)}[task]
with h5py.File(path) as file:
    data = {part: [torch.from_numpy(file[f"{group}/{part}/{name}"][:]) for name in ("input", "target")]
            for part in ("train", "test")}

def segmentation():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 2, 1))

def regression():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))

def loss(outputs, target):
    if task == "regression":
        return F.mse_loss(outputs.squeeze(1), target)
    truth = F.one_hot(target.long(), 2).movedim(-1, 1)
    predicted = outputs.softmax(1)
    both = (truth * predicted).sum((2, 3))
    areas = truth.sum((2, 3)) + predicted.sum((2, 3))
    return (1 - (2 * both + 1e-5) / (areas + 1e-5)).mean()

def measure(outputs, target):
    if task == "regression":
        return F.mse_loss(outputs.squeeze(1), target).item()
    found = outputs.argmax(1)
    parts = [((found == c) & (target == c)).sum() / ((found == c) | (target == c)).sum() for c in (0, 1)]
    return 100 * sum(parts).item() / 2

results = []
for seed in range(1, seeds + 1):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = globals()[task]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for rows in torch.randperm(len(data["train"][0])).split(batch):
            optimizer.zero_grad()
            loss(model(data["train"][0][rows]), data["train"][1][rows]).backward()
            optimizer.step()
    with torch.no_grad():
        results.append(measure(model(data["test"][0]), data["test"][1]))
print(json.dumps(results))
"""
TASKS = {"segmentation": ("metrics/eval/MIoU", []), "regression": ("metrics/eval/loss", ['model.loss="mse"'])}


def tutti_ends(args, task, seed, folder):
    metric, settings = TASKS[task]
    train(args.tutti, f"{task}_recipe", folder, [f"seed={seed}", *settings])
    return last_value(folder, metric)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", type=Path, default=ROOT / "build/tutti")
    parser.add_argument("--python", default=default_python(), help="one that has torch and h5py")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    outside = []
    for task, (metric, _) in TASKS.items():
        data = ROOT / "examples/data/targets.h5"
        peers = json.loads(run([args.python, "-c", PEER, task, data, args.seeds]))
        with tempfile.TemporaryDirectory() as scratch:
            own = [tutti_ends(args, task, seed, Path(scratch) / str(seed))
                   for seed in range(1, args.seeds + 1)]
        print_ends(f"{task}, {metric}", {"tutti": own, "PyTorch": peers})
        if are_apart(own, peers):
            outside.append(task)
    sys.exit(f"outside of PyTorch's spread: {', '.join(outside)}" if outside else 0)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"accuracy.py: {failed}")
