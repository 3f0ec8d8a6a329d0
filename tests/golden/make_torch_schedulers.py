"""Computes torch_schedulers.h5: learning rates of PyTorch's schedulers, by the number of their steps.

Run: python make_torch_schedulers.py   (torch, numpy, h5py; writes torch_schedulers.h5 beside this file)
"""
import math
import pathlib
import warnings

import h5py
import numpy
import torch
from torch.optim import lr_scheduler

warnings.simplefilter("ignore")  # schedulers are stepped without their optimizer


def optimizer(lr):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def build(opt, name, parameters):
    if name != "SequentialLR":
        return getattr(lr_scheduler, name)(opt, **parameters)
    schedulers = [build(opt, kind, p) for kind, p in parameters["schedulers"]]
    return lr_scheduler.SequentialLR(opt, schedulers, parameters["milestones"])


def new_case(file, name, lr, parameters):
    group = file.create_group(f"case_{len(file)}")
    said = {k: v for k, v in parameters.items() if k != "schedulers"}
    for i, (kind, inner) in enumerate(parameters.get("schedulers", [])):
        said[f"schedulers.{i}.scheduler"] = kind
        said.update({f"schedulers.{i}.{k}": v for k, v in inner.items()})
    title = f"{name}({', '.join(f'{k}={v}' for k, v in said.items())})"
    group.attrs.update(dict(title=title, composer_api=f"torch.optim.lr_scheduler.{name}", scheduler=name,
                            lr=lr, rtol=1e-9, atol=1e-15))
    for key, value in said.items():
        group.attrs[key] = int(value) if isinstance(value, bool) else value
    return group


def case(file, name, steps, lr=0.1, **parameters):
    opt = optimizer(lr)
    scheduler = build(opt, name, parameters)
    lrs = [opt.param_groups[0]["lr"]]
    for _ in range(steps - 1):
        scheduler.step()
        lrs.append(opt.param_groups[0]["lr"])
    group = new_case(file, name, lr, parameters)
    group["in/steps"] = numpy.arange(steps)
    group["out/lr"] = numpy.array(lrs, dtype=numpy.float64)


def plateau(file, metrics, lr=0.1, **parameters):
    opt = optimizer(lr)
    scheduler = lr_scheduler.ReduceLROnPlateau(opt, **parameters)
    lrs = []
    for metric in metrics:
        scheduler.step(metric)
        lrs.append(opt.param_groups[0]["lr"])
    group = new_case(file, "ReduceLROnPlateau", lr, parameters)
    group["in/metrics"] = numpy.array(metrics, dtype=numpy.float64)
    group["out/lr"] = numpy.array(lrs, dtype=numpy.float64)


def error(file, name, **parameters):
    try:
        build(optimizer(0.1), name, parameters)
    except (ValueError, TypeError) as raised:
        new_case(file, name, 0.1, parameters).attrs["error"] = type(raised).__name__
        return
    raise AssertionError(f"{name}({parameters}) is no error")


def plain(file):
    case(file, "StepLR", 40, step_size=7)
    case(file, "StepLR", 40, lr=2.5, step_size=1, gamma=0.87)
    case(file, "MultiStepLR", 40, milestones=[4, 9, 30])
    case(file, "MultiStepLR", 20, milestones=[0, 5, 5, 6], gamma=0.5)
    case(file, "ConstantLR", 12)
    case(file, "ConstantLR", 12, factor=0.05, total_iters=1)
    case(file, "LinearLR", 12)
    case(file, "LinearLR", 30, lr=1.0, start_factor=1e-3, total_iters=20)
    case(file, "LinearLR", 30, start_factor=1.0, end_factor=0.0, total_iters=13)
    case(file, "ExponentialLR", 40, gamma=0.93)
    case(file, "ExponentialLR", 20, gamma=1.1)
    case(file, "PolynomialLR", 12)
    case(file, "PolynomialLR", 40, total_iters=33, power=0.9)
    case(file, "PolynomialLR", 12, total_iters=7, power=2.5)


def cosines(file):
    case(file, "CosineAnnealingLR", 20, T_max=20)
    case(file, "CosineAnnealingLR", 75, lr=0.3, T_max=11, eta_min=0.02)
    case(file, "CosineAnnealingLR", 9, T_max=1, eta_min=0.01)
    case(file, "CosineAnnealingLR", 30, lr=0.01, T_max=6, eta_min=0.1)
    case(file, "CosineAnnealingWarmRestarts", 40, T_0=8)
    case(file, "CosineAnnealingWarmRestarts", 100, lr=0.5, T_0=3, T_mult=2, eta_min=0.001)
    case(file, "CosineAnnealingWarmRestarts", 50, T_0=1, T_mult=3)


