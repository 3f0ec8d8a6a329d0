"""Computes sequential.h5: outputs and gradients of lists of layers in PyTorch, by parameter name.

Run: python make_sequential.py   (torch, numpy, h5py; writes beside this file)
"""
import pathlib

import h5py
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Residual(nn.Module):
    def __init__(self, main, shortcut=None):
        super().__init__()
        self.main = main
        self.shortcut = shortcut

    def forward(self, x):
        return self.main(x) + (self.shortcut(x) if self.shortcut else x)


class Concat(nn.ModuleList):
    def __init__(self, *branches, dim=1):
        super().__init__(branches)
        self.dim = dim

    def forward(self, x):
        return torch.cat([branch(x) for branch in self], self.dim)


class Select(nn.Module):
    def __init__(self, dim, index):
        super().__init__()
        self.place = dim, index

    def forward(self, x):
        return x.select(*self.place)


class LSTM(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


class GRU(nn.GRU):
    def forward(self, x):
        return super().forward(x)[0]


# Composer's own networks for MNIST: composer.models.MNIST_Classifier, and the one of its tests.
MNIST = ["Conv2d(1, 4, (3, 3), padding=0)", "BatchNorm2d(4)", "ReLU()", "Conv2d(4, 4, (3, 3), padding=0)",
         "ReLU()", "AdaptiveAvgPool2d((4, 4))", "Flatten()", "Linear(4*4*4, 8)", "ReLU()", "Linear(8, 5)"]
CASES = {
    "mnist": (MNIST, (3, 1, 9, 9)),
    "product": (["Flatten()", "Linear(3*3, 2*4)", "Softmax(dim=1)", "Linear(8, 5)"], (4, 1, 3, 3)),
    "unet": (["Conv2d(2, 4, 3, padding=1)", "GroupNorm(2, 4)",
              "Concat(Identity(), Sequential(MaxPool2d(2), Conv2d(4, 6, 3, padding=1), SiLU(),"
              " ConvTranspose2d(6, 3, 3, stride=2, padding=1, output_padding=1)))",
              "Conv2d(7, 5, 1)"], (2, 2, 6, 8)),
    "upsample": (["Upsample(scale_factor=2)", "Upsample(size=(9, 7), mode='bilinear')",
                  "Upsample(scale_factor=(1.5, 2), mode='bicubic', align_corners=True)",
                  "ConvTranspose2d(2, 4, (2, 3), groups=2, dilation=2, bias=False)"], (2, 2, 3, 4)),
    "residual": (["Linear(6, 8)", "Residual(RMSNorm(8), Linear(8, 8), Tanh())", "RMSNorm(8, eps=0.01)",
                  "Residual(Linear(8, 5), shortcut=Linear(8, 5, bias=False))"], (4, 6)),
    "lstm": (["Embedding(11, 6, padding_idx=0)",
              "LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)", "Select(1, -1)",
              "Linear(10, 5)"], (3, 7)),
    "gru": (["Embedding(11, 6)", "GRU(6, 4, 2, batch_first=True)",
             "LSTM(4, 3, bias=False, batch_first=True)"], (3, 7)),
}
MODULES = {name: getattr(nn, name) for name in
           ["Conv2d", "BatchNorm2d", "ReLU", "AdaptiveAvgPool2d", "Flatten", "Linear", "Softmax", "GroupNorm",
            "Identity", "Sequential", "MaxPool2d", "SiLU", "ConvTranspose2d", "Upsample", "RMSNorm", "Tanh",
            "Embedding"]}
MODULES |= dict(Residual=Residual, Concat=Concat, Select=Select, LSTM=LSTM, GRU=GRU)


def module(text):
    if text.startswith("Residual("):  # its layers are a sequence where there are several
        given = dict(MODULES, given=lambda *layers, **named: (layers, named))
        layers, named = eval(text.replace("Residual(", "given(", 1), given)
        return Residual(layers[0] if len(layers) == 1 else nn.Sequential(*layers), **named)
    return eval(text, dict(MODULES))


with h5py.File(pathlib.Path(__file__).parent / "sequential.h5", "w") as f:
    for title, (layers, shape) in CASES.items():
        model = nn.Sequential(*map(module, layers))
        tokens = layers[0].startswith("Embedding")
        x = torch.randint(0, 11, shape) if tokens else torch.randn(shape)
        for p in model.parameters():
            if p.dim() == 1:
                p.data.add_(0.2 * torch.randn_like(p))
        group = f.create_group(f"case_{len(f)}")
        group.attrs.update(title=title, layers=";".join(layers), rtol=1e-4, atol=1e-6)
        for name, value in model.state_dict().items():
            group[f"in/weights/{name}"] = value.numpy()
        outputs = model(x)
        weights = torch.randn(outputs.shape)
        (outputs * weights).sum().backward()
        group["in/input"], group["in/output_grad"] = x.numpy(), weights.numpy()
        group["out/outputs"] = outputs.detach().numpy()
        for name, p in model.named_parameters():
            group[f"out/grads/{name}"] = p.grad.numpy()
