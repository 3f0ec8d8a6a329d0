"""Computes scripts.h5, and scripts/*.pt: files of torch.jit.save, what they give in evaluation and in
training, gradients and buffers by name.

Run: python make_scripts.py [--to FOLDER]   (torch, numpy, h5py)
"""
import argparse
import enum
import pathlib
import zipfile
from typing import Dict, List, Optional

import h5py
import torch
import torch.nn as nn
import torch.nn.functional as F

from make_exported import ConvNet, Drops, Language, Modes, Shared, shake, write_numbers


class Cell(nn.Module):
    """Is called several times, and has a second method."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width, bias=False)

    def halved(self, x: torch.Tensor, times: int = 1) -> torch.Tensor:
        return x * 0.5**times

    def forward(self, x: torch.Tensor, state: Optional[torch.Tensor], steps: int):
        y = torch.tanh(self.inner(x))
        if state is not None:
            y = y + self.outer(state)
        return y, self.halved(y, steps)


class ControlFlow(nn.Module):
    """Loops, branches on numbers, lists, dicts, tuples with None and integers between modules."""

    def __init__(self, width=6):
        super().__init__()
        self.cell = Cell(width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU()) for _ in range(3))
        self.frozen = nn.Linear(width, width)
        self.frozen.requires_grad_(False)
        self.drop = nn.Dropout(0.0)
        self.average = nn.BatchNorm1d(width, momentum=None, affine=False)
        self.head = nn.Linear(width, 5)
        self.register_buffer("scale", torch.full((width,), 1.5))
        self.offset = torch.linspace(-1, 1, width)

    def forward(self, x: torch.Tensor, mask: Optional[torch.Tensor] = None) -> Dict[str, torch.Tensor]:
        state: Optional[torch.Tensor] = None
        seen: List[torch.Tensor] = []
        for step in range(x.size(1)):
            y, state = self.cell(x[:, step], state, step % 2)
            if bool(y.sum() > 1e6):
                break
            seen.append(y)
        y = torch.stack(seen, 1).mean(1) * self.scale + self.offset
        for i, block in enumerate(self.blocks):
            if i == 1 and self.training:
                y = y + 0.25 * block(y)
            else:
                y = block(y)
        with torch.no_grad():
            size = y.abs().amax() + 1.0
        while bool(y.detach().abs().max() > 2.0):
            y = y / size
        if mask is not None:
            y = y * mask
        y = self.average(self.drop(self.frozen(y) + y))
        return {"logits": self.head(y), "features": y}


class Recurrent(nn.Module):
    """Weights that a module has in a list too, and attention that returns no weights."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(7, 4)
        self.recurrent = nn.LSTM(4, 4, 2, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, ids: torch.Tensor):
        x = self.recurrent(self.tokens(ids))[0]
        return self.attention(x, x, x, need_weights=False)[0].mean(1)


class WritesBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor):
        self.seen.add_(1)
        return self.fc(x)


class WritesParameter(WritesBuffer):
    def forward(self, x: torch.Tensor):
        with torch.no_grad():
            self.fc.weight.clamp_(-0.1, 0.1)
        return self.fc(x)


class CallsNormTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor):
        return self.norm(torch.tanh(self.norm(x)))


class SetsAttribute(WritesBuffer):
    def forward(self, x: torch.Tensor):
        self.seen = self.seen + 1
        return self.fc(x)


class Forks(WritesBuffer):
    def forward(self, x: torch.Tensor):
        return torch.jit.wait(torch.jit.fork(self.fc, x))


class Returns(WritesBuffer):
    def forward(self, x: torch.Tensor, target: torch.Tensor):
        scores = self.fc(x)
        return scores, F.cross_entropy(scores, target)


class Axis(enum.Enum):
    ROWS = 0
    COLUMNS = 1


class HasNames(WritesBuffer):
    """An enumeration, a function with an argument `out`, and a text that is printed."""

    def __init__(self):
        super().__init__()
        self.axis = Axis.COLUMNS

    def forward(self, x: torch.Tensor):
        print("forward \033[31m")
        if self.axis == Axis.COLUMNS:
            x = F.normalize(x, dim=1)
        return self.fc(x)


def small_scripts():
    yield "drops", torch.jit.script(Drops())
    yield "writes_buffer", torch.jit.script(WritesBuffer())
    yield "writes_parameter", torch.jit.script(WritesParameter())
    yield "sets_attribute", torch.jit.script(SetsAttribute())
    yield "forks", torch.jit.script(Forks())
    yield "frozen", torch.jit.freeze(torch.jit.script(nn.Linear(4, 3)).eval())
    yield "own_loss", torch.jit.script(Returns())
    yield "calls_norm_twice", torch.jit.trace(CallsNormTwice().train(), torch.randn(4, 4), check_trace=False)
    yield "modes", torch.jit.trace(Modes().train(), torch.randn(4, 4), check_trace=False)
    yield "names", torch.jit.script(HasNames())


def models():
    image = (torch.randn(4, 3, 6, 6),)
    yield "control_flow", ControlFlow(), (torch.randn(4, 3, 6),), "logits", True, torch.jit.script
    traced = lambda model: torch.jit.trace(model, image, strict=False, check_trace=False)
    yield "traced", ConvNet(), image, "logits", True, traced
    yield "traced_in_evaluation", ConvNet(), image, "features", False, traced
    ids = torch.randint(0, 11, (4, 12))
    yield "language", Language(), (ids, torch.rand(4, 12) > 0.3), None, True, torch.jit.script
    yield "shared", Shared(), (torch.randn(4, 6),), None, True, torch.jit.script
    yield "recurrent", Recurrent(), (torch.randint(0, 7, (4, 5)),), None, True, torch.jit.script


def save(script, path):
    """Without the places of lines in Python files, which name folders of this machine."""
    torch.jit.save(script, path)
    with zipfile.ZipFile(path) as whole:
        records = [(one.filename, whole.read(one)) for one in whole.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for name, data in records:
            if not name.endswith(".debug_pkl"):
                file.writestr(zipfile.ZipInfo(name), data)


def add_case(file, folder, number, case):
    name, model, inputs, prediction, in_training, script = case
    shake(model)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    scripted = script(model.train(in_training))
    model.load_state_dict(state)  # a trace runs the model
    save(scripted, folder / f"{name}.pt")
    group = file.create_group(f"case_{number}")
    write_numbers(group, name, model, inputs, prediction)
    for path, buffer in model.named_buffers():
        group[f"out/buffers/{path}"] = buffer.float()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = args.to / "scripts"
    folder.mkdir(exist_ok=True, parents=True)
    with h5py.File(args.to / "scripts.h5", "w") as file:
        for number, case in enumerate(models()):
            print(case[0], flush=True)
            add_case(file, folder, number, case)
    for name, script in small_scripts():
        save(script, folder / f"{name}.pt")


if __name__ == "__main__":
    main()
