"""Where trainings of several seeds end, in tutti and in PyTorch. Seeds give both other weights and orders, so
the spreads over seeds are compared.
"""

import json
import statistics
from pathlib import Path

from gpu import run

ROOT = Path(__file__).resolve().parent.parent


def train(tutti, recipe, folder, settings):
    """Trains a recipe of examples/ on one thread."""
    run([tutti, "train", ROOT / f"examples/{recipe}.toml", "--run-dir", folder,
         *(word for setting in ["device.threads=1", *settings] for word in ("--set", setting))])


def last_value(folder, metric):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line[metric] for line in lines if metric in line][-1]


def print_ends(title, ends):
    for name, values in ends.items():
        print(f"{title}: {name:9} mean {statistics.mean(values):.4g}, standard deviation "
              f"{statistics.stdev(values):.2g}, from {min(values):.4g} to {max(values):.4g}", flush=True)


def are_apart(own, peers):
    """Whether the means are more than two standard deviations of the peer's apart."""
    return abs(statistics.mean(own) - statistics.mean(peers)) > 2 * statistics.stdev(peers)
