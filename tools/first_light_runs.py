"""Runs of tutti for first_light.py: started, timed, read."""

import contextlib
import functools
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from measure import communicate  # noqa: E402

RECIPES = ROOT / "bench/recipes"
MPIRUN = ROOT / "tools/mpirun.sh"
DIGITS, EXPORTED = ROOT / "examples/digits.toml", ROOT / "examples/exported_recipe.toml"
NO_EVAL = ("train.eval_interval=0ep", "checkpoint.interval=0ep")
SMALL_EVAL = "data.eval.subset_num_batches=1"
# Kernels for attention have the same bits twice in this mode alone; those of cuBLAS need a
# workspace of a fixed size.
SAME_BITS = "train.deterministic_mode=true"
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
NO_DETERMINISTIC = "does not have a deterministic implementation"
NO_GRAPHS = "cuda_graphs has no effect"
# With the rank's own host for NCCL, which else refuses two ranks on one GPU; they talk by sockets then.
AS_ONE_HOST_A_RANK = ["sh", "-c", 'NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK exec "$@"', "sh"]
NCCL_ON_ONE_GPU = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_NVLS_ENABLE": "0",
                   "NCCL_MNNVL_ENABLE": "0", "NCCL_MAX_CTAS": "8"}


class Failed(Exception):
    """A check failed."""


class TooLate(Failed):
    """A command did not end in time, and was ended."""


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
        text, _ = communicate(process, timeout)
    except subprocess.TimeoutExpired:
        text = ""
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process may hang in the driver for good
            text, _ = process.communicate(timeout=10)
        raise TooLate(f"still running after {timeout:.0f} s: {' '.join(command)}\n{text[-2000:]}") from None
    return Finished(command, process.returncode, text, time.monotonic() - began)


def duration(steps):
    return f"train.max_duration={steps}ba"


def classes(count):
    """For the kernel of losses over many; a multiple of 8 is read in packs."""
    return f"model.vocab_size={count}", f"data.train.vocab={count}"


def require_graphs(run):
    if NO_GRAPHS in run.text:
        raise Failed(run.text[run.text.index(NO_GRAPHS):].splitlines()[0])


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

    def step_ms(self, warmup):
        """Median over the steps after `warmup`."""
        return statistics.median(line["step_ms"] for line in self.lines()[warmup:])

    def result(self):
        return json.loads((self.folder / "result.json").read_text())

    def evaluated(self, metric="loss"):
        """The last value of a metric of [data.eval]."""
        return float(self.result()["metrics"][f"eval/{metric}"]["last"])

    def peak_mb(self):
        return max(line["memory_peak_mb"] for line in self.lines())

    def grad_accum(self):
        return self.lines()[-1]["grad_accum"]


class Runner:
    """Starts trainings on the device in question, each in a folder of its own."""

    def __init__(self, tutti, kind, folder, timeout):
        self.tutti, self.kind, self.folder, self.timeout = tutti, kind, folder, timeout
        self.until = math.inf  # of the monotonic clock: all commands end by then
        self.numbers = itertools.count(1)  # several threads ask

    def seconds(self):
        """How long a command that begins now may take."""
        seconds = min(self.timeout, self.until - time.monotonic())
        if seconds <= 0:
            raise TooLate("the check's time is over")
        return seconds

    def new_folder(self, name):
        return self.folder / f"{next(self.numbers):03}-{name}"

    def command(self, run, recipe, settings, kind=None):
        return [self.tutti, "train", recipe, "--run-dir", run,
                *words([f"device.kind={kind or self.kind}", *settings])]

    def try_train(self, run, recipe, *settings, kind=None, launcher=(), more=(), environment=None):
        command = [*launcher, *self.command(run, recipe, settings, kind), *more]
        return execute(command, self.seconds(), environment)

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
        return execute([self.tutti, *arguments], self.seconds())

    def answer(self, *arguments):
        """What another command says, which must end well."""
        said = self.ask(*arguments)
        if said.code != 0:
            raise Failed(f"tutti {arguments[0]}: exit code {said.code}\n{said.end()}")
        return said.text

    def digest(self, run):
        return self.answer("inspect", run.folder, "--digest").split()[-1]

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


def at_once(calls, jobs):
    """Results of functions by their names; up to `jobs` run at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {name: pool.submit(call) for name, call in calls.items()}
    return {name: future.result() for name, future in futures.items()}


def beside_cpu(light, name, recipe, *settings, tolerance, is_exact=True, **options):
    """A training on the device and one on the CPU, whose losses must be the same, and the difference.
    `is_exact`: to the bit on the tests' device."""
    runs = at_once({kind: functools.partial(light.runner.train, f"{name}-{kind}", recipe, *settings,
                                            kind=kind, **options)
                    for kind in ("cpu", light.args.kind)}, 2)
    cpu, run = runs["cpu"], runs[light.args.kind]
    tolerance = light.tolerance(tolerance) if is_exact else tolerance
    difference = require_close(run.losses(), cpu.losses(), tolerance, f"{name} beside the CPU")
    return run, cpu, difference
