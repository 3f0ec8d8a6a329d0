"""The algorithms of plain_loop.py, each in the few lines that a user's own loop would have."""
import copy
import dataclasses
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.optim import swa_utils

from plain_schedules import Skip, time


@dataclasses.dataclass
class Algorithm:
    run: Any

    def replace_layers(self, model):
        pass

    def change_batch(self, x, y):
        return x, y

    def change_gradients(self):
        pass

    def before_update(self, gradients):
        pass

    def end_of(self, unit):
        """Of a batch (ba), an epoch (ep), or the training (fit)."""

    def report(self, out, attributes):
        pass


@dataclasses.dataclass
class LabelSmoothing(Algorithm):
    smoothing: float = 0.1

    @property
    def label_smoothing(self):
        return self.smoothing


@dataclasses.dataclass
class GradientClipping(Algorithm):
    clipping_type: str
    clipping_threshold: float

    @torch.no_grad()
    def change_gradients(self):
        parameters = [one for one in self.run.model.parameters() if one.grad is not None]
        if self.clipping_type == "norm":
            nn.utils.clip_grad_norm_(parameters, self.clipping_threshold)
        elif self.clipping_type == "value":
            nn.utils.clip_grad_value_(parameters, self.clipping_threshold)
        else:
            for one in parameters:
                limit = self.clipping_threshold * self.norms(one) / self.norms(one.grad)
                one.grad.mul_(limit.nan_to_num(1.0, posinf=math.inf).clamp(max=1.0))

    @staticmethod
    def norms(of):
        return of.norm() if of.dim() < 2 else of.flatten(1).norm(dim=1).reshape(-1, *[1] * (of.dim() - 1))


@dataclasses.dataclass
class EMA(Algorithm):
    half_life: str = None
    smoothing: float = None
    ema_start: str = "0dur"
    update_interval: str = None
    judged = None  # the averages: evaluations use them

    def end_of(self, unit):
        half_life = time(self.half_life or "1000ba")
        every = time(self.update_interval or ("1ba" if self.smoothing else f"1{half_life.unit}"))
        if unit != every.unit or (not self.judged and not self.run.passed(time(self.ema_start))):
            return
        self.judged = self.judged or copy.deepcopy(self.run.model)
        if self.run.now[unit] % every.value:
            return
        kept = 2.0 ** (-every.value / half_life.value) if self.smoothing is None else self.smoothing
        for mean, now in zip(self.judged.state_dict().values(), self.run.model.state_dict().values()):
            mean.copy_(mean.float().lerp(now.float(), 1.0 - kept))

    def report(self, out, attributes):
        if self.judged:
            out["ema"] = self.run.weights(self.judged)


@dataclasses.dataclass
class SWA(Algorithm):
    swa_start: str = "0.7dur"
    swa_end: str = "0.97dur"
    update_interval: str = "1ep"
    schedule_swa_lr: bool = False
    anneal_strategy: str = "linear"
    anneal_steps: int = 10
    swa_lr: float = None
    average, counted, completed = None, 0, False

    def end_of(self, unit):
        every, run = time(self.update_interval), self.run
        if self.completed or not (unit in (every.unit, "fit") or (unit == "ba" and self.schedule_swa_lr)):
            return
        if unit == every.unit and run.passed(time(self.swa_start)):
            if not self.average:
                self.average = swa_utils.AveragedModel(run.model)
                self.target = run.lr() if self.swa_lr is None else self.swa_lr
            if self.counted % every.value == 0:
                self.average.update_parameters(run.model)
            self.counted += 1
        if self.average and self.schedule_swa_lr:
            part = min(1.0, self.average.n_averaged.item() / self.anneal_steps)
            part = part if self.anneal_strategy == "linear" else (1.0 - math.cos(math.pi * part)) / 2.0
            run.next_lr = self.target * part + run.lr() * (1.0 - part)
        over = unit == "fit" or (unit == every.unit and run.is_over())
        if self.average and (over or run.passed(time(self.swa_end))):
            run.model.load_state_dict(self.average.module.state_dict())
            self.completed = True

    def report(self, out, attributes):
        attributes["swa.n_averaged"] = self.average.n_averaged.item() if self.average else 0
        attributes["swa.completed"] = self.completed


@dataclasses.dataclass
class SAM(Algorithm):
    rho: float = 0.05
    epsilon: float = 1e-12
    interval: int = 1

    @torch.no_grad()
    def before_update(self, gradients):
        if (self.run.now["ba"] + 1) % self.interval:
            return
        parameters = [one for one in self.run.model.parameters() if one.grad is not None]
        before = [one.clone() for one in parameters]
        norm = torch.cat([one.grad.flatten() for one in parameters]).norm()
        for one in parameters:
            one.add_(one.grad * (self.rho / (norm + self.epsilon)))
        with torch.enable_grad():
            gradients()
        for one, old in zip(parameters, before):
            one.copy_(old)


