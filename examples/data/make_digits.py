"""make_digits.py: writes digits.h5 from scikit-learn's copy of the UCI digits (needs scikit-learn, h5py)."""
import pathlib

import h5py
import numpy as np
from sklearn.datasets import load_digits

TRAIN = 1437  # of 1,797
SHUFFLE_SEED = 1998

digits = load_digits()
images = (digits.images / 16).astype("f4")[:, None]  # [1797, 1, 8, 8] in [0, 1]
labels = digits.target.astype("i8")
order = np.random.RandomState(SHUFFLE_SEED).permutation(len(labels))

with h5py.File(pathlib.Path(__file__).with_name("digits.h5"), "w", track_order=False) as file:
    for group, rows in (("train", order[:TRAIN]), ("test", order[TRAIN:])):
        file.create_dataset(f"{group}/input", data=images[rows], track_times=False)
        target = file.create_dataset(f"{group}/target", data=labels[rows], track_times=False)
        target.attrs["num_classes"] = np.int64(10)
    print({name: file[name].shape for name in ("train/input", "train/target", "test/input", "test/target")})
