#!/usr/bin/env python3
"""Do the algorithms help? Trains with and without each, and writes what came out to docs/algorithms.md.

Each algorithm trains the workloads that it suits, once a seed, as does a training without any: same seed,
same initial weights, same batches. Time is the processor time of the whole run, evaluations included, as a
ratio to the run without. Figures of all runs are kept in bench/speedup.json, so that algorithms may be
measured one by one. A minute or two for each algorithm and workload.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "speedup.json"
PAGE = HERE.parent / "docs/algorithms.md"
HEADING = "## Measured\n"
NONE = "none"  # of the algorithms
METRICS = {"mnist5k": ("MulticlassAccuracy", "accuracy, %", 100.0),
           "king_james": ("LanguageCrossEntropy", "loss, nats", 1.0)}
WORKLOADS = {"mnist5k": "A ResNet-20 on MNIST-5k, 2 epochs",
             "king_james": "A GPT of 2 layers on `king_james.txt`, 200 steps"}
# What is not the default, for trainings as short as these.
KEYS = {
    "mnist5k": {
        "augmix": {}, "blurpool": {}, "channels_last": {}, "colout": {}, "cutmix": {}, "cutout": {},
        "ema": {"half_life": '"10ba"'}, "factorize": {"min_channels": "32"},
        "ghost_batchnorm": {},
        "gradient_clipping": {"clipping_type": '"norm"', "clipping_threshold": "1.0"},
        "label_smoothing": {}, "layer_freezing": {"freeze_start": "0.0"}, "mixup": {},
        "progressive_resizing": {},
        "randaugment": {}, "sam": {}, "selective_backprop": {}, "squeeze_excite": {"min_channels": "32"},
        "swa": {"update_interval": '"5ba"'}, "weight_standardization": {},
    },
    "king_james": {
        "alibi": {"max_sequence_length": "128"}, "ema": {"half_life": '"10ba"'},
        "gradient_clipping": {"clipping_type": '"norm"', "clipping_threshold": "1.0"},
        "sam": {}, "seq_length_warmup": {"max_seq_length": "128"}, "swa": {"update_interval": '"10ba"'},
    },
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], help="kinds of algorithms; all if left out")
    parser.add_argument("--page", action="store_true", help="only write the page anew from the kept figures")
    return parser.parse_args()


def entry(kind, keys, section="algorithms"):
    lines = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'\n[[{section}]]\nkind = "{kind}"\n{lines}'


def train(tutti, workload, seed, algorithm):
    """The last value of the workload's metric, and the processor time in seconds."""
    text = (HERE / "recipes" / f"{workload}.toml").read_text().replace("../../", f"{HERE.parent}/")
    if '"alibi"' in algorithm:
        text = text.replace(', "*wpe*"', "")  # there are no positions then
    with tempfile.TemporaryDirectory() as scratch:
        recipe, run = Path(scratch) / "recipe.toml", Path(scratch) / "run"
        recipe.write_text(text + algorithm)
        process = subprocess.Popen([tutti, "train", recipe, "--run-dir", run, "--set", f"seed={seed}"],
                                   stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{workload} with {algorithm or 'no algorithm'} ended with status {status}")
        key = f"metrics/eval/{METRICS[workload][0]}"
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line[key] for line in lines if key in line][-1], usage.ru_utime + usage.ru_stime


def measure(args, results, workload, kind, keys):
    found = results.setdefault(workload, {}).setdefault(kind, {})
    found.update({"keys": keys, "runs": {}})
    for seed in range(1, args.seeds + 1):
        run = train(args.tutti, workload, seed, entry(kind, keys) if kind != NONE else "")
        print(workload, kind, seed, run, flush=True)
        found["runs"][str(seed)] = run
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def spread(values, digits, sign=""):
    three = (statistics.mean(values), min(values), max(values))
    mean, least, most = (f"{value:{sign}.{digits}f}" for value in three)
    return f"{mean} ({least} to {most})"


def table(workload, results):
    _, unit, factor = METRICS[workload]
    digits = 2 if factor == 100.0 else 3
    lines = [f"\n### {WORKLOADS[workload]}\n",
             f"| algorithm | {unit} | difference | time |", "|---|---|---|---|"]
    runs = results[workload]
    seeds = runs[NONE]["runs"]
    for kind, found in sorted(runs.items(), key=lambda one: (one[0] != NONE, one[0])):
        values = [factor * found["runs"][seed][0] for seed in seeds]
        gain = [value - factor * seeds[seed][0] for seed, value in zip(seeds, values)]
        time = statistics.median(found["runs"][seed][1] / seeds[seed][1] for seed in seeds)
        keys = "".join(f", {key} = {value}" for key, value in found["keys"].items())
        name = "none" if kind == NONE else f"`{kind}`{keys}"
        lines.append(f"| {name} | {spread(values, digits)} | {spread(gain, digits, '+')} | {time:.2f} |")
    return "\n".join(lines) + "\n"


def write_page(results):
    generated = PAGE.read_text().split(HEADING)[0].rstrip("\n")
    seeds = len(results["mnist5k"][NONE]["runs"])
    said = f"""{generated}

{HEADING}
Trainings with each and with none, from the same initial weights, on the same batches: means over {seeds}
seeds, and in brackets the least and the most. Time is processor time of the whole run, as a ratio to the run
with none. These trainings are short, and their models small: most algorithms were made for long ones.
`bench/speedup.py` measures again.
"""
    PAGE.write_text(said + "".join(table(workload, results) for workload in WORKLOADS))


def main():
    args = arguments()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for workload, kinds in KEYS.items():
        for kind, keys in {NONE: {}, **kinds}.items():
            if not args.page and (not args.only or kind in args.only):
                measure(args, results, workload, kind, keys)
    write_page(results)


if __name__ == "__main__":
    main()
