#!/usr/bin/env python3
"""The first checks of tutti on a GPU, in one command: tools/first_light.sh. docs/gpu.md says more.

Prints a line a check, stops at the first failure, and writes what was measured as Markdown. A check that
hangs is ended, and the others go on. With --kind test all this is rehearsed on the tests' device, where
losses must be the CPU's to the bit.
"""

import argparse
import collections
import contextlib
import datetime
import functools
import json
import math
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from first_light_runs import ROOT, Failed, Open, Runner, TooLate, execute  # first: finds the modules of bench

import gpu
from compare import default_python
from first_light_plan import CHECKS, check_of

ABOUT_TORCH = """
import json, torch
told = {"torch": torch.__version__, "CUDA": torch.version.cuda, "devices": 0}
if torch.cuda.is_available():
    card = torch.cuda.get_device_properties(0)
    told.update(devices=torch.cuda.device_count(), card=card.name, memory=card.total_memory,
                cuDNN=torch.backends.cudnn.version(), NCCL=".".join(map(str, torch.cuda.nccl.version())))
print(json.dumps(told))
"""


def named_check(word):
    try:
        return check_of(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=["gpu", "test"], default="gpu", help="the device")
    parser.add_argument("--only", type=named_check, nargs="+", metavar="CHECK", default=CHECKS,
                        help="numbers or names: " + ", ".join(f"{one.number} {one.name}" for one in CHECKS))
    parser.add_argument("--budget", type=float, metavar="SECONDS",
                        help="of all checks; default: 600, and none in a rehearsal. A check that is expected "
                             "to take longer than what is left is not begun")
    parser.add_argument("--limit", type=float, metavar="SECONDS",
                        help="of each check; default: 30 and three times what is expected on an H100, in a "
                             "rehearsal ten times that")
    parser.add_argument("--keep-going", action="store_true", help="after a failure too")
    parser.add_argument("--tutti", default=shutil.which("tutti") or ROOT / "build/tutti")
    parser.add_argument("--python", help="one that has torch; default: this one, else that of tools/setup.sh")
    parser.add_argument("--steps", type=int, help="of most trainings, in place of each check's own number")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)),
                        help="trainings at once")
    parser.add_argument("--timeout", type=float,
                        help="seconds that a training may take; default: 180, in a rehearsal 900")
    parser.add_argument("--out", type=Path, default=Path("first_light.md"), help="the Markdown to write")
    parser.add_argument("--folder", type=Path, help="for runs, which stay there; else they are deleted")
    parser.add_argument("--seconds", type=float, default=60,
                        help="of measured steps in check 13, in two rounds; where less time is left, in one")
    parser.add_argument("--workloads", nargs="+", choices=gpu.CASES, help="of check 13")
    parser.add_argument("--sanitizer", type=Path, help="compute-sanitizer, if not found by itself")
    args = parser.parse_args()
    args.timeout = args.timeout or (180 if args.kind == "gpu" else 900)
    args.budget = args.budget or (600 if args.kind == "gpu" else math.inf)
    return args


def python_with_torch(asked):
    """The interpreter, and what its torch says."""
    for python in [asked] if asked else [sys.executable, default_python()]:
        with contextlib.suppress(OSError):
            said = execute([python, "-c", ABOUT_TORCH], timeout=120)
            if said.code == 0:
                return python, json.loads(said.text.splitlines()[-1])
    raise Failed("no Python with torch: --python")


