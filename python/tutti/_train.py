"""Training: a recipe, with a module and data of Python where given, in a child process."""
from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tutti import _arrays, _program, _recipe
from tutti._run import Run

if TYPE_CHECKING:
    import torch

    Loss = Callable[..., torch.Tensor]

_FOLDER = "python"  # in the run's folder: the recipe, the module's program and the data
_PROGRESS = re.compile(r"epoch \S+  step \S+  \d+%")


def train(recipe: str | os.PathLike[str] | Mapping[str, Any], *, model: torch.nn.Module | None = None,
          loss: str | Mapping[str, Any] | Loss | None = None, data: tuple[Any, Any] | None = None,
          eval_data: tuple[Any, Any] | None = None, example: Any = None,
          run_dir: str | os.PathLike[str] | None = None, ranks: int = 1, resume: bool = False,
          settings: Mapping[str, Any] | None = None, progress: bool = True) -> Run:
    """Trains by a recipe in a child process, and returns the run.

    recipe     a TOML file, or the same as a nested dict, whose relative paths begin in the current folder
    model      a module in place of the recipe's [model]: torch.export exports the module, which gets the
               trained weights at the end
    loss       a name of [model] loss, its table, or a module or function of (output, target), which gives the
               mean over the samples, or a number for each
    data       (x, y) in place of the recipe's [data.train]: arrays or tensors whose first dimension is the
               samples. x may be a tuple or dict of the module's inputs; y a dict of targets, or None
    eval_data  the same for [data.eval]
    example    two samples, a tensor or a tuple, to export the module with; needed if the data are the
               recipe's (with a loss of Python the target is the last)
    run_dir    the run's folder; runs/ and the recipe's run_name by default
    ranks      processes, by mpirun if more than one
    resume     continues the run from its newest checkpoint, if there is one
    settings   keys of the recipe by their dotted names: {"optimizer.lr": 0.01}
    progress   prints the program's progress: lines, or in a notebook a line that changes

    The module and the data are kept in the run's folder, below python/; RUN/recipe.toml names both, and
    trains the same from the command line. Ctrl-C stops the run as in a terminal: the run writes a checkpoint,
    the weights are loaded, and KeyboardInterrupt is raised; a second Ctrl-C ends the run at once. Raises
    RecipeError and RunFailed.
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise ValueError(f"ranks is {ranks!r}; expected an integer from 1 on")
    table, base = _recipe.read(recipe)
    settings = _recipe.plain(settings or {})
    name = settings.get("run_name", table.get("run_name", "run"))
    run = pathlib.Path(run_dir if run_dir is not None else f"runs/{name}").absolute()
    if isinstance(recipe, Mapping) or any(part is not None for part in (model, loss, data, eval_data)):
        folder = run / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        table = _recipe.with_absolute_paths(table, base)
        _add_parts(table, folder, model, loss, data, eval_data, example)
        recipe = folder / "recipe.toml"
        recipe.write_text(_recipe.text(table), "utf-8")
    keys = [f"--set={key}={_recipe.value_text(value)}" for key, value in settings.items()]
    stopped = _follow(_program.start(ranks, "train", os.fspath(recipe), "--run-dir", str(run), *keys,
                                     *(["--resume"] if resume else [])), run, ranks, progress)
    result = Run(run)
    if model is not None and result.checkpoints:
        try:
            result.load_into(model)
        except ValueError as error:
            error.add_note(f"the run itself has ended well: tutti.Run({str(run)!r})")
            raise
    if stopped:
        raise KeyboardInterrupt(f"the run has stopped; with resume=True it continues: {run}")
    return result


def _add_parts(table: _recipe.Table, folder: pathlib.Path, model: torch.nn.Module | None,
               loss: str | Mapping[str, Any] | Loss | None, data: tuple[Any, Any] | None,
               eval_data: tuple[Any, Any] | None, example: Any) -> None:
    """Writes the module and the data, and their sections of the recipe."""
    if isinstance(loss, (str, Mapping)):
        table.setdefault("model", {})["loss"] = _recipe.plain(loss)
        loss = None
    if model is None and loss is not None:
        raise TypeError("a loss of Python is exported with a module: model= is missing")
    arguments = None
    if model is not None:
        from tutti import _module  # with torch, which takes seconds to import
        arguments = _module.arguments(model)
    arrays = {}
    for part, given in (("train", data), ("eval", eval_data)):
        if given is not None:
            arrays[part] = _add_data(table, folder, part, given, arguments, loss is not None)
    if model is not None:
        inputs, examples = _inputs(table, arguments or [], arrays.get("train"), example, loss is not None)
        _add_model(table, folder, model, loss, inputs, examples)


def _add_data(table: _recipe.Table, folder: pathlib.Path, part: str, given: tuple[Any, Any],
              arguments: list[str] | None, with_loss: bool) -> tuple[list[str], dict[str, _arrays.Array]]:
    """Writes (x, y), and the section that reads the arrays; returns the names of x's, and all arrays."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        name = "data" if part == "train" else "eval_data"
        raise TypeError(f"{name} is a {type(given).__name__}; expected a pair (x, y), where y may be None")
    x, y = given
    arrays = _arrays.inputs(x, arguments)
    inputs = list(arrays)
    arrays |= _arrays.targets(y, with_loss)
    section = table.setdefault("data", {}).setdefault(part, {})
    _recipe.set_kind(section, ("data", part), "numpy")
    section.pop("arrays", None)
    section["path"] = str(_arrays.write(folder, part, arrays))
    return inputs, arrays


