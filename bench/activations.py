#!/usr/bin/env python3
"""Compares training with checkpointed activations with training without them: a GPT of 24 blocks, 256
features and sequences of 256, unsharded on one rank and under strategy full on two. Runs alternate; prints
the peak of the activations (of all tensors but weights, optimizer state and their copy for checkpoints, so
gradients count too), the time of a step, and whether the weights are equal. Run on an idle machine.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from compare import HERE
from measure import run_tutti

WARMUP = 2
AIMS = {"MB of activations": 0.35, "ms a step": 1.4, "CPU ms a step": 1.4}
LAYERS, FEATURES, TOKENS, LENGTH = 24, 256, 300, 256
MODEL = [f"model.n_layer={LAYERS}", f"model.n_embd={FEATURES}", f"model.vocab_size={TOKENS}",
         f"model.n_positions={LENGTH}"]
PARAMETERS = LAYERS * FEATURES * (12 * FEATURES + 13) + FEATURES * (TOKENS + LENGTH + 2)
STATE_MB = 2 * 3 * 4 * PARAMETERS / 1e6  # float32: weights, two moments of each, and the copy for checkpoints


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tutti", type=Path, default=HERE.parent / "build/tutti")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8, help="sequences of a rank")
    return parser.parse_args()


def run(args, strategy, ranks, checkpointed):
    """Figures of a run, the peak of its tensors in MB, and the hash of its weights."""
    settings = [*MODEL, f"sharding.strategy={strategy}", f"data.train.device_batch_size={args.batch}",
                f"sharding.activation_checkpointing={checkpointed}"]
    tutti = args.tutti.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        recipe = HERE / "recipes/gpt_tiny.toml"
        figures = run_tutti(tutti, recipe, folder, ranks, args.steps, WARMUP, settings)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        digest = subprocess.run([tutti, "inspect", folder, "--digest"], check=True,
                                capture_output=True).stdout
    return figures, max(line.get("memory_peak_mb", 0) for line in lines), digest


def compare(args, strategy, ranks):
    state_mb = STATE_MB / ranks
    ratios = {name: [] for name in AIMS}
    for _ in range(args.pairs):
        plain, checkpointed = (run(args, strategy, ranks, value) for value in ("false", "true"))
        for name, of in (("MB of activations", lambda one: one[1] - state_mb),
                         ("ms a step", lambda one: one[0].step_ms),
                         ("CPU ms a step", lambda one: one[0].cpu_ms)):
            ratios[name].append((of(checkpointed), of(plain)))
        if plain[2] != checkpointed[2]:
            raise SystemExit(f"{strategy}: the weights differ")
    print(f"\n{strategy}, {ranks} ranks, {args.pairs} pairs; the weights are equal")
    for name, pairs in ratios.items():
        each = [one / other for one, other in pairs]
        print(f"  {name:18} {statistics.median(one for one, _ in pairs):8.4g} / "
              f"{statistics.median(other for _, other in pairs):8.4g} = {statistics.median(each):.3f} "
              f"({min(each):.3f} .. {max(each):.3f}), aim {AIMS[name]}")


def main():
    args = arguments()
    for strategy, ranks in (("none", 1), ("full", 2)):
        compare(args, strategy, ranks)


if __name__ == "__main__":
    main()