class Light:
    """What the checks share."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.runner = Runner(Path(args.tutti).absolute(), args.kind, folder, args.timeout)
        self.is_gpu = args.kind == "gpu"
        self.tables = []  # Markdown, below the table of checks
        self.ends = time.monotonic() + args.budget

    @functools.cached_property
    def peer(self):
        """The interpreter with torch, and what that says of itself and the card."""
        return python_with_torch(self.args.python)

    @property
    def python(self):
        return self.peer[0]

    @property
    def torch(self):
        return self.peer[1]

    def steps(self, on_gpu, in_rehearsal):
        return self.args.steps or (on_gpu if self.is_gpu else in_rehearsal)

    def tolerance(self, on_gpu):
        """Of a loss beside the CPU's; the tests' device has the CPU's bits."""
        return on_gpu if self.is_gpu else 0.0

    def jobs(self, most):
        return min(self.args.jobs, most)

    def seconds_left(self):
        return self.ends - time.monotonic()

    def begin(self, check):
        """Limits the commands of a check. False: too little time is left."""
        limit = self.args.limit or check.limit_s * (1 if self.is_gpu else 10)
        self.runner.until = min(self.ends, time.monotonic() + limit)
        return self.seconds_left() >= check.seconds

    def peer_device(self):
        return "cuda" if self.is_gpu else "cpu"

    def add_row(self, row):
        if row == gpu.HEAD and row in self.tables:
            return
        print(row, flush=True)
        self.tables += ["", row] if row == gpu.HEAD else [row]

    def card(self):
        return self.torch.get("card", "no GPU") if self.is_gpu else "test device"


def facts(light):
    """Where this ran, in a line."""
    lines = light.runner.ask("--version").text.splitlines()
    version = dict(line.split(maxsplit=1) for line in lines if " " in line)
    said = {"tutti": version.get("commit"), "libtorch": version.get("libtorch"),
            "date": f"{datetime.date.today()}"}
    if light.is_gpu:
        driver = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        with contextlib.suppress(OSError):
            said["driver"] = execute(driver, timeout=60).text.split("\n")[0]
        said.update({key: light.torch.get(key) for key in ("torch", "CUDA", "cuDNN", "NCCL")})
    return f"{light.card()}: " + ", ".join(f"{key} {value}" for key, value in said.items())


class Report:
    """Lines for the terminal as checks end, and a page of Markdown that is whole after each."""

    def __init__(self, light, out):
        self.light, self.out = light, out
        self.rows = [facts(light), "", "| check | | seconds | |", "|---|---|---|---|"]
        print(self.rows[0], flush=True)

    def add(self, check, outcome, seconds, said):
        print(f"{check.number:2} {check.name:16} {seconds:6.1f} s  {outcome}: {said}", flush=True)
        first = said.partition("\n")[0].replace("|", "/")
        self.rows.append(f"| {check.number}. {check.name} | {outcome} | {seconds:.1f} | {first} |")
        self.write()

    def end(self, names):
        """Names the checks of each outcome but "ok"."""
        for outcome, checks in names.items():
            if outcome != "ok" and checks:
                print(f"{outcome}: {', '.join(checks)}", flush=True)
                self.light.tables += ["", f"{outcome}: {', '.join(checks)}"]
        self.write()
        print(f"{self.out} has the figures", flush=True)

    def write(self):
        self.out.write_text("\n".join([*self.rows, *self.light.tables]) + "\n")


def make(check, light):
    """The outcome, and what was seen."""
    try:
        return "ok", check.run(light)
    except Open as reason:
        return "open", str(reason)
    except TooLate as late:
        return "TOO LONG", str(late)
    except Failed as failure:
        return "FAILED", str(failure)
    except Exception as error:  # the page is written in any case
        return "FAILED", f"{type(error).__name__}: {error}"


def make_all(light, report):
    """Names of checks by their outcome."""
    names = collections.defaultdict(list)
    for check in light.args.only:
        if names["FAILED"] and not light.args.keep_going:
            outcome = "not begun after a failure"
        elif not light.begin(check):
            outcome = "no time was left for"
        else:
            began = time.monotonic()
            outcome, said = make(check, light)
            report.add(check, outcome, time.monotonic() - began, said)
        names[outcome].append(check.name)
    return names


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what runs
    args = arguments()
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="first-light-")))
        folder.mkdir(parents=True, exist_ok=True)
        light = Light(args, folder.absolute())
        report = Report(light, args.out)
        names = make_all(light, report)
        report.end(names)
    return 1 if names["FAILED"] or names["TOO LONG"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"first_light: {failure}")