def _inputs(table: _recipe.Table, arguments: list[str],
            train: tuple[list[str], dict[str, _arrays.Array]] | None, example: Any,
            with_loss: bool) -> tuple[list[str], tuple[Any, ...]]:
    """The names of the program's inputs in the data, and two samples of each; a loss reads the last."""
    if train is None and example is None:
        raise TypeError("example= is missing: two samples of the recipe's data, to export the module with")
    if example is not None and not isinstance(example, tuple):
        example = (example,)
    if train is None:
        count = len(example) - with_loss
        names = table.get("model", {}).get("inputs") or (["input"] if count == 1 else arguments[:count])
        return [*names[:count], *["target"] * with_loss], example
    inputs, arrays = train
    if with_loss:
        inputs = list(arrays)
        if len(arrays) != len(train[0]) + 1:
            raise TypeError(f"a loss of Python has one target; y has {len(arrays) - len(train[0])}")
    from tutti import _module

    section = table["data"]["train"]
    return inputs, example or tuple(_module.samples(arrays[name], name, section) for name in inputs)


def _add_model(table: _recipe.Table, folder: pathlib.Path, model: torch.nn.Module, loss: Loss | None,
               inputs: list[str], example: tuple[torch.Tensor, ...]) -> None:
    from tutti import _module

    section = table.setdefault("model", {})
    _recipe.set_kind(section, ("model",), "exported")
    if loss is not None:
        model = _module.with_loss(model, loss, inputs[:-1])
        for key in ("loss", "losses"):
            section.pop(key, None)
        section |= {"loss_output": "loss", "prediction": "prediction"}
    section |= {"inputs": inputs, "path": str(_module.save(folder, model, inputs, example))}


def _follow(process: subprocess.Popen[str], run: pathlib.Path, ranks: int, progress: bool) -> bool:
    """Shows the output to the program's end; True if Ctrl-C has stopped the run. Raises the run's failure."""
    assert process.stdout
    errors: list[str] = []
    reader = threading.Thread(target=_collect, args=(process.stderr, errors), daemon=True)
    reader.start()
    interrupts = 0
    with process:
        try:
            show = _shown() if progress else lambda line: None
            while True:
                try:
                    for line in process.stdout:
                        show(line.rstrip("\n"))
                    process.wait()
                    break
                except KeyboardInterrupt:
                    interrupts += 1
                    _interrupt(process, run, ranks, interrupts)
        finally:
            if process.poll() is None:  # the output could not be shown
                process.terminate()
            reader.join()
    if process.returncode == 0:
        return interrupts > 0
    error = _program.failure(process.returncode, "".join(errors), run)
    if interrupts > 0:
        raise KeyboardInterrupt("the run has ended without a new checkpoint") from error
    raise error


def _collect(stream: Any, lines: list[str]) -> None:
    for line in stream:
        lines.append(line)
        if line.startswith("warning: "):
            print(line, end="", file=sys.stderr)


def _interrupt(process: subprocess.Popen[str], run: pathlib.Path, ranks: int, times: int) -> None:
    """Asks the run to stop; the second time to end at once. mpirun would end its ranks a second later."""
    if ranks > 1 and times == 1:
        try:
            _program.ask("stop", str(run))
            return
        except _program.Error:  # not begun
            pass
    process.send_signal(signal.SIGINT)


def _shown() -> Callable[[str], None]:
    """Prints lines; in a notebook, lines of progress take one another's place."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return lambda line: print(line, flush=True)
    from IPython.display import display

    handles: list[Any] = []

    def show(line: str) -> None:
        data = {"text/plain": line}
        if not _PROGRESS.match(line):
            print(line)
        elif handles:
            handles[0].update(data, raw=True)
        else:
            handles.append(display(data, raw=True, display_id=True))  # type: ignore[no-untyped-call]

    return show
