#!/usr/bin/env python3
"""What do the algorithms cost? Two tables, of pairs that alternate, so that both see the same machine.

The first: a whole step of `tutti train` with an algorithm against one without. The second: an algorithm's
function against Composer's of the same name, on the same tensors and one thread, in processor time; ratios
are tutti / Composer, after a check that both results are the same where nothing is drawn. Composer has a
virtual environment of its own, which is made where missing (8 GB). Run on an idle machine; seven minutes.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from images import Contestant
from measure import Failed, run_tutti
from speedup import KEYS, entry

HERE = Path(__file__).resolve().parent
COMPOSER = ["mosaicml==0.32.1", "transformers==4.40.2"]
WARMUP = 2
SETTINGS = ["journal.level=off", "train.eval_interval=0ep", "checkpoint.interval=0ep"]

# Measured steps of a run.
STEPS = {"resnet20": 6, "mnist5k": 6, "king_james": 20, "bert_bytes": 20, "group_norms": 20}
OF_BYTES = ("augmix", "randaugment")  # for images of bytes, as mnist5k has them
# Keys for algorithms that are to act at every step, on models as small as these.
ACTING = {
    "ema": {"smoothing": "0.99"},
    "factorize": {"min_channels": 32, "min_features": 64, "latent_features": 0.25},
    "gyro_dropout": {"sigma": 4, "tau": 2},
    "layer_freezing": {"freeze_start": 0.0},
    "selective_backprop": {"start": 0.0, "end": 1.0, "interrupt": 0},
    "seq_length_warmup": {"duration": 0.9, "min_seq_length": 64, "max_seq_length": 128},
    "squeeze_excite": {"min_channels": 32},
    "swa": {"swa_start": '"0.0dur"', "update_interval": '"1ba"'},
}
# What both runs of a pair need.
NEEDED = {
    "alibi": ['optimizer.no_decay=["*.bias", "*.ln_*"]'],  # without positions, which are not trained then
    "gyro_dropout": ["model.dropout=0.1"],
    "layer_freezing": ["data.train.subset_num_batches=2"],
    "low_precision_groupnorm": ["train.precision=amp_bf16"],
    "low_precision_layernorm": ["train.precision=amp_bf16"],
}
# What speedup.py does not train.
FURTHER = {
    "king_james": {"gyro_dropout": {}, "layer_freezing": {}, "low_precision_layernorm": {}},
    "resnet20": {"no_op_model": {}, "stochastic_depth": {"target_layer_name": '"BasicBlock"'}},
    "bert_bytes": {"factorize": {}, "gated_linear_units": {}},
    "group_norms": {"low_precision_groupnorm": {}},
}

IMAGES = ["64x3x32x32", "16x3x224x224"]
TOKENS = "16x512"
SEQUENCES = "8x128"
PICTURES = ["32x32x3", "224x224x3"]
CONVOLUTION = "Conv2d(32, 64, 3, stride=1, padding=1, bias=False)>BatchNorm2d(64)>ReLU()"
STRIDED = CONVOLUTION.replace("stride=1", "stride=2")
GROUPED = CONVOLUTION.replace("BatchNorm2d(64)", "GroupNorm(8, 64)")
WIDE = "Conv2d(128, 128, 3, padding=1, bias=False)>BatchNorm2d(128)>ReLU()"
LINEAR = "Linear(256, 512)>LayerNorm(512)>GELU()"
DROPPED = "Linear(256, 256)>ReLU()>Dropout(0.5)>Linear(256, 10)"


def resnet_layers():
    """The convolutions and norms of a ResNet-20, one after another."""
    widths = [3, 16] + [16] * 6 + [32] * 6 + [64] * 6
    layers = [f"Conv2d({before}, {width}, 3, padding=1, bias=False)>BatchNorm2d({width})"
              for before, width in zip(widths, widths[1:])]
    return ">".join(layers) + ">Linear(64, 10)"


# Functions: title, the highest ratio that is aimed at, and cases of function, option, shape and model.
# algorithm_bench.cpp and peer_algorithms.py have a line or a function for each function's name.
FUNCTIONS = [
    ("batch augmentations", 0.5, [
        *((name, option, shape, "") for name, option in
          (("colout_batch", ""), ("cutmix_batch", ""), ("cutout_batch", ""), ("mixup_batch", ""),
           ("resize_batch", "resize"), ("resize_batch", "crop")) for shape in IMAGES),
        *(("smooth_labels", "", shape, "") for shape in ("64x10", "64x1000")),
        *(("set_batch_sequence_length", how, TOKENS, "") for how in ("truncate", "preserve", "reshape")),
        ("select_using_loss", "", IMAGES[0], ""),
    ]),
    ("augmentations of a picture", 1.0,
     [(name, "", shape, "") for name in ("randaugment_image", "augmix_image") for shape in PICTURES]),
    ("gradients and weights of a ResNet-20", 1.0, [
        *(("apply_gradient_clipping", by, "", resnet_layers()) for by in ("norm", "value", "adaptive")),
        ("compute_ema", "", "", resnet_layers()),
    ]),
    ("forward and backward after surgery", 1.0, [
        ("no surgery", "", "16x32x32x32", CONVOLUTION),
        ("no surgery", "", SEQUENCES, "gpt"),
        ("no surgery", "", SEQUENCES, "bert"),
        ("apply_alibi", "", SEQUENCES, "gpt"),
        ("apply_alibi", "", SEQUENCES, "bert"),
        ("apply_gated_linear_units", "", SEQUENCES, "bert"),
        ("apply_blurpool", "", "16x32x32x32", STRIDED),
        ("apply_channels_last", "", "16x32x32x32", CONVOLUTION),
        ("apply_ghost_batchnorm", "", "16x32x32x32", CONVOLUTION),
        ("apply_weight_standardization", "", "16x32x32x32", CONVOLUTION),
        ("apply_low_precision_groupnorm", "amp_bf16", "16x32x32x32", GROUPED),
        ("apply_low_precision_layernorm", "amp_bf16", "512x256", LINEAR),
        ("apply_gyro_dropout", "", "64x256", DROPPED),
        ("apply_factorization", "", "16x128x16x16", WIDE),
        ("apply_squeeze_excite", "", "16x128x16x16", WIDE),
        ("apply_stochastic_depth", "block", "4x3x64x64", "resnet50"),
        ("apply_stochastic_depth", "sample", "4x3x64x64", "resnet50"),
    ]),
]
# Results that random numbers decide.
DRAWN = {"colout_batch", "cutmix_batch", "cutout_batch", "mixup_batch", "resize_batch crop",
         "select_using_loss", "randaugment_image", "augmix_image", "apply_gyro_dropout",
         "apply_stochastic_depth"}


def default_composer():
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "tutti" / COMPOSER[0].replace("==", "-")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=HERE.parent / "build")
    parser.add_argument("--composer", type=Path, default=default_composer(), help="its virtual environment")
    parser.add_argument("--pairs", type=int, default=3, help="of runs, for the table of steps")
    parser.add_argument("--slices", type=int, default=9, help="pairs of 20 ms, for the table of functions")
    parser.add_argument("--tables", nargs="+", choices=["steps", "functions"], default=["steps", "functions"])
    parser.add_argument("--only", nargs="+", default=[], help="kinds of algorithms, and names of functions")
    return parser.parse_args()


def provide_composer(folder):
    """The interpreter of a virtual environment with Composer; an unfinished one is made anew."""
    finished = folder / "complete"
    if not finished.exists() or finished.read_text().split() != COMPOSER:
        print(f"installing {' and '.join(COMPOSER)} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *COMPOSER], check=True)
        finished.write_text("\n".join(COMPOSER) + "\n")
    return folder / "bin/python"


def spread(values):
    return f"{statistics.median(values):5.2f} ({min(values):.2f} - {max(values):.2f})"


def step_cases():
    """Workload, kind and keys of every algorithm."""
    images, texts = KEYS["mnist5k"], KEYS["king_james"]
    workloads = {"resnet20": {kind: keys for kind, keys in images.items() if kind not in OF_BYTES},
                 "mnist5k": {kind: images[kind] for kind in OF_BYTES},
                 "king_james": texts}
    for workload in STEPS:
        for kind, keys in {**workloads.get(workload, {}), **FURTHER.get(workload, {})}.items():
            yield workload, kind, ACTING.get(kind, keys)


def train(args, workload, algorithm, settings):
    text = (HERE / "recipes" / f"{workload}.toml").read_text().replace("../../", f"{HERE.parent}/")
    with tempfile.TemporaryDirectory() as scratch:
        recipe = Path(scratch) / "recipe.toml"
        recipe.write_text(text + algorithm)
        return run_tutti(args.build / "tutti", recipe, Path(scratch) / "run", 1, STEPS[workload], WARMUP,
                         [*SETTINGS, *settings])


def step_pairs(args, workload, kind, keys):
    """Figures of a run without and one with an algorithm."""
    sides = ["", entry(kind, keys)]
    pairs = []
    for pair in range(args.pairs):
        order = sides if pair % 2 == 0 else sides[::-1]
        runs = {side: train(args, workload, side, NEEDED.get(kind, [])) for side in order}
        pairs.append([runs[side] for side in sides])
    return pairs


def compare_steps(args):
    print(f"Steps of tutti train, {args.pairs} pairs\n{'algorithm':24} {'workload':12} {'without, ms':>11} "
          f"{'with, ms':>9}   {'with/without':22} the same in processor time", flush=True)
    for workload, kind, keys in step_cases():
        if args.only and kind not in args.only:
            continue
        try:
            pairs = step_pairs(args, workload, kind, keys)
        except Failed as failed:
            print(f"{kind:24} {workload:12} {failed}", flush=True)
            continue
        before, after = (statistics.median(run.step_ms for run in runs) for runs in zip(*pairs))
        clock = spread([after.step_ms / before.step_ms for before, after in pairs])
        processor = spread([after.cpu_ms / before.cpu_ms for before, after in pairs])
        print(f"{kind:24} {workload:12} {before:11.2f} {after:9.2f}   {clock:22} {processor}", flush=True)


def ask(contestant, case):
    print(*case, sep="\t", file=contestant.process.stdin, flush=True)
    nanoseconds, total = contestant.process.stdout.readline().split()
    return float(nanoseconds), float(total)


def compare_function(contestants, case, slices):
    """Microseconds of every pair: tutti's and Composer's."""
    pairs = []
    for pair in range(slices + 1):
        order = contestants if pair % 2 == 0 else contestants[::-1]
        answers = {contestant: ask(contestant, case) for contestant in order}
        own, peer = (answers[contestant] for contestant in contestants)
        tolerance = 0.05 if case[1] == "amp_bf16" else 1e-3
        drawn = DRAWN & {case[0], f"{case[0]} {case[1]}"}
        if not drawn and not math.isclose(own[1], peer[1], rel_tol=tolerance):
            sys.exit(f"{case[:3]}: the results differ, {own[1]} and {peer[1]}")
        pairs.append((own[0] / 1e3, peer[0] / 1e3))
    return pairs[1:]  # the first one finds the numbers of repeats


def compare_functions(args):
    python = provide_composer(args.composer)
    contestants = [Contestant([args.build / "bench/algorithm_bench"]),
                   Contestant([python, HERE / "peer_algorithms.py"])]
    print(f"\nFunctions on one thread, {args.slices} pairs")
    for title, aim, cases in FUNCTIONS:
        cases = [case for case in cases if not args.only or case[0] in args.only]
        if cases:
            print(f"{title:52} {'tutti, us':>10} {'Composer':>10}   tutti/Composer, aim <= {aim}", flush=True)
        for case in cases:
            pairs = compare_function(contestants, case, args.slices)
            own, peer = (statistics.median(column) for column in zip(*pairs))
            ratios = [mine / its for mine, its in pairs]
            known_model = case[3] if len(case[3]) < 10 else ""
            label = " ".join(filter(None, [*case[:3], known_model]))
            missed = "  above the aim" if statistics.median(ratios) > aim else ""
            print(f"  {label:50} {own:10.1f} {peer:10.1f}   {spread(ratios)}{missed}", flush=True)


def main():
    args = arguments()
    args.build = args.build.resolve()
    if "steps" in args.tables:
        compare_steps(args)
    if "functions" in args.tables:
        compare_functions(args)


if __name__ == "__main__":
    main()
