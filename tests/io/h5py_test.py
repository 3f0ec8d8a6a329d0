"""h5py_test.py CHECKPOINT_H5 [missing]: every tensor of sample_checkpoint.h is there, whole, by name."""
import sys

import h5py
import numpy as np

SHAPES = {
    "layer1.0.conv1.weight": ((7, 3, 3, 3), "f4"),
    "fc.bias": ((2,), "f8"),
    "embedding.weight": ((1000, 33), "f4"),
    "half": ((5, 4), "f2"),
    "mask": ((9,), "bool"),
    "bytes": ((9,), "u1"),
    "bn.num_batches_tracked": ((), "i8"),
    "empty": ((0, 3), "f4"),
}


def expected(name, shape, dtype):
    if shape == ():
        return np.array(57, dtype)
    numbers = np.arange(int(np.prod(shape)), dtype="i8")
    return (numbers % 2 if dtype == "bool" else numbers).astype(dtype).reshape(shape)


def check_whole(file):
    for name, (shape, dtype) in SHAPES.items():
        want = expected(name, shape, dtype)
        for dataset in (file["model"][name], file[name]):
            got = dataset[()]
            assert dataset.shape == shape and got.dtype == want.dtype, (name, dataset)
            assert np.array_equal(got, want), name
    assert np.array_equal(file["brain"].astype("f4")[()], np.arange(20, dtype="f4").reshape(5, 4))
    assert np.array_equal(file["optimizers/fc.bias/momentum_buffer"][()], np.arange(2, dtype="f4"))
    assert file["optimizers/fc.bias/step"][()] == 58


def check_missing_rank_reads_as_nan(file):
    rows = file["embedding.weight"][()]
    assert np.isnan(rows[334:668]).all() and not np.isnan(rows[:334]).any() and not np.isnan(rows[668:]).any()


with h5py.File(sys.argv[1]) as opened:
    check_missing_rank_reads_as_nan(opened) if sys.argv[2:] == ["missing"] else check_whole(opened)
print(sys.argv[1], "read by h5py", h5py.__version__)
