#!/usr/bin/env python3
"""How often the host waits for the device in a step, on the tests' device: trains each workload for some
steps and for some more, and prints by cause the waits that a step and rank adds, and how many of them are
stalls, after which the waiting thread's stream has nothing left to do. No clock is read.
"""

import argparse
import os
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from compare import HERE

FEW, MANY = 2, 6  # steps
WORKLOADS = ["digits_mlp", "gpt_tiny", "resnet20", "bert_bytes"]
SETTINGS = {"": [], "amp_fp16": ["train.precision=amp_fp16"]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--strategy", default="none")
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS)
    return parser.parse_args()


def waits(args, workload, ranks, steps, settings):
    """(waits, stalls) of a whole run by cause."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [args.tutti.resolve(), "train", HERE / "recipes" / f"{workload}.toml", "--run-dir",
                   Path(scratch) / "run", "--local-ranks", str(ranks)]
        for setting in ("device.kind=test", f"sharding.strategy={args.strategy}",
                        f"train.max_duration={steps}ba", *settings):
            command += ["--set", setting]
        said = subprocess.run(command, check=True, text=True, capture_output=True,
                              env={**os.environ, "TUTTI_TEST_DEVICE": "late,report"}).stderr
    found = re.findall(r"host waits: (.+), (\d+), stalls (\d+)", said)
    return Counter({one[0]: int(one[1]) for one in found}), Counter({one[0]: int(one[2]) for one in found})


def main():
    args = arguments()
    for workload in args.workloads:
        for ranks in args.ranks:
            for name, settings in SETTINGS.items():
                few, many = (waits(args, workload, ranks, steps, settings) for steps in (FEW, MANY))
                per_step = [{cause: (more[cause] - fewer[cause]) / ((MANY - FEW) * ranks) for cause in more}
                            for fewer, more in zip(few, many)]
                text = ", ".join(f"{cause} {count:.3g} ({per_step[1][cause]:.3g} stalls)"
                                 for cause, count in sorted(per_step[0].items()) if count)
                print(f"{workload:12} {ranks} ranks  {name:9} {text or 'none'}", flush=True)


if __name__ == "__main__":
    main()
