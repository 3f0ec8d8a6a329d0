"""A run's folder: its metrics, checkpoints, weights, predictions and report."""
from __future__ import annotations

import json
import os
import pathlib
import tempfile
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tutti import _arrays, _program

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]
_OF_A_STEP = ("step", "epoch")


class Metrics(dict[str, Array]):
    """Values by name, an array each in the order of the steps: `loss`, `lr`, `metrics/eval/loss`, ...

    `step` and `epoch` are those of the trained steps, which `loss` belongs to; `steps[name]` are the steps of
    any name's values. Names are those of metrics.jsonl (docs/running.md).
    """

    steps: dict[str, Array]

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        values: dict[str, list[float]] = {}
        steps: dict[str, list[int]] = {}
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # the last may be half written
        for number, text in enumerate(lines, 1):
            line = _json(text, f"{path}:{number}")
            for name, value in line.items():
                if name in _OF_A_STEP and "loss" not in line:
                    continue
                number_or_nan = np.nan if value is None else value
                values.setdefault(name, []).append(value if name in _OF_A_STEP else float(number_or_nan))
                steps.setdefault(name, []).append(line["step"])
        self.update({name: np.array(column) for name, column in values.items()})
        self.steps = {name: np.array(column) for name, column in steps.items()}


class Run:
    """A run's folder, finished or not; of a training in stages the newest stage.

    Everything is read when it is asked for, so that a run under way can be watched. Raises RecipeError if
    `path` is no run's folder or recipe.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(_status(path)["run_dir"]).absolute()

    def __repr__(self) -> str:
        status = _status(self.path)
        return f"Run({str(self.path)!r}): {status['state']}, step {status['step']}"

    @property
    def config(self) -> dict[str, Any]:
        """The recipe with all defaults, as a nested dict."""
        return tomllib.loads((self.path / "recipe.toml").read_text("utf-8"))

    @property
    def result(self) -> dict[str, Any] | None:
        """result.json (docs/running.md): how the run ended, its steps, last and best metrics; None before."""
        path = self.path / "result.json"
        return _json(path.read_bytes(), str(path)) if path.exists() else None

    @property
    def metrics(self) -> Metrics:
        """All numbers of metrics.jsonl as arrays."""
        return Metrics(self.path / "metrics.jsonl")

    @property
    def checkpoints(self) -> list[pathlib.Path]:
        """The folders of the checkpoints, the newest last."""
        status = _status(self.path)
        folder = pathlib.Path(status["checkpoints_folder"])
        return [folder / checkpoint["name"] for checkpoint in status["checkpoints"]]

    def digest(self, checkpoint: str | os.PathLike[str] | None = None) -> str:
        """One hash of all weights, the same for any number of ranks (`tutti inspect --digest`)."""
        return _program.ask("inspect", str(self.path), "--digest", *_of(checkpoint)).strip()

    def weights(self, checkpoint: str | os.PathLike[str] | None = None) -> dict[str, torch.Tensor]:
        """The weights that evaluations use, by name (`tutti export`).

        `checkpoint` is "best", "latest", a checkpoint's name or its beginning, or a path; by default the
        newest.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "weights.safetensors"
            _program.ask("export", str(self.path), "--to", str(file), *_of(checkpoint))
            return _arrays.read_safetensors(file)

    def load_into(self, module: torch.nn.Module, checkpoint: str | os.PathLike[str] | None = None) -> None:
        """Copies the weights into the module, on whichever device it is.

        Raises ValueError if the run has a weight that the module lacks, as after an algorithm that changes
        layers; then nothing is copied.
        """
        _arrays.copy_into(module, self.weights(checkpoint))

    def predict(self, data: Any = None, *, outputs: bool = False, top_k: int | None = None,
                evaluator: str | None = None,
                checkpoint: str | os.PathLike[str] | None = None) -> dict[str, Array]:
        """The run's model over data: columns by name, as `tutti predict` writes (docs/evaluation.md).

        `data`: nothing for the evaluator's own; a path to data of the evaluator's kind; or, of a run on
        arrays, x as in `train`. Columns are `class` and `score`, or values. `outputs=True` gives the model's
        outputs instead, unchanged (which needs h5py).
        """
        options = [*(["--top-k", str(top_k)] if top_k is not None else []),
                   *(["--evaluator", evaluator] if evaluator is not None else [])]
        with tempfile.TemporaryDirectory() as folder:
            if data is not None:
                options += ["--data", _path_of(data, pathlib.Path(folder), self.config)]
            file = pathlib.Path(folder) / ("outputs.h5" if outputs else "columns.jsonl")
            _program.ask("predict", str(self.path), "--out", str(file), *options, *_of(checkpoint))
            return _read_outputs(file) if outputs else _read_columns(file)

    def report(self, out: str | os.PathLike[str] | None = None) -> pathlib.Path:
        """Writes the run's page, report.html in its folder by default, and returns the path."""
        path = pathlib.Path(out) if out is not None else self.path / "report.html"
        _program.ask("report", str(self.path), "--out", str(path))
        return path


def _json(text: bytes, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
        if isinstance(value, dict):
            return value
    except ValueError as error:
        raise ValueError(f"{place}: damaged: {error}") from error
    raise ValueError(f"{place}: damaged: a {type(value).__name__}, not an object")


def _status(path: str | os.PathLike[str]) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(_program.ask("status", os.fspath(path), "--json"))
    return status


def _of(checkpoint: str | os.PathLike[str] | None) -> list[str]:
    return ["--checkpoint", os.fspath(checkpoint)] if checkpoint is not None else []


def _path_of(data: Any, folder: pathlib.Path, config: Mapping[str, Any]) -> str:
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    names, train = config["model"].get("inputs") or ["input"], config["data"]["train"]
    arrays = _arrays.inputs(data, names)
    if "loss_output" in config["model"] and len(arrays) == len(names) - 1 and train["kind"] == "numpy":
        target = np.load(f"{train['path']}/{names[-1]}.npy", mmap_mode="r")  # of the loss, which is not used
        arrays[names[-1]] = np.zeros((len(next(iter(arrays.values()))), *target.shape[1:]), target.dtype)
    return str(_arrays.write(folder, "data", arrays))


def _read_columns(file: pathlib.Path) -> dict[str, Array]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    return {name: np.array([np.nan if value is None else value for value in column])
            for name, column in columns.items()}


def _read_outputs(file: pathlib.Path) -> dict[str, Array]:
    import h5py  # type: ignore[import-untyped]  # a large library, which nothing else here needs

    outputs: dict[str, Array] = {}
    with h5py.File(file) as content:
        content.visititems(lambda name, item: outputs.__setitem__(name, item[:])
                           if isinstance(item, h5py.Dataset) else None)
    return outputs
