"""PyTorch's side of compare.py: trains one workload on one rank, alone or with DDP over gloo (RANK and so on
in the environment). Rank 0 prints "first step", then one line of JSON."""

import argparse
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


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True, help="steps before the measured ones")
    parser.add_argument("--fused", action="store_true", help="the optimizer's fused kernel")
    parser.add_argument("--fully-shard", action="store_true", help="FSDP2 in place of DDP")
    parser.add_argument("--save-every", type=int, default=0, help="steps from one async_save to the next")
    parser.add_argument("--save-folder", help="where to save")
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
        self.workload = WORKLOADS[args.workload]
        self.model = self.workload.model()
        if args.fully_shard:
            fully_shard_blocks(self.model, self.workload.sharded, world)
        elif world > 1:
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        options = {"fused": True} if args.fused else {}
        self.optimizer = self.workload.optimizer(self.model.parameters(), **options)
        self.save_every, self.save_folder = args.save_every, args.save_folder
        self.steps, self.saving, self.savers = 0, None, None
        data = TensorDataset(*self.workload.data(self.workload.batch * EPOCH_STEPS))
        self.batches = endless(DataLoader(data, self.workload.batch, shuffle=True))

    def step(self):
        inputs, targets = next(self.batches)
        loss = self.workload.loss(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps += 1
        if self.save_every and self.steps % self.save_every == 0:
            self.save()
        return loss.item()

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
    training = Training(args, world)
    training.step()
    if rank == 0:
        print("first step", flush=True)
    for _ in range(args.warmup - 1):
        training.step()
    cpu = cpu_seconds()
    step_ms = [timed(training.step) for _ in range(args.steps)]
    cpu = torch.tensor((cpu_seconds() - cpu) / args.steps)
    if training.saving:
        training.saving.result()
    if world > 1:
        dist.all_reduce(cpu)
        dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"step_ms": statistics.median(step_ms), "cpu_ms": 1e3 * cpu.item(),
                          "mean_ms": statistics.mean(step_ms)}), flush=True)


if __name__ == "__main__":
    main()
