#!/usr/bin/env python3
"""Compares tutti's loading of MDS datasets with Streaming's StreamingDataset and PyTorch's DataLoader.

Two datasets: 2049 tokens a sample, int64 in a column of bytes; and JPEGs of about 500 x 375 pixels, of which
both take a random_resized_crop of 224 x 224, flip it, and make normalized float32 of it. Batches of 64,
shuffled, with as many threads as the other has worker processes. They take turns; prints samples a second of
each (the median of turns), and the median, lowest and highest ratio. Run it on an idle machine, by a Python
that has mosaicml-streaming and torchvision: tests/clients.sh makes one.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torchvision import transforms

import image_folder


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=image_folder.HERE.parent / "build/bench/loader_bench")
    parser.add_argument("--images", type=int, default=1500)
    parser.add_argument("--sequences", type=int, default=20000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", choices=(1, 2), default=[1, 2])
    return parser.parse_args()


def write_datasets(folder, args):
    draw = np.random.default_rng(0)
    with MDSWriter(out=str(folder / "tokens"), columns={"tokens": "bytes"}) as out:
        for _ in range(args.sequences):
            out.write({"tokens": draw.integers(0, 50000, 2049).astype(np.int64).tobytes()})
    with MDSWriter(out=str(folder / "images"), columns={"image": "jpeg", "label": "int"}) as out:
        for i in range(args.images):
            out.write({"image": image_folder.photo(draw), "label": i % 10})


class Images(StreamingDataset):
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                                transforms.ToTensor(),
                                transforms.Normalize(image_folder.MEAN, image_folder.STD)])

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return self.steps(sample["image"]), sample["label"]


class Tokens(StreamingDataset):
    def __getitem__(self, index):
        return torch.from_numpy(np.frombuffer(super().__getitem__(index)["tokens"], np.int64).copy())


def streamings_pace(kind, folder, workers):
    clean_stale_shared_memory()
    dataset = {"images": Images, "tokens": Tokens}[kind](local=str(folder), shuffle=True, batch_size=64)
    loader = torch.utils.data.DataLoader(dataset, batch_size=64, drop_last=True, num_workers=workers,
                                         persistent_workers=True)
    for _ in loader:  # starts the workers
        pass
    begin, batches = time.perf_counter(), 0
    for _ in loader:
        batches += 1
    return 64 * batches / (time.perf_counter() - begin)


def main():
    args = arguments()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        write_datasets(Path(folder), args)
        for kind in ("tokens", "images"):
            data = Path(folder) / kind
            for workers in args.workers:
                turns = [(image_folder.tuttis_pace(args.bench, f"mds_{kind}", workers,
                                                   TUTTI_BENCH_MDS=str(data)),
                          streamings_pace(kind, data, workers)) for _ in range(args.turns)]
                image_folder.report(f"{kind}, {workers} workers", turns)


if __name__ == "__main__":
    sys.exit(main())
