#!/usr/bin/env python3
"""Measures training on an HDF5 file by how the file is stored: gzip, in chunks of several sizes, beside the
same arrays stored contiguously.

The model costs next to nothing, so that a step takes what its data take. All files are run in turn, so many
times as --turns says. Prints for each, as a part of the contiguous file's samples a second (the median of
turns, and the lowest and highest): the first epoch, later ones, and those where nothing fits in cache_mb.
Needs h5py: run it by the Python beside libtorch.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).resolve().parent
EPOCHS = 4
BATCH = 64
WARMUP = 10  # steps
RECIPE = """
seed = 1
[model]
kind = "mlp"
hidden = []
[data.train]
kind = "hdf5"
path = "contiguous.h5"
batch_size = 64
shuffle = true
[[data.train.transforms]]
kind = "to_tensor"
[optimizer]
kind = "sgd"
lr = 0.001
[train]
max_duration = "1ep"
[journal]
level = "off"
"""


def storages(samples):
    """Arguments of h5py's create_dataset by the name of what they make."""
    sizes = {"1 sample": 1, "64 samples": 64, "1000 samples": 1000, "the whole array": samples}
    return {"contiguous": {},
            **{f"gzip, chunks of {name}": {"chunks": (size, 32, 32, 3), "compression": "gzip"}
               for name, size in sizes.items()},
            "gzip and shuffle, h5py's own chunks": {"compression": "gzip", "shuffle": True}}


def file_of(name, folder):
    return folder / (name.replace(" ", "_") + ".h5")


def write_files(samples, folder):
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 10, samples)
    images = (20 * labels[:, None, None, None] + draw.integers(0, 40, (samples, 32, 32, 3))).astype("uint8")
    for name, storage in storages(samples).items():
        with h5py.File(file_of(name, folder), "w") as file:
            file.create_dataset("input", data=images, **storage)
            file["target"] = labels


def step_ms(tutti, recipe, run, settings):
    command = [tutti, "train", recipe, "--run-dir", run]
    for setting in settings:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [json.loads(line)["step_ms"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def means(args, folder, name, turn):
    """Milliseconds of a step in the first epoch, in later ones, and in the first with a scarce cache."""
    def took(kind, duration, *settings):
        path = f"data.train.path={file_of(name, folder)}"
        return step_ms(args.tutti.resolve(), folder / "recipe.toml", folder / f"{kind}-{name}-{turn}",
                       [path, f"train.max_duration={duration}", *settings])
    ample, scarce = took("ample", f"{EPOCHS}ep"), took("scarce", f"{2 * WARMUP}ba", *args.scarce)
    steps = args.samples // BATCH
    return [statistics.mean(part) for part in (ample[WARMUP:steps], ample[steps:], scarce[WARMUP:])]


def spread(parts):
    return f"{statistics.median(parts):.2f} ({min(parts):.2f} to {max(parts):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--scarce", nargs="*", default=["data.train.cache_mb=0"],
                        help="settings of the last column")
    args = parser.parse_args()
    if not args.tutti.exists():
        sys.exit(f"{args.tutti} is not there: make build")
    parts = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_files(args.samples, folder)
        (folder / "recipe.toml").write_text(RECIPE)
        for turn in range(args.turns):
            contiguous = None
            for name in storages(args.samples):
                took = means(args, folder, name, turn)
                contiguous = contiguous or (*took[:2], took[1])
                parts.setdefault(name, []).append([whole / part for whole, part in zip(contiguous, took)])
    for name, turns in parts.items():
        print(f"| {name} | " + " | ".join(spread(column) for column in zip(*turns)) + " |")


if __name__ == "__main__":
    main()
