#!/usr/bin/env python3
"""Throughput of one GPU: tutti against PyTorch, eager and compiled, the same models and batch sizes.

Runs alternate, so that all see the same card; a run's figure is the mean of its steps after warm-up. Prints
Markdown: medians, ratios tutti / PyTorch of each round, and MFU. The peers' batches lie ready in pinned
memory and their loss is read every tenth step; tutti loads its batches and logs each loss. Before that, both
sides must have the same number of parameters. `--seconds` counts measured steps alone, at the speed that an
H100 is expected to have: start-up and compiling take several times as long.
"""

import argparse
import importlib.util
import json
import math
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from compare import default_python
from measure import Failed, communicate

HERE = Path(__file__).resolve().parent
PEERS = {"eager": [], "compile": ["--compile"]}
# Dense bf16 TFLOP/s by NVIDIA's data sheets; the first name that a card's name contains.
PEAKS = {"H100 PCIe": 756, "H100 NVL": 835, "H100": 989, "H200": 989, "A100": 312}


@dataclass
class Case:
    unit: str
    units: int  # of a sample
    steps: int  # in three seconds of an H100, guessed
    flops: float | None = None  # of a unit, forward and backward; None: 6 a parameter
    has_mfu: bool = True
    precision: str = "amp_bf16"
    graphs: bool = False  # tutti's steps, by [train] cuda_graphs
    recipe: str | None = None  # and the peer's workload; None: of the case's name
    batch: int | None = None  # samples a step; None: the recipe's
    options: list[str] = field(default_factory=list)  # of the peer
    aims: dict[str, float] = field(default_factory=dict)  # tutti's throughput / the peer's


CASES = {
    "digits_mlp": Case("samples", 1, 3000, has_mfu=False, precision="fp32", graphs=True,
                       aims={"eager": 3.0}),
    "gpt_tiny": Case("tokens", 256, 300, has_mfu=False, precision="fp32", graphs=True),
    "resnet20": Case("images", 1, 300, has_mfu=False, precision="fp32", graphs=True),
    "gpt2_124m": Case("tokens", 1024, 36, aims={"eager": 1.03, "compile": 0.88}),
    "gpt2_124m_64": Case("tokens", 1024, 18, recipe="gpt2_124m", batch=64, aims={"eager": 1.03}),
    "gpt_1b3": Case("tokens", 2048, 15, aims={"compile": 0.95}),
    # Forward: 4.09e9 multiplications of a sample (torchvision's table); backward: twice as many.
    "resnet50": Case("images", 1, 36, 6 * 4.09e9, options=["--channels-last"], aims={"eager": 1.03}),
    "resnet50_graphs": Case("images", 1, 36, 6 * 4.09e9, recipe="resnet50", graphs=True,
                            options=["--channels-last"], aims={"eager": 1.03}),
}
DEFAULT = ["digits_mlp", "gpt2_124m", "gpt_1b3", "resnet50"]
RUN_TAKES_S = 300  # at most, compiling included


@dataclass
class Slice:
    """A run's figures."""
    step_ms: float
    parameters: int
    peak_mb: float | None
    data_wait_ms: float | None = None


def python_with_torch():
    return sys.executable if importlib.util.find_spec("torch") else default_python()


def arguments(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", default=HERE.parent / "build/tutti")
    parser.add_argument("--python", default=python_with_torch(), help="one that has torch")
    parser.add_argument("--kind", choices=["gpu", "cpu", "test"], default="gpu",
                        help="tutti's device; the peers are on the CPU unless this is gpu")
    parser.add_argument("--workloads", nargs="+", choices=CASES, default=DEFAULT)
    parser.add_argument("--peers", nargs="+", choices=PEERS,
                        help="default: those that a workload has aims for")
    parser.add_argument("--seconds", type=float, default=60, help="of measured steps in all, about")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, help="measured steps of a run, in place of --seconds")
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--batch", type=int, help="samples a step, in place of the workload's")
    parser.add_argument("--precision", choices=["fp32", "amp_bf16"], help="in place of the workload's")
    parser.add_argument("--card", help="its name, for its peak TFLOP/s")
    parser.add_argument("--json", type=Path, help="write every run's figures there too")
    parser.set_defaults(until=math.inf)  # of the monotonic clock: all runs end by then
    return parser.parse_args(argv)


