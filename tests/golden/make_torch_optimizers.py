"""Computes torch_optimizers.h5: 20 steps of torch.optim's optimizers, of lion_pytorch's Lion and timm's Lamb.

Run: python make_torch_optimizers.py   (torch 2.11.0, timm 1.0.31, lion-pytorch 0.2.5, numpy, h5py; writes
torch_optimizers.h5 beside this file). Each case has the recipe's [optimizer] as text. The rate of each step
is the recipe's times a factor, as by a schedule.
"""
import pathlib

import h5py
import numpy
import torch
from lion_pytorch import Lion
from timm.optim import Lamb

STEPS = 20
SHAPES = {"a.weight": (6, 4), "a.bias": (5,), "b.conv": (3, 2, 3, 2), "b.scale": (), "wide": (3, 8),
          "embed.weight": (4, 3)}
generator = torch.Generator().manual_seed(0)


def draw(*shape):
    return torch.randn(shape, generator=generator)


def toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def recipe_of(kind, keys, groups):
    lines = [f'kind = "{kind}"'] + [f"{key} = {toml(value)}" for key, value in keys.items()]
    for group in groups:
        lines += ["[[optimizer.groups]]"] + [f"{key} = {toml(value)}" for key, value in group.items()]
    return "[optimizer]\n" + "\n".join(lines) + "\n"


def walk(make, weights, gradients, factors):
    parameters = {name: torch.nn.Parameter(w.clone()) for name, w in weights.items()}
    optimizers = make(parameters)
    rates = [[group["lr"] for group in one.param_groups] for one in optimizers]
    found = {name: [] for name in weights}
    for step in range(STEPS):
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].clone()
        for one, initial in zip(optimizers, rates):
            for group, rate in zip(one.param_groups, initial):
                group["lr"] = rate * factors[step]
            one.step()
        for name, parameter in parameters.items():
            found[name].append(parameter.detach().clone())
    return {name: torch.stack(values) for name, values in found.items()}


WEIGHTS = {name: draw(*shape) for name, shape in SHAPES.items()}
GRADIENTS = {name: draw(STEPS, *shape) for name, shape in SHAPES.items()}


def joined(tensors, *sizes):
    return numpy.asarray(torch.cat([tensor.reshape(*sizes, -1) for tensor in tensors.values()], -1))


def case(file, kind, keys, make, groups=(), rtol=2e-5, atol=2e-6, falls=False):
    group = file.create_group(f"case_{len(file)}")
    recipe = recipe_of(kind, keys, groups)
    group.attrs.update(dict(title=" ".join(recipe.split()), recipe=recipe, rtol=rtol, atol=atol))
    factors = [1 - step / STEPS / 2 if falls else 1.0 for step in range(STEPS)]
    found = walk(make, WEIGHTS, GRADIENTS, factors)
    group.create_dataset("in/factors", data=numpy.array(factors), track_times=False)
    group.create_dataset("out/weights", data=joined(found, STEPS), track_times=False)
    if group.name != "/case_0":  # the same for all
        group["in/weights"], group["in/gradients"] = file["case_0/in/weights"], file["case_0/in/gradients"]
        return
    group.create_dataset("in/weights", data=joined(WEIGHTS), track_times=False)
    group.create_dataset("in/gradients", data=joined(GRADIENTS, STEPS), track_times=False)


def plain(file, kind, optimizer, rename=lambda keys: keys, falls=False, **keys):
    case(file, kind, keys, lambda p: [optimizer(list(p.values()), **rename(keys))], falls=falls)


def of_torch(file):
    plain(file, "nadam", torch.optim.NAdam)
    plain(file, "nadam", torch.optim.NAdam, lr=0.01, betas=(0.8, 0.98), weight_decay=0.1, momentum_decay=0.05,
          falls=True)
    plain(file, "nadam", torch.optim.NAdam, lr=0.03, weight_decay=0.2, decoupled_weight_decay=True,
          maximize=True, eps=1e-5)
    plain(file, "adagrad", torch.optim.Adagrad)
    plain(file, "adagrad", torch.optim.Adagrad, lr=0.1, lr_decay=0.3, weight_decay=0.1, falls=True,
          initial_accumulator_value=0.5, eps=1e-6, maximize=True)
    plain(file, "rmsprop", torch.optim.RMSprop)
    plain(file, "rmsprop", torch.optim.RMSprop, lr=0.02, alpha=0.9, momentum=0.7, weight_decay=0.1)
    plain(file, "rmsprop", torch.optim.RMSprop, centered=True, momentum=0.9, eps=1e-4, maximize=True,
          falls=True)
    plain(file, "rmsprop", torch.optim.RMSprop, centered=True, eps=1e-4)


