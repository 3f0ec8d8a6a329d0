"""Checks of first_light.py with compute-sanitizer: accesses outside of what was allocated."""

import functools
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from first_light_runs import DIGITS, RECIPES, Failed, Open, at_once, beside_cpu, classes, duration
from speedup import entry

GPT = RECIPES / "gpt_tiny.toml"


def sanitizer_of(light):
    """compute-sanitizer; throws Open where there is none."""
    if light.args.sanitizer:
        return light.args.sanitizer
    if not light.is_gpu:
        raise Open("needs CUDA")
    name, folders = "compute-sanitizer", ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")
    there = (f"{folder}/{name}" for folder in folders if Path(folder, name).exists())
    program = shutil.which(name) or next(there, None)
    if not program:
        raise Open("compute-sanitizer is not there")
    return program


def sanitize(light, sanitizer, recipe, *settings):
    run = light.runner.new_folder("sanitized")
    said = light.runner.try_train(run, recipe, *settings, duration(3), "train.hang_timeout=10m",
                                  launcher=[sanitizer, "--tool", "memcheck", "--report-api-errors", "no",
                                            "--error-exitcode", "9"],
                                  environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
    if said.code != 0:
        raise Failed(said.end(40))
    summary = re.search(r"ERROR SUMMARY: (.*)", said.text)
    if not summary:
        raise Failed(f"compute-sanitizer says nothing\n{said.end()}")
    return summary[1]


def touches_its_memory(light):
    """Three small trainings."""
    sanitizer = sanitizer_of(light)
    recipes = {"digits": [DIGITS], "gpt_tiny": [GPT, *classes(2047)],
               "gpt_tiny bf16": [GPT, *classes(2048), "train.precision=amp_bf16"]}
    return ", ".join(f"{name}: {sanitize(light, sanitizer, *recipe)}" for name, recipe in recipes.items())


@dataclass
class Sizes:
    """Of a GPT of one layer, with 3 x 7 rows: `columns` of its layer norms, `classes` of its loss."""
    columns: int
    heads: int
    classes: int
    precision: str

    def name(self):
        return f"{self.columns} columns, {self.classes} classes, {self.precision}"

    def settings(self):
        return (f"model.n_embd={self.columns}", f"model.n_head={self.heads}", "model.n_layer=1",
                "model.n_positions=7", *classes(self.classes), "data.train.shape=[7]",
                "data.train.device_batch_size=3", f"train.precision={self.precision}")


# Layer norms have 4 columns a thread, 256 threads at most, and then 2 or 4 times as many columns; the loss
# reads 16 bytes at a time where a row allows it.
ODD_SIZES = [Sizes(60, 3, 2047, "amp_bf16"), Sizes(1080, 9, 1025, "amp_fp16"),
             Sizes(2064, 43, 1032, "amp_bf16"), Sizes(64, 1, 1025, "fp32")]
NORMS = {"batch_log_interval": 1, "log_optimizer_metrics": "false"}


def gradient_norms(run):
    """L2 norms of the first step's gradients, by parameter."""
    lines = map(json.loads, (run.folder / "metrics.jsonl").read_text().splitlines())
    norms = next(line for line in lines if any(key.startswith("l2_norm/grad/") for key in line))
    return {key: value for key, value in norms.items() if key.startswith("l2_norm/grad/")}


def compare_sizes(light, sizes):
    """Loss and gradients of a step beside libtorch's on the CPU: the larger difference."""
    tolerance = 1e-4 if sizes.precision == "fp32" else 5e-2
    recipe = GPT.read_text() + entry("optimizer_monitor", NORMS, "callbacks")
    run, cpu, difference = beside_cpu(light, f"columns-{sizes.columns}", recipe, *sizes.settings(),
                                      duration(1), tolerance=tolerance)
    own, expected = gradient_norms(run), gradient_norms(cpu)
    worst = max(expected, key=lambda key: abs(own[key] / expected[key] - 1))
    largest = abs(own[worst] / expected[worst] - 1)
    if not largest <= light.tolerance(tolerance):
        raise Failed(f"{sizes.name()}: {worst}: {own[worst]:g}, on the CPU {expected[worst]:g}")
    return max(difference, largest)


def has_odd_sizes(light):
    """The kernels of cross entropy and layer norms: libtorch's results, and no error of memcheck."""
    compared = at_once({sizes.name(): functools.partial(compare_sizes, light, sizes) for sizes in ODD_SIZES},
                       light.jobs(4))
    said = "; ".join(f"{name} {difference:.1e}" for name, difference in compared.items())
    text = f"21 rows, losses and norms of gradients from the CPU's: {said}"
    try:
        sanitizer = sanitizer_of(light)
    except Open as reason:
        raise Open(f"{text}; memcheck: {reason}") from None
    errors = [sanitize(light, sanitizer, GPT, *sizes.settings())
              for sizes in ODD_SIZES if sizes.precision != "fp32"]  # which has check 5
    return f"{text}; memcheck, with 16 bits: {', '.join(errors)}"
