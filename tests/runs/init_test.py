"""`tutti init` looks into data of each kind and writes a recipe that is good and trains at once."""
import gzip
import json
import math
import os
import shutil
import struct
import subprocess
import tomllib

import tutti_run
from tutti_run import EXAMPLES, TUTTI

PYTHON = os.environ.get("TUTTI_TORCH_PYTHON", "python3")
# Files with names of their own.
WRITE = """
import h5py, numpy as np
rng = np.random.default_rng(0)
labels = lambda n: rng.integers(0, 7, n)
def images(n, *shape): return rng.integers(0, 256, (n, *shape), dtype=np.uint8)
def file(name, **arrays):
    with h5py.File(name, "w") as out:
        for path, values in arrays.items():
            out.create_dataset(path.replace("__", "/"), data=values)
file("flat.h5", x_train=images(400, 28, 28, 1), y_train=labels(400), x_test=images(80, 28, 28, 1), y_test=labels(80))
file("groups.h5", train__images=images(300, 3, 20, 20), train__labels=labels(300), train__ids=np.arange(300),
     val__images=images(60, 3, 20, 20), val__labels=labels(60), val__ids=np.arange(60))
file("parts.h5", images__train=rng.normal(size=(200, 24, 24, 3)).astype("f4"), labels__train=labels(200).astype("u1"))
file("my_train.h5", x=rng.normal(size=(100, 9)), y=labels(100))
file("my_val.h5", x=rng.normal(size=(30, 9)), y=labels(30))
file("vectors.h5", features=rng.normal(size=(500, 12)), **{"class": labels(500)})
file("codes.h5", data=images(200, 30), target=labels(200))
tokens = rng.integers(0, 91, (200, 33))
file("sequences.h5", input=tokens[:, :-1], target=tokens[:, 1:])
ids = dict(input_ids=rng.integers(0, 91, (60, 16)), attention_mask=np.ones((60, 16), "i8"), ids=np.arange(60))
file("masked.h5", **ids, labels=np.where(rng.random((60, 16)) < .2, ids["input_ids"], -100))
file("texts.h5", **{f"train/{name}": values for name, values in ids.items()}, train__labels=labels(60) % 3)
file("regression.h5", x=rng.normal(size=(50, 3)), y=rng.normal(size=50))
file("marked.h5", x=rng.normal(size=(100, 3)), y=np.where(np.arange(100) % 7, labels(100), -1))
file("huge.h5", x=rng.normal(size=(100, 3)), y=np.where(np.arange(100) == 5, 10**9, labels(100)))
copied = rng.integers(0, 91, (200, 16))
file("copied.h5", train__input_ids=copied, train__attention_mask=np.ones_like(copied),
     train__labels=np.where(np.arange(16) > 2, copied, -100), eval__input_ids=copied[:40],
     eval__attention_mask=np.ones_like(copied[:40]), eval__labels=copied[:40])
file("crafted.h5", x=rng.normal(size=(100, 3)), **{"y\\n[[loggers]]\\nkind = 'command' \\x1b[2J": labels(100)})
np.savez("mine.npz", x_train=images(90, 20, 20, 3), y_train=labels(90), x_test=images(30, 20, 20, 3), y_test=labels(30))
import os
os.mkdir("saved")
np.save("saved/features.npy", rng.normal(size=(90, 5)).astype("f2"))
np.save("saved/labels.npy", labels(90).astype("u1"))
with open("houses.csv", "w") as out:
    out.write("area,city,note,price\\n")
    for i in range(90):
        out.write(f"{float(rng.normal())!r},{'abc'[i % 3]},note {i},{1e5 + i}\\n")
for part in ("train", "test"):
    with open(f"flowers_{part}.tsv", "w") as out:
        out.write("class\\tlength\\twidth\\n")
        for i in range(60):
            out.write(f"{'xyz'[i % 3]}\\t{'' if i == 7 else i}\\t{i % 7}\\n")
rng.integers(0, 700, 40000, dtype=np.uint16).tofile("corpus.bin")
rng.integers(0, 700, 40000, dtype=np.int32).tofile("corpus32.bin")
rng.integers(0, 100_000, 40000, dtype=np.int64).tofile("corpus64.bin")
"""
FOUND = {  # file: model, keys of [data.train], whether there is data to evaluate on, or which share is held out
    "flat.h5": ("resnet_cifar", {"arrays": {"input": "x_train", "target": "y_train"}, "layout": "NHWC"}, True),
    "groups.h5": ("resnet_cifar", {"group": "train", "layout": "NCHW"}, True),
    "parts.h5": ("resnet_cifar", {"arrays": {"input": "images/train", "target": "labels/train"}, "layout": "NHWC"},
                 0.1),
    "my_train.h5": ("mlp", {"path": "my_train.h5"}, True),
    "vectors.h5": ("mlp", {"arrays": {"input": "features", "target": "class"}}, 0.1),
    "marked.h5": ("mlp", {"arrays": {"input": "x", "target": "y"}}, 0.1),
    "codes.h5": ("mlp", {"arrays": {"input": "data", "target": "target"}}, 0.1),
    "sequences.h5": ("gpt", {"kind": "hdf5"}, 0.1),
    "masked.h5": ("bert_mlm", {"arrays": ["input_ids", "labels", "attention_mask"]}, 0.1),
    "texts.h5": ("bert_classification", {"group": "train"}, 0.1),
    "copied.h5": ("gpt", {"arrays": {"input": "input_ids", "target": "labels"},
                          "transforms": [{"kind": "next_token"}]}, True),
    "corpus.bin": ("gpt", {"kind": "tokens", "dtype": "uint16", "split": "train"}, True),
    "corpus32.bin": ("gpt", {"kind": "tokens", "dtype": "int32"}, True),
    "corpus64.bin": ("gpt", {"kind": "tokens", "dtype": "int64"}, True),
    "story.txt": ("gpt", {"kind": "bytes"}, True),
    "mine.npz": ("resnet_cifar", {"kind": "numpy", "arrays": {"input": "x_train", "target": "y_train"}}, True),
    "saved": ("mlp", {"kind": "numpy", "arrays": {"input": "features", "target": "labels"}}, 0.1),
    "houses.csv": ("mlp", {"kind": "csv", "target": "price", "target_type": "number", "one_hot": ["city"],
                                     "normalize_target": True}, 0.1),
    "flowers_train.tsv": ("mlp", {"kind": "csv", "target": "class", "missing": "mean"}, True),
    "pair": ("mlp", {"kind": "idx"}, 0.1),
    "cifar": ("resnet_cifar", {"kind": "cifar10"}, True),
    "photos": ("resnet", {"kind": "image_folder", "path": "photos/train",
                          "transforms": [{"kind": "random_resized_crop", "size": 224}, {"kind": "flip"}]}, True),
    "shards": ("resnet", {"kind": "webdataset", "path": "shards/shard-*.tar"}, False),
    "streamed": ("resnet", {"kind": "mds", "columns": {"input": "png", "target": "label"}}, False),
    "mnist5k": ("resnet_cifar", {"kind": "mnist"}, True),
}
GOLDEN = EXAMPLES.parent / "tests/golden/images"
TRAINED = ("flat.h5", "marked.h5", "parts.h5", "codes.h5", "copied.h5", "corpus32.bin", "mine.npz", "houses.csv",
           "flowers_train.tsv")


