#!/usr/bin/env python3
"""Where examples/digits_diffusion.toml ends, in tutti and in PyTorch with diffusers by the same recipe: the
error of the predicted noise on the test images, of averaged weights, with the same noise for all: 20 draws
for each image. PyTorch draws other weights, orders and noise, so the spreads over seeds are compared.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from compare import default_python
from ends import ROOT, are_apart, print_ends, train
from gpu import run
from measure import Failed

DATA = ROOT / "examples/data/digits.h5"

COMMON = """
import json, math, sys, h5py, torch, torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DModel
torch.set_num_threads(1)
with h5py.File(sys.argv[1]) as file:
    train, test = (torch.from_numpy(file[f"{part}/input"][:]) * 2 - 1 for part in ("train", "test"))
scheduler = DDPMScheduler(beta_schedule="squaredcos_cap_v2")

def measured(model):
    draws = torch.Generator().manual_seed(5)
    errors = []
    with torch.no_grad():
        for _ in range(20):
            t = torch.randint(0, 1000, (len(test),), generator=draws)
            noise = torch.randn(test.shape, generator=draws)
            predicted = model.eval()(scheduler.add_noise(test, noise, t), t).sample
            errors.append(F.mse_loss(predicted, noise).item())
    return sum(errors) / len(errors)
"""
MEASURE = COMMON + """
print(measured(UNet2DModel.from_pretrained(sys.argv[2], subfolder="unet")))
"""
PEER = COMMON + """
epochs, seed, batch, warmup, half_life = int(sys.argv[2]), int(sys.argv[3]), 96, 50, 50
torch.manual_seed(seed)
model = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, block_out_channels=[16, 32],
                    down_block_types=["DownBlock2D", "AttnDownBlock2D"],
                    up_block_types=["AttnUpBlock2D", "UpBlock2D"], layers_per_block=1, norm_num_groups=8)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
steps = epochs * math.ceil(len(train) / batch)
rate = lambda n: n / warmup if n < warmup else (1 + math.cos(math.pi * (n - warmup) / (steps - warmup))) / 2
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
average = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.5 ** (1 / half_life)))
for epoch in range(epochs):
    for rows in torch.randperm(len(train)).split(batch):
        images, t = train[rows], torch.randint(0, 1000, (len(rows),))
        noise = torch.randn(images.shape)
        optimizer.zero_grad()
        F.mse_loss(model(scheduler.add_noise(images, noise, t), t).sample, noise).backward()
        optimizer.step()
        schedule.step()
        average.update_parameters(model)
print(measured(average.module))
"""


def tutti_ends(args, seed, folder):
    train(args.tutti, "digits_diffusion", folder / "run",
          [f"seed={seed}", f"train.max_duration={args.epochs}ep"])
    run([args.tutti, "export", folder / "run", "--to-hf", folder / "exported"])
    return float(run([args.python, "-c", MEASURE, DATA, folder / "exported"]))


def peer_ends(args, seed):
    return float(run([args.python, "-c", PEER, DATA, args.epochs, seed]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", type=Path, default=ROOT / "build/tutti")
    parser.add_argument("--python", default=default_python(), help="one that has torch, h5py and diffusers")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--of", nargs="+", choices=["tutti", "diffusers"], default=["tutti", "diffusers"])
    args = parser.parse_args()
    found = {name: [] for name in args.of}
    for seed in range(1, args.seeds + 1):
        for name in args.of:
            if name == "diffusers":
                found[name].append(peer_ends(args, seed))
                continue
            with tempfile.TemporaryDirectory() as scratch:
                found[name].append(tutti_ends(args, seed, Path(scratch)))
        print(json.dumps({"seed": seed, **{name: ends[-1] for name, ends in found.items()}}), flush=True)
    print_ends("error of the noise", found)
    if len(found) == 2:
        sys.exit("outside of PyTorch's spread" if are_apart(found["tutti"], found["diffusers"]) else 0)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"learn_diffusion.py: {failed}")