def adafactors(file):
    def eps(keys):
        keys = dict(keys)
        keys["eps"] = (keys.pop("eps1", None), keys.pop("eps2", 1e-3))
        return keys

    plain(file, "adafactor", torch.optim.Adafactor, eps)
    plain(file, "adafactor", torch.optim.Adafactor, eps, lr=0.1, beta2_decay=-0.5, eps1=1e-4, eps2=0.5, d=1.1,
          weight_decay=0.1, maximize=True, falls=True)
    # Rates, weights and gradients where each bound holds.
    plain(file, "adafactor", torch.optim.Adafactor, eps, lr=0.5, eps1=0.9, eps2=1.2)


def of_others(file):
    plain(file, "lion", Lion, lr=0.0001)
    plain(file, "lion", Lion, lr=0.01, betas=(0.8, 0.95), weight_decay=0.3, falls=True)
    clip = lambda keys: dict(keys, max_grad_norm=None)
    plain(file, "lamb", Lamb, clip)
    plain(file, "lamb", Lamb, clip, lr=0.02, betas=(0.8, 0.98), eps=1e-4, weight_decay=0.1, falls=True,
          bias_correction=False, grad_averaging=False)
    plain(file, "lamb", Lamb, clip, lr=0.02, weight_decay=0.0)
    plain(file, "lamb", Lamb, clip, lr=0.02, weight_decay=0.0, always_adapt=True, trust_clip=True)


# The kernel of a convolution is a matrix to Muon, as in Jordan's code; torch's takes nothing else.
class Flat(torch.optim.Muon):
    def __init__(self, parameters, **keys):
        self.given = parameters
        self.flat = [torch.nn.Parameter(p.detach().view(len(p), -1)) for p in parameters]
        super().__init__(self.flat, **keys)

    def step(self):
        for given, flat in zip(self.given, self.flat):
            flat.grad = given.grad.view(len(given), -1)
        super().step()


def muons(file):
    matrices = ("a.weight", "b.conv", "wide")

    # An update has elements of up to lr; in bfloat16 it depends on the order of sums.
    def muon(lr, adamw, more={}, match=None, falls=False, of_muon=matrices, **keys):
        def make(p):
            others = [p[name] for name in p if name not in of_muon]
            return [Flat([p[name] for name in of_muon], lr=lr, **keys), torch.optim.AdamW(others, **adamw)]

        said = dict(lr=lr, **keys, **more)
        case(file, "muon", said, make, rtol=1e-3, atol=0.02 * lr, falls=falls)

    adamw = dict(lr=3e-4, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0)
    muon(0.001, adamw)
    muon(0.02, adamw, momentum=0.8, nesterov=False, weight_decay=0.0, adjust_lr_fn="match_rms_adamw",
         falls=True)
    muon(0.02, dict(lr=0.01, betas=(0.8, 0.98), eps=0.1, weight_decay=0.3), ns_steps=3, eps=1e-5,
         ns_coefficients=(3.0, -4.0, 2.0), of_muon=("wide",),
         more=dict(adamw_match=["a.weight", "*.conv", "embed*"], adamw_lr=0.01, adamw_betas=(0.8, 0.98),
                   adamw_eps=0.1, adamw_weight_decay=0.3))


def groups(file):
    def make(optimizer, keys, first, second):
        def of(p):
            rest = [p[n] for n in p if n not in ("a.bias", "a.weight", "embed.weight")]
            return [optimizer([dict(params=rest), dict(params=[p["a.bias"]], **first),
                               dict(params=[p["a.weight"], p["embed.weight"]], **second)], **keys)]
        return of

    optim = torch.optim
    for kind, optimizer in (("sgd", optim.SGD), ("adamw", optim.AdamW), ("rmsprop", optim.RMSprop)):
        keys = dict(lr=0.02, weight_decay=0.1)
        first, second = dict(lr=0.005, weight_decay=0.0), dict(lr=0.07)
        case(file, kind, keys, make(optimizer, keys, first, second), falls=True,
             groups=[dict(match=["*.bias"], **first), dict(match=["a.*", "embed*"], **second)])


with h5py.File(pathlib.Path(__file__).with_name("torch_optimizers.h5"), "w") as file:
    for part in (of_torch, adafactors, of_others, muons, groups):
        part(file)
