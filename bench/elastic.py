#!/usr/bin/env python3
"""Compares training in grains ([reproducibility] mode = "elastic") with training without, at two ranks of one
thread each: with a grain a rank, and with four grains a rank beside as many microbatches. Runs alternate;
prints medians, lowest and highest ratios of the time of a step, and the peak resident set of the largest
rank. Run on an idle machine.
"""

import argparse
import re
import statistics
import tempfile
from pathlib import Path

from compare import HERE, STEPS, WARMUP, alternate, ratios, spread
from measure import run_tutti

RANKS = 2
WORKLOADS = ["digits_mlp", "resnet20", "gpt_tiny", "wide_mlp"]
ELASTIC = 'reproducibility.mode="elastic"'
CONTESTANTS = {"plain": [], "grains = 2": [ELASTIC, "reproducibility.grains=2"],
               "grad_accum = 4": ["train.grad_accum=4"], "grains = 8": [ELASTIC, "reproducibility.grains=8"]}
BESIDE = {"grains = 2": "plain", "grad_accum = 4": "plain", "grains = 8": "grad_accum = 4"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--strategy", default="none")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    return parser.parse_args()


def whole_batches(recipe):
    """The recipe with the batch of all ranks in place of a rank's: grains are parts of the whole."""
    return re.sub(r"(?m)^device_batch_size = (\d+)", lambda size: f"batch_size = {RANKS * int(size[1])}",
                  recipe.read_text())


def contestants(args, workload):
    recipe = HERE / "recipes" / f"{workload}.toml"

    def tutti(keys):
        # Paths in a recipe are relative to its folder.
        with (tempfile.TemporaryDirectory() as scratch,
              tempfile.NamedTemporaryFile("w", dir=recipe.parent, suffix=".toml") as written):
            written.write(whole_batches(recipe))
            written.flush()
            return run_tutti(args.tutti.resolve(), Path(written.name), Path(scratch) / "run", RANKS,
                             STEPS[workload], WARMUP, [f"sharding.strategy={args.strategy}", *keys])

    return {name: lambda keys=keys: tutti(keys) for name, keys in CONTESTANTS.items()}


def report(workload, results):
    print(f"\n{workload}, {RANKS} ranks, {len(results['plain'])} rounds")
    for name, runs in results.items():
        line = (f"  {name:15} {statistics.median(run.step_ms for run in runs):9.4g} ms "
                f"{statistics.median(run.rss_mb for run in runs):7.4g} MB")
        if name in BESIDE:
            line += f"   / {BESIDE[name]} {spread(ratios(results, name, BESIDE[name], 'step_ms'))}"
        print(line, flush=True)


def main():
    args = arguments()
    for workload in args.workloads:
        report(workload, alternate(contestants(args, workload), args.pairs))


if __name__ == "__main__":
    main()
