#!/usr/bin/env python3
"""Writes trackers/run-golden01.wandb with the package wandb (0.31.0): an offline run, over two blocks.

    pip install wandb==0.31.0 && tests/golden/make_trackers.py
"""
import os
import pathlib
import shutil
import tempfile

os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
import wandb  # noqa: E402

HERE = pathlib.Path(__file__).parent / "trackers"
STEPS = 30

with tempfile.TemporaryDirectory() as folder:
    settings = wandb.Settings(x_disable_stats=True, x_disable_meta=True, host="host", disable_git=True,
                              save_code=False)
    run = wandb.init(project="golden", id="golden01", dir=folder, settings=settings)
    for step in range(STEPS):
        run.log({"loss/train/total": 1 / (step + 1), "text": "x" * (step * 40)}, step=step)
    run.finish()
    wandb.teardown()  # the file is complete once its writer has ended
    (file,) = pathlib.Path(folder).glob("wandb/offline-run-*/run-golden01.wandb")
    HERE.mkdir(exist_ok=True)
    shutil.copy(file, HERE)
