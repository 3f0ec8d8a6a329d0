#!/usr/bin/env python3
"""Compares tutti's sharded training with PyTorch's fully_shard (FSDP2 over gloo) and with tutti's own
unsharded training, at two ranks of one thread each. Runs alternate; prints medians, lowest and highest ratios
of the time of a step, and the peak resident set of the largest rank. Run on an idle machine.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from compare import HERE, STEPS, WARMUP, alternate, default_python, ratios, spread
from measure import run_peer, run_tutti

RANKS = 2
WORKLOADS = ["resnet20", "gpt_tiny", "wide_mlp"]
# The aims: step time of a strategy by workload, over that of another contestant.
AIMS = {("full", "fully_shard", "resnet20"): 0.65, ("full", "fully_shard", "gpt_tiny"): 0.9,
        ("full", "fully_shard", "wide_mlp"): 0.35, ("full", "none", "resnet20"): 1.1,
        ("full", "none", "gpt_tiny"): 1.1, ("full", "none", "wide_mlp"): 1.3,
        ("optimizer", "none", "wide_mlp"): 1.0}
STRATEGIES = ["none", "optimizer", "gradients", "full"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--python", type=Path, default=default_python(), help="one that has torch")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    return parser.parse_args()


def contestants(args, workload):
    steps = STEPS[workload]
    recipe = HERE / "recipes" / f"{workload}.toml"

    def tutti(strategy):
        with tempfile.TemporaryDirectory() as scratch:
            return run_tutti(args.tutti.resolve(), recipe, Path(scratch) / "run", RANKS, steps, WARMUP,
                             [f"sharding.strategy={strategy}"])

    runners = {strategy: lambda strategy=strategy: tutti(strategy) for strategy in STRATEGIES}
    runners["fully_shard"] = lambda: run_peer(
        [args.python, HERE / "peer_train.py", workload, "--steps", str(steps), "--warmup", str(WARMUP),
         "--fully-shard"], RANKS)
    return runners


def report(workload, results):
    print(f"\n{workload}, {RANKS} ranks, {len(results['none'])} rounds")
    for name, runs in results.items():
        line = (f"  {name:12} {statistics.median(run.step_ms for run in runs):9.4g} ms "
                f"{statistics.median(run.rss_mb for run in runs):7.4g} MB")
        for other in ("none", "fully_shard"):
            if name in (other, "fully_shard"):
                continue
            aim = AIMS.get((name, other, workload))
            line += f"   / {other} {spread(ratios(results, name, other, 'step_ms'))}"
            line += f" aim {aim}" if aim else ""
        print(line, flush=True)


def main():
    args = arguments()
    for workload in args.workloads:
        report(workload, alternate(contestants(args, workload), args.pairs))


if __name__ == "__main__":
    main()
