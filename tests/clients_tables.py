"""Tables: what tutti predicts for random tables that pandas wrote, as CSV and as Parquet, is what NumPy
computes with scikit-learn's arithmetic (a StandardScaler by hand) from the weights of the same run; recipes
of `tutti init` for them train.

tests/clients.sh runs this, with the clients' pinned versions. TABLES and SEED may be set in the environment.
"""
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import h5py
import numpy as np
import pandas as pd
from safetensors.numpy import load_file

SOURCE = pathlib.Path(__file__).resolve().parents[1]
TUTTI = pathlib.Path(os.environ.get("TUTTI_BUILD_DIR", SOURCE / "build")).resolve() / "tutti"
COUNT, SEED = int(os.environ.get("TABLES", 6)), int(os.environ.get("SEED", 1))
TEXTS = ["plain", "with, comma", 'with "quotes"', "two\nlines", "Zürich", "人", " blanks ", "tab\tin",
         "a;b", "'", '"', "1e5x"]
RECIPE = """
run_name = "table"
seed = 3
[model]
kind = "mlp"
hidden = []
loss = "mse"
[data.train]
kind = "{kind}"
path = "{train}"
target = ["target"]
one_hot = ["text"]
normalize = true
missing = "mean"
batch_size = 16
[data.eval]
kind = "{kind}"
path = "{eval}"
[optimizer]
kind = "sgd"
lr = 0.01
[train]
max_duration = "2ep"
"""


def frame_of(draw, rows, texts):
    """Numbers of all magnitudes and types, with holes, and texts."""
    numbers = np.random.default_rng(draw.randrange(2**32))
    columns = {}
    for c in range(draw.randrange(1, 6)):
        kind = draw.choice(["normal", "huge", "tiny", "int", "bool", "constant"])
        values = {"normal": numbers.normal(size=rows), "huge": numbers.normal(5e8, 1e7, rows),
                  "tiny": numbers.normal(size=rows) * 1e-20, "int": numbers.integers(-1000, 1000, rows),
                  "bool": numbers.random(rows) < 0.5, "constant": np.full(rows, 0.1)}[kind]
        columns[f"{kind}, {c}"] = values
    frame = pd.DataFrame(columns)
    for name in frame.columns:
        if frame[name].dtype == float and "constant" not in name:
            frame.loc[numbers.random(rows) < 0.1, name] = np.nan
    frame["text"] = [texts[i % len(texts)] for i in range(rows)]
    frame["target"] = numbers.normal(size=rows)
    return frame.sample(frac=1, random_state=SEED)


def inputs_of(frame, train):
    numbers = [name for name in train.columns if name not in ("text", "target")]
    held = train[numbers].astype(np.float32).astype(np.float64)
    mean = held.mean()
    filled = held.fillna(mean).astype(np.float32).astype(np.float64)
    std = filled.std(ddof=0).where(filled.nunique() > 1, 1)
    mine = frame[numbers].astype(np.float32).astype(np.float64).fillna(mean)
    categories = sorted(train["text"].unique(), key=lambda text: text.encode())
    one_hot = np.stack([frame["text"] == text for text in categories], 1)
    return np.concatenate([(mine - mean) / std, one_hot], 1)


class Tables(unittest.TestCase):
    def run_tutti(self, *words, folder):
        done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, cwd=folder,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def write(self, frame, path, draw):
        if path.suffix == ".parquet":
            compression = draw.choice(["snappy", "gzip", "zstd", "brotli", "lz4"])
            frame.to_parquet(path, index=False, compression=compression,
                             row_group_size=draw.choice([7, 1000]))
        else:
            frame.to_csv(path, index=False, lineterminator=draw.choice(["\n", "\r\n"]),
                         quoting=draw.choice([0, 1, 2]), encoding=draw.choice(["utf-8", "utf-8-sig"]))

    def test_predictions_are_those_of_numpy(self):
        draw = random.Random(SEED)
        for i in range(COUNT):
            for kind in ("csv", "parquet"):
                with self.subTest(table=i, kind=kind), tempfile.TemporaryDirectory() as scratch:
                    self.one_table(draw, kind, pathlib.Path(scratch))

    def one_table(self, draw, kind, folder):
        texts = draw.sample(TEXTS, draw.randrange(1, len(TEXTS)))
        train = frame_of(draw, 100, texts)
        new = train.sample(20, random_state=1).copy()
        self.write(train, folder / f"train.{kind}", draw)
        self.write(new.drop(columns="target"), folder / f"new.{kind}", draw)
        self.write(train, folder / f"eval.{kind}", draw)
        recipe = folder / "recipe.toml"
        recipe.write_text(RECIPE.format(kind=kind, train=f"train.{kind}", eval=f"eval.{kind}"))
        self.run_tutti("train", recipe, "--run-dir", folder / "run", folder=folder)
        (folder / f"train.{kind}").unlink()
        self.run_tutti("predict", recipe, "--checkpoint", folder / "run", "--out", "out.h5", "--set",
                       f"data.eval.path={folder / ('new.' + kind)}", folder=folder)
        self.run_tutti("export", folder / "run", "--to", "w.safetensors", folder=folder)
        weights = load_file(folder / "w.safetensors")
        weight = next(value for value in weights.values() if value.ndim == 2)
        bias = next(value for value in weights.values() if value.ndim == 1)
        with h5py.File(folder / "out.h5") as file:
            got = file["output"][()]
        wanted = inputs_of(new, train) @ weight.T + bias
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-5)

    def test_recipes_of_init_train(self):
        draw = random.Random(SEED)
        for kind in ("csv", "parquet"):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as scratch:
                folder = pathlib.Path(scratch)
                self.write(frame_of(draw, 200, TEXTS[:3]), folder / f"t.{kind}", draw)
                self.run_tutti("init", f"t.{kind}", folder=folder)
                self.run_tutti("train", "recipe.toml", "--set", "train.max_duration=1ep", folder=folder)


if __name__ == "__main__":
    unittest.main()
