"""PyTorch's side of compare.py and gpu.py: trains one workload on one rank, alone or with DDP over gloo (RANK
and so on in the environment). Rank 0 prints "first step", then one line of JSON."""

import argparse
import contextlib
import itertools
import json
import os
import resource
import statistics
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

from peer_workloads import WORKLOADS

EPOCH_STEPS = 64
BATCHES_ON_A_DEVICE = 8  # made before training, so that a GPU never waits for them


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True, help="steps before the measured ones")
    parser.add_argument("--fused", action="store_true", help="the optimizer's fused kernel")
    parser.add_argument("--fully-shard", action="store_true", help="FSDP2 in place of DDP")
    parser.add_argument("--save-every", type=int, default=0, help="steps from one async_save to the next")
    parser.add_argument("--save-folder", help="where to save")
    parser.add_argument("--device", help="cuda or cpu, with batches that were made before; else the CPU")
    parser.add_argument("--precision", choices=["fp32", "amp_bf16"], default="fp32")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--batch", type=int, help="samples a step, in place of the workload's")
    parser.add_argument("--read-loss-every", type=int, default=1, help="steps; reading waits for a GPU")
    return parser.parse_args()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def endless(loader):
    while True:
        yield from loader


def fully_shard_blocks(model, kinds, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (world,))
    for block in [module for module in model.modules() if isinstance(module, kinds)]:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


class Training:
    def __init__(self, args, world):
        self.args, self.workload = args, WORKLOADS[args.workload]
        self.device = torch.device(args.device or "cpu")
        self.layout = torch.channels_last if args.channels_last else torch.contiguous_format
        self.model = self.workload.model().to(self.device, memory_format=self.layout)
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        if args.fully_shard:
            fully_shard_blocks(self.model, self.workload.sharded, world)
        elif world > 1:
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        options = {"fused": True} if args.fused else {}
        self.optimizer = self.workload.optimizer(self.model.parameters(), **options)
        if args.compile:
            self.model = torch.compile(self.model)
        self.save_every, self.save_folder = args.save_every, args.save_folder
        self.steps, self.saving, self.savers, self.last_loss = 0, None, None, None
        self.batches = self.made_before() if args.device else self.loaded()

    def loaded(self):
        data = TensorDataset(*self.workload.data(self.batch() * EPOCH_STEPS))
        return endless(DataLoader(data, self.batch(), shuffle=True))

    def made_before(self):
        """Batches in pinned memory, over and over; the copies to the device are asynchronous."""
        pinned = self.device.type == "cuda"
        batches = []
        for _ in range(BATCHES_ON_A_DEVICE):
            inputs, targets = self.workload.data(self.batch())
            if inputs.dim() == 4:
                inputs = inputs.contiguous(memory_format=self.layout)
            batches.append([one.pin_memory() if pinned else one for one in (inputs, targets)])
        return ([one.to(self.device, non_blocking=True) for one in batch]
                for batch in itertools.cycle(batches))

    def batch(self):
        return self.args.batch or self.workload.batch

    def autocast(self):
        if self.args.precision == "fp32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def step(self):
        inputs, targets = next(self.batches)
        with self.autocast():
            loss = self.workload.loss(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps += 1
        if self.save_every and self.steps % self.save_every == 0:
            self.save()
        self.last_loss = loss
        if self.steps % self.args.read_loss_every == 0:
            self.read_loss()

    def read_loss(self):
        return self.last_loss.item()

    def peak_mb(self):
        return torch.cuda.max_memory_allocated() / 1e6 if self.device.type == "cuda" else None

    def save(self):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_state_dict
        if self.saving:
            self.saving.result()
        model, optimizer = get_state_dict(self.model, self.optimizer)
        if not self.savers:
            self.savers = dist.new_group(backend="gloo")  # training goes on with its own
        self.saving = dcp.async_save({"model": model, "optimizer": optimizer}, process_group=self.savers,
                                     checkpoint_id=f"{self.save_folder}/{self.steps}")


def timed(step):
    begin = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - begin)


def main():
    args = arguments()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    if world > 1:
        dist.init_process_group("cpu:gloo")
    torch.backends.cudnn.benchmark = True
    training = Training(args, world)
    training.step()
    training.read_loss()
    if rank == 0:
        print("first step", flush=True)
    for _ in range(args.warmup - 1):
        training.step()
    training.read_loss()
    cpu, begin = cpu_seconds(), time.perf_counter()
    step_ms = [timed(training.step) for _ in range(args.steps)]
    loss = training.read_loss()  # which waits for all steps
    mean_ms = 1e3 * (time.perf_counter() - begin) / args.steps
    cpu = torch.tensor((cpu_seconds() - cpu) / args.steps)
    if training.saving:
        training.saving.result()
    if world > 1:
        dist.all_reduce(cpu)
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"step_ms": statistics.median(step_ms), "cpu_ms": 1e3 * cpu.item(),
                          "mean_ms": mean_ms, "parameters": training.parameters, "loss": loss,
                          "peak_mb": training.peak_mb()}), flush=True)


if __name__ == "__main__":
    main()
