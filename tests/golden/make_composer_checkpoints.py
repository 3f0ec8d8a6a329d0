"""Makes composer_checkpoints/: checkpoints that Composer's Trainer saved in mid-run, with later losses.

Run: python make_composer_checkpoints.py   (needs mosaicml 0.32.1; writes beside this file)

whole.pt is of one process, with weights in channels-last order, and swa.pt has averages of SWA; sharded/ is
of two processes under FSDP, in the form of torch.distributed.checkpoint. Each is of batch 10, in the second
epoch. data.h5 has the data, losses.json each batch's loss, and the rate that the scheduler set after the
batch.
"""

import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import h5py
import numpy as np
import torch

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from composer import Callback, Trainer, algorithms as A, optim as O  # noqa: E402
from composer.models import ComposerClassifier  # noqa: E402
from composer.utils import dist  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

torch.set_num_threads(1)
SAMPLES, BATCH, CLASSES, SAVED_AT = 56, 8, 5, 10
FOLDER = pathlib.Path(__file__).resolve().parent / "composer_checkpoints"


class Losses(Callback):
    def __init__(self):
        self.seen = {"loss": [], "lr": []}

    def batch_end(self, state, logger):
        self.seen["loss"].append(float(np.mean(dist.all_gather_object(float(state.loss)))))
        self.seen["lr"].append(state.optimizers[0].param_groups[0]["lr"])


def convolutions():
    torch.manual_seed(3)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Conv2d(4, 3, 2),
        torch.nn.Flatten(),
        torch.nn.Linear(27, CLASSES),
    )
    return net.to(memory_format=torch.channels_last)


def perceptron():
    torch.manual_seed(4)
    return torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(36, 8),
        torch.nn.LayerNorm(8),
        torch.nn.GELU(),
        torch.nn.Linear(8, CLASSES),
    )


def data():
    random = np.random.default_rng(5)
    x = random.standard_normal((SAMPLES, 1, 6, 6)).astype(np.float32)
    return x, random.integers(0, CLASSES, SAMPLES)


def train(net, optimizer, folder, algorithm=None, **more):
    samples = TensorDataset(*map(torch.tensor, data()))
    model = ComposerClassifier(net, num_classes=CLASSES)
    losses = Losses()
    Trainer(
        model=model,
        train_dataloader=DataLoader(
            samples,
            batch_size=BATCH // dist.get_world_size(),
            sampler=dist.get_sampler(samples, shuffle=False),
        ),
        max_duration="4ep",
        optimizers=optimizer(model.parameters()),
        schedulers=O.CosineAnnealingWithWarmupScheduler(t_warmup="4ba"),
        algorithms=[algorithm or A.EMA(half_life="4ba")],
        callbacks=[losses],
        device="cpu",
        seed=7,
        run_name="golden",
        progress_bar=False,
        save_folder=folder,
        save_interval=f"{SAVED_AT}ba",
        **more,
    ).fit()
    return losses.seen


def adamw(parameters):
    return O.DecoupledAdamW(parameters, lr=0.02, weight_decay=1e-3)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.02)


def averaging():
    """Begins before the checkpoint, and ends in the ten batches behind."""
    return A.SWA(swa_start="0.2dur", swa_end="0.6dur", update_interval="1ba", anneal_steps=8)


def train_sharded():
    torch.cuda.current_device = lambda: torch.device("cpu")  # the device that Composer gives to FSDP
    fsdp = {"state_dict_type": "sharded", "use_orig_params": True}
    seen = train(perceptron(), adam, "saved", parallelism_config={"fsdp": fsdp})
    if dist.get_global_rank() == 0:
        pathlib.Path("losses.json").write_text(json.dumps(seen))


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    seen = {}
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        seen["whole"] = train(convolutions(), adamw, "whole")
        shutil.copy("whole/ep1-ba10-rank0.pt", FOLDER / "whole.pt")
        seen["swa"] = train(perceptron(), adamw, "swa", averaging())
        shutil.copy("swa/ep1-ba10-rank0.pt", FOLDER / "swa.pt")
        launcher = pathlib.Path(sys.executable).parent / "composer"
        subprocess.run([launcher, "--nproc", "2", __file__, "sharded"], check=True)
        seen["sharded"] = json.loads(pathlib.Path("losses.json").read_text())
        shutil.copytree("saved/ep1-ba10", FOLDER / "sharded")
    x, y = data()
    with h5py.File(FOLDER / "data.h5", "w") as file:
        file["train/input"] = x
        file["train/target"] = y
        file["train/target"].attrs["num_classes"] = CLASSES
    (FOLDER / "losses.json").write_text(json.dumps(seen, indent=1) + "\n")


if __name__ == "__main__":
    train_sharded() if sys.argv[1:] == ["sharded"] else main()
