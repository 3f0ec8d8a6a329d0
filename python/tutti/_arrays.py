"""Arrays on their way to the program and back: .npy files, safetensors, a module's weights."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tutti._program import RecipeError

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]


def array(values: Any, name: str) -> Array:
    """A tensor, array or list as the program reads it: contiguous numbers in the machine's byte order.

    Raises RecipeError for other values than numbers.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()  # which numpy does not have
        values = values.numpy()
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biuf":
        raise RecipeError(f"data: {name} has the dtype {numbers.dtype}; expected numbers")
    return np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))


def inputs(x: Any, names: Sequence[str] | None) -> dict[str, Array]:
    """The arrays of a module's inputs: "input", or of a tuple by `names`, or of a dict by its keys."""
    if isinstance(x, Mapping):
        return {str(name): array(values, str(name)) for name, values in x.items()}
    if not isinstance(x, tuple):
        return {"input": array(x, "input")}
    if names is None or len(names) < len(x):
        raise RecipeError(f"data: {len(x)} inputs, and the module has {len(names or [])}; or give a dict")
    return {name: array(values, name) for name, values in zip(names, x)}


def write(folder: pathlib.Path, stem: str, arrays: Mapping[str, Array]) -> pathlib.Path:
    """Writes NAME.npy for each array into a folder named by their content; returns that folder.

    Equal arrays are written once, so that a resumed or replayed run finds its own.
    """
    digest = hashlib.blake2b(digest_size=8)
    for name, values in arrays.items():
        digest.update(f"{name} {values.dtype.str} {values.shape} ".encode())
        digest.update(values.data)
    path = folder / f"{stem}-{digest.hexdigest()}"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:
            (part := pathlib.Path(unfinished) / "arrays").mkdir()
            for name, values in arrays.items():
                np.save(part / f"{name}.npy", values, allow_pickle=False)
            os.rename(part, path)
    return path


def read_safetensors(file: pathlib.Path) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, by name."""
    import torch

    dtypes = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
              "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
              "U8": torch.uint8, "BOOL": torch.bool}
    content = bytearray(file.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name == "__metadata__":
            continue
        first, last = (begin + offset for offset in entry["data_offsets"])
        dtype = dtypes[entry["dtype"]]
        is_empty = first == last  # which frombuffer refuses
        flat = torch.empty(0, dtype=dtype) if is_empty else torch.frombuffer(content[first:last], dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def copy_into(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Copies weights into the module's parameters and buffers of the same names.

    Raises ValueError, and copies nothing, if a weight has no place or another shape, or a parameter has no
    weight.
    """
    import torch

    places: dict[str, torch.Tensor] = {}
    places |= module.named_parameters(remove_duplicate=False)
    given = {id(places[name]) for name in weights if name in places}  # tied parameters have one weight
    wrong = [name for name, parameter in places.items() if id(parameter) not in given]
    places |= module.named_buffers(remove_duplicate=False)
    wrong += [name for name, weight in weights.items()
              if name not in places or places[name].shape != weight.shape]
    if wrong:
        raise ValueError("the run's weights are not the module's: " + ", ".join(wrong))
    with torch.no_grad():
        for name, weight in weights.items():
            places[name].copy_(weight)
