"""Writes numpy/: arrays and tokens in files that numpy saved.

Run: python make_numpy.py   (numpy)
"""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent / "numpy"
HERE.mkdir(exist_ok=True)
ROWS = np.arange(7)
ARRAYS = {
    "images": (ROWS[:, None, None] * 30 + np.arange(12).reshape(1, 3, 4)).astype(np.uint8),
    "wide": np.arange(14, dtype=np.float64).reshape(7, 2) / 3,
    "narrow": (ROWS / 4).astype(np.float16),
    "labels": (ROWS % 3).astype(np.uint16),
    "marks": ROWS % 2 == 0,
}
np.savez(HERE / "stored.npz", **ARRAYS)
np.savez_compressed(HERE / "deflated.npz", **ARRAYS)
with open(HERE / "tokens.npy", "wb") as file:  # numpy's second version of the header
    np.lib.format.write_array(file, np.arange(0, 140_000, 7_000, dtype=np.uint32), version=(2, 0))
