"""Compares a step of each optimizer with PyTorch's: 10 million parameters in 100 tensors, one thread.

usage: optimizers.py BUILD   (torch; timm and lion_pytorch where they are to be compared)
"""
import statistics
import subprocess
import sys
import time

import torch

ROUNDS, TIMES = 5, 11


def fused(optimizer, **keys):
    return lambda p: optimizer(p, lr=0.001, weight_decay=0.01, fused=True, **keys)


def foreach(optimizer, **keys):
    return lambda p: optimizer(p, lr=0.001, weight_decay=0.01, foreach=True, **keys)


def plain(optimizer, **keys):
    return lambda p: optimizer(p, lr=0.001, weight_decay=0.01, **keys)


class MuonAndAdamW:
    def __init__(self, parameters):
        self.both = [torch.optim.Muon([p for p in parameters if p.ndim == 2], lr=0.001, weight_decay=0.01),
                     torch.optim.AdamW([p for p in parameters if p.ndim < 2], lr=0.0003, fused=True)]

    def step(self):
        for one in self.both:
            one.step()


def peers():
    optim = torch.optim
    found = {"adamw": {"fused": fused(optim.AdamW), "foreach": foreach(optim.AdamW)},
             "nadam": {"foreach": foreach(optim.NAdam), "default": plain(optim.NAdam)},
             "adagrad": {"fused": fused(optim.Adagrad), "foreach": foreach(optim.Adagrad)},
             "rmsprop": {"foreach": foreach(optim.RMSprop), "default": plain(optim.RMSprop)},
             "adafactor": {"foreach": foreach(optim.Adafactor), "default": plain(optim.Adafactor)},
             "muon": {"default": MuonAndAdamW}}
    try:
        from lion_pytorch import Lion
        from timm.optim import Lamb
        found["lion"] = {"lion_pytorch": plain(Lion)}
        found["lamb"] = {"timm": plain(Lamb, max_grad_norm=None),
                         "timm foreach": foreach(Lamb, max_grad_norm=None)}
    except ImportError:
        pass
    return found


def peer_ms(make):
    parameters = [torch.nn.Parameter(torch.randn(shape)) for _ in range(50) for shape in ((400, 500), (500,))]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = make(parameters)
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        optimizer.step()
        times.append((time.perf_counter() - begin) * 1000)
    return statistics.median(times)


torch.set_num_threads(1)
for kind, ways in peers().items():
    own, theirs = [], {way: [] for way in ways}
    for _ in range(ROUNDS):
        out = subprocess.run([sys.argv[1] + "/bench/optimizer_bench", kind], check=True, capture_output=True)
        own.append(float(out.stdout.split()[1]))
        for way, make in ways.items():
            theirs[way].append(peer_ms(make))
    mine = min(own)
    text = ", ".join(f"{way} {min(ms):.1f} ms ({min(ms) / mine:.2f} x)" for way, ms in theirs.items())
    print(f"{kind}: tutti {mine:.1f} ms; {text}", flush=True)
