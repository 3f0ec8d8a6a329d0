#!/usr/bin/env python3
"""Compares tutti's loading of a folder of JPEGs with PyTorch's: torchvision's ImageFolder and DataLoader.

Both decode the same files of about 500 x 375 pixels, take a random_resized_crop of 224 x 224, flip it, and
make normalized float32 of it, in batches of 64, with as many threads as the other has worker processes.
They take turns; prints samples a second of each (the median of turns), and the median, lowest and highest
ratio. Run it on an idle machine, by a Python that has torchvision: tests/clients.sh makes one.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms

HERE = Path(__file__).resolve().parent
TARGET = 2.0
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=HERE.parent / "build/bench/loader_bench")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    parser.add_argument("--folder", type=Path, help="an image folder to use instead of one that is made")
    return parser.parse_args()


def photo(draw):
    """Gradients, shapes of some colors, and noise."""
    height, width = int(draw.integers(330, 420)), int(draw.integers(440, 560))
    y, x = np.mgrid[0:height, 0:width]
    planes = [draw.uniform(-0.3, 0.3) * x + draw.uniform(-0.3, 0.3) * y + draw.uniform(40, 200)
              for _ in range(3)]
    image = np.stack(planes, -1)
    for _ in range(12):
        top, left = draw.integers(0, height), draw.integers(0, width)
        radius = draw.integers(10, 90)
        image[(y - top)**2 + (x - left)**2 < radius**2] = draw.uniform(0, 255, 3)
    return Image.fromarray((image + draw.normal(0, 6, image.shape)).clip(0, 255).astype(np.uint8))


def write_images(folder, count):
    draw = np.random.default_rng(0)
    for i in range(count):
        path = folder / f"class{i % 10}" / f"{i:05}.jpg"
        path.parent.mkdir(exist_ok=True)
        photo(draw).save(path, quality=90)


def pytorchs_pace(folder, workers):
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, steps), batch_size=64, shuffle=True,
                                         drop_last=True, num_workers=workers, persistent_workers=True)
    for _ in loader:  # starts the workers
        pass
    begin, samples = time.perf_counter(), 0
    for images, _ in loader:
        samples += len(images)
    return samples / (time.perf_counter() - begin)


def tuttis_pace(bench, benchmark, workers, **folders):
    """Samples a second of a benchmark of loader_bench; `folders`: variables that name what it reads."""
    command = [bench, f"--benchmark_filter={benchmark}/workers:{workers}/", "--benchmark_format=json"]
    done = subprocess.run(command, env={**os.environ, **folders}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["benchmarks"][0]["items_per_second"]


def report(title, turns):
    """Prints samples a second of pairs of turns, tutti's and the other's."""
    own, peer = (statistics.median(column) for column in zip(*turns))
    ratios = [tutti / other for tutti, other in turns]
    missed = " below the aim" if statistics.median(ratios) < TARGET else ""
    print(f"{title}: {own:7.0f} {peer:7.0f} samples/s   {statistics.median(ratios):5.2f} "
          f"({min(ratios):.2f} - {max(ratios):.2f}){missed}", flush=True)


def compare(args, folder):
    for workers in args.workers:
        turns = [(tuttis_pace(args.bench, "files_decoded", workers, TUTTI_BENCH_IMAGES=str(folder)),
                  pytorchs_pace(folder, workers)) for _ in range(args.turns)]
        report(f"{workers} workers", turns)


def main():
    args = arguments()
    if args.folder:
        return compare(args, args.folder)
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder), args.images)
        compare(args, folder)


if __name__ == "__main__":
    main()
