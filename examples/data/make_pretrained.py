"""make_pretrained.py TUTTI: trains two small networks with tutti, for examples that train them on:
bert_bytes/, a BERT that fills gaps in king_james.txt, as Hugging Face saves it, and
resnet_digits.safetensors, which knows digits.h5. And writes verses.h5 (needs h5py): verses of Genesis and
of 1 Samuel, as bytes."""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
VERSES, LENGTH = 400, 64
TRAINING = """
seed = 17
[optimizer]
kind = "adamw"
lr = 3e-3
[scheduler]
kind = "cosine_annealing_with_warmup"
t_warmup = "10ba"
[train]
eval_interval = "0ep"
"""
BERT = f"""
[model]
kind = "bert_mlm"
vocab_size = 256
hidden_size = 32
num_hidden_layers = 2
num_attention_heads = 4
intermediate_size = 64
max_position_embeddings = {LENGTH}
[data.train]
kind = "bytes"
path = "{HERE}/king_james.txt"
sequence_length = {LENGTH}
batch_size = 64
shuffle = true
[[data.train.transforms]]
kind = "mask_tokens"
mask_token_id = 1
"""
RESNET = f"""
[model]
kind = "resnet"
depth = 18
width = 4
[data.train]
kind = "hdf5"
path = "{HERE}/digits.h5"
group = "train"
batch_size = 32
shuffle = true
[[data.train.transforms]]
kind = "resize"
size = 32
"""


def train(tutti, recipe, duration, *export):
    with tempfile.TemporaryDirectory() as scratch:
        path, run = pathlib.Path(scratch, "recipe.toml"), pathlib.Path(scratch, "run")
        path.write_text(TRAINING + f'max_duration = "{duration}"\n' + recipe)
        subprocess.run([tutti, "train", path, "--run-dir", run], check=True)
        subprocess.run([tutti, "export", run, *export], check=True)


def verses_of(text, book):
    """The verses of the chapters of one book."""
    chapters = re.split(r"^((?:1 )?[A-Z][a-z]+ \d+)$", text, flags=re.M)
    return [verse for name, body in zip(chapters[1::2], chapters[2::2]) if name.startswith(book)
            for verse in body.split("\n") if verse.strip()]


def write_verses():
    text = (HERE / "king_james.txt").read_text()
    chosen = random.Random(1991)
    samples = [(verse, label) for label, book in enumerate(("Genesis", "1 Samuel"))
               for verse in chosen.sample(verses_of(text, book), VERSES // 2)]
    chosen.shuffle(samples)
    ids, mask = np.zeros((VERSES, LENGTH), "i8"), np.zeros((VERSES, LENGTH), "i8")
    for row, (verse, _) in enumerate(samples):
        found = np.frombuffer(verse.encode()[:LENGTH], "u1")
        ids[row, :len(found)], mask[row, :len(found)] = found, 1
    labels = np.array([label for _, label in samples], "i8")
    with h5py.File(HERE / "verses.h5", "w") as file:
        for part, rows in (("train", slice(VERSES // 5, None)), ("test", slice(VERSES // 5))):
            for name, values in (("input_ids", ids), ("attention_mask", mask), ("labels", labels)):
                file.create_dataset(f"{part}/{name}", data=values[rows], track_times=False,
                                    compression="gzip", shuffle=True)


if __name__ == "__main__":
    write_verses()
    train(sys.argv[1], BERT, "5ep", "--to-hf", HERE / "bert_bytes")
    train(sys.argv[1], RESNET, "5ep", "--to", HERE / "resnet_digits.safetensors")
