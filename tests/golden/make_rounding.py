"""Adds case_46 to interactions.h5, a Composer run that no rounding changes, and prints why case_15 is none.

Run: python make_rounding.py   (needs mosaicml 0.32.1 and h5py; changes interactions.h5 beside this file)

In the fifth batch of case_15 one value before the second ReLU is 1.7e-9 in exact arithmetic and is a sum of
values of about 0.1, so its rounding decides if the gradient passes; a rate of 0.4 makes of this 2.5e-3 in the
weights. Composer itself moves by as much if its first weights change by one rounding, and then agrees with
tutti to 1e-5. case_46 is the same run from weights that differ by up to 1/1000: no value before a ReLU is
nearer to 0 than 3e-6.
"""

import logging
import pathlib
import warnings

import h5py
import numpy as np
import torch
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from composer import Callback, Trainer, algorithms as A, optim as O  # noqa: E402
from composer.models import ComposerClassifier  # noqa: E402

torch.set_num_threads(1)
ROUNDING, SHIFT, SHIFT_SEED = 6e-8, 1e-3, 4


class Recorder(Callback):
    def __init__(self):
        names = "loss lr train_accuracy eval_accuracy eval_cross_entropy eval_batch"
        self.series = {name: [] for name in names.split()}

    def after_train_batch(self, state, logger):
        self.series["lr"].append(state.schedulers[0].get_last_lr()[0])

    def batch_end(self, state, logger):
        self.series["loss"].append(float(state.total_loss_dict["loss/train/total"]))
        self.series["train_accuracy"].append(float(state.train_metrics["MulticlassAccuracy"].compute()))

    def eval_end(self, state, logger):
        metrics = state.eval_metrics["eval"]
        self.series["eval_accuracy"].append(float(metrics["MulticlassAccuracy"].compute()))
        self.series["eval_cross_entropy"].append(float(metrics["CrossEntropy"].compute()))
        self.series["eval_batch"].append(int(state.timestamp.batch))


class Gap(nn.ReLU):
    """Keeps how near to 0 a value came in training."""

    nearest = np.inf

    def forward(self, x):
        if x.requires_grad:
            Gap.nearest = min(Gap.nearest, float(x.detach().abs().min()))
        return super().forward(x)


def network():
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1), Gap(), nn.MaxPool2d(2), nn.Conv2d(6, 12, 3, padding=1), Gap()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 10)),
    )


def give_draws(case):
    """Has the functions that CutMix draws from give the numbers of the case."""
    draws = {}
    for name in sorted(case["in/draws"]):
        draws.setdefault(name.split("_", 1)[1], []).append(case["in/draws"][name][...])
    np.random.beta = lambda *_: draws["np.random.beta"].pop(0).item()
    np.random.randint = lambda *_: draws["np.random.randint"].pop(0).item()
    torch.randperm = lambda *_: torch.tensor(draws["torch.randperm"].pop(0))


def moved(weights, by, seed):
    random = torch.Generator().manual_seed(seed)
    return {k: v * (1 + by * (2 * torch.rand(v.shape, generator=random) - 1)) for k, v in weights.items()}


def train(case, weights):
    def loader(part, batch):
        arrays = [torch.tensor(case[f"in/{name}_{part}"][...]) for name in "xy"]
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*arrays), batch_size=batch)

    give_draws(case)
    model, recorder = network(), Recorder()
    model.load_state_dict(weights)
    Gap.nearest = np.inf
    keys = case.attrs
    Trainer(
        model=ComposerClassifier(model, num_classes=10),
        device="cpu",
        progress_bar=False,
        auto_log_hparams=False,
        optimizers=torch.optim.SGD(model.parameters(), lr=keys["opt.lr"], momentum=keys["opt.momentum"]),
        train_dataloader=loader("train", int(keys["batch_size"])),
        eval_dataloader=loader("eval", int(keys["eval_batch_size"])),
        max_duration=keys["max_duration"],
        eval_interval=keys["eval_interval"],
        schedulers=O.CosineAnnealingScheduler(alpha_f=keys["sched.alpha_f"]),
        algorithms=[
            A.CutMix(alpha=keys["algo0.alpha"]),
            A.LabelSmoothing(keys["algo1.smoothing"]),
            A.GradientClipping("value", keys["algo2.clipping_threshold"]),
        ],
        callbacks=[recorder],
    ).fit()
    return recorder.series | {f"weights/{k}": v.numpy() for k, v in model.state_dict().items()}


def compare(title, case, out):
    off = {"loss": 0.0, "weights": 0.0, "the rest": 0.0}
    for name, value in out.items():
        kind = name.split("/")[0]
        difference = float(np.abs(np.asarray(value) - case[f"out/{name}"][...]).max())
        kind = kind if kind in off else "the rest"
        off[kind] = max(off[kind], difference)
    print(title, off, "nearest to a ReLU's corner", Gap.nearest)


def main():
    with h5py.File(pathlib.Path(__file__).parent / "interactions.h5", "r+") as file:
        case = file["case_15"]
        weights = {k: torch.tensor(v[...]) for k, v in case["in/weights"].items()}
        compare("case_15 again", case, train(case, weights))
        for seed in range(6):
            out = train(case, moved(weights, ROUNDING, seed))
            compare(f"case_15 from weights changed by one rounding ({seed})", case, out)
        first = moved(weights, SHIFT, SHIFT_SEED)
        if "case_46" in file:
            del file["case_46"]
        shifted = file.create_group("case_46")
        for name in ("x_train", "y_train", "x_eval", "y_eval", "draws"):
            shifted[f"in/{name}"] = case[f"in/{name}"]
        for name, value in first.items():
            shifted[f"in/weights/{name}"] = value.numpy()
        for name, value in train(case, first).items():
            shifted[f"out/{name}"] = np.asarray(value)
        shifted.attrs.update({k: v for k, v in case.attrs.items() if k != "note"})
        shifted.attrs.update(title=case.attrs["title"] + ", far from corners")
        shifted.attrs.update(rtol=0.0, atol=1e-5, weights_atol=1e-5)
        for seed in range(6):
            out = train(case, moved(first, ROUNDING, seed))
            compare(f"case_46 from weights changed by one rounding ({seed})", shifted, out)
        case.attrs.update(rtol=0.0, atol=2e-4, weights_atol=3e-3)
        case.attrs["note"] = "the rounding of one sum decides: make_rounding.py"


if __name__ == "__main__":
    main()
