#!/usr/bin/env python3
"""Prints hashes that a refactoring must not change: for each example and number of ranks a hash of all
weights and a hash of all logged losses and metrics, and for each simulated seed a hash of the weights: of one
recipe, and of recipes that the seeds draw.

    tools/digests.py BUILD > before; ...; tools/digests.py BUILD > after; diff before after

Make both on one machine: processors with other vector instructions give other bits.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = {"digits": [], "digits_cnn": [],
            "text_gpt": ["train.max_duration=60ba", "train.eval_interval=25ba"]}
SEEDS = 300
DRAWN = 1000
TIMED = ("_ms", "_per_s", "memory", "since_start", "wall", "time/", "throughput")


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def logged(run):
    """A hash of metrics.jsonl without keys that depend on the clock or the memory."""
    lines = []
    with open(os.path.join(run, "metrics.jsonl")) as file:
        for line in file:
            record = json.loads(line)
            lines.append({k: v for k, v in record.items() if not any(word in k for word in TIMED)})
    return hashlib.sha256(json.dumps(lines, sort_keys=True).encode()).hexdigest()[:16]


def example(tutti, name, ranks, settings, scratch):
    run = os.path.join(scratch, f"{name}-{ranks}")
    changes = [word for setting in settings for word in ("--set", setting)]
    output(os.path.join(ROOT, "tools/mpirun.sh"), "-np", str(ranks), tutti, "train",
           os.path.join(ROOT, "examples", name + ".toml"), "--run-dir", run, *changes)
    return output(tutti, "inspect", run, "--digest").strip(), logged(run)


def simulated(tutti, recipe, seeds, plan):
    """Seed and hash of the final weights, for each seed. The lines of a worker have more than the summary."""
    lines = output(tutti, "simulate", recipe, "--ranks", "4", "--seeds", f"1..{seeds}", "--once",
                   "--share-of", "1", *plan)
    results = [line.split("\t") for line in lines.splitlines() if line.startswith("tutti-seed-result")]
    return [(int(fields[1]), f"{int(fields[2]):016x}") for fields in results]


def main():
    tutti = os.path.join(os.path.abspath(sys.argv[1]), "tutti")
    with tempfile.TemporaryDirectory() as scratch:
        for name, settings in EXAMPLES.items():
            for ranks in (1, 2, 4):
                weights, losses = example(tutti, name, ranks, settings, scratch)
                print(f"{name}.toml  {ranks} ranks  weights {weights}  logged {losses}", flush=True)
    faults = os.path.join(ROOT, "examples/faults")
    for name, plan in ("no faults", []), ("all faults", ["--faults", os.path.join(faults, "all.toml")]):
        for seed, weights in simulated(tutti, os.path.join(faults, "tiny.toml"), SEEDS, plan):
            print(f"tiny.toml  4 ranks  {name}  seed {seed}  weights {weights}", flush=True)
    for seed, weights in simulated(tutti, os.path.join(faults, "drawn.toml"), DRAWN, []):
        print(f"drawn.toml  seed {seed}  weights {weights}")


if __name__ == "__main__":
    main()
