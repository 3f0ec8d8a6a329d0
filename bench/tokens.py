"""Compares tutti's loading of a file of tokens with PyTorch's DataLoader over numpy.memmap, as nanoGPT's.

Samples of 1,024 uint16 tokens, which become int64 with their targets, shuffled, in batches of 64, with
as many threads as the other has worker processes. They take turns; prints samples a second of each (the
median of turns), and the median, lowest and highest ratio. Run it on an idle machine.
"""
import argparse
import pathlib
import tempfile
import time

import image_folder
import numpy as np
import torch

LENGTH = 1024
TARGET = 10


class Tokens(torch.utils.data.Dataset):
    def __init__(self, path):
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")

    def __len__(self):
        return (len(self.tokens) - 1) // LENGTH

    def __getitem__(self, i):
        piece = torch.from_numpy(self.tokens[i * LENGTH:(i + 1) * LENGTH + 1].astype(np.int64))
        return piece[:-1], piece[1:]


def pytorchs_pace(path, workers):
    loader = torch.utils.data.DataLoader(Tokens(path), batch_size=64, shuffle=True, drop_last=True,
                                         num_workers=workers, persistent_workers=True)
    for _ in loader:  # starts the workers
        pass
    begin = time.perf_counter()
    samples = sum(len(inputs) for inputs, _ in loader)
    return samples / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=pathlib.Path,
                        default=image_folder.HERE.parent / "build/bench/loader_bench")
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    image_folder.TARGET = TARGET
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokens.bin"
        tokens = np.random.default_rng(1).integers(0, 50_257, args.samples * LENGTH + 1, dtype=np.uint16)
        tokens.tofile(path)
        for workers in (1, 2):
            turns = [(image_folder.tuttis_pace(args.bench, "token_file", workers,
                                               TUTTI_BENCH_TOKENS=str(path)),
                      pytorchs_pace(path, workers)) for _ in range(args.turns)]
            image_folder.report(f"{workers} workers", turns)


if __name__ == "__main__":
    main()
