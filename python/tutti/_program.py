"""The program: where it is, how it is started, and its errors as exceptions."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

_PACKAGE = pathlib.Path(__file__).resolve().parent
_SOURCE = _PACKAGE.parents[1]  # if the package is the source tree's


class Error(RuntimeError):
    """An error that the program reported, in its words."""


class RecipeError(Error, ValueError):
    """The recipe, the data, the run folder or an argument is wrong; no step was trained (exit code 2)."""


class RunFailed(Error):
    """A run or a command failed.

    `code` is the program's exit code (docs/running.md; negative: ended by that signal), `run` the run's
    folder, or None.
    """

    def __init__(self, message: str, code: int, run: pathlib.Path | None) -> None:
        super().__init__(message)
        self.code = code
        self.run = run


def program() -> str:
    """The path of the program: $TUTTI_PROGRAM, else beside this package, installed or built, else on PATH.

    Raises FileNotFoundError if there is none.
    """
    if given := os.environ.get("TUTTI_PROGRAM"):
        return given
    for beside in (_PACKAGE / "bin" / "tutti", _SOURCE / "build" / "tutti"):
        if beside.is_file():
            return str(beside)
    if on_path := shutil.which("tutti"):
        return on_path
    raise FileNotFoundError("the program tutti is neither on PATH nor named by the variable TUTTI_PROGRAM")


def environment(ranks: int) -> dict[str, str]:
    """The environment of the program on that many ranks: mpirun refuses root without two variables."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if ranks > 1 else {}
    return {**os.environ, **root}


def command(ranks: int, *arguments: str) -> list[str]:
    """The command line that starts the program on that many ranks."""
    if ranks == 1:
        return [program(), *arguments]
    script = _SOURCE / "tools" / "mpirun.sh"
    if script.is_file():
        return [str(script), "-np", str(ranks), program(), *arguments]
    return [program(), "run", "-np", str(ranks), *arguments]


def start(ranks: int, *arguments: str) -> subprocess.Popen[str]:
    """Starts the program; its output and errors are pipes.

    A session of its own keeps a terminal's Ctrl-C from the program; the program is asked to stop if this
    process is killed.
    """
    tied = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    return subprocess.Popen([*tied, *command(ranks, *arguments)], env=environment(ranks),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, errors="replace", start_new_session=True)


def ask(*arguments: str) -> str:
    """Runs a short command to its end and returns its output; warnings go to standard error."""
    done = subprocess.run([program(), *arguments], env=environment(1), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise failure(done.returncode, done.stderr)
    for line in done.stderr.splitlines():
        if line.startswith("warning: "):
            print(line, file=sys.stderr)
    return done.stdout


def failure(code: int, text: str, run: pathlib.Path | None = None) -> Error:
    """The exception for an exit code other than 0 and the text on standard error."""
    message = _error_text(text)
    if code == 2:
        return RecipeError(message or "the program refused its arguments")
    if code == 4:
        message = "the last steps were all skipped: there was nothing finite to train on\n" + message
    where = f"\nrun folder: {run}" if run else ""
    return RunFailed(f"{message or 'the program said nothing'} (exit code {code}){where}", code, run)


def _error_text(text: str) -> str:
    """From the first error up to the lines that mpirun adds; without an error the last lines."""
    lines = text.rstrip().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("error: ")), None)
    if first is None:
        return "\n".join(lines[-10:])
    last = next((i for i in range(first, len(lines)) if lines[i].startswith("-" * 20)), len(lines))
    return "\n".join(lines[first:last]).strip().removeprefix("error: ")
