"""Pillow's side of images.py: answers the requests of image_bench.cpp."""

import sys
import time
import zlib

from PIL import Image, ImageEnhance, ImageOps
from PIL.Image import Resampling, Transform

LEAST_NS = 20_000_000


def bench_image(size):
    """A slope with noise; image_bench.cpp makes the same."""
    pixels = bytearray()
    for y in range(size):
        for x in range(size):
            for c in range(3):
                noise = (x * 73856093 ^ y * 19349663 ^ c * 83492791) & 0xFFFFFFFF
                pixels.append((x + y // 2 + 60 * c + (noise >> 3) % 48) & 255)
    return Image.frombytes("RGB", (size, size), bytes(pixels))


def affine(image, matrix):
    return image.transform(image.size, Transform.AFFINE, matrix, resample=Resampling.BILINEAR)


OPERATIONS = {
    "autocontrast": lambda image, _: ImageOps.autocontrast(image),
    "equalize": lambda image, _: ImageOps.equalize(image),
    "posterize": lambda image, bits: ImageOps.posterize(image, int(bits)),
    "rotate": lambda image, degrees: image.rotate(int(degrees), resample=Resampling.BILINEAR),
    "solarize": lambda image, threshold: ImageOps.solarize(image, int(threshold)),
    "shear_x": lambda image, factor: affine(image, (1, factor, 0, 0, 1, 0)),
    "shear_y": lambda image, factor: affine(image, (1, 0, 0, factor, 1, 0)),
    "translate_x": lambda image, pixels: affine(image, (1, 0, int(pixels), 0, 1, 0)),
    "translate_y": lambda image, pixels: affine(image, (1, 0, 0, 0, 1, int(pixels))),
    "color": lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    "contrast": lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    "brightness": lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    "sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
}


def pace(operation, image, parameter):
    """Nanoseconds an image, of processor time and by the clock."""
    repeats = 1
    while True:
        begin, thread_begin = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(repeats):
            operation(image, parameter)
        processor, clock = time.thread_time_ns() - thread_begin, time.perf_counter_ns() - begin
        if processor >= LEAST_NS:
            return processor / repeats, clock / repeats
        repeats *= 2


def main():
    images = {}
    for line in sys.stdin:
        name, parameter, size, _ = line.split()
        if size not in images:
            images[size] = bench_image(int(size))
        operation = OPERATIONS[name.removesuffix("_original")]
        result = operation(images[size], float(parameter))
        answer = *pace(operation, images[size], float(parameter)), zlib.adler32(result.tobytes())
        print(*answer, flush=True)


if __name__ == "__main__":
    main()
