"""make_targets.py: writes targets.h5 from scikit-learn's copies of UCI's wine and digits (needs scikit-learn,
h5py): a value, several labels, and a class for each pixel."""
import pathlib

import h5py
import numpy as np
from sklearn.datasets import load_digits, load_wine

DIGITS = 400
SHUFFLE_SEED = 1991
ODD, PRIME, ROUND = {1, 3, 5, 7, 9}, {2, 3, 5, 7}, {0, 6, 8, 9}  # the last: digits with a closed loop

random = np.random.RandomState(SHUFFLE_SEED)


def write(file, name, inputs, targets):
    order = random.permutation(len(inputs))
    for part, rows in (("train", order[len(order) // 5:]), ("test", order[:len(order) // 5])):
        for array, values in (("input", inputs), ("target", targets)):
            file.create_dataset(f"{name}/{part}/{array}", data=values[rows], track_times=False,
                                compression="gzip", shuffle=True)


def values(file):
    wine = load_wine().data
    wine = ((wine - wine.mean(0)) / wine.std(0)).astype("f4")
    write(file, "wine", wine[:, 1:], wine[:, 0])


def several_labels(file, images, digits):
    labels = [[digit in kind for kind in (ODD, PRIME, ROUND)] for digit in digits]
    write(file, "labels", images, np.array(labels, "u1"))


def masks(file, images):
    ink = (images[:, 0] > 0.5).astype("u1")
    noisy = images + 0.25 * random.randint(-1, 2, images.shape)
    write(file, "masks", noisy.astype("f4"), ink)


with h5py.File(pathlib.Path(__file__).with_name("targets.h5"), "w") as file:
    data = load_digits()
    shown = (data.images[:DIGITS, None] / 16).astype("f4")
    values(file)
    several_labels(file, shown, data.target[:DIGITS])
    masks(file, shown)
