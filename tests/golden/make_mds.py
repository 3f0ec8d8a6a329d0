"""Writes mds/: datasets by MosaicML Streaming, of every encoding of a column, and values.h5, what it reads.

Run: python make_mds.py [--to FOLDER]   (mosaicml-streaming, pillow, numpy, h5py)
"""
import argparse
import decimal
import io
import json
import pathlib
import shutil

import h5py
import numpy as np
from PIL import Image
from streaming import MDSWriter
from streaming.base.format.mds.reader import MDSReader

SAMPLES = 3
SCALARS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
           "float64"]
IMAGES = {"pil": "pil", "pil_gray": "pil", "pil_gray_alpha": "pil", "pil_alpha": "pil", "pil_inks": "pil",
          "pil_bits": "pil", "jpeg": "jpeg", "png": "png", "image_bytes": "bytes"}
MODES = {"pil_gray": "L", "pil_gray_alpha": "LA", "pil_alpha": "RGBA", "pil_inks": "CMYK", "pil_bits": "1"}
LISTS = {"jpeg_array": "jpeg_array", "jpegarray": "jpegarray", "list_pil": "list[pil]",
         "list_jpeg": "list[jpeg]", "list_png": "list[png]"}
OTHERS = {"int": "int", "label": "str", "tokens": "bytes", "array": "ndarray", "array_int32": "ndarray:int32",
          "array_uint8": "ndarray:uint8:2,3", "array_float16": "ndarray:float16:4", "str_int": "str_int",
          "str_float": "str_float", "str_decimal": "str_decimal", "numbers": "json", "pickled": "pkl"}
COLUMNS = {**IMAGES, **LISTS, **OTHERS, **{name: name for name in SCALARS}}


def picture(draw, mode="RGB"):
    y, x = np.mgrid[0:5, 0:9]
    slopes = np.stack([20 * y + 5 * x, 10 * x + 30 * (y > 2), 25 * y], -1)
    pixels = slopes + draw.integers(0, 40, (5, 9, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).convert(mode)


def file_of(image, kind):
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def sample(i):
    draw = np.random.default_rng(i)
    values = {name: np.dtype(name).type(3 * i + (0.25 if "float" in name else 0)) for name in SCALARS}
    values.update({name: picture(draw, MODES.get(name, "RGB")) for name in IMAGES})
    values["image_bytes"] = file_of(values["png"], "PNG")
    pair = [picture(draw), picture(draw)]
    values.update({name: pair for name in LISTS})
    values["jpeg_array"] = values["jpegarray"] = [file_of(image, "JPEG") for image in pair]
    values.update(int=-i - 2**40, label=["dog", "cat", "ant"][i],
                  tokens=np.arange(i, i + 6).tobytes(),
                  array=draw.integers(-9, 9, (1, 300)).astype(np.int8),
                  array_int32=draw.integers(-9, 9, (3, 1, 2)).astype(np.int32),
                  array_uint8=draw.integers(0, 255, (2, 3)).astype(np.uint8),
                  array_float16=draw.normal(size=4).astype(np.float16), str_int=10**12 + i, str_float=i / 7,
                  str_decimal=decimal.Decimal(i) / 8, numbers=[[i, 0.5], [-1e-3, 2]], pickled={"i": i})
    return values


def write(folder, columns, samples, **options):
    with MDSWriter(out=str(folder), columns=columns, **options) as out:
        for values in samples:
            out.write({name: values[name] for name in columns})


def number_of(name, value):
    """What a network gets of a value, as an array."""
    if name in IMAGES:
        image = Image.open(io.BytesIO(value)) if isinstance(value, bytes) else value
        return np.asarray(image.convert("RGB"))
    if name in LISTS:
        return np.stack([np.asarray(image.convert("RGB")) for image in value])
    if name == "tokens":
        return np.frombuffer(value, np.int64)
    return np.asarray(float(value) if isinstance(value, decimal.Decimal) else value)


def read(folder):
    """All samples, as Streaming's reader decodes them."""
    for shard in json.loads((folder / "index.json").read_text())["shards"]:
        reader = MDSReader.from_json(str(folder), None, shard)
        for i in range(reader.samples):
            yield reader[i]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    folder = parser.parse_args().to / "mds"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    samples = [sample(i) for i in range(SAMPLES)]
    write(folder / "all", COLUMNS, samples, size_limit=20000, hashes=["sha1", "xxh64"])
    few = {name: COLUMNS[name] for name in ("png", "label", "int")}
    write(folder / "zstd", few, samples, size_limit=700, compression="zstd:7", hashes=["xxh128", "xxh3_64"])
    write(folder / "gz", {"tokens": "bytes", "int32": "int32"}, samples, compression="gz", hashes=["xxh32"])
    with h5py.File(folder / "values.h5", "w", libver=("v110", "v110")) as file:
        rows = list(read(folder / "all"))
        for name in COLUMNS:
            if name not in ("label", "pickled"):
                file[name] = np.stack([number_of(name, row[name]) for row in rows])


if __name__ == "__main__":
    main()
