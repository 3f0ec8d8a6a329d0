#!/usr/bin/env python3
"""Makes the files of one version of tutti: run folders that its program stopped in mid-epoch, for
today's program to read, resume and replay (tests/golden/versions_golden_test.cpp).

Run: tests/golden/versions/make.py COMMIT [--tutti PROGRAM]   (writes DATE-COMMIT.tar.xz beside this file;
builds the program at this commit in a clone of its own, unless PROGRAM, built there, is given)

The archive has a folder runs/CASE for each recipe that the version accepts, and whole/CASE with
metrics.jsonl and result.json of the same training undisturbed. version.json says the commit; the ranks of
each run, its last step and the digest of the undisturbed run's weights; and why a recipe was refused.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MPIRUN = ROOT / "tools/mpirun.sh"
TRIES = 8  # until a run is stopped in mid-epoch, away from its checkpoints


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--tutti", type=pathlib.Path, help="the program, if it is built")
    parser.add_argument("--cases", nargs="+", help="recipes; default: all")
    return parser.parse_args()


def git(*words, folder=ROOT):
    done = subprocess.run(["git", *words], cwd=folder, check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout.strip()


def built(commit, folder):
    git("clone", "--quiet", "--shared", "--no-checkout", ROOT, folder)
    git("checkout", "--quiet", commit, folder=folder)
    subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", "-DTUTTI_CUDA=OFF",
                    "-DTUTTI_TESTS=OFF", "-DTUTTI_BENCH=OFF"], check=True)
    subprocess.run(["cmake", "--build", folder / "build", "--target", "tutti"], check=True)
    return folder / "build/tutti"


class Version:
    """The folder of a version's files, and its program, which runs there by relative paths alone."""

    def __init__(self, folder, program):
        self.folder = folder
        self.environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def start(self, *words, ranks=1):
        launcher = [MPIRUN, "-np", str(ranks)] if ranks > 1 else []
        return subprocess.Popen([*launcher, "tutti", *map(str, words)], cwd=self.folder, env=self.environment,
                                text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, *words, ranks=1):
        process = self.start(*words, ranks=ranks)
        text = process.communicate()[0]
        if process.returncode != 0:
            sys.exit(f"tutti {' '.join(map(str, words))}: exit code {process.returncode}\n{text}")
        return text


def write_data(folder):
    (folder / "data").mkdir()
    shutil.copy(ROOT / "tests/golden/tokenizers/gpt2.json", folder / "data/tokenizer.json")
    bible = (ROOT / "examples/data/king_james.txt").read_text()[:16000]
    (folder / "data/text.txt").write_text(bible)
    verses = [line for line in bible.splitlines() if line.strip()]
    (folder / "data/texts.jsonl").write_text("".join(json.dumps({"text": verse}) + "\n" for verse in verses))
    draw = random.Random(17)
    rows = ["width,height,kind"]
    for _ in range(160):
        width, height = draw.gauss(3, 2), draw.uniform(-90, 10)
        rows.append(f"{width:.3f},{height:.2f},{'abc'[int(width + height / 30 > 1) + int(width > 4)]}")
    (folder / "data/table.csv").write_text("\n".join(rows) + "\n")


def ranks_of(recipe):
    return int(recipe.read_text().split("\n")[0].removeprefix("# ranks = "))


def steps_of(run):
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [step for step in (json.loads(line) for line in lines) if "lr" in step]


def stop_in_mid_epoch(version, case, ranks, whole):
    """Trains until `tutti stop`; returns the last step."""
    run, last = version.folder / "runs" / case, whole[-1]["step"]
    firsts = {after["step"] for before, after in zip(whole, whole[1:]) if before["epoch"] != after["epoch"]}
    for _ in range(TRIES):
        shutil.rmtree(run, ignore_errors=True)
        training = version.start("train", f"recipes/{case}.toml", "--run-dir", f"runs/{case}", ranks=ranks)
        while len(steps_of(run)) < 0.45 * last and training.poll() is None:
            time.sleep(0.002)
        version.run("stop", f"runs/{case}")
        text = training.communicate()[0]
        stopped = steps_of(run)[-1]["step"]
        if training.returncode == 0 and stopped < last and stopped + 1 not in firsts:
            return stopped
    sys.exit(f"{case}: no stop in mid-epoch in {TRIES} tries; the last at step {stopped}\n{text}")


def make_case(version, case, ranks):
    recipe, whole = f"recipes/{case}.toml", version.folder / "whole" / case
    version.run("train", recipe, "--run-dir", f"whole/{case}", ranks=ranks)
    digest = version.run("inspect", f"whole/{case}", "--digest").splitlines()[-1]
    steps = steps_of(whole)
    for entry in whole.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name not in ("metrics.jsonl", "result.json"):
            entry.unlink()
    stopped = stop_in_mid_epoch(version, case, ranks, steps)
    print(f"{case}: {ranks} ranks, stopped after step {stopped} of {steps[-1]['step']}", flush=True)
    return {"ranks": ranks, "stopped": stopped, "digest": digest}


def make(version, commit, names):
    told = {"commit": commit, "cases": {}, "refused": {}}
    write_data(version.folder)
    version.start("tokenize", "data/texts.jsonl", "--tokenizer", "data/tokenizer.json", "--no-eos-token",
                  "--to", "data/corpus").communicate()
    shutil.copytree(HERE / "recipes", version.folder / "recipes")
    for recipe in sorted((version.folder / "recipes").glob("*.toml")):
        case = recipe.stem
        if names and case not in names:
            continue
        checked = version.start("check", f"recipes/{recipe.name}")
        text = checked.communicate()[0]
        if checked.returncode != 0:
            told["refused"][case] = text.splitlines()[0]
            print(f"{case}: refused: {text.splitlines()[0]}", flush=True)
            recipe.unlink()
        else:
            told["cases"][case] = make_case(version, case, ranks_of(recipe))
    (version.folder / "version.json").write_text(json.dumps(told, indent=1) + "\n")


def main():
    args = arguments()
    commit = git("rev-parse", "--short=8", args.commit)
    name = f"{git('show', '-s', '--format=%cs', commit)}-{commit}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / name
        folder.mkdir()
        program = args.tutti.resolve() if args.tutti else built(commit, pathlib.Path(scratch) / "source")
        make(Version(folder, program), commit, args.cases)
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as archive:
            archive.add(folder, name, filter=without_owner)


def without_owner(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main()