def run(*words, folder):
    done = subprocess.run([TUTTI, *map(str, words)], capture_output=True, text=True, cwd=folder, timeout=200)
    return done.returncode, done.stdout + done.stderr


def write_idx(path, shape, values):
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + bytes(values))


def write_gpt2(folder, vocabulary, positions, width):
    """A folder of transformers, with a GPT-2 of one block whose weights are zeros."""
    config = dict(model_type="gpt2", vocab_size=vocabulary, n_positions=positions, n_embd=width, n_layer=1, n_head=2)
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"wte.weight": [vocabulary, width], "wpe.weight": [positions, width]}
    for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        shapes |= {f"{norm}.weight": [width], f"{norm}.bias": [width]}
    for layer, outputs, inputs in (("attn.c_attn", 3, 1), ("attn.c_proj", 1, 1), ("mlp.c_fc", 4, 1), ("mlp.c_proj", 1, 4)):
        shapes |= {f"h.0.{layer}.weight": [inputs * width, outputs * width], f"h.0.{layer}.bias": [outputs * width]}
    header, size = {}, 0
    for name, shape in shapes.items():
        begin, size = size, size + 4 * math.prod(shape)
        header[f"transformer.{name}"] = dict(dtype="F32", shape=shape, data_offsets=[begin, size])
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))


