"""Computes images.h5, and images/*: files of all kinds and what Pillow reads from them, and what functions of
torchvision make of images.

Run: python make_images.py [--more] [--to FOLDER]   (pillow, torchvision, webdataset, numpy, h5py)
With --more: of more and larger images, for tests/clients.sh.
"""
import argparse
import io
import pathlib
import struct
import zlib

import h5py
import numpy as np
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import functional as F1
from torchvision.transforms.v2 import functional as F

BIT_DEPTHS = {0: 1, 2: 3, 4: 2, 6: 4}  # channels of a PNG's color type
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def picture(height, width, channels, seed):
    """Slopes, an edge, and noise."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [(3 + c) * x + (5 - c) * y + 60 * c + 70 * ((x + c) // 9 % 2) for c in range(channels)]
    noise = draw.integers(0, 40, (height, width, channels))
    return ((np.stack(planes, -1) + noise) % 256).astype(np.uint8)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(pixels, bits):
    """Rows of samples [height, width * channels], each after a byte for "no filter"."""
    if bits == 16:
        rows = [row.astype(">u2").tobytes() for row in pixels]
    else:
        spread = np.unpackbits(pixels.astype(np.uint8)[..., None], axis=-1)[..., 8 - bits:]
        rows = [np.packbits(row.reshape(-1)).tobytes() for row in spread]
    return b"".join(b"\0" + row for row in rows)


def png(pixels, color_type, bits, interlaced=False):
    """What Pillow does not write: 16 bits of colors, 2 and 4 bits of gray, interlaced images."""
    height, width = pixels.shape[:2]
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    parts = [pixels[top::rows, left::columns] for top, left, rows, columns in passes]
    data = b"".join(packed(part.reshape(part.shape[0], -1), bits) for part in parts if part.size)
    header = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(data)) +
            png_chunk(b"IEND", b""))


def jpegs(rgb):
    rotated = Image.Exif()
    rotated[0x0112] = 6
    inks = saved(Image.fromarray(np.dstack([rgb, 255 - rgb[..., 0] // 2]), "CMYK"), "JPEG", quality=90)
    image = Image.fromarray(rgb)
    yield "420", saved(image, "JPEG", quality=90, subsampling="4:2:0")
    yield "422", saved(image, "JPEG", quality=75, subsampling="4:2:2")
    yield "444", saved(image, "JPEG", quality=95, subsampling="4:4:4", optimize=True)
    yield "progressive", saved(image, "JPEG", quality=85, progressive=True)
    yield "restarts", saved(image, "JPEG", quality=85, restart_marker_blocks=2)
    yield "rgb", saved(image, "JPEG", quality=90, keep_rgb=True)
    yield "exif", saved(image, "JPEG", quality=90, exif=rotated)
    yield "gray", saved(image.convert("L"), "JPEG", quality=90)
    yield "cmyk", inks
    adobe = inks.index(b"Adobe") + 11  # the transform's byte
    yield "ycck", inks[:adobe] + b"\x02" + inks[adobe + 1:]


def pngs(rgb):
    image = Image.fromarray(rgb)
    alpha = Image.fromarray(np.dstack([rgb, rgb[..., 1]]))
    deep = rgb.astype(np.uint16) * 257 - rgb[::-1, ::-1]
    yield "rgb", saved(image, "PNG")
    yield "rgba", saved(alpha, "PNG")
    yield "gray", saved(image.convert("L"), "PNG")
    yield "gray_alpha", saved(alpha.convert("LA"), "PNG")
    yield "bit", saved(image.convert("1"), "PNG")
    yield "palette", saved(image.quantize(13), "PNG")
    yield "palette_transparent", saved(image.quantize(40), "PNG", transparency=3)
    yield "rgb_transparent", saved(image, "PNG", transparency=(1, 2, 3))
    yield "gray2", png(rgb[..., 0] // 64, 0, 2)
    yield "gray4", png(rgb[..., 0] // 16, 0, 4)
    yield "gray16", png((deep[..., 0] // 97)[..., None], 0, 16)
    yield "gray_alpha16", png(deep[..., :2], 4, 16)
    yield "rgb16", png(deep, 2, 16)
    yield "rgba16", png(np.dstack([deep, deep[..., 0]]), 6, 16)
    yield "interlaced", png(rgb, 2, 8, interlaced=True)


def webps(rgb):
    image = Image.fromarray(rgb)
    alpha = Image.fromarray(np.dstack([rgb, rgb[..., 1]]))
    yield "lossy", saved(image, "WEBP", quality=80)
    yield "lossless", saved(image, "WEBP", lossless=True)
    yield "lossy_alpha", saved(alpha, "WEBP", quality=80)
    yield "lossless_alpha", saved(alpha, "WEBP", lossless=True, exact=True)


def bmp(rows, bits, height, width, colors=b"", packing=0, masks=b"", header=40, downward=False):
    """What Pillow does not write: run lengths, 4 and 16 bits, rows from above. `rows`: bytes, from below."""
    data = rows if packing in (1, 2) else b"".join(row + bytes(-len(row) % 4) for row in rows)
    first = 14 + header + len(masks) + len(colors)
    size = struct.pack("<ii", width, -height if downward else height)
    rest = struct.pack("<HHIIIIII", 1, bits, packing, len(data), 0, 0, 0, 0)
    info = struct.pack("<I", header) + size + rest
    return b"BM" + struct.pack("<IHHI", first + len(data), 0, 0, first) + info + masks + colors + data


def runs(indices, nibbles):
    """Rows of indices as run lengths of BMP: the first four pixels of a row as they are, then runs of one."""
    out = b""
    for row in indices[::-1]:
        literal, rest = row[:4].tolist(), row[4:].tolist()
        if len(literal) == 4:
            pairs = [literal[0] << 4 | literal[1], literal[2] << 4 | literal[3]]
            out += bytes([0, 4]) + bytes(pairs if nibbles else literal)
        else:
            rest = literal + rest
        for value in rest:
            out += bytes([1, value << 4 if nibbles else value])
        out += b"\0\0"
    return out + b"\0\1"


def bmps(rgb):
    image, (height, width) = Image.fromarray(rgb), rgb.shape[:2]
    colors = b"".join(bytes([7 * i, 250 - 9 * i, 11 * i, 0]) for i in range(16))
    few = rgb[..., 0] // 16
    deep = [row.astype("<u2").tobytes() for row in (rgb.astype(int) @ [256, 8, 1])[::-1] % 32768]
    yield "rgb", saved(image, "BMP")
    yield "rgba", saved(Image.fromarray(np.dstack([rgb, rgb[..., 0]])), "BMP")
    yield "gray", saved(image.convert("L"), "BMP")
    yield "bit", saved(image.convert("1"), "BMP")
    yield "palette", saved(image.quantize(13), "BMP")
    yield "deep", bmp(deep, 16, height, width)
    yield "masks", bmp(deep, 16, height, width, packing=3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F))
    yield "downward", bmp([row[:, ::-1].tobytes() for row in rgb], 24, height, width, downward=True)
    yield "runs8", bmp(runs(few, False), 8, height, width, colors + bytes(4 * 240), packing=1)
    yield "runs4", bmp(runs(few, True), 4, height, width, colors, packing=2)


def gifs(rgb):
    image = Image.fromarray(rgb)
    yield "palette", saved(image.quantize(200), "GIF")
    yield "few", saved(image.quantize(5), "GIF", interlace=0)
    yield "interlaced", saved(image.quantize(100), "GIF", interlace=1)
    yield "gray", saved(image.convert("L"), "GIF")
    yield "transparent", saved(image.quantize(40), "GIF", transparency=3)
    second = image.rotate(180).quantize(7)
    yield "frames", saved(image.quantize(40), "GIF", save_all=True, append_images=[second])
    file = bytearray(saved(image.quantize(60), "GIF", interlace=0))  # on a canvas two pixels larger
    file[6:10] = struct.pack("<HH", rgb.shape[1] + 2, rgb.shape[0] + 2)
    yield "canvas", bytes(file)


def tiffs(rgb):
    image = Image.fromarray(rgb)
    alpha = Image.fromarray(np.dstack([rgb, rgb[..., 0]]))
    yield "rgb", saved(image, "TIFF")
    for packing in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        yield packing, saved(image, "TIFF", compression=packing)
    yield "rgba", saved(alpha, "TIFF")
    yield "gray", saved(image.convert("L"), "TIFF", compression="tiff_lzw")
    yield "bit", saved(image.convert("1"), "TIFF", compression="group4")
    yield "palette", saved(image.quantize(200), "TIFF")
    for orientation in range(2, 9):
        yield f"turned{orientation}", saved(image, "TIFF", tiffinfo={274: orientation})


def pnms(rgb):
    image, (height, width) = Image.fromarray(rgb), rgb.shape[:2]
    words = lambda values: " ".join(map(str, values.reshape(-1).tolist())).encode()
    head = lambda kind, *rest: b"\n".join([kind, b"# a comment", f"{width} {height}".encode(), *rest]) + b"\n"
    yield "color", saved(image, "PPM")
    yield "gray", saved(image.convert("L"), "PPM")
    yield "bit", saved(image.convert("1"), "PPM")
    yield "color100", head(b"P6", b"100") + (rgb % 101).tobytes()
    yield "color16", head(b"P6", b"1000") + (rgb.astype(int) * 3).astype(">u2").tobytes()
    yield "color_text", head(b"P3", b"255") + words(rgb)
    yield "gray_text", head(b"P2", b"77") + words(rgb[..., 0] % 78)
    yield "bit_text", head(b"P1") + words(rgb[..., 0] % 2)


def image_files(height, width, seed):
    rgb = picture(height, width, 3, seed)
    kinds = (("jpg", jpegs), ("png", pngs), ("webp", webps), ("bmp", bmps), ("gif", gifs), ("tif", tiffs),
             ("ppm", pnms))
    for kind, files in kinds:
        for name, data in files(rgb):
            yield f"{name}_{height}x{width}.{kind}", data


def write_shards(folder):
    """Tar files by webdataset: images and classes; a long name, and classes in JSON."""
    import webdataset

    rgb = picture(6, 8, 3, 0)
    for shard in range(2):
        with open(folder / f"shard-{shard:03}.tar", "wb") as file, webdataset.TarWriter(file, mtime=0) as tar:
            for i in range(3):
                key = f"{shard}/sample{i}" if i < 2 else f"{shard}/{'long' * 40}"
                image = Image.fromarray(np.roll(rgb, 3 * shard + i, axis=0))
                label = {"json": {"label": 2, "other": 1}} if i == 1 else {"cls": shard + i}
                tar.write({"__key__": key, "png": image, **label})


class Writer:
    def __init__(self, folder):
        self.folder = folder
        (folder / "images").mkdir(exist_ok=True, parents=True)
        self.file = h5py.File(folder / "images.h5", "w", libver=("v110", "v110"))
        self.cases = 0

    def case(self, title, inputs, outputs, atol=1, **parameters):
        group = self.file.create_group(f"case_{self.cases}")
        self.cases += 1
        group.attrs.update({"title": title, "rtol": 0.0, "atol": float(atol), **parameters})
        for kind, arrays in (("in", inputs), ("out", outputs)):
            for name, array in ((name, np.asarray(array)) for name, array in arrays.items()):
                group.create_dataset(f"{kind}/{name}", data=array, chunks=array.shape or None,
                                     compression="gzip" if array.size > 1000 else None)

    def decoding(self, name, data):
        (self.folder / "images" / name).write_bytes(data)
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        self.case(name, {}, {"pixels": pixels}, atol=2 if name.endswith("webp") else 0, operation="decode")


def geometries(height, width):
    """Part (top, left, height, width), result, and mirroring."""
    yield "crop", (height // 4, width // 5, height // 2, width // 3), None, ""
    yield "resized_crop", (1, 2, height - 3, width // 2), (height // 3 + 1, width // 3), ""
    yield "enlarged", (height // 3, 0, height // 3 + 1, width // 4 + 1), (height, width + 3), "columns"
    yield "resize", (0, 0, height, width), (height // 2, width // 2 + 1), "rows"
    yield "flip", (0, 0, height, width), None, "columns"


def moved(value, part, result, mirror, interpolation):
    value = F.crop(value, *part)
    if result:
        value = F.resize(value, list(result), interpolation=interpolation, antialias=True)
    if mirror == "columns":
        value = F.horizontal_flip(value)
    return F.vertical_flip(value) if mirror == "rows" else value


def geometry_cases(writer, height, width, seed):
    """Images, masks and boxes by crop, resize and flip of torchvision.transforms.v2."""
    rgb = picture(height, width, 3, seed)
    draw = np.random.default_rng(seed)
    mask = draw.integers(0, 9, (height, width), dtype=np.uint8)
    corners = draw.uniform(0, 1, (5, 2, 2))
    corners.sort(axis=1)
    boxes = (corners * [width, height]).reshape(5, 4).astype(np.float32)
    for name, part, result, mirror in geometries(height, width):
        for interpolation in ("bilinear", "bicubic") if result else ("bilinear",):
            def of(value):
                return moved(value, part, result, mirror, F.InterpolationMode(interpolation))

            pil = np.asarray(of(Image.fromarray(rgb)))
            tensor = of(torch.from_numpy(rgb).permute(2, 0, 1)).permute(1, 2, 0).numpy()
            assert abs(pil.astype(int) - tensor).max() <= 2, "PIL and tensors are at odds"
            moved_boxes = of(tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width)))
            writer.case(f"{name}_{interpolation}_{height}x{width}",
                        {"image": rgb, "mask": mask, "boxes": boxes},
                        {"image": tensor, "mask": of(tv_tensors.Mask(mask)).numpy(), "boxes": moved_boxes},
                        operation="geometry", part=part, result=result or part[2:], mirror=mirror,
                        interpolation=interpolation)


def color_cases(writer, height, width, seed):
    rgb = picture(height, width, 3, seed)
    image = Image.fromarray(rgb)
    factors_of = {"brightness": (0.3, 1.7), "contrast": (0.4, 1.6), "saturation": (0.0, 1.9),
                  "hue": (-0.5, -0.21, 0.37)}
    for operation, factors in factors_of.items():
        for factor in factors:
            changed = getattr(F1, f"adjust_{operation}")(image, factor)
            writer.case(f"{operation}_{factor}_{height}x{width}", {"image": rgb}, {"image": changed}, atol=0,
                        operation=operation, factor=factor)
    for kernel, sigma in (((3, 5), 0.4), ((7, 7), 1.9)):
        planes = F1.gaussian_blur(torch.from_numpy(rgb).permute(2, 0, 1), list(kernel), [sigma])
        # torchvision's kernel size is (width, height).
        writer.case(f"blur_{kernel}_{height}x{width}", {"image": rgb}, {"image": planes.permute(1, 2, 0)},
                    operation="blur", kernel=kernel[::-1], sigma=sigma)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    args = parser.parse_args()
    writer = Writer(args.to)
    sizes = [(19, 37)] if not args.more else [(1, 1), (8, 17), (100, 75), (203, 350), (375, 500)]
    for number, (height, width) in enumerate(sizes):
        for name, data in image_files(height, width, number):
            writer.decoding(name, data)
    if not args.more:
        write_shards(args.to / "images")
    large = saved(Image.fromarray(picture(38, 74, 3, 0)), "JPEG", quality=80)
    writer.decoding("large_38x74.jpg", large)
    for number, (height, width) in enumerate(sizes[2:] or [(15, 21)]):
        geometry_cases(writer, height, width, number)
        color_cases(writer, height, width, number)


if __name__ == "__main__":
    main()
