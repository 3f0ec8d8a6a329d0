#!/usr/bin/env python3
"""Measures the cost of the journal: runs tutti with `[journal] level` full and off alternately.

Each pair of runs (one thread a rank) gives a ratio, full / off. Prints the median loss in percent of a
step's time and CPU time (all ranks and threads), with a 95 % bootstrap interval of the median. Run on an idle
machine: pairs differ by more than the aims.
"""

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path

from compare import WARMUP, alternate, ratios
from measure import run_tutti

HERE = Path(__file__).resolve().parent
AIMS = {"digits_mlp": 2, "wide_mlp": 5, "resnet20": 0.2}  # percent of a step
STEPS = {"digits_mlp": 6000, "wide_mlp": 40, "resnet20": 30}
LEVELS = ("full", "off")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--workloads", nargs="+", choices=AIMS, default=list(AIMS))
    return parser.parse_args()


def contestant(args, workload, level):
    def run():
        with tempfile.TemporaryDirectory() as scratch:
            recipe = HERE / "recipes" / f"{workload}.toml"
            return run_tutti(args.tutti.resolve(), recipe, Path(scratch) / "run", args.ranks, STEPS[workload],
                             WARMUP, [f"journal.level={level}"])
    return run


def percent(values):
    lost = [100 * (value - 1) for value in values]
    draws = random.Random(0)
    medians = sorted(statistics.median(draws.choices(lost, k=len(lost))) for _ in range(2000))
    return f"{statistics.median(lost):+.2f} % ({medians[50]:+.2f} to {medians[-51]:+.2f})"


def main():
    args = arguments()
    if not args.tutti.exists():
        sys.exit(f"{args.tutti} is not there: make build")
    for workload in args.workloads:
        runs = alternate({level: contestant(args, workload, level) for level in LEVELS}, args.pairs)
        step, cpu = (percent(ratios(runs, *LEVELS, field)) for field in ("step_ms", "cpu_ms"))
        print(f"{workload}, {args.ranks} ranks, {args.pairs} pairs: step {step}, aim <= {AIMS[workload]} %; "
              f"CPU {cpu}", flush=True)


if __name__ == "__main__":
    main()
