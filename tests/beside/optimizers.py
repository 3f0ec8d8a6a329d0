"""Optimizers by a section [optimizer]: of torch.optim where torch has them, else by their papers."""
import fnmatch
import math

import torch

LACKING = ("lion", "decoupled_lionw", "lamb")
TORCH_NAMES = {"sgd": "SGD", "decoupled_sgdw": "SGD", "adam": "Adam", "adamw": "AdamW",
               "decoupled_adamw": "AdamW", "nadam": "NAdam", "adagrad": "Adagrad", "rmsprop": "RMSprop",
               "adafactor": "Adafactor"}
OWN_KEYS = ("kind", "lr", "weight_decay", "no_decay", "groups", "layer_decay")
HEADS = ("*embed*", "*wte*", "*wpe*", "*head*", "*classifier*", "fc.weight")


class Lion(torch.optim.Optimizer):
    """Chen et al., 2023, algorithm 2."""

    def __init__(self, groups, betas):
        super().__init__(groups, dict(betas=betas))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for weight in (one for one in group["params"] if one.grad is not None):
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                weight.mul_(1.0 - group["lr"] * group["weight_decay"])
                weight.sub_(group["lr"] * (beta1 * mean + (1.0 - beta1) * weight.grad).sign())
                mean.lerp_(weight.grad, 1.0 - beta2)


class Muon(torch.optim.Muon):
    """Kernels of convolutions are matrices [filters, all else], as in Jordan's code.

    `rounding`: gradients change by so much, relative to them, before they are rounded to bfloat16.
    """

    rounding = 0.0

    def __init__(self, groups, **keys):
        self.whole = [group["params"][0] for group in groups]
        self.flat = [torch.nn.Parameter(one.detach().reshape(len(one), -1).clone()) for one in self.whole]
        super().__init__([{**group, "params": [one]} for group, one in zip(groups, self.flat)], **keys)

    @torch.no_grad()
    def step(self):
        for flat, whole in zip(self.flat, self.whole):
            flat.copy_(whole.reshape(flat.shape))
            if whole.grad is not None:
                nudges = 1.0 + self.rounding * torch.randn(flat.shape).sign()
                flat.grad = whole.grad.reshape(flat.shape) * nudges
        super().step()
        for flat, whole in zip(self.flat, self.whole):
            whole.copy_(flat.view(whole.shape))


class Lamb(torch.optim.Optimizer):
    """You et al., 2019, algorithm 2, with the identity as phi."""

    def __init__(self, groups, betas, eps, **switches):
        if switches != dict(bias_correction=True, grad_averaging=True, trust_clip=False, always_adapt=False):
            raise ValueError(f"Lamb is not written for {switches}")
        super().__init__(groups, dict(betas=betas, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for weight in (one for one in group["params"] if one.grad is not None):
                state = self.state[weight]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(weight), squares=torch.zeros_like(weight))
                state["step"] += 1
                state["mean"].lerp_(weight.grad, 1.0 - beta1)
                state["squares"].lerp_(weight.grad.square(), 1.0 - beta2)
                mean = state["mean"] / (1.0 - beta1 ** state["step"])
                squares = state["squares"] / (1.0 - beta2 ** state["step"])
                change = mean / (squares.sqrt() + group["eps"]) + group["weight_decay"] * weight
                norms = weight.norm(), change.norm()
                trust = norms[0] / norms[1] if group["weight_decay"] and min(norms) > 0 else 1.0
                weight.sub_(group["lr"] * trust * change)


def matches(patterns, name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


class Optimizers:
    """The optimizers of a model. A step's rate is `factor` times the section's."""

    def __init__(self, section, named):
        self.kind, self.decoupled = section["kind"], section["kind"].startswith("decoupled")
        if section["layer_decay"] != 1.0:
            raise ValueError("rates by layers have no plain loop")
        rest = {name: value for name, value in section.items() if name not in OWN_KEYS}
        if self.kind == "muon":
            self.all = self.muons(section, rest, named)
        else:
            self.all = [self.make(rest, self.groups(section, named))]
        for group in self.param_groups():
            group["first_lr"] = group["lr"]
            group["decoupled"] = group["weight_decay"] if self.decoupled else 0.0
            group["weight_decay"] = 0.0 if self.decoupled else group["weight_decay"]

    def param_groups(self):
        return [group for one in self.all for group in one.param_groups]

    @staticmethod
    def groups(section, named):
        groups = []
        for name, parameter in named:
            mine = next((one for one in section.get("groups", []) if matches(one["match"], name)), {})
            decay = mine.get("weight_decay", section["weight_decay"])
            groups.append(dict(params=[parameter], lr=mine.get("lr", section["lr"]),
                               weight_decay=0.0 if matches(section["no_decay"], name) else decay))
        return groups

    def make(self, rest, groups):
        if self.kind in LACKING:
            return (Lamb if self.kind == "lamb" else Lion)(groups, **rest)
        if self.kind == "adafactor":
            rest["eps"] = (rest.pop("eps1", None), rest.pop("eps2"))
        return getattr(torch.optim, TORCH_NAMES[self.kind])(groups, foreach=False, **rest)

    @staticmethod
    def muons(section, rest, named):
        own = [name for name in rest if name.startswith("adamw_")]
        others = {name.removeprefix("adamw_"): rest.pop(name) for name in own}
        heads = others.pop("match", HEADS)
        is_matrix = {name: one.dim() >= 2 and not matches(heads, name) for name, one in named}
        matrices = [(name, one) for name, one in named if is_matrix[name]]
        vectors = [(name, one) for name, one in named if not is_matrix[name]]
        muon = Muon(Optimizers.groups(section, matrices), **rest) if matrices else None
        adamw = torch.optim.AdamW(Optimizers.groups({**section, **others}, vectors), foreach=False,
                                  betas=others["betas"], eps=others["eps"])
        return [one for one in (muon, adamw) if one]

    @torch.no_grad()
    def step(self, factor):
        for group in self.param_groups():
            group["lr"] = group["first_lr"] * factor
            for parameter in group["params"]:
                if parameter.grad is not None and group["decoupled"]:
                    parameter.mul_(1.0 - group["decoupled"] * factor)
        for one in self.all:
            one.step()
