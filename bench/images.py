#!/usr/bin/env python3
"""Compares tutti's image operations with Pillow's, on one thread: the same images, parameters and results.

Requests alternate, so that both see the same machine. Each pair gives a ratio of processor times, Pillow /
tutti; prints the median, lowest and highest ratio, and how many times as many images two threads of tutti
change by the clock. Stops if a result differs. Run on an idle machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PILLOW = "11.3.0"
ONE_THREAD_TARGET, TWO_THREADS_TARGET = 1.5, 1.6
PARAMETERS = {"autocontrast": [0], "equalize": [0], "posterize": [2], "rotate": [13, -27], "solarize": [128],
              "shear_x": [0.21], "shear_y": [-0.17], "translate_x": [5], "translate_y": [-7],
              "color": [0.4, 2.5], "contrast": [0.4, 2.5], "brightness": [0.4, 2.5], "sharpness": [0.4, 2.5]}


def default_python():
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / f"tutti/pillow-{PILLOW}/bin/python"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=HERE.parent / "build/bench/image_bench")
    parser.add_argument("--python", type=Path, default=default_python(), help=f"one that has Pillow {PILLOW}")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 224])
    parser.add_argument("--operations", nargs="+", choices=PARAMETERS, default=list(PARAMETERS))
    return parser.parse_args()


class Contestant:
    """A process that answers requests."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, name, parameter, size, threads=1):
        """Nanoseconds an image, of processor time and by the clock, and the Adler-32 of the result."""
        print(name, parameter, size, threads, file=self.process.stdin, flush=True)
        processor, clock, checksum = self.process.stdout.readline().split()
        return float(processor), float(clock), int(checksum)


def compare(ours, pillow, request, pairs):
    """Of each pair: our processor time and Pillow's, and the gain by a second thread of ours."""
    times = []
    for pair in range(pairs):
        order = [ours, pillow] if pair % 2 == 0 else [pillow, ours]
        answers = {contestant: contestant.ask(*request) for contestant in order}
        if answers[ours][2] != answers[pillow][2]:
            sys.exit(f"{request}: the results differ")
        gain = answers[ours][1] / ours.ask(*request, threads=2)[1]
        times.append((answers[ours][0], answers[pillow][0], gain))
    return times


def spread(values):
    return f"{statistics.median(values):5.2f} ({min(values):.2f} - {max(values):.2f})"


def report(request, times):
    own, peer, _ = (statistics.median(column) for column in zip(*times))
    ratios = [pillow / tutti for tutti, pillow, _ in times]
    gains = [gain for _, _, gain in times]
    missed = statistics.median(ratios) < ONE_THREAD_TARGET
    label = "{} {} {}".format(*request)
    print(f"{label:22} {own / 1e3:9.2f} {peer / 1e3:9.2f}   {spread(ratios):24} {spread(gains):24}"
          f" {'below the aim' if missed else ''}".rstrip(), flush=True)


def main():
    args = arguments()
    for needed, advice in ((args.bench, "make build"),
                           (args.python, f"make a virtual environment there, with pillow=={PILLOW}")):
        if not needed.exists():
            sys.exit(f"{needed} is not there: {advice}")
    ours, pillow = Contestant([args.bench]), Contestant([args.python, HERE / "peer_images.py"])
    print(f"{args.pairs} pairs; aims: {ONE_THREAD_TARGET} times Pillow's speed, {TWO_THREADS_TARGET} times as"
          f" much with two threads\n{'operation':22} {'tutti, us':>9} {'Pillow, us':>9}   "
          f"{'Pillow/tutti':24} two threads")
    for size in args.sizes:
        for name in args.operations:
            for parameter in PARAMETERS[name]:
                request = (name, parameter, size)
                report(request, compare(ours, pillow, request, args.pairs))


if __name__ == "__main__":
    main()
