#!/usr/bin/env python3
"""The first checks of tutti on a GPU, in one command: tools/first_light.sh. docs/gpu.md says more.

Prints a line a check, stops at the first failure, and writes what was measured as Markdown. With --kind test
all this is rehearsed on the tests' device, where losses must be the CPU's to the bit.
"""

import argparse
import contextlib
import datetime
import functools
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from first_light_checks import CHECKS
from first_light_runs import ROOT, Failed, Open, Runner, execute

sys.path.insert(0, str(ROOT / "bench"))
import gpu  # noqa: E402
from compare import default_python  # noqa: E402

ABOUT_TORCH = """
import json, torch
told = {"torch": torch.__version__, "CUDA": torch.version.cuda, "devices": 0}
if torch.cuda.is_available():
    card = torch.cuda.get_device_properties(0)
    told.update(devices=torch.cuda.device_count(), card=card.name, memory=card.total_memory,
                cuDNN=torch.backends.cudnn.version(), NCCL=".".join(map(str, torch.cuda.nccl.version())))
print(json.dumps(told))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=["gpu", "test"], default="gpu", help="the device")
    parser.add_argument("--only", type=int, nargs="+", choices=CHECKS, metavar="N", default=list(CHECKS),
                        help=", ".join(f"{number} {title}" for number, (title, _) in CHECKS.items()))
    parser.add_argument("--keep-going", action="store_true", help="after a failure too")
    parser.add_argument("--tutti", default=shutil.which("tutti") or ROOT / "build/tutti")
    parser.add_argument("--python", help="one that has torch; default: this one, else that of tools/setup.sh")
    parser.add_argument("--steps", type=int, help="of most trainings, in place of each check's own number")
    parser.add_argument("--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)),
                        help="trainings at once, in check 4")
    parser.add_argument("--timeout", type=float, default=180, help="seconds that a training may take")
    parser.add_argument("--out", type=Path, default=Path("first_light.md"), help="the Markdown to write")
    parser.add_argument("--folder", type=Path, help="for runs, which stay there; else they are deleted")
    parser.add_argument("--seconds", type=float, default=60, help="of measured steps in check 13, in all")
    parser.add_argument("--workloads", nargs="+", choices=gpu.CASES, help="of check 13")
    return parser.parse_args()


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

    def peer_device(self):
        return "cuda" if self.is_gpu else "cpu"

    def add_row(self, row):
        print(row, flush=True)
        self.tables.append(row)

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

    def add(self, number, outcome, seconds, said):
        title = CHECKS[number][0]
        print(f"{number:2} {title:24} {seconds:6.1f} s  {outcome}: {said}", flush=True)
        first = said.splitlines()[0].replace("|", "/")
        self.rows.append(f"| {number}. {title} | {outcome} | {seconds:.1f} | {first} |")
        self.out.write_text("\n".join([*self.rows, *self.light.tables]) + "\n")


def check(light, report, number):
    """False if the check failed."""
    began = time.monotonic()
    try:
        outcome, said = "ok", CHECKS[number][1](light)
    except Open as reason:
        outcome, said = "open", str(reason)
    except Failed as failure:
        outcome, said = "FAILED", str(failure)
    except Exception as error:  # the page is written in any case
        outcome, said = "FAILED", f"{type(error).__name__}: {error}"
    report.add(number, outcome, time.monotonic() - began, said)
    return outcome != "FAILED"


def main():
    args = arguments()
    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="first-light-")))
        folder.mkdir(parents=True, exist_ok=True)
        light = Light(args, folder.absolute())
        report = Report(light, args.out)
        failed = []
        for number in args.only:
            if not check(light, report, number):
                failed.append(number)
                if not args.keep_going:
                    break
    failure = f"failed: {failed}" if args.keep_going else "stopped at the first failure"
    print(failure if failed else f"{args.out} has the figures", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"first_light: {failure}")
