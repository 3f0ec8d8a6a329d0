"""Makes other_checkpoints/: checkpoints in mid-run of Lightning and transformers' Trainer, with later losses.

Run: python make_other_checkpoints.py   (needs pytorch-lightning 2.5.5 and transformers 4.57.1)

lightning.ckpt is of step 10 of a small network, checkpoint-10/ of step 10 of a GPT-2; both with AdamW. The
Trainer's optimizer has two groups, with and without weight decay. data.h5 has the data, losses.json each
step's loss. All lie beside this file.
"""

import json
import logging
import os
import pathlib
import shutil
import tempfile
import warnings

import h5py
import numpy as np
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import pytorch_lightning as pl  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments  # noqa: E402

torch.set_num_threads(1)
SAMPLES, BATCH, CLASSES, SAVED_AT, STEPS = 56, 8, 5, 10, 21
FOLDER = pathlib.Path(__file__).resolve().parent / "other_checkpoints"


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.net = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(36, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.GELU(),
            torch.nn.Linear(8, CLASSES),
        )
        self.losses = []

    def training_step(self, batch, index):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(float(loss))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.02, weight_decay=0.1)


def images():
    random = np.random.default_rng(5)
    x = random.standard_normal((SAMPLES, 1, 6, 6)).astype(np.float32)
    return x, random.integers(0, CLASSES, SAMPLES)


def tokens():
    return np.random.default_rng(6).integers(0, 11, (SAMPLES, 9))


def lightning():
    net = Net()
    keep = pl.callbacks.ModelCheckpoint(
        "saved", filename="{step}", every_n_train_steps=SAVED_AT, save_top_k=-1
    )
    pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        callbacks=[keep],
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(net, DataLoader(TensorDataset(*map(torch.tensor, images())), batch_size=BATCH))
    shutil.copy("saved/step=10.ckpt", FOLDER / "lightning.ckpt")
    end = torch.load("saved/step=10.ckpt", weights_only=False)  # as if of the end of the first epoch
    progress = end["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    end |= {"epoch": 0, "global_step": 7}
    progress["current"] |= {key: 7 for key in progress["current"] if key != "is_last_batch"}
    progress["total"] = dict.fromkeys(progress["total"], 7)
    torch.save(end, FOLDER / "lightning_end.ckpt")
    return net.losses


class Ordered(Trainer):
    seen = []

    def _get_train_sampler(self, *_):
        return None

    def compute_loss(self, *args, **keys):
        loss = super().compute_loss(*args, **keys)
        self.seen.append(float(loss))
        return loss


def trainer():
    torch.manual_seed(8)
    sizes = dict(vocab_size=11, n_positions=12, n_embd=8, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(GPT2Config(**sizes, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
    rows = [{"input_ids": torch.tensor(row), "labels": torch.tensor(row)} for row in tokens()]
    made = Ordered(
        model,
        TrainingArguments(
            "hf",
            per_device_train_batch_size=BATCH,
            max_steps=STEPS,
            learning_rate=0.01,
            weight_decay=0.1,
            save_steps=SAVED_AT,
            lr_scheduler_type="constant",
            max_grad_norm=0,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            optim="adamw_torch",
        ),
        train_dataset=rows,
    )
    made.model_accepts_loss_kwargs = False  # the loss is the mean over the targets
    made.train()
    (FOLDER / "checkpoint-10").mkdir()
    for name in ["config.json", "model.safetensors", "optimizer.pt", "trainer_state.json", "rng_state.pth"]:
        shutil.copy(f"hf/checkpoint-10/{name}", FOLDER / "checkpoint-10" / name)
    return made.seen


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        seen = {"lightning": lightning(), "trainer": trainer()}
    x, y = images()
    with h5py.File(FOLDER / "data.h5", "w") as file:
        file["images/input"], file["images/target"] = x, y
        file["images/target"].attrs["num_classes"] = CLASSES
        file["tokens/input"], file["tokens/target"] = tokens()[:, :-1], tokens()[:, 1:]
    (FOLDER / "losses.json").write_text(json.dumps(seen, indent=1) + "\n")


if __name__ == "__main__":
    main()