def run(command, until=math.inf):
    """The standard output of a command. Throws Failed with the end of what it said."""
    command = [str(word) for word in command]
    name, seconds = " ".join(command[:3]), max(0.0, min(RUN_TAKES_S, until - time.monotonic()))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        output, errors = communicate(process, seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name}: still running after {seconds:.0f} s") from None
    if process.returncode != 0:
        said = (errors.strip() or output.strip()).splitlines()
        raise Failed(f"{name}: exit code {process.returncode}: " + "\n".join(said[-3:]))
    return output


def precision(args, workload):
    return args.precision or CASES[workload].precision


def batch_of(args, workload):
    """Samples a step, if not those of the recipe."""
    return args.batch or CASES[workload].batch


def run_tutti(args, workload, steps):
    settings = [f"train.max_duration={args.warmup + steps}ba", f"train.precision={precision(args, workload)}",
                f"device.kind={args.kind}", "journal.level=off",
                f"train.cuda_graphs={str(CASES[workload].graphs).lower()}",
                'checkpoint.save_ignore_keys=["model/*", "optimizers/*"]']
    if batch_of(args, workload):
        settings.append(f"data.train.device_batch_size={batch_of(args, workload)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        command = [args.tutti, "train", HERE / "recipes" / f"{recipe_of(workload)}.toml", "--run-dir", folder]
        said = run([*command, *(word for setting in settings for word in ("--set", setting))], args.until)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    measured = [line for line in lines if "step_ms" in line][args.warmup:]
    return Slice(statistics.mean(line["step_ms"] for line in measured),
                 int(re.search(r"([\d,]+) parameters", said)[1].replace(",", "")),
                 max(line["memory_peak_mb"] for line in measured),
                 statistics.mean(line["data_wait_ms"] for line in measured))


def run_peer(args, workload, steps, options):
    command = [args.python, HERE / "peer_train.py", recipe_of(workload), "--steps", steps,
               "--warmup", args.warmup, "--device", "cuda" if args.kind == "gpu" else "cpu", "--fused",
               "--read-loss-every", 10, "--precision", precision(args, workload), *CASES[workload].options,
               *options]
    if batch_of(args, workload):
        command += ["--batch", batch_of(args, workload)]
    told = json.loads(run(command, args.until).splitlines()[-1])
    return Slice(told["mean_ms"], told["parameters"], told["peak_mb"])


def recipe_of(workload):
    return CASES[workload].recipe or workload


def peers_of(args, workload):
    return args.peers or list(CASES[workload].aims) or list(PEERS)


class Comparison:
    """One workload: runs by contestant, and why a peer could not run."""

    def __init__(self, args, workload):
        self.args, self.workload, self.case = args, workload, CASES[workload]
        peers = peers_of(args, workload)
        runs = args.rounds * sum(1 + len(peers_of(args, one)) for one in args.workloads)
        self.steps = args.steps or max(3, round(self.case.steps * args.seconds / (3 * runs)))
        self.runs = {name: [] for name in ("tutti", *peers)}
        self.missing = {}

    def measure(self):
        for number in range(self.args.rounds):
            order = list(self.runs) if number % 2 == 0 else list(reversed(self.runs))
            for name in order:
                if name not in self.missing:
                    self.run_once(name)
        counts = {name: runs[0].parameters for name, runs in self.runs.items() if runs}
        if len(set(counts.values())) > 1:
            raise Failed(f"{self.workload}: the models differ: parameters {counts}")

    def run_once(self, name):
        if name == "tutti":
            self.runs[name].append(run_tutti(self.args, self.workload, self.steps))
            return
        try:
            self.runs[name].append(run_peer(self.args, self.workload, self.steps, PEERS[name]))
        except Failed as failed:
            if name != "compile":
                raise
            self.missing[name], self.runs[name] = str(failed), []  # compiling needs a compiler and more

    def units_a_step(self):
        return self.batch() * self.case.units

    def batch(self):
        recipe = (HERE / "recipes" / f"{recipe_of(self.workload)}.toml").read_text()
        return batch_of(self.args, self.workload) or int(re.search(r"device_batch_size = (\d+)", recipe)[1])

    def throughput(self, name):
        return 1e3 * self.units_a_step() / statistics.median(one.step_ms for one in self.runs[name])

    def ratio(self, peer):
        """tutti's throughput as a ratio to a peer's, median over rounds."""
        return statistics.median(other.step_ms / own.step_ms
                                 for own, other in zip(self.runs["tutti"], self.runs[peer]))

    def mfu(self, name):
        peak = next((peak for card, peak in PEAKS.items() if card in (self.args.card or "")), None)
        if not peak or not self.case.has_mfu or not self.runs[name]:
            return None
        flops = self.case.flops or 6 * self.runs["tutti"][0].parameters
        return self.throughput(name) * flops / (1e12 * peak)

    def missed(self):
        """Aims that were missed, in words."""
        return [f"{self.workload}: {self.ratio(peer):.2f} of {peer}, aim {aim}"
                for peer, aim in self.case.aims.items() if self.runs.get(peer) and self.ratio(peer) < aim]

    def rate(self, name):
        """A contestant's throughput and MFU, in words."""
        if not self.runs.get(name):
            return "not measured"
        mfu = self.mfu(name)
        return f"{self.throughput(name):,.0f}" + (f" ({100 * mfu:.1f} %)" if mfu else "")

    def row(self):
        def against(peer):
            if not self.runs.get(peer):
                return ""
            aim = self.case.aims.get(peer)
            return f"{self.ratio(peer):.2f}" + (f" (aim {aim})" if aim else "")

        waits = statistics.median(one.data_wait_ms for one in self.runs["tutti"])
        step = statistics.median(one.step_ms for one in self.runs["tutti"])
        peak = max(one.peak_mb for one in self.runs["tutti"])
        cells = [f"`{self.workload}`, {self.batch()} a step, {self.case.unit}/s", self.rate("tutti"),
                 self.rate("eager"), self.rate("compile"), against("eager"), against("compile"),
                 f"{step:.2f} ({waits:.2f})", f"{peak:,.0f}"]
        return f"| {' | '.join(cells)} |"


HEAD = """| workload | tutti (MFU) | eager (MFU) | compiled (MFU) | tutti / eager | tutti / compiled \
| step, ms (wait for data) | peak, MB |
|---|---|---|---|---|---|---|---|"""


def measure(args, print=print):
    """The comparisons, each after its row is printed."""
    print(HEAD)
    comparisons = []
    for workload in args.workloads:
        comparison = Comparison(args, workload)
        comparison.measure()
        print(comparison.row())
        comparisons.append(comparison)
    return comparisons


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what runs
    args = arguments()
    comparisons = measure(args, lambda text: print(text, flush=True))
    for comparison in comparisons:
        for peer, why in comparison.missing.items():
            print(f"\n{comparison.workload}, {peer}: not measured: {why}")
    if args.json:
        figures = {one.workload: {name: [vars(run) for run in runs] for name, runs in one.runs.items()}
                   for one in comparisons}
        args.json.write_text(json.dumps(figures, indent=1))
    missed = [text for one in comparisons for text in one.missed()]
    sys.exit("\nmissed: " + "; ".join(missed) if missed else 0)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"gpu.py: {failed}")
