"""The file and the recipe that docs/data.md shows, written by h5py, trained on, and gone wrong in the ways of
a first hour: other names, no layout, marks for targets that do not count, compressed chunks."""
import os
import re
import subprocess
import unittest

import tutti_run
from tutti_run import train, tutti

PYTHON = os.environ.get("TUTTI_TORCH_PYTHON", "")
REST = """
[model]
kind = "resnet_cifar"
width = 2
[optimizer]
kind = "sgd"
[train]
max_duration = "2ba"
"""
COMPRESSED = """
import h5py
import numpy as np
with h5py.File("mine.h5") as plain, h5py.File("compressed.h5", "w") as file:
    for part in plain:
        images, labels = plain[part]["images"][:], plain[part]["labels"][:].astype("uint8")
        file.create_dataset(f"{part}/images", data=images, chunks=(60, 32, 32, 3), compression="gzip",
                            shuffle=True)
        file[f"{part}/labels"] = labels
        file[f"{part}/marked"] = np.where(np.arange(len(labels)) % 4 == 0, 255, labels).astype("uint8")
"""


def has_h5py():
    found = PYTHON and subprocess.run([PYTHON, "-c", "import h5py"], stderr=subprocess.DEVNULL)
    return bool(found) and found.returncode == 0


@unittest.skipUnless(has_h5py(), "no Python with h5py")
class DataPage(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        for code in (tutti_run.shown_in("data.md", "python"), COMPRESSED):
            subprocess.run([PYTHON, "-c", code], cwd=self.folder, check=True)
        self.recipe = self.folder / "mine.toml"
        self.recipe.write_text("seed = 3\n" + tutti_run.shown_in("data.md", "toml", having="mine.h5") + REST)

    def refused(self, **values):
        finished = tutti("check", self.recipe, *tutti_run.settings(**values)).wait()
        self.assertEqual(finished.code, 2, finished.text)
        return finished.errors()[0]  # of each section that is wrong there is one

    def test_the_file_and_the_recipe_of_the_page(self):
        plain, compressed, scarce = (self.folder / name for name in ("plain", "compressed", "scarce"))
        train(plain, recipe=self.recipe)
        self.assertIn("metrics/eval/MulticlassAccuracy", tutti_run.metrics(plain)[-1])
        for line in tutti_run.metrics(plain)[:2]:
            self.assertGreater(line["data_wait_ms"], 0)
            self.assertGreater(line["step_ms"], line["data_wait_ms"])
        files = {f"data__{part}__path": self.folder / "compressed.h5" for part in ("train", "eval")}
        train(compressed, recipe=self.recipe, data__train__num_workers=2, **files)
        self.assert_learnt_the_same(plain, compressed)
        finished = train(scarce, "--local-ranks", 2, recipe=self.recipe, ranks=1, data__train__cache_mb=1,
                         **files)
        self.assert_learnt_the_same(plain, scarce)
        warned = r"data.train: .*'train/images' is stored in chunks of 60 samples \(shuffle, gzip\)"
        self.assertRegex(finished.text, warned)
        check = tutti("check", self.recipe, *tutti_run.settings(data__train__cache_mb=1, **files)).wait()
        self.assertRegex(check.text, warned)
        self.assertNotRegex(tutti_run.log(compressed), "in chunks of")
        self.assertIn("all equal", tutti("replay", scarce).wait().text)

    def test_targets_that_do_not_count(self):
        marked = {"data__train__path": self.folder / "compressed.h5", "data__train__arrays__target": "marked",
                  "data__train__num_classes": 10}
        self.assertRegex(self.refused(**marked),
                         r"data.train.path = .*array 'train/marked', row 0: labels out of range: "
                         r"255 is not in \[0, 10\).*model.ignore_index = 255")
        text = self.recipe.read_text()
        self.recipe.write_text(text.replace("resnet_cifar", "mlp").replace("width = 2", ""))
        one, two = self.folder / "one", self.folder / "two"
        train(one, recipe=self.recipe, ranks=1, model__ignore_index=255, train__grad_accum=3, **marked)
        train(two, recipe=self.recipe, ranks=2, model__ignore_index=255, **marked)
        for first, second in zip(tutti_run.metrics(one)[:2], tutti_run.metrics(two)[:2]):
            self.assertAlmostEqual(first["loss"], second["loss"], places=4)

    def test_the_first_mistakes_are_named(self):
        self.assertRegex(self.refused(data__train__arrays__input="image"),
                         r'--set: data.train.arrays.input = "image": .*no array \'train/image\'; did you '
                         r"mean 'train/images'\? The file has test/images uint8 \[64, 32, 32, 3\], ")
        self.assertRegex(self.refused(data__train__mean=[0.5, 0.5]),
                         r"--set: data.train.mean = \[0.5, 0.5\]: the images have 3 channels")
        text = self.recipe.read_text()
        self.recipe.write_text(re.sub(r"arrays = .*\n", "", text))
        self.assertRegex(self.refused(), r'no array .input.*arrays = { input = "images", target = "labels" }')
        self.recipe.write_text(re.sub(r"(layout|mean|std) = .*\n", "", text))
        self.assertRegex(self.refused(), r"mine.toml:\d+: model.kind = .*data.train.layout = \"NHWC\"")
        text = text.replace('kind = "hdf5"', 'kind = "cifar10"', 1)
        self.recipe.write_text(text.replace('group = "train"\n', ""))
        self.assertRegex(self.refused(), r"arrays.*unknown key of dataset cifar10; it is a key of hdf5")


if __name__ == "__main__":
    tutti_run.main()
