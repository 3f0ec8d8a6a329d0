"""Writes verse_pairs.h5: verses of king_james.txt, and the same with words left out, as bytes.

Run: python make_verse_pairs.py   (h5py; writes beside this file)
"""
import pathlib
import random

import h5py
import numpy as np

HERE = pathlib.Path(__file__).parent
PARTS = {"train": 1200, "test": 200}
LENGTH, SHORTEST, KEPT = 64, 40, 0.6


def as_bytes(texts):
    """The first LENGTH bytes of each text, and the mask of them."""
    ids, mask = np.zeros((2, len(texts), LENGTH), "i8")
    for row, text in enumerate(texts):
        found = np.frombuffer(text.encode()[:LENGTH], "u1")
        ids[row, :len(found)], mask[row, :len(found)] = found, 1
    return ids, mask


def shortened(text, chosen):
    """What is left of a verse that is remembered by half."""
    words = text[:LENGTH].rsplit(" ", 1)[0].split(" ")
    kept = sorted(chosen.sample(range(len(words)), max(1, round(KEPT * len(words)))))
    return " ".join(words[i] for i in kept)


def main():
    chosen = random.Random(1991)
    lines = (HERE / "king_james.txt").read_text().split("\n")
    verses = chosen.sample(sorted({line for line in lines if len(line) >= SHORTEST}), sum(PARTS.values()))
    with h5py.File(HERE / "verse_pairs.h5", "w") as file:
        for part, count in PARTS.items():
            texts, verses = verses[:count], verses[count:]
            arrays = (*as_bytes([shortened(text, chosen) for text in texts]), *as_bytes(texts))
            names = "input_ids", "attention_mask", "positive_ids", "positive_attention_mask"
            for name, values in zip(names, arrays):
                file.create_dataset(f"{part}/{name}", data=values, track_times=False, compression="gzip",
                                    compression_opts=9, shuffle=True)


if __name__ == "__main__":
    main()
