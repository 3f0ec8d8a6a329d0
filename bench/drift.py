#!/usr/bin/env python3
"""Compares this build with the last release on three workloads: CPU time of a step, CPU time of a run of one
step, and peak memory. Fails where this build needs over 5 % more.

The release is the commit of bench/release.txt, built once into BUILD/release-COMMIT. In each turn both
programs train the release's recipe with one thread, side by side on one core, so that other programs on the
machine slow both alike; the turn gives a ratio, now / release. Turns are repeated until the 99 % interval of
the median ratio lies on one side of 1.05, at most --turns times; then the median decides.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import Failed, check

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STEPS = {"digits_mlp": 4000, "resnet20": 30, "gpt_tiny": 20}
FIGURES = {"step_ms": "CPU a step, ms", "first_step_s": "CPU to first step, s", "peak_mb": "peak, MB"}
ALLOWED = 1.05
FEWEST_TURNS = 8  # with fewer, no order statistics give a 99 % interval of the median


@dataclass
class Cost:
    step_ms: float
    first_step_s: float
    peak_mb: float


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=ROOT / "build/tutti")
    parser.add_argument("--release", type=Path, help="a built tutti in place of that of release.txt")
    parser.add_argument("--recipes", type=Path, help="the folder of recipes; default: the release's")
    parser.add_argument("--turns", type=int, default=41, help="at most so many")
    parser.add_argument("--workloads", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time")
    return parser.parse_args()


def run(*command, **options):
    subprocess.run(list(map(str, command)), check=True, **options)


def built_release(build, jobs):
    """The folder of the release, with its program in build/: where ccache knows the objects of clones."""
    commit = (HERE / "release.txt").read_text().split()[0]
    source = build / f"release-{commit}"
    if not source.exists():
        fresh = build / f"release-{commit}.unpacked"
        fresh.mkdir(parents=True, exist_ok=True)
        run("git", "archive", commit, "--output", fresh / "source.tar", cwd=ROOT)
        run("tar", "-xf", fresh / "source.tar", "-C", fresh)
        (fresh / "source.tar").unlink()
        fresh.rename(source)
    run("cmake", "-S", source, "-B", source / "build", "-DTUTTI_TESTS=OFF", "-DTUTTI_BENCH=OFF",
        stdout=subprocess.DEVNULL)
    run("cmake", "--build", source / "build", "--parallel", jobs, "--target", "tutti",
        stdout=subprocess.DEVNULL)
    return source


def trained(programs, recipe, steps, core):
    """CPU seconds and peak resident set, in MB, of each program: trained side by side on one core."""
    with tempfile.TemporaryDirectory() as scratch:
        running = {name: subprocess.Popen([tutti, "train", recipe, "--run-dir", Path(scratch) / name,
                                           "--set", f"train.max_duration={steps}ba"],
                                          preexec_fn=lambda: os.sched_setaffinity(0, {core}),
                                          stdout=subprocess.DEVNULL)
                   for name, tutti in programs.items()}
        ends = {name: usage_of(process) for name, process in running.items()}
    return {name: (end.ru_utime + end.ru_stime, end.ru_maxrss / 1024) for name, end in ends.items()}


def usage_of(process):
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process)
    return usage


def turn(programs, recipe, steps, core):
    """The Cost of each program."""
    first = trained(programs, recipe, 1, core)
    whole = trained(programs, recipe, steps + 1, core)
    return {name: Cost(1e3 * (whole[name][0] - first[name][0]) / steps, first[name][0], whole[name][1])
            for name in programs}


def interval(values):
    """The 99 % interval of the median, by order statistics: of the sign test."""
    ordered, count = sorted(values), len(values)
    below, tail = 0, 0.5 ** count
    while tail + math.comb(count, below + 1) * 0.5 ** count <= 0.005:
        below += 1
        tail += math.comb(count, below) * 0.5 ** count
    return ordered[below], ordered[count - 1 - below]


def is_decided(values):
    low, high = interval(values)
    return high <= ALLOWED or low > ALLOWED


def take_turns(programs, recipe, steps, most):
    """The costs of both programs, turn by turn, on one core after the other."""
    cores, costs = sorted(os.sched_getaffinity(0)), {name: [] for name in programs}
    while len(costs["now"]) < most:
        number = len(costs["now"])
        first, second = sorted(programs, reverse=number % 2 == 1)
        ordered = {name: programs[name] for name in (first, second)}
        for name, figures in turn(ordered, recipe, steps, cores[number % len(cores)]).items():
            costs[name].append(figures)
        if number + 1 >= FEWEST_TURNS and all(is_decided(ratios(costs, field)) for field in FIGURES):
            break
    return costs


def ratios(costs, field):
    return [getattr(now, field) / getattr(release, field)
            for now, release in zip(costs["now"], costs["release"])]


def report(workload, costs):
    """Prints the workload's table; returns the figures that are too high."""
    print(f"\n{workload}, {len(costs['now'])} turns\n  {'':21} {'release':>10} {'now':>10}  now/release")
    drifted = []
    for field, label in FIGURES.items():
        medians = {name: statistics.median(getattr(run, field) for run in runs)
                   for name, runs in costs.items()}
        columns = f"{medians['release']:10.4g} {medians['now']:10.4g}"
        turns = ratios(costs, field)
        ratio, (low, high) = statistics.median(turns), interval(turns)
        notes = ["" if is_decided(turns) else "undecided", "TOO HIGH" if ratio > ALLOWED else ""]
        print(f"  {label:21} {columns}  {ratio:.3f} ({low:.3f} - {high:.3f})  {' '.join(notes)}".rstrip(),
              flush=True)
        if ratio > ALLOWED:
            drifted.append(f"{workload}: {label}: {100 * (ratio - 1):.1f} % more than the release's")
    return drifted


def main():
    args = arguments()
    if not args.tutti.exists():
        sys.exit(f"{args.tutti} is not there: make build")
    release, recipes = args.release, args.recipes
    if release is None:
        source = built_release(args.tutti.resolve().parent, args.jobs)
        release, recipes = source / "build/tutti", recipes or source / "bench/recipes"
    programs = {"now": args.tutti.resolve(), "release": release.resolve()}
    drifted = []
    for workload in args.workloads:
        recipe = (recipes or HERE / "recipes") / f"{workload}.toml"
        try:
            drifted += report(workload, take_turns(programs, recipe, STEPS[workload], args.turns))
        except Failed as failure:
            drifted.append(str(failure))
    if drifted:
        sys.exit("\n" + "\n".join(drifted))


if __name__ == "__main__":
    main()
