"""Datasets that MosaicML Streaming writes now: tutti trains on them, local and fetched, and reads every
encoding as Streaming does (tests/golden/make_mds.py).

tests/clients.sh runs this, with the clients' pinned versions.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
from streaming import MDSWriter

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("TUTTI_BUILD_DIR", SOURCE / "build")).resolve()
RECIPE = """
seed = 3
[model]
kind = "gpt"
n_layer = 1
n_embd = 16
n_head = 2
n_positions = 16
[data.train]
kind = "mds"
columns = { input = "tokens", target = "tokens" }
num_classes = 50
batch_size = 8
shuffle = true
shuffle_block = 40
[[data.train.transforms]]
kind = "next_token"
[optimizer]
kind = "adamw"
[train]
max_duration = "2ep"
"""


class Streaming(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def tutti(self, *words):
        done = subprocess.run([BUILD / "tutti", *map(str, words)], capture_output=True, text=True,
                              cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def write_tokens(self, name, **options):
        draw = np.random.default_rng(1)
        columns = {"tokens": "ndarray:int32:16"}
        with MDSWriter(out=str(self.folder / name), columns=columns, size_limit=2000, **options) as out:
            for _ in range(200):
                out.write({"tokens": draw.integers(0, 50, 16).astype(np.int32)})

    def digest_after(self, name, *settings):
        recipe = self.folder / f"{name}.toml"
        recipe.write_text(RECIPE.replace('kind = "mds"', "\n".join(['kind = "mds"', *settings])))
        self.tutti("check", recipe)
        self.tutti("train", recipe, "--run-dir", name, "--local-ranks", "2")
        return self.tutti("inspect", name, "--digest")

    def test_local_compressed_and_fetched_data_train_alike(self):
        self.write_tokens("plain")
        self.write_tokens("zstd", compression="zstd:9", hashes=["sha1", "xxh64"])
        self.write_tokens("gz", compression="gz")
        fetch = 'fetch = "cp {source} {target}"'
        plain = self.digest_after("a", 'path = "plain"')
        self.assertEqual(plain, self.digest_after("b", 'path = "zstd"'))
        self.assertEqual(plain, self.digest_after("c", 'path = "gz"'))
        self.assertEqual(plain, self.digest_after(
            "d", 'path = "local"', f'remote = "{self.folder}/zstd"', fetch, "cache_mb = 0.008"))
        kept = sum(file.stat().st_size for file in (self.folder / "local").glob("*.mds"))
        self.assertLess(kept, 16000)

    def test_every_encoding_is_read_as_streaming_reads_it(self):
        subprocess.run([sys.executable, SOURCE / "tests/golden/make_mds.py", "--to", self.folder], check=True)
        test = BUILD / "tests/data_test"
        done = subprocess.run([test, "--gtest_filter=MdsDataset.EveryEncoding*"], capture_output=True,
                              text=True, env={**os.environ, "TUTTI_GOLDEN_DIR": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stdout)
        with h5py.File(self.folder / "mds/values.h5") as file:
            self.assertGreater(len(file), 30)


if __name__ == "__main__":
    unittest.main()
