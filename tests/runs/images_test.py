"""The recipe of docs/data.md, on a small folder of CIFAR-10's form: checked, trained with workers, evaluated,
predicted from and replayed."""
import random
import re
import shutil

import tutti_run
from tutti_run import SOURCE, train, tutti

REST = """
[model]
kind = "resnet_cifar"
[optimizer]
kind = "sgd"
[train]
max_duration = "3ba"
"""
GOLDEN = SOURCE / "tests/golden/images"
SIZES = {"data__train__batch_size": 8}


def write_images(folder):
    """Ten images in each file, whose brightness is their class."""
    folder.mkdir(parents=True)
    draw = random.Random(1)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = b"".join(bytes([label]) + bytes(25 * label + draw.randrange(25) for _ in range(3072))
                           for label in range(10))
        (folder / f"{name}.bin").write_bytes(records)


class Images(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        write_images(self.folder / "data" / "cifar-10-batches-bin")
        shown = tutti_run.shown_in("data.md", "toml", having="cifar10")
        self.recipe = self.folder / "images.toml"
        self.recipe.write_text("seed = 3\n" + shown + REST)

    def run_well(self, *arguments):
        finished = tutti(*arguments).wait()
        self.assertEqual(finished.code, 0, finished.text)
        return finished.text

    def test_the_recipe_of_the_page(self):
        run, out = self.folder / "run", self.folder / "out.h5"
        self.assertIn("50 samples", self.run_well("check", self.recipe))
        train(run, recipe=self.recipe, ranks=2, **SIZES)
        last = tutti_run.metrics(run)[-1]
        self.assertIn("metrics/eval/MulticlassAccuracy", last)
        self.assertIn("output [10, 10]", self.run_well("predict", self.recipe, "--checkpoint", run, "--out", out))
        self.assertRegex(self.run_well("replay", run), r"digests, all equal")
        train(self.folder / "alone", recipe=self.recipe, ranks=2, data__train__num_workers=0, **SIZES)
        self.assert_learnt_the_same(run, self.folder / "alone")

    def write_folders(self):
        """Two classes of files of two sizes, and one that is no image."""
        for part in ("train", "val"):
            for i, (name, of_class) in enumerate((("420_19x37.jpg", "cat"), ("large_38x74.jpg", "cat"),
                                                  ("rgb_19x37.png", "dog"), ("lossy_19x37.webp", "dog"))):
                folder = self.folder / "photos" / part / of_class
                folder.mkdir(parents=True, exist_ok=True)
                for copy in range(4):
                    shutil.copy(GOLDEN / name, folder / f"{i}_{copy}{name[-5:]}")
        shown = tutti_run.shown_in("data.md", "toml", having="image_folder")
        larger = shown.replace('"center_crop"\nsize = 224', '"center_crop"\nsize = 36')  # than in training
        self.recipe.write_text("seed = 3\n" + larger.replace("224", "32").replace("256", "36") + REST)

    def test_the_recipe_for_folders(self):
        self.write_folders()
        run, out = self.folder / "run", self.folder / "out.h5"
        self.assertIn("16 samples", self.run_well("check", self.recipe))
        train(run, recipe=self.recipe, ranks=2, **SIZES)
        self.assertIn("metrics/eval/MulticlassAccuracy", tutti_run.metrics(run)[-1])
        self.assertIn("output [16, 2]", self.run_well("predict", self.recipe, "--checkpoint", run, "--out", out))
        train(self.folder / "alone", recipe=self.recipe, ranks=2, data__train__num_workers=0, **SIZES)
        self.assert_learnt_the_same(run, self.folder / "alone")

    def test_files_that_are_no_images(self):
        self.write_folders()
        bad = self.folder / "photos/train/cat/9.jpg"
        bad.write_bytes(b"no image")
        checked = tutti("check", self.recipe, "--data").wait()
        self.assertEqual(checked.code, 2, checked.text)
        self.assertIn(f"{bad}: sample 8: no image of a kind that is read", checked.text)
        run = tutti("train", self.recipe, "--run-dir", self.folder / "run", "--set", "data.train.on_bad_sample=skip",
                    "--set", "data.train.batch_size=17").wait()
        self.assertEqual(run.code, 0, run.text)
        # Batches that were loaded ahead count, too.
        self.assertRegex(run.text, rf"[3-5] times an image could not be read, and the next took its place; first {bad}")

    def test_without_to_tensor_the_error_says_what_is_missing(self):
        text = self.recipe.read_text()
        self.recipe.write_text(re.sub(r"\[\[data.train.transforms]]\nkind = \"(to_tensor|normalize)\"\n", "", text))
        self.recipe.write_text(re.sub(r"(mean|std) = .*\n", "", self.recipe.read_text(), count=2))
        finished = tutti("check", self.recipe).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertIn('model.kind = "resnet_cifar": expected \'input\' as float32', finished.text)
        self.assertIn("[[data.train.transforms]] with to_tensor makes float32 of it", finished.text)


if __name__ == "__main__":
    tutti_run.main()
