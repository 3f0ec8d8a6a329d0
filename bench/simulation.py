#!/usr/bin/env python3
"""How fast the simulator is: rank-steps a second of one process, with a tiny model on 4 ranks, without
checkpoints and with one every 4 steps.

The two take turns; what is printed is the median of the rounds with their lowest and highest. Run it on an
idle machine: the actors' threads hand one core to each other.
"""

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECIPE = HERE.parent / "examples/faults/tiny.toml"
EPOCHS = 100  # of 5 steps
INTERVALS = {"without checkpoints": f"{EPOCHS}ep", "a checkpoint every 4 steps": "4ba"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=10)
    return parser.parse_args()


def rank_steps_a_second(args, interval):
    command = [args.tutti.resolve(), "simulate", RECIPE, "--ranks", str(args.ranks),
               "--seeds", f"1..{args.seeds}", "--once", "--jobs", "1",
               "--set", f"train.max_duration={EPOCHS}ep", "--set", f"checkpoint.interval={interval}"]
    done = subprocess.run(command, capture_output=True, text=True)
    speed = re.search(r"([\d.]+) a second and process", done.stdout)
    if done.returncode != 0 or not speed:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return float(speed[1])


def main():
    args = arguments()
    if not args.tutti.exists():
        sys.exit(f"{args.tutti} is not there: make build")
    found = {name: [] for name in INTERVALS}
    for _ in range(args.rounds):
        for name, interval in INTERVALS.items():
            found[name].append(rank_steps_a_second(args, interval))
    for name, speeds in found.items():
        print(f"{name}, {args.ranks} ranks: {statistics.median(speeds):.0f} rank-steps a second "
              f"({min(speeds):.0f} to {max(speeds):.0f})")


if __name__ == "__main__":
    main()