def one_cycles(file):
    once = dict(cycle_momentum=False)
    case(file, "OneCycleLR", 50, max_lr=0.4, total_steps=50, **once)
    case(file, "OneCycleLR", 30, max_lr=0.4, epochs=5, steps_per_epoch=6, **once)
    case(file, "OneCycleLR", 37, lr=3.0, max_lr=0.02, total_steps=37, pct_start=0.41,
         anneal_strategy="linear", div_factor=10.0, final_div_factor=100.0, **once)
    case(file, "OneCycleLR", 60, max_lr=1.0, total_steps=60, three_phase=True, **once)
    case(file, "OneCycleLR", 45, max_lr=1.0, total_steps=45, three_phase=True, pct_start=0.6,
         anneal_strategy="linear", **once)
    case(file, "OneCycleLR", 20, max_lr=1.0, total_steps=20, pct_start=0.0, **once)
    case(file, "OneCycleLR", 20, max_lr=1.0, total_steps=20, pct_start=1.0, **once)


def sequences(file):
    case(file, "SequentialLR", 40, milestones=[20],
         schedulers=[("ConstantLR", dict(factor=0.1, total_iters=20)), ("ExponentialLR", dict(gamma=0.9))])
    case(file, "SequentialLR", 60, lr=0.7, milestones=[5, 27],
         schedulers=[("LinearLR", dict(start_factor=0.01)),
                     ("CosineAnnealingLR", dict(T_max=22, eta_min=0.05)),
                     ("StepLR", dict(step_size=4, gamma=0.3))])
    case(file, "SequentialLR", 60, milestones=[10, 40],
         schedulers=[("CosineAnnealingWarmRestarts", dict(T_0=4, T_mult=2)),
                     ("PolynomialLR", dict(total_iters=25)),
                     ("CosineAnnealingWarmRestarts", dict(T_0=7, eta_min=0.01))])
    case(file, "SequentialLR", 30, milestones=[1, 2],
         schedulers=[("CosineAnnealingLR", dict(T_max=1)), ("MultiStepLR", dict(milestones=[0, 3])),
                     ("CosineAnnealingLR", dict(T_max=9))])
    case(file, "SequentialLR", 15, milestones=[], schedulers=[("ExponentialLR", dict(gamma=0.8))])


def plateaus(file):
    falling = [2.0 / (1 + i) for i in range(15)]
    wobbling = [1.0 + 0.3 * math.sin(1.7 * i) - 0.004 * i for i in range(60)]
    plateau(file, falling + [0.2] * 40)
    plateau(file, wobbling, patience=2, factor=0.5)
    plateau(file, wobbling, patience=0, cooldown=3, factor=0.7, threshold=0.05)
    plateau(file, wobbling, mode="max", patience=1, threshold=0.01, threshold_mode="abs", factor=0.3)
    plateau(file, wobbling, patience=1, threshold=0.1, threshold_mode="abs", cooldown=2, min_lr=0.004)
    plateau(file, [-v for v in wobbling], mode="max", patience=2, factor=0.2, min_lr=1e-4)
    plateau(file, wobbling, mode="max", patience=1, threshold=0.05, factor=0.5)
    plateau(file, [-v for v in wobbling], patience=1, factor=0.4, threshold=0.02)
    plateau(file, [1.0] * 30, lr=1e-7, patience=0, eps=2e-8, factor=0.6)
    plateau(file, [math.nan, 1.0, math.nan, math.inf, 0.5, math.nan, 0.4], patience=1)


def errors(file):
    error(file, "ConstantLR", factor=1.5)
    error(file, "LinearLR", start_factor=0.0)
    error(file, "LinearLR", end_factor=1.01)
    error(file, "CosineAnnealingWarmRestarts", T_0=0)
    error(file, "CosineAnnealingWarmRestarts", T_0=5, T_mult=0)
    error(file, "OneCycleLR", max_lr=1.0, cycle_momentum=False)
    error(file, "OneCycleLR", max_lr=1.0, epochs=3, cycle_momentum=False)
    error(file, "OneCycleLR", max_lr=1.0, total_steps=0, cycle_momentum=False)
    error(file, "OneCycleLR", max_lr=1.0, total_steps=9, pct_start=1.2, cycle_momentum=False)
    error(file, "OneCycleLR", max_lr=1.0, total_steps=9, anneal_strategy="sine", cycle_momentum=False)
    error(file, "ReduceLROnPlateau", factor=1.0)
    error(file, "ReduceLROnPlateau", mode="least")
    error(file, "ReduceLROnPlateau", threshold_mode="mixed")
    error(file, "SequentialLR", milestones=[3], schedulers=[("ExponentialLR", dict(gamma=0.8))])
    error(file, "SequentialLR", milestones=[3],
          schedulers=[("ExponentialLR", dict(gamma=0.8)), ("ReduceLROnPlateau", {})])


with h5py.File(pathlib.Path(__file__).with_name("torch_schedulers.h5"), "w") as file:
    for part in (plain, cosines, one_cycles, sequences, plateaus, errors):
        part(file)
