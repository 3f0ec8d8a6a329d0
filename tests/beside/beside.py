"""beside.py TUTTI [--seeds 1..6] [--mpirun-every N] [--keep FOLDER]: tutti beside plain PyTorch.

Each seed draws a recipe from space.toml; tutti and the loop of training.py train it from the same weights.
README.md says what is compared. Exits with 1 if a draw differs.
"""
import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import traceback
import warnings

try:
    import h5py  # noqa: F401, of training.py
    import torch
except ImportError as missing:
    print(missing)
    sys.exit(77)

from training import Skip, Training

HERE = pathlib.Path(__file__).parent
BOUND = 1e-5    # relative, of float32
OF_ITS_OWN = 5  # times the loop's own movement, where roundings grow
FIRST = {"fp32": 1e-6, "amp_bf16": 4 * 2.0**-9, "amp_fp16": 4 * 2.0**-12}  # of the first loss: see README.md
NUDGES = (1, 2, 3, 4)
IS_NIGHTLY = "TUTTI_NIGHTLY" in os.environ
ALL_SKIPPED = 4  # tutti's exit code, with losses in metrics.jsonl
KEYS = {"loss": "loss", "rate": "lr", "evaluation": "metrics/eval/loss",
        "accuracy": "metrics/eval/MulticlassAccuracy"}  # of metrics.jsonl


def read(path):
    text = path.read_text()
    return tomllib.loads(text), int(re.match(r"#.* on (\d+) ranks?\n", text)[1])


def draw(tutti, first, last, folder):
    command = [tutti, "simulate", HERE / "space.toml", "--seeds", f"{first}..{last}", "--write", folder]
    print(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout, end="", flush=True)