class Init(tutti_run.RunTest):
    def well(self, *words):
        code, text = run(*words, folder=self.folder)
        self.assertEqual(code, 0, f"{words}: {text}")
        return text

    def write_files(self):
        done = subprocess.run([PYTHON, "-c", WRITE], capture_output=True, text=True, cwd=self.folder)
        if "No module named" in done.stderr:
            self.skipTest(f"{PYTHON} has no h5py")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "story.txt").write_text("Once upon a time there was a gradient. " * 500)
        (self.folder / "pair").mkdir()
        write_idx(self.folder / "pair/pictures-idx3-ubyte.gz", (90, 8, 8), (i % 251 for i in range(90 * 64)))
        write_idx(self.folder / "pair/classes-idx1-ubyte.gz", (90,), (i % 5 for i in range(90)))
        (self.folder / "cifar").mkdir()
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            (self.folder / "cifar" / name).write_bytes(b"".join(bytes([i % 10]) * 3073 for i in range(20)))
        for name, kind in (("train/cat", "420_19x37.jpg"), ("train/dog", "large_38x74.jpg"), ("val/dog", "rgb_19x37.png")):
            (self.folder / "photos" / name).mkdir(parents=True)
            shutil.copy(GOLDEN / kind, self.folder / "photos" / name)
        shutil.copytree(GOLDEN.parent / "mds/zstd", self.folder / "streamed")
        (self.folder / "shards").mkdir()
        for shard in GOLDEN.glob("*.tar"):
            shutil.copy(shard, self.folder / "shards")
        os.symlink(EXAMPLES / "data/mnist5k", self.folder / "mnist5k")

    def test_recipes_for_every_kind_of_data_are_good(self):
        self.write_files()
        for name, (model, keys, evaluates) in FOUND.items():
            with self.subTest(name):
                recipe = self.folder / f"{name}.toml"
                self.well("init", name, "--out", recipe.name, "--no-try")
                written = tomllib.loads(recipe.read_text())
                self.assertEqual(written["model"]["kind"], model)
                self.assertEqual(written["data"]["train"], {**written["data"]["train"], **keys})
                self.assertEqual("eval" in written["data"], bool(evaluates))
                if evaluates == 0.1:
                    self.assertEqual(written["data"]["eval"]["split"], 0.1)
                self.well("check", recipe.name)
        for name in TRAINED:
            with self.subTest(name):
                told = self.well("train", f"{name}.toml", "--set", "train.max_duration=2ba", "--set",
                                 "train.eval_interval=1ba")
                self.assertIn("steps                  2", told)

    def test_named_networks_suit_the_data_and_decay_their_own_weights(self):
        (self.folder / "story.txt").write_text("Once upon a time there was a gradient. " * 500)
        images = EXAMPLES / "data/mnist5k"
        for data, networks in (("story.txt", ("gpt2", "qwen2", "qwen3")), (images, ("vit", "resnet50"))):
            for name in networks:
                with self.subTest(name):
                    self.well("init", data, "--model", name, "--force", "--no-try")
                    self.well("check", "recipe.toml", "--steps", 0)
        code, text = run("init", "story.txt", "--model", "resnet50", "--force", folder=self.folder)
        self.assertEqual(code, 2)
        self.assertIn("are gpt, llama, mistral, qwen2, qwen3, gpt2", text)

    def test_large_numbers_of_a_table_are_learnt_and_predicted_in_their_units(self):
        rows = [(i % 17 + 10, i % 5, 1000 * (i % 17 + 10) + 5000 * (i % 5)) for i in range(400)]
        (self.folder / "houses.csv").write_text("".join(["area,rooms,price\n", *("%d,%d,%d\n" % row for row in rows)]))
        (self.folder / "offers.csv").write_text("area,rooms\n20,3\n12,0\n")
        self.well("init", "houses.csv", "--no-try")
        self.assertRegex(self.well("train", "recipe.toml"), r"R2Score +0\.9")
        predicted = self.well("predict", "runs/houses", "--data", "offers.csv", "--out", "-")
        prices = [float(line.split(",")[1]) for line in predicted.splitlines() if line[:2] in ("1,", "2,")]
        for price, expected in zip(prices, (35_000, 12_000), strict=True):
            self.assertAlmostEqual(price, expected, delta=3_000)

    def test_a_recipe_is_tried_and_its_time_said(self):
        told = self.well("init")
        self.assertRegex(told, r"An epoch of \d+ steps takes about \d+\.\d s here, the training of 30ep ")
        (self.folder / "photos/cat").mkdir(parents=True)
        (self.folder / "photos/dog").mkdir()
        shutil.copy(GOLDEN / "420_19x37.jpg", self.folder / "photos/cat")
        (self.folder / "photos/dog/cut.jpg").write_bytes((GOLDEN / "large_38x74.jpg").read_bytes()[:200])
        told = self.well("init", "photos", "--force")
        self.assertIn("warning: a try of the recipe failed: ", told)
        self.assertIn("cut.jpg", told)

    def test_data_that_no_model_takes_is_an_error_that_lists_it(self):
        self.write_files()
        code, text = run("init", "regression.h5", folder=self.folder)
        self.assertEqual(code, 2)
        self.assertIn("there is x: float64 [50, 3]; y: float64 [50]", text)
        (self.folder / "table.csv").write_text("a,b\n1,2\n2,\n")
        (self.folder / "pointer.h5").write_text("version https://git-lfs.github.com/spec/v1\n" * 200)
        for data in ("table.csv", "absent.h5", ".", "huge.h5", "pointer.h5", "crafted.h5"):
            code, text = run("init", data, folder=self.folder)
            self.assertEqual(code, 2, text)
            self.assertTrue(text.startswith(f"error: {data}: "), text)
            self.assertTrue(text.endswith("\n") and text[:-1].isprintable(), repr(text))
        self.assertFalse((self.folder / "recipe.toml").exists())

    def test_pictures_get_the_size_of_the_program(self):
        for name in ("cat", "dog"):
            (self.folder / "photos" / name).mkdir(parents=True)
            shutil.copy(GOLDEN / "420_19x37.jpg", self.folder / "photos" / name)
        self.well("init", "photos", "--program", GOLDEN.parent / "exported/convnet.pt2")
        transforms = tomllib.loads((self.folder / "recipe.toml").read_text())["data"]["train"]["transforms"]
        self.assertEqual(transforms[0], {"kind": "random_resized_crop", "size": 6})

    def test_tables_of_parquet_are_read_by_a_program_of_the_path(self):
        if not (tutti_run.BUILD / "libtutti_parquet.so").exists():
            self.skipTest("built without pyarrow")
        table = EXAMPLES.parent / "tests/golden/tables/dates.parquet"
        done = subprocess.run(["tutti", "init", table], capture_output=True, text=True, cwd=self.folder, timeout=200,
                              env={**os.environ, "PATH": f"{tutti_run.BUILD}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("error", done.stderr)

    def test_settings_of_llm_foundry_become_good_recipes(self):
        golden = EXAMPLES.parent / "tests/golden"
        for part in ("train", "val"):
            shutil.copytree(golden / "mds/all", self.folder / "my-copy-c4" / part)
        (self.folder / "finetune_example").mkdir()
        (self.folder / "finetune_example/train.jsonl").write_text('{"prompt": "Add 1 and 1.", "response": "2"}\n' * 90)
        (self.folder / "gpt2").mkdir()
        shutil.copy(golden / "tokenizers/gpt2.json", self.folder / "gpt2/tokenizer.json")
        write_gpt2(self.folder / "gpt2", vocabulary=901, positions=512, width=8)
        (self.folder / "gpt2/tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
        for name in ("mpt-125m", "gpt2-finetune"):
            said = self.well("convert", golden / "foundry" / f"{name}.yaml", "--out", f"{name}.toml")
            self.assertIn("# Left out:", said)
            self.assertIn(f"Next: tutti check {name}.toml", said)
            self.well("check", f"{name}.toml", "--set", "data.train.drop_last=false", "--steps", 0)
        code, text = run("convert", "absent.yaml", folder=self.folder)
        self.assertEqual((code, text), (2, "error: absent.yaml: cannot be read: No such file or directory\n"))

    def test_a_recipe_without_data_trains_on_built_in_data(self):
        self.well("init")
        recipe = self.folder / "recipe.toml"
        first = recipe.read_text()
        self.assertIn("steps ", self.well("train", "recipe.toml", "--set", "train.max_duration=2ba"))
        code, text = run("init", EXAMPLES / "data/digits.h5", folder=self.folder)
        self.assertEqual((code, text), (2, "error: recipe.toml: exists already; --force overwrites it, --out names "
                                           "another file\n"))
        self.assertEqual(recipe.read_text(), first)
        self.well("init", EXAMPLES / "data/digits.h5", "--force")
        self.assertNotEqual(recipe.read_text(), first)
        self.assertIn("input: float32", self.well("init", EXAMPLES / "data/digits.h5", "--out", "-"))


if __name__ == "__main__":
    tutti_run.main()
