"""Writes digits_net.pt2: a small network of Python's, as a program that tutti trains.

Run: python make_exported.py   (torch; writes beside this file)
"""
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.scale = nn.Parameter(torch.full((width, 1, 1), 0.5))

    def forward(self, x):
        return x + self.scale * self.conv(F.gelu(self.norm(x)))


class DigitsNet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.blocks(self.stem(images))
        return self.head(self.drop(x.amax((2, 3))))


def main():
    torch.manual_seed(0)
    model, images = DigitsNet().train(), torch.zeros(2, 1, 8, 8)
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (images,), dynamic_shapes=({0: batch},))
    torch.export.save(program, pathlib.Path(__file__).parent / "digits_net.pt2")


if __name__ == "__main__":
    main()
