"""beside.py TUTTI [--seeds 1..500] [--mpirun-every N] [--keep FOLDER]: tutti beside plain PyTorch.

Each seed draws a recipe from space.toml; tutti and the loop of training.py train it from the same weights.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import warnings

import torch

from training import Skip, Training

HERE = pathlib.Path(__file__).parent
METRICS = {"loss": "loss", "lr": "lr"}


def read(path):
    text = path.read_text()
    return tomllib.loads(text), int(re.match(r"#.* on (\d+) ranks?\n", text)[1])


def draw(tutti, first, last, folder):
    command = [tutti, "simulate", HERE / "space.toml", "--seeds", f"{first}..{last}", "--write", folder]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="", flush=True)


class Run:
    """A run of tutti, in the background."""

    def __init__(self, tutti, path, ranks, by_mpirun):
        self.folder, weights = path.with_suffix(""), path.with_suffix(".pt")
        arguments = ["train", path, "--set", f"model.weights={weights}", "--run-dir", self.folder]
        command = [tutti, *arguments, "--local-ranks", str(ranks)]
        if by_mpirun:
            mpirun = HERE.parent.parent / "tools" / "mpirun.sh"
            command = [mpirun, "--oversubscribe", "-np", str(ranks), tutti, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"})

    def records(self):
        self.process.communicate_out, self.errors = self.process.communicate()
        if self.process.returncode:
            return None
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


def difference(mine, theirs):
    return abs(mine - theirs) / max(abs(mine), 1e-6)


def differences(training, records):
    """By what is compared: the largest one, relative to the loop's value."""
    steps = [one for one in records if "loss" in one and "step" in one]
    evaluations = [one for one in records if "metrics/eval/loss" in one]
    found = {}
    pairs = [("loss", training.out["loss"], [one["loss"] for one in steps]),
             ("lr", training.out["lr"], [one["lr"] for one in steps]),
             ("eval", [one["loss"] for one in training.out["evaluations"]],
              [one["metrics/eval/loss"] for one in evaluations])]
    for name, mine, theirs in pairs:
        if len(mine) != len(theirs):
            found[name] = f"{len(theirs)} values, not {len(mine)}"
        else:
            found[name] = max(map(difference, mine, theirs), default=0.0)
    return found


def compare(tutti, path, by_mpirun):
    recipe, ranks = read(path)
    training = Training(recipe, ranks)
    torch.save(training.model.state_dict(), path.with_suffix(".pt"))
    run = Run(tutti, path, ranks, by_mpirun)
    try:
        training.train()
    finally:
        records = run.records()
    if records is None:
        return {"refused": run.errors.strip()}
    return differences(training, records)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutti")
    parser.add_argument("--seeds", default="1..500")
    parser.add_argument("--mpirun-every", type=int, default=0)
    parser.add_argument("--keep")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    first, last = map(int, given.seeds.split(".."))
    folder = pathlib.Path(given.keep or tempfile.mkdtemp())
    draw(given.tutti, first, last, folder)
    for seed in range(first, last + 1):
        by_mpirun = given.mpirun_every and seed % given.mpirun_every == 0
        try:
            found = compare(given.tutti, folder / f"{seed}.toml", by_mpirun)
        except Skip as skip:
            found = {"skipped": str(skip)}
        except Exception:
            found = {"failed": traceback.format_exc()}
        print(seed, found, flush=True)
    if not given.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
