#!/usr/bin/env python3
"""Measures tables as training data, on one core: the seconds to open a CSV file of about 100 MB and the same
table in Parquet, beside pandas' readers, and the rows a second of shuffled batches, beside PyTorch's
DataLoader over a TensorDataset and over a DataFrame.

All are run in turn, so many times as --turns says; prints the median, the lowest and the highest. Needs
pandas and pyarrow: run it by the Python of tests/clients.sh.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

HERE = Path(__file__).resolve().parent
TARGET = "c7"


class Rows(Dataset):
    """Rows of a DataFrame, one by one, as tutorials write it."""

    def __init__(self, frame):
        self.frame = frame

    def __len__(self):
        return len(self.frame)

    def __getitem__(self, index):
        row = self.frame.iloc[index].to_numpy(np.float32)
        return torch.from_numpy(row[:-1]), torch.tensor(row[-1])


def rows_a_second(data, batch):
    rows, begin = 0, time.perf_counter()
    for inputs, _ in DataLoader(data, batch_size=batch, shuffle=True):
        rows += len(inputs)
        if time.perf_counter() - begin > 3:
            break
    return rows / (time.perf_counter() - begin)


def tensors(frame):
    inputs = torch.from_numpy(frame.drop(columns=TARGET).to_numpy(np.float32))
    inputs = (inputs - inputs.mean(0)) / inputs.std(0, correction=0)
    return TensorDataset(inputs, torch.from_numpy(frame[TARGET].to_numpy(np.float32)))


def of_pandas(path, read, batch):
    begin = time.perf_counter()
    frame = read(path)
    opened = time.perf_counter() - begin
    data = tensors(frame)
    whole = time.perf_counter() - begin
    return {"open_s": opened, "open_and_normalize_s": whole,
            "TensorDataset rows_per_s": rows_a_second(data, batch),
            "DataFrame rows_per_s": rows_a_second(Rows(frame), batch)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=HERE.parent / "build/bench/table_bench")
    parser.add_argument("--rows", type=int, default=660_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    if not args.bench.exists():
        sys.exit(f"{args.bench} is not there: make build")
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        draw = np.random.default_rng(1)
        frame = pd.DataFrame(draw.normal(size=(args.rows, 8)), columns=[f"c{i}" for i in range(8)])
        paths = {"csv": Path(scratch) / "t.csv", "parquet": Path(scratch) / "t.parquet"}
        frame.to_csv(paths["csv"], index=False)
        frame.to_parquet(paths["parquet"])
        print({kind: f"{path.stat().st_size / 1e6:.0f} MB" for kind, path in paths.items()})
        del frame
        for _ in range(args.turns):
            for kind, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
                command = [args.bench, paths[kind], TARGET, str(args.batch)]
                ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                for who, figures in (("tutti", ours), ("pandas", of_pandas(paths[kind], read, args.batch))):
                    for name, value in figures.items():
                        found.setdefault((kind, who, name), []).append(value)
    for (kind, who, name), values in found.items():
        spread = f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"
        print(f"{kind:8} {who:7} {name:26} {spread}")


if __name__ == "__main__":
    main()
