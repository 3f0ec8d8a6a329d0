"""Writes pairs.h5 and pairs_net.pt2: pairs of the digits in digits.h5, and a network of Python's that takes
both images and returns two predictions.

Run: python make_pairs.py   (torch, h5py; writes beside this file)
"""
import pathlib

import h5py
import numpy as np
import torch
import torch.nn as nn

HERE = pathlib.Path(__file__).parent
PAIRS = {"train": 1500, "test": 200}
SHUFFLE_SEED = 1991


class PairsNet(nn.Module):
    """One encoder for both images; which digit is larger, and by how much."""

    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.GELU(), nn.Linear(width, width))
        self.body = nn.Sequential(nn.GELU(), nn.Linear(2 * width, width), nn.GELU())
        self.larger = nn.Linear(width, 3)
        self.difference = nn.Linear(width, 1)

    def forward(self, left, right):
        x = self.body(torch.cat([self.encoder(left), self.encoder(right)], 1))
        return {"larger": self.larger(x), "difference": self.difference(x).squeeze(1)}


def write_pairs(file, digits, part, random):
    images, numbers = digits[f"{part}/input"][:], digits[f"{part}/target"][:]
    left, right = random.randint(0, len(numbers), (2, PAIRS[part]))
    difference = numbers[left] - numbers[right]
    arrays = {"left": images[left], "right": images[right],
              "larger": np.sign(difference) + 1,  # 0: the right one, 1: they are equal, 2: the left one
              "difference": (difference / 10).astype("f4")}
    for name, values in arrays.items():
        file.create_dataset(f"{part}/{name}", data=values, track_times=False, compression="gzip",
                            shuffle=True)


def main():
    random = np.random.RandomState(SHUFFLE_SEED)
    with h5py.File(HERE / "digits.h5") as digits, h5py.File(HERE / "pairs.h5", "w") as file:
        for part in PAIRS:
            write_pairs(file, digits, part, random)
    torch.manual_seed(0)
    model = PairsNet().train()
    images = torch.zeros(2, 1, 8, 8), torch.zeros(2, 1, 8, 8)  # one tensor for both would make them one input
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, images, dynamic_shapes=({0: batch}, {0: batch}))
    torch.export.save(program, HERE / "pairs_net.pt2")


if __name__ == "__main__":
    main()