class Run:
    """A run of tutti, in the background."""

    def __init__(self, tutti, path, ranks, by_mpirun):
        self.folder, weights = path.with_suffix(""), path.with_suffix(".pt")
        arguments = ["train", path, "--set", f"model.weights={weights}", "--run-dir", self.folder]
        command = [tutti, *arguments, "--local-ranks", str(ranks)]
        if by_mpirun:
            mpirun = HERE.parent.parent / "tools" / "mpirun.sh"
            command = [mpirun, "-np", str(ranks), tutti, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"})

    def results(self):
        """As Training.results; None if the run is refused, with `errors`."""
        _, self.errors = self.process.communicate()
        if self.process.returncode not in (0, ALL_SKIPPED):
            return None
        records = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        found = {name: [one[key] for one in records if key in one] for name, key in KEYS.items()}
        with h5py.File(self.folder / "checkpoints/latest/checkpoint.h5") as file:
            found["weights"] = {name: torch.as_tensor(one[()]) for name, one in file["model"].items()}
        return found


def results(training):
    out, has_classes = training.out, training.recipe["data"]["train"]["kind"] == "hdf5"
    return {"loss": out["loss"], "rate": out["lr"],
            "evaluation": [one["loss"] for one in out["evaluations"]],
            "accuracy": [one["accuracy"] for one in out["evaluations"]] if has_classes else [],
            "weights": training.weights(training.model)}


def train(recipe, ranks, nudge=None):
    training = Training(recipe, ranks, nudge)
    training.train()
    return results(training)


def differences(mine, theirs):
    """Relative to `mine`: one for each number, or for the norm of each tensor."""
    if isinstance(mine, dict):
        return [((one - theirs[name].view(one.shape)).float().norm() / (one.float().norm() + 1e-6)).item()
                for name, one in mine.items()]
    return [abs(one - other) / max(abs(one), 1e-6) for one, other in zip(mine, theirs)]


def bounds(mine, moved):
    """A bound for each number: of float32, or by the loop's own movement, in a series until then."""
    own = [max(parts) for parts in zip(*(differences(mine, other) for other in moved))]
    own = own if isinstance(mine, dict) else itertools.accumulate(own, max)
    return [max(BOUND, OF_ITS_OWN * most) for most in own]


class Finding(Exception):
    """How a draw differs."""


def summary(recipe, ranks):
    train, data, model = recipe["train"], recipe["data"]["train"], recipe["model"]
    layers = "-".join(layer.split("(")[0] for layer in model.get("layers", []))
    words = [model.get("model_type", model["kind"]), layers, recipe["optimizer"]["kind"],
             recipe["scheduler"]["kind"], f"{ranks} ranks", recipe["sharding"]["strategy"],
             train["precision"], train["max_duration"], *(one["kind"] for one in recipe["algorithms"])]
    return " ".join(filter(None, words))


def kind_of(recipe):
    is_muon = recipe["optimizer"]["kind"] == "muon"
    return recipe["train"]["precision"] + (" with muon" if is_muon else "")


def compare(tutti, path, by_mpirun):
    """The largest difference of the losses and evaluations, and if roundings grow in the loop itself."""
    recipe, ranks = read(path)
    training = Training(recipe, ranks)
    torch.save(training.model.state_dict(), path.with_suffix(".pt"))
    run = Run(tutti, path, ranks, by_mpirun)
    try:
        training.train()
    finally:
        theirs = run.results()
    if theirs is None:
        raise Finding(run.errors.strip())
    return judge(recipe, ranks, results(training), theirs)


def judge(recipe, ranks, mine, theirs):
    for name in (*KEYS, "weights"):
        if len(mine[name]) != len(theirs[name]):
            raise Finding(f"{name}: {len(theirs[name])} of them, not {len(mine[name])}")
    of = {name: differences(mine[name], theirs[name]) for name in mine}
    if not max(of["rate"], default=0.0) < 1e-9:
        raise Finding(f"rates: {theirs['rate']}, not {mine['rate']}")
    if not of["loss"][0] < FIRST[recipe["train"]["precision"]]:
        raise Finding(f"first loss: {theirs['loss'][0]}, not {mine['loss'][0]}")
    worst = max(of["loss"] + of["evaluation"])
    if worst < BOUND and max(of["accuracy"], default=0.0) > 1e-9:
        raise Finding(f"accuracies: {theirs['accuracy']}, not {mine['accuracy']}")
    if all(difference < BOUND for name in ("loss", "evaluation", "weights") for difference in of[name]):
        return worst, False
    moved = [train(recipe, ranks, nudge) for nudge in NUDGES]
    for name in ("loss", "evaluation", "weights"):
        allowed = bounds(mine[name], [one[name] for one in moved])
        for place, (found, bound) in enumerate(zip(of[name], allowed)):
            if not found < bound:
                at = list(mine[name])[place] if name == "weights" else place
                raise Finding(f"{name} {at}: differ by {found:.1e}, bound {bound:.1e}")
    return worst, worst >= BOUND


def show(name, found):
    ordered = sorted(found)
    at = [ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.5, 0.9, 0.99)]
    print(f"  {name:24} {len(ordered):4} draws: median {at[0]:.1e}, 90 % {at[1]:.1e}, 99 % {at[2]:.1e}, "
          f"worst {ordered[-1]:.1e}")


def compare_all(tutti, seeds, folder, mpirun_every):
    found, skipped, failed = collections.defaultdict(list), collections.Counter(), 0
    for seed in seeds:
        path = folder / f"{seed}.toml"
        recipe, ranks = read(path)
        try:
            worst, grows = compare(tutti, path, mpirun_every and seed % mpirun_every == 0)
        except Skip as skip:
            skipped[str(skip)] += 1
        except Exception as error:
            failed += 1
            why = error if isinstance(error, Finding) else traceback.format_exc()
            print(f"seed {seed} ({summary(recipe, ranks)}): {why}", flush=True)
        else:
            found[kind_of(recipe) + (", roundings grow" if grows else "")].append(worst)
    for name in sorted(found):
        show(name, found[name])
    for why, count in skipped.items():
        print(f"  skipped {count}: {why}")
    print(f"  failed {failed}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tutti")
    parser.add_argument("--seeds", default="1..510" if IS_NIGHTLY else "1..6")
    parser.add_argument("--mpirun-every", type=int, default=40 if IS_NIGHTLY else 0,
                        help="N: every N-th draw by mpirun, others as ranks of a process")
    parser.add_argument("--keep", help="the folder of the recipes and runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    first, last = map(int, given.seeds.split(".."))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(given.keep or scratch).resolve()
        draw(given.tutti, first, last, folder)
        return compare_all(given.tutti, range(first, last + 1), folder, given.mpirun_every)


if __name__ == "__main__":
    sys.exit(main())
