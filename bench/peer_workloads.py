"""The models of compare.py and gpu.py, as PyTorch users write them."""

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F


def shortcut(inputs, outputs, stride):
    """Of a block: a projection where the shape changes."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class BasicBlock(nn.Module):
    """He et al., 2015."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = shortcut(inputs, outputs, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


def resnet20(classes=10):
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for width, first_stride in ((16, 1), (32, 2), (64, 2)):
        for stride in (first_stride, 1, 1):
            layers.append(BasicBlock(inputs, width, stride))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


class Bottleneck(nn.Module):
    """He et al., 2015, strided at the 3x3 convolution as in torchvision."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = shortcut(inputs, outputs, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x))


def resnet50(classes=1000):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, 2 if block == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        y = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4), is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2's blocks, learned positions, the output tied to the token embedding."""

    def __init__(self, vocabulary=256, positions=256, width=256, layers=4, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return self.norm(h) @ self.tokens.weight.t()


def mlp(*widths):
    layers = []
    for inputs, outputs in zip(widths[:-1], widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, **options)


def adamw(parameters, **options):
    return torch.optim.AdamW(parameters, lr=3e-4, **options)


@dataclass
class Workload:
    model: Callable[[], nn.Module]
    batch: int  # samples a rank and step
    shape: tuple[int, ...]  # of a sample
    classes: int
    optimizer: Callable
    is_text: bool = False  # tokens in, a target for each
    sharded: tuple[type, ...] = (nn.Linear, BasicBlock, GptBlock)  # what fully_shard gathers together

    def data(self, samples):
        """Inputs and targets of an epoch."""
        if self.is_text:
            size = (samples, *self.shape)
            return torch.randint(0, self.classes, size), torch.randint(0, self.classes, size)
        return torch.randn(samples, *self.shape), torch.randint(0, self.classes, (samples,))

    def loss(self, outputs, targets):
        return F.cross_entropy(outputs.reshape(-1, self.classes), targets.reshape(-1))


WORKLOADS = {
    "digits_mlp": Workload(lambda: mlp(64, 128, 64, 10), 64, (64,), 10, sgd),
    "resnet20": Workload(resnet20, 64, (3, 32, 32), 10, sgd, sharded=(BasicBlock,)),
    "gpt_tiny": Workload(Gpt, 8, (256,), 256, adamw, is_text=True, sharded=(GptBlock,)),
    "wide_mlp": Workload(lambda: mlp(784, 4096, 4096, 10), 32, (784,), 10, sgd),
    "resnet50": Workload(resnet50, 256, (3, 224, 224), 1000, sgd, sharded=(Bottleneck,)),
    "gpt2_124m": Workload(lambda: Gpt(50304, 1024, 768, 12, 12), 32, (1024,), 50304, adamw, is_text=True,
                          sharded=(GptBlock,)),
    "gpt_1b3": Workload(lambda: Gpt(50304, 2048, 2048, 24, 16), 4, (2048,), 50304, adamw, is_text=True,
                        sharded=(GptBlock,)),
}
