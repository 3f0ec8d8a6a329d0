"""A module of PyTorch as a program of torch.export, which the program tutti trains."""
from __future__ import annotations

import copy
import hashlib
import inspect
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

_IMAGE_KEYS = ("layout", "scale", "mean", "std", "transforms")  # of [data.train]: bytes become float32 NCHW
_MOST_PLANES = 4
_INNER = "_tutti_inner"
_EXPORTING = threading.Lock()  # torch.export has global state


def arguments(module: torch.nn.Module) -> list[str]:
    """The names of the arguments of the module's forward."""
    return list(inspect.signature(module.forward).parameters)


def are_names(module: torch.nn.Module, inputs: Sequence[str]) -> bool:
    """True if forward must be called with the inputs by name: they are not its first arguments, in order."""
    return list(inputs) not in (["input"], arguments(module)[:len(inputs)])


def with_loss(module: torch.nn.Module, loss: Callable[..., torch.Tensor],
              inputs: Sequence[str]) -> torch.nn.Module:
    """The module, with the same parameters by the same names, whose arguments are the inputs and the target.

    Its outputs are `loss`, of the module's output and the target, and `prediction`, that output ("logits" of
    several). Raises TypeError if the loss has parameters.
    """
    if isinstance(loss, torch.nn.Module):
        if list(loss.parameters()):
            raise TypeError("the loss has parameters, which are trained only as a part of the module")
        loss = copy.deepcopy(loss).cpu()
    by_name = are_names(module, inputs)

    def forward(self: torch.nn.Module, *given: torch.Tensor) -> dict[str, torch.Tensor]:
        *rows, target = given
        (inner,) = self.__dict__[_INNER]
        before, inner.training = inner.training, self.training
        try:
            output = inner(**dict(zip(inputs, rows))) if by_name else inner(*rows)
        finally:
            inner.training = before
        scores = output if isinstance(output, torch.Tensor) else output["logits"]
        return {"loss": loss(scores, target), "prediction": scores}

    joined = copy.copy(module)  # has the same parameters and submodules
    joined.__class__ = type(type(module).__name__, (type(module),), {"forward": forward})
    joined.__dict__.pop("forward", None)  # hooks and a patched forward are the inner module's
    for name, value in list(vars(joined).items()):
        if name.startswith(("_forward_", "_backward_")) and isinstance(value, dict):
            joined.__dict__[name] = type(value)()
    joined.__dict__[_INNER] = [module]  # a list, so that it is no submodule
    return joined


def samples(values: npt.NDArray[Any], name: str, section: Mapping[str, Any]) -> torch.Tensor:
    """Two samples of an array as the module gets them: docs/data.md, Dtypes."""
    rows = torch.from_numpy(np.resize(values[:2], (2, *values.shape[1:])))
    if rows.dtype == torch.uint8 and name == "input" and any(key in section for key in _IMAGE_KEYS):
        are_planes = rows.ndim == 4 and rows.shape[1] <= _MOST_PLANES < rows.shape[3]
        is_last = section.get("layout", "NCHW" if are_planes else "NHWC") == "NHWC"
        return (rows.movedim(-1, 1) if is_last else rows).float()
    if rows.dtype.is_floating_point:
        is_last = name == "input" and section.get("layout") == "NHWC"
        return (rows.movedim(-1, 1) if is_last else rows).float()
    return rows if rows.dtype in (torch.uint8, torch.bool) and name != "target" else rows.long()


def save(folder: pathlib.Path, module: torch.nn.Module, inputs: Sequence[str],
         example: Sequence[torch.Tensor]) -> pathlib.Path:
    """Exports the module for any number of samples to a file, which is named by its content.

    A module in evaluation is exported in training; parts of a module in training stay as they are. Raises
    the exceptions of torch.export, with a note.
    """
    if any(tensor.device.type != "cpu" for tensor in [*module.parameters(), *module.buffers()]):
        module = copy.deepcopy(module).cpu()
    modes = {part: part.training for part in module.modules()}
    try:
        if not module.training:
            module.train()
        with _EXPORTING:
            program = _exported(module, inputs, example)
    except Exception as error:
        dtypes = {parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()}
        if dtypes - {torch.float32}:
            error.add_note(f"the module has parameters of {dtypes}; data are float32: see module.float()")
        error.add_note("while torch.export read the module; docs/your_model.md: What cannot be")
        raise
    finally:
        for part, training in modes.items():
            part.training = training
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        file = pathlib.Path(unfinished) / "model.pt2"
        torch.export.save(program, file)
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
        path = folder / f"model-{digest}.pt2"
        os.replace(file, path)
    return path


def _exported(module: torch.nn.Module, inputs: Sequence[str],
              example: Sequence[torch.Tensor]) -> torch.export.ExportedProgram:
    free = {0: torch.export.Dim.DYNAMIC}
    takes_any = [one.kind for one in inspect.signature(module.forward).parameters.values()][:1] == [
        inspect.Parameter.VAR_POSITIONAL]
    if not takes_any and are_names(module, inputs):
        return torch.export.export(module, (), dict(zip(inputs, example)),
                                   dynamic_shapes={name: free for name in inputs})
    shapes = tuple(free for _ in example)
    return torch.export.export(module, tuple(example), dynamic_shapes=(shapes,) if takes_any else shapes)
