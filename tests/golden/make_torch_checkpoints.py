"""Makes torch_checkpoints/two_processes: what two processes save by torch.distributed.checkpoint.

Run: python make_torch_checkpoints.py   (needs torch alone; writes beside this file)

The weights and AdamW's state_dict() of two layers of one shape. AdamW has made one step; the gradients of
parameter i, from 1, were all i, and so its averages are i / 10.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import torch
import torch.distributed
import torch.distributed.checkpoint

FOLDER = pathlib.Path(__file__).resolve().parent / "torch_checkpoints"


def save():
    torch.manual_seed(6)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for i, parameter in enumerate(net.parameters(), 1):
        parameter.grad = torch.full_like(parameter, float(i))
    optimizer.step()
    torch.distributed.init_process_group("gloo")
    state = {"model": net.state_dict(), "optim": optimizer.state_dict(), "step": torch.tensor(1)}
    torch.distributed.checkpoint.save(state, checkpoint_id=FOLDER / "two_processes")
    torch.distributed.destroy_process_group()


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    subprocess.run([*launch, __file__, "save"], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    save() if sys.argv[1:] == ["save"] else main()
