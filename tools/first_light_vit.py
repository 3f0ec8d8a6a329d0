"""Writes a small vision transformer for images [batch, 1, 8, 8] as a program of torch.export:
first_light_vit.py FILE. As torchvision's: patches by a convolution, a class token, nn.MultiheadAttention."""

import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1),
                                 nn.Linear(2 * width, width))

    def forward(self, x):
        normal = self.norm1(x)
        x = x + self.attention(normal, normal, normal, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, width=48, heads=3, depth=2, patch=2, size=8, classes=10):
        super().__init__()
        tokens = (size // patch)**2 + 1
        self.patches = nn.Conv2d(1, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.positions(torch.arange(x.shape[1], device=x.device))  # the program names a device
        return self.head(self.norm(self.blocks(x))[:, 0])


def main():
    torch.manual_seed(0)
    model, batch = VisionTransformer().train(), torch.export.Dim("batch")
    program = torch.export.export(model, (torch.zeros(2, 1, 8, 8),), dynamic_shapes=({0: batch},))
    torch.export.save(program, sys.argv[1])


if __name__ == "__main__":
    main()
