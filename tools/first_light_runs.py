"""Runs of tutti for first_light.py: started, timed, read."""

import itertools
import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "bench/recipes"
MPIRUN = ROOT / "tools/mpirun.sh"
DIGITS = ROOT / "examples/digits.toml"
# With the rank's own host for NCCL, which else refuses two ranks on one GPU; they talk by sockets then.
AS_ONE_HOST_A_RANK = ["sh", "-c", 'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$@"', "sh"]
NCCL_ON_ONE_GPU = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_NVLS_ENABLE": "0",
                   "NCCL_MNNVL_ENABLE": "0", "NCCL_MAX_CTAS": "8"}


class Failed(Exception):
    """A check failed."""


class Open(Exception):
    """A check could not be made here."""


class Finished:
    def __init__(self, command, code, text, seconds):
        self.command, self.code, self.text, self.seconds = command, code, text, seconds

    def end(self, lines=15):
        return "\n".join(self.text.strip().splitlines()[-lines:])


def execute(command, timeout, environment=None, cwd=None):
    """Runs a command in a session of its own, which ends with it."""
    command = [str(word) for word in command]
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=cwd, text=True,
                               stderr=subprocess.STDOUT, start_new_session=True, errors="replace",
                               env={**os.environ, **(environment or {})})
    try:
        text, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text, _ = process.communicate()
        raise Failed(f"still running after {timeout} s: {' '.join(command)}\n{text[-2000:]}") from None
    return Finished(command, process.returncode, text, time.monotonic() - began)


def words(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Run:
    """A training that went well."""

    def __init__(self, folder, finished):
        self.folder, self.text, self.seconds = folder, finished.text, finished.seconds

    def lines(self):
        """Those of steps in metrics.jsonl."""
        lines = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        return [line for line in lines if "step_ms" in line]

    def losses(self):
        return [float(line["loss"]) for line in self.lines()]

    def peak_mb(self):
        return max(line["memory_peak_mb"] for line in self.lines())

    def grad_accum(self):
        return self.lines()[-1]["grad_accum"]


class Runner:
    """Starts trainings on the device in question, each in a folder of its own."""

    def __init__(self, tutti, kind, folder, timeout):
        self.tutti, self.kind, self.folder, self.timeout = tutti, kind, folder, timeout
        self.numbers = itertools.count(1)  # several threads ask

    def new_folder(self, name):
        return self.folder / f"{next(self.numbers):03}-{name}"

    def command(self, run, recipe, settings, kind=None):
        return [self.tutti, "train", recipe, "--run-dir", run,
                *words([f"device.kind={kind or self.kind}", *settings])]

    def try_train(self, run, recipe, *settings, kind=None, launcher=(), more=(), environment=None):
        command = [*launcher, *self.command(run, recipe, settings, kind), *more]
        return execute(command, self.timeout, environment)

    def train(self, name, recipe, *settings, **options):
        """A training that must go well. `recipe`: a path, or a recipe's text."""
        run = self.new_folder(name)
        if not isinstance(recipe, Path):
            run.with_suffix(".toml").write_text(recipe)
            recipe = run.with_suffix(".toml")
        finished = self.try_train(run, recipe, *settings, **options)
        if finished.code != 0:
            raise Failed(f"{name}: exit code {finished.code}\n{finished.end()}")
        return Run(run, finished)

    def ask(self, *arguments):
        """What another command of tutti says, and its exit code."""
        return execute([self.tutti, *arguments], self.timeout)

    def digest(self, run):
        said = self.ask("inspect", run.folder, "--digest")
        if said.code != 0:
            raise Failed(said.end())
        return said.text.split()[-1]

    def require_same(self, one, two, what):
        """The digests of all steps and of the weights in the end must be equal."""
        said = self.ask("diff", one.folder, two.folder)
        if said.code != 0:
            raise Failed(f"{what}: {said.end()}")
        self.require_same_weights(one, two, what)

    def require_same_weights(self, one, two, what):
        first, second = self.digest(one), self.digest(two)
        if first != second:
            raise Failed(f"{what}: weights {first} and {second}")


def difference(losses, expected):
    """The largest relative difference of two loss curves; NaN counts as infinite."""
    if len(losses) != len(expected) or not losses:
        raise Failed(f"{len(losses)} steps in place of {len(expected)}")
    largest = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(losses, expected))
    return largest if all(map(math.isfinite, losses)) and math.isfinite(largest) else math.inf


def require_close(losses, expected, tolerance, what):
    """The difference, which must be no larger than the tolerance."""
    found = difference(losses, expected)
    if found > tolerance:
        step = next(step for step, pair in enumerate(zip(losses, expected), 1)
                    if difference(*([one] for one in pair)) > tolerance)
        raise Failed(f"{what}: losses differ by {found:.1e}, at most {tolerance:g} was expected; first in "
                     f"step {step}: {losses[step - 1]:.9g} and not {expected[step - 1]:.9g}")
    return found