def leaves(model):
    """Modules without modules in them; a layer with a parametrization is a layer all the same."""
    if parametrize.is_parametrized(model) or not [*model.children()]:
        return [model]
    return [leaf for child in model.children() for leaf in leaves(child)]


@dataclasses.dataclass
class LayerFreezing(Algorithm):
    freeze_start: float = 0.5
    freeze_level: float = 1.0

    def end_of(self, unit):
        done = self.run.elapsed() - self.freeze_start
        if unit == "ep" and done > 0.0:
            layers = [one for one in leaves(self.run.model) if [*one.parameters()]]
            depth = int(self.freeze_level * done / (1.0 - self.freeze_start) * (len(layers) - 1))
            for one in layers[:depth]:
                one.requires_grad_(False)


@dataclasses.dataclass
class MixUp(Algorithm):
    alpha: float = 0.2
    interpolate_loss: bool = False

    def mix(self, x):
        drawn = self.run.draw("np.random.beta").item() if self.alpha > 0 else 0.0
        self.share, self.partners = min(drawn, 1.0 - drawn), self.run.draw("torch.randperm")
        return x.lerp(x[self.partners], self.share)


def box(run, size, cut):
    """From where to where a hole or patch lies, around a place that is drawn."""
    place = run.draw("np.random.randint").item()
    return slice(max(place - cut // 2, 0), min(max(place + cut // 2, 0), size))


@dataclasses.dataclass
class CutMix(Algorithm):
    alpha: float = 1.0
    interpolate_loss: bool = False
    uniform_sampling: bool = False

    def mix(self, x):
        self.partners = self.run.draw("torch.randperm")
        cut = math.sqrt(1.0 - self.run.draw("np.random.beta").item())
        patch = (..., *[box(self.run, size, int(size * cut)) for size in x.shape[2:]])
        self.run.draw("np.random.beta")  # drawn by Composer, and not used
        mixed = x.clone()
        mixed[patch] = x[self.partners][patch]
        self.share = mixed[0, 0][patch].numel() / mixed[0, 0].numel()
        return mixed


@dataclasses.dataclass
class CutOut(Algorithm):
    num_holes: int = 1
    length: float = 0.5
    uniform_sampling: bool = False

    def change_batch(self, x, y):
        x, side = x.clone(), int(min(x.shape[2:]) * self.length)
        for _ in range(self.num_holes):
            x[(..., *[box(self.run, size, side) for size in x.shape[2:]])] = 0.0
        return x, y


@dataclasses.dataclass
class ColOut(Algorithm):
    p_row: float = 0.15
    p_col: float = 0.15

    def change_batch(self, x, y):
        rows, columns = (self.run.draw("torch.randperm")[:int((1.0 - part) * size)].sort().values
                         for part, size in ((self.p_row, x.shape[2]), (self.p_col, x.shape[3])))
        return x[:, :, rows][:, :, :, columns], y


@dataclasses.dataclass
class ProgressiveResizing(Algorithm):
    mode: str = "resize"
    initial_scale: float = 0.5
    finetune_fraction: float = 0.2
    delay_fraction: float = 0.5
    size_increment: int = 4
    resize_targets: bool = False

    def change_batch(self, x, y):
        growing, width = 1.0 - self.finetune_fraction - self.delay_fraction, x.shape[3]
        done = min(max(self.run.elapsed() - self.delay_fraction, 0.0) / growing, 1.0)
        scale = self.initial_scale + (1.0 - self.initial_scale) * done
        scale = round(width * scale / self.size_increment) * self.size_increment / width
        if scale >= 1.0:
            return x, y
        if self.mode == "resize":
            return F.interpolate(x, scale_factor=scale, mode="nearest", recompute_scale_factor=False), y
        top, left = self.run.draw("torch.randint").item(), self.run.draw("torch.randint").item()
        return x[:, :, top:, left:][:, :, :int(scale * x.shape[2]), :int(scale * width)], y


@dataclasses.dataclass
class SelectiveBackprop(Algorithm):
    start: float = 0.5
    end: float = 0.9
    keep: float = 0.5
    scale_factor: float = 1.0
    interrupt: int = 2

    @torch.no_grad()
    def change_batch(self, x, y):
        interrupts = self.interrupt and (self.run.batch_in_epoch + 1) % self.interrupt == 0
        if not self.start <= self.run.elapsed() < self.end or interrupts or self.keep >= 1.0:
            return x, y
        if "device_train_microbatch_size" in self.run.given and "BatchNorm" in self.run.given["arch"]:
            raise Skip("no plain loop has SelectiveBackprop's parts of a batch")
        small = x
        if self.scale_factor < 1.0:
            small = F.interpolate(x, scale_factor=self.scale_factor, mode="bilinear")
        outputs = copy.deepcopy(self.run.model).train()(small)  # a copy: running statistics stay
        order = F.cross_entropy(outputs, y, reduction="none").argsort()
        chosen = order[self.run.draw("np.random.choice")]
        return x[chosen], y[chosen]


class Ghosts(nn.Module):
    def __init__(self, batchnorm, size):
        super().__init__()
        self.batchnorm, self.size, self.momentum = batchnorm, size, batchnorm.momentum

    def forward(self, x):
        ghosts = x.chunk(math.ceil(len(x) / self.size)) if self.training else [x]
        self.batchnorm.momentum = self.momentum / math.ceil(len(x) / self.size)
        return torch.cat([self.batchnorm(one) for one in ghosts])


@dataclasses.dataclass
class GhostBatchNorm(Algorithm):
    ghost_batch_size: int = 32

    def replace_layers(self, model):
        replace(model, nn.BatchNorm2d, lambda one: Ghosts(one, self.ghost_batch_size))


class Blurred(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv, line = conv, torch.tensor([1.0, 2.0, 1.0]) / 4.0
        self.register_buffer("blur_filter", line.outer(line).expand(conv.in_channels, 1, 3, 3).contiguous())

    def forward(self, x):
        return self.conv(F.conv2d(x, self.blur_filter, padding=1, groups=x.shape[1]))


@dataclasses.dataclass
class BlurPool(Algorithm):
    replace_convs: bool = True
    replace_maxpools: bool = True
    blur_first: bool = True
    min_channels: int = 16

    def replace_layers(self, model):
        has_pools = any(isinstance(one, nn.MaxPool2d) for one in model)
        if not self.blur_first or (self.replace_maxpools and has_pools):
            raise Skip("no plain loop blurs what a layer puts out")
        if self.replace_convs:
            replace(model, nn.Conv2d, Blurred,
                    lambda one: max(one.stride) > 1 and one.in_channels >= self.min_channels)


class Excited(nn.Module):
    def __init__(self, conv, latent):
        super().__init__()
        latent = int(latent if latent >= 1 else latent * conv.out_channels)
        self.conv, self.se = conv, nn.Module()
        self.se.pool_and_mlp = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(conv.out_channels, latent, bias=False),
            nn.ReLU(), nn.Linear(latent, conv.out_channels, bias=False), nn.Sigmoid())

    def forward(self, x):
        y = self.conv(x)
        return y * self.se.pool_and_mlp(y)[:, :, None, None]


@dataclasses.dataclass
class SqueezeExcite(Algorithm):
    latent_channels: float = 64
    min_channels: int = 128

    def replace_layers(self, model):
        replace(model, nn.Conv2d, lambda one: Excited(one, self.latent_channels),
                lambda one: min(one.in_channels, one.out_channels) >= self.min_channels)


class Standardized(nn.Module):
    def forward(self, weight):
        variance, mean = torch.var_mean(weight, dim=(1, 2, 3), correction=0, keepdim=True)
        return (weight - mean) / (variance + 1e-10).sqrt()


@dataclasses.dataclass
class WeightStandardization(Algorithm):
    n_last_layers_ignore: int = 0

    def replace_layers(self, model):
        convolutions = [one for one in model if isinstance(one, nn.Conv2d)]
        for one in convolutions[:len(convolutions) - self.n_last_layers_ignore]:
            parametrize.register_parametrization(one, "weight", Standardized())


class Gyro(nn.Module):
    def __init__(self, run, p, sigma, tau, steps):
        super().__init__()
        self.run, self.p, self.sigma, self.tau, self.steps, self.calls = run, p, sigma, tau, steps, 0

    def forward(self, x):
        if not self.training:
            return x
        if self.calls == 0:
            self.masks = self.run.draw("torch.rand") > self.p
        if self.calls % self.steps == 0:
            self.picked = self.masks[self.run.draw("np.random.choice")]
        self.calls += 1
        return x * self.picked.repeat_interleave(len(x) // self.tau, 0) / (1.0 - self.p)


@dataclasses.dataclass
class GyroDropout(Algorithm):
    p: float = 0.5
    sigma: int = 256
    tau: int = 16

    def replace_layers(self, model):
        whole, length = self.run.max_duration, self.run.epoch_length
        if whole.unit != "ep":
            raise Skip("no plain loop picks masks in a training that is not counted in epochs")
        steps = int(length * whole.value / self.sigma) * self.tau
        replace(model, nn.Dropout, lambda _: Gyro(self.run, self.p, self.sigma, self.tau, steps))


def replace(model, kind, new, suits=lambda _: True):
    for i, one in enumerate(model):
        if isinstance(one, kind) and suits(one):
            model[i] = new(one)


ALL = {one.__name__: one for one in Algorithm.__subclasses__()}


def make(run, name, arguments):
    if name not in ALL:
        raise Skip(f"no plain loop has {name}")
    try:
        return ALL[name](run, **arguments)
    except TypeError as error:
        raise Skip(f"no plain loop has it: {error}") from error


def after_dataloader(algorithms):
    """In their order: SelectiveBackprop is first, the others go backwards."""
    return sorted(reversed(algorithms), key=lambda one: not isinstance(one, SelectiveBackprop))
