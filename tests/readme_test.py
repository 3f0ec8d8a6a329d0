"""Runs every command that README.md shows, in a scratch folder that looks like the source tree, and compares
what it prints with what is shown below it.

usage: readme_test.py SOURCE_DIR BUILD_DIR. Left out are those that set the machine up or need several nodes.
Shown output may leave lines out ("..."). Whole numbers are compared, unless they are speeds or times; other
numbers only where this processor computes as the one that README.md names ("computed with AVX2").
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

from shown_output import first_missing

NOT_HERE = ("make ", "mpirun -np 4 ", "mpirun -np 16 ", "#SBATCH", "srun ", "cmake ")
WAITING = re.compile(r"  \d+% waiting for data$")  # on a busy machine
MEASURED = re.compile(r"[\d.]+ samples/s|(?<=samples/s) +\d+|[\d:]+ left|(?<=  time) +.*")
FRACTION = re.compile(r"-?\d+\.\d+(e-?\d+)?")


def commands(readme):
    """Indented lines outside fences, and lines after "$ " inside them, each with the lines shown below it."""
    fenced, shown = False, None
    for line in readme.splitlines():
        if line.startswith("```"):
            fenced, shown = not fenced, None
        elif fenced and line.startswith("$ "):
            shown = []
            yield line[2:], shown
        elif fenced and shown is not None:
            shown.append(line)
        elif not fenced and line.startswith("    "):
            yield line.strip(), []


def shown_recipe(readme):
    return re.search(r"```toml\n(.*?)```", readme, re.S).group(1)


def run(command, folder):
    done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=300)
    print(("ok     " if done.returncode == 0 else "FAILED ") + command, flush=True)
    if done.returncode:
        print(done.stdout)
    return done.returncode == 0, done.stdout


def comparable(line, same_processor):
    """The line without what differs from run to run, or from processor to processor."""
    line = MEASURED.sub("#", WAITING.sub("", line.rstrip()))
    return line if same_processor else FRACTION.sub("#", line)


def is_computed_as(readme, folder):
    """True if a journal in the folder is of the kind of processor that README.md names."""
    kind = re.search(r"[cC]omputed with\s+(AVX\w+|DEFAULT)", readme)
    if not kind:
        sys.exit("README.md does not say of its run: computed with AVX512, or whatever it was")
    journals = glob.glob(os.path.join(folder, "runs", "*", "journal", "*", "rank-0.journal"))
    with open(journals[0], "rb") as file:
        return f'"{kind[1]}"'.encode() in file.read(1 << 16)


def is_as_shown(command, shown, printed, same_processor):
    def fits(one, other):
        return comparable(one, same_processor) == comparable(other, same_processor)

    missing = first_missing(shown, printed.splitlines(), fits) if shown else None
    if missing is not None:
        print(f"FAILED {command}\nREADME.md shows, and it did not print there: {missing}\n{printed}")
    return missing is None


def main(source, build):
    with open(os.path.join(source, "README.md")) as file:
        readme = file.read()
    runnable = [one for one in commands(readme) if not one[0].startswith(NOT_HERE)]
    if len(runnable) < 8 or not any(shown for _, shown in runnable):
        sys.exit(f"found only {len(runnable)} commands, or no output: the README is not read rightly")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "tools", "docs", "tests"):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
        os.symlink(build, os.path.join(folder, "build"))
        with open(os.path.join(folder, "shown.toml"), "w") as file:
            file.write(shown_recipe(readme).replace('"data/', '"examples/data/'))
        runnable.append(("build/tutti check shown.toml", []))
        results = [(command, shown, *run(command, folder)) for command, shown in runnable]
        same = is_computed_as(readme, folder)
    print(f"numbers are compared {'with all their digits' if same else 'without their fractions'}")
    good = [went_well and is_as_shown(command, shown, printed, same)
            for command, shown, went_well, printed in results]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
