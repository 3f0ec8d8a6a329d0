#!/usr/bin/env python3
"""What a checkpoint costs a sharded training: tutti under `full`, and PyTorch's fully_shard with
torch.distributed.checkpoint.async_save, at two ranks of one thread each, with 160 MB of weights and momentum
(wide_mlp). The stall of a checkpoint is how much longer the steps take that a training with checkpoints makes
from one to the next. Runs alternate. Run on an idle machine.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from compare import HERE, WARMUP, default_python, spread
from measure import run_peer, run_tutti

RANKS, STEPS, EVERY = 2, 60, 20
WORKLOAD = "wide_mlp"
AIM = 0.25  # of async_save's


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--python", type=Path, default=default_python(), help="one that has torch")
    parser.add_argument("--pairs", type=int, default=5)
    return parser.parse_args()


def mean_ms(args, contestant, saves):
    with tempfile.TemporaryDirectory() as scratch:
        if contestant == "tutti":
            interval = f"{EVERY}ba" if saves else "0ba"
            recipe, run = HERE / "recipes" / f"{WORKLOAD}.toml", Path(scratch) / "run"
            settings = ["sharding.strategy=full", f"checkpoint.interval={interval}"]
            return run_tutti(args.tutti.resolve(), recipe, run, RANKS, STEPS, WARMUP, settings).mean_ms
        saving = ["--save-every", str(EVERY), "--save-folder", scratch] if saves else []
        return run_peer([args.python, HERE / "peer_train.py", WORKLOAD, "--steps", str(STEPS), "--warmup",
                         str(WARMUP), "--fully-shard", *saving], RANKS).mean_ms


def main():
    args = arguments()
    stalls = {"tutti": [], "async_save": []}
    for _ in range(args.pairs):
        for contestant, found in stalls.items():
            found.append(EVERY * (mean_ms(args, contestant, True) - mean_ms(args, contestant, False)))
    for contestant, found in stalls.items():
        print(f"{contestant:12} {spread(found)} ms a checkpoint")
    ratio = statistics.median(stalls["tutti"]) / statistics.median(stalls["async_save"])
    print(f"tutti / async_save {ratio:.3g}, aim <= {AIM}")


if __name__ == "__main__":
    main()
