#!/usr/bin/env python3
"""Compares tutti with PyTorch (DDP over gloo): the same models, the same batches, one thread a rank.

Runs alternate, so that both see the same machine. Each pair gives a ratio, tutti / PyTorch; prints the
median, lowest and highest ratio. Peak memory is the resident set of the largest rank, CPU time is the sum
over ranks, and the time to the first step counts from the launch. Run on an idle machine.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from measure import Figures, run_peer, run_tutti

HERE = Path(__file__).resolve().parent
STEPS = {"digits_mlp": 2000, "resnet20": 30, "gpt_tiny": 30, "wide_mlp": 20}
WARMUP = 5
# The aims: step time by (workload, ranks), and time to first step.
STEP_TARGETS = {("digits_mlp", 1): 0.5, ("digits_mlp", 2): 0.25, ("resnet20", 2): 1.0, ("gpt_tiny", 2): 0.97,
                ("wide_mlp", 2): 0.7}
FIRST_STEP_TARGET = 0.25
LABELS = {"step_ms": "step, ms", "cpu_ms": "CPU a step, ms", "first_step_s": "first step, s",
          "rss_mb": "peak, MB"}


def default_python():
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return os.environ.get("TUTTI_PYTHON", cache / "tutti/torch-2.11.0/bin/python")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--python", type=Path, default=default_python(), help="one that has torch")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--workloads", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--steps", type=int, help="measured steps of a run; each workload has its own number")
    parser.add_argument("--json", type=Path, help="write every run's figures there too")
    return parser.parse_args()


def contestants(args, workload, ranks):
    """Functions that run one contestant once and return its Figures."""
    steps = args.steps or STEPS[workload]
    recipe = HERE / "recipes" / f"{workload}.toml"

    def tutti():
        with tempfile.TemporaryDirectory() as scratch:
            return run_tutti(args.tutti.resolve(), recipe, Path(scratch) / "run", ranks, steps, WARMUP)

    def torch(*options):
        return run_peer([args.python, HERE / "peer_train.py", workload, "--steps", str(steps), "--warmup",
                         str(WARMUP), *options], ranks)

    return {"tutti": tutti, "torch": torch, "torch fused": lambda: torch("--fused")}


def alternate(runners, pairs):
    """The Figures of all contestants, pair by pair; the order alternates."""
    results = {name: [] for name in runners}
    for pair in range(pairs):
        order = list(runners) if pair % 2 == 0 else list(reversed(runners))
        for name in order:
            results[name].append(runners[name]())
    return results


def spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g} - {max(values):.3g})"


def ratios(results, ours, peer, field):
    pairs = zip(results[ours], results[peer])
    return [getattr(own, field) / getattr(other, field) for own, other in pairs]


def target(workload, ranks, field):
    if field == "first_step_s":
        return FIRST_STEP_TARGET
    return STEP_TARGETS.get((workload, ranks)) if field == "step_ms" else None


def report(workload, ranks, results):
    print(f"\n{workload}, {ranks} rank{'s' if ranks > 1 else ''}, {len(results['tutti'])} pairs")
    print(f"  {'':15} {'tutti':>10} {'torch':>10} {'fused':>10}  {'tutti/torch':24} {'tutti/fused':24} aim")
    for field, label in LABELS.items():
        medians = [statistics.median(getattr(run, field) for run in runs) for runs in results.values()]
        columns = " ".join(f"{value:10.4g}" for value in medians)
        against = " ".join(f"{spread(ratios(results, 'tutti', peer, field)):24}"
                           for peer in ("torch", "torch fused"))
        aim = target(workload, ranks, field)
        print(f"  {label:15} {columns}  {against} {f'<= {aim}' if aim else ''}".rstrip(), flush=True)


def main():
    args = arguments()
    if not args.tutti.exists():
        sys.exit(f"{args.tutti} is not there: make build")
    everything = []
    for workload in args.workloads:
        for ranks in args.ranks:
            results = alternate(contestants(args, workload, ranks), args.pairs)
            report(workload, ranks, results)
            runs = {name: [Figures.as_dict(run) for run in runs] for name, runs in results.items()}
            everything.append({"workload": workload, "ranks": ranks, "runs": runs})
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
