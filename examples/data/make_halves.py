"""Writes halves_net.pt2: a network that finds which left half of a digit belongs to which right half.

Run: python make_halves.py   (torch; writes beside this file)
"""
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F


class HalvesNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, width))
        self.right = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, width))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, images):
        left, right = images[..., :4].flatten(1), images[..., 4:].flatten(1)
        left, right = F.normalize(self.left(left), dim=1), F.normalize(self.right(right), dim=1)
        scores = self.scale.exp() * left @ right.T
        itself = torch.arange(scores.shape[0], device=scores.device)
        loss = (F.cross_entropy(scores, itself) + F.cross_entropy(scores.T, itself)) / 2
        return {"loss": loss, "left": left, "right": right}


def main():
    torch.manual_seed(0)
    batch = torch.export.Dim("batch")
    images = torch.zeros(2, 1, 8, 8)
    program = torch.export.export(HalvesNet().train(), (images,), dynamic_shapes=({0: batch},))
    torch.export.save(program, pathlib.Path(__file__).parent / "halves_net.pt2")


if __name__ == "__main__":
    main()
