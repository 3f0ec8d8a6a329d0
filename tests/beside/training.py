"""A recipe's training in plain PyTorch, on one process: ranks and microbatches are parts of a batch."""
import copy
import math
import pathlib
import sys

import h5py
import torch
from torch import nn
from torch.nn import functional as F

sys.path.append(str(pathlib.Path(__file__).parent.parent / "golden"))
import plain_loop
from plain_schedules import Schedules, Skip, Time, time

import models
import order
import surgery
from optimizers import Optimizers, matches

COMPOSERS = {"constant": "Constant", "step": "Step", "multistep": "MultiStep", "linear": "Linear",
             "exponential": "Exponential", "cosine_annealing": "CosineAnnealing", "polynomial": "Polynomial",
             "cosine_annealing_warm_restarts": "CosineAnnealingWarmRestarts",
             "constant_with_warmup": "ConstantWithWarmup", "linear_with_warmup": "LinearWithWarmup",
             "multistep_with_warmup": "MultiStepWithWarmup", "polynomial_with_warmup": "PolynomialWithWarmup",
             "cosine_annealing_with_warmup": "CosineAnnealingWithWarmup"}
TORCHS = {"step_lr": "StepLR", "multistep_lr": "MultiStepLR", "constant_lr": "ConstantLR",
          "linear_lr": "LinearLR", "exponential_lr": "ExponentialLR",
          "cosine_annealing_lr": "CosineAnnealingLR", "polynomial_lr": "PolynomialLR",
          "one_cycle_lr": "OneCycleLR"}
DTYPES = {"amp_bf16": torch.bfloat16, "amp_fp16": torch.float16}


class Samples:
    """Of a section [data.train] or [data.eval]: inputs and targets."""

    def __init__(self, section):
        if section["kind"] == "hdf5":
            with h5py.File(section["path"]) as file:
                group = file[section["group"]]
                self.inputs = torch.from_numpy(group["input"][()])
                self.targets = torch.from_numpy(group["target"][()])
            return
        length = section["sequence_length"]
        with open(section["path"], "rb") as file:
            tokens = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
        whole = (len(tokens) - 1) // length * length
        self.inputs = tokens[:whole].view(-1, length)
        self.targets = tokens[1:whole + 1].view(-1, length)

    def __getitem__(self, indices):
        return self.inputs[indices], self.targets[indices]

    def __len__(self):
        return len(self.inputs)


class Training(plain_loop.Run):
    """`recipe`: resolved, as Python reads it. `nudge`: a seed of changes of the first weights, each by a
    rounding of the precision that products are computed in."""

    def __init__(self, recipe, ranks, nudge=None):
        self.recipe, self.ranks, self.seed = recipe, ranks, recipe["seed"]
        self.data = {which: Samples(section) for which, section in recipe["data"].items()}
        self.batch_size = self.global_batch("train")
        self.epoch_length = len(self.order("train", 0))
        train, ratio = recipe["train"], recipe["train"]["scale_schedule_ratio"]
        whole = time(train["max_duration"])
        self.max_duration = Time(math.trunc(whole.value * ratio), whole.unit)
        self.given = {"eval_interval": train["eval_interval"]}
        self.now = self.epoch_began = dict(ep=0, ba=0, sp=0)
        self.draws = {}
        self.precision = DTYPES.get(train["precision"])
        self.scale = recipe["precision"]["init_scale"] if self.precision == torch.float16 else None
        self.since_overflow = 0
        self.make_parts()
        self.make_rates(ratio)
        if nudge is not None:
            self.nudge(nudge)
        self.next_lr, self.out = None, {name: [] for name in ("loss", "lr", "train_accuracy", "evaluations",
                                                             "eval_batch")}

    def global_batch(self, which):
        section = self.recipe["data"][which]
        if "batch_size" in section:
            return section["batch_size"]
        return section["device_batch_size"] * self.ranks if "device_batch_size" in section else \
            self.global_batch("train")

    def order(self, which, epoch):
        return order.batches(self.recipe["data"][which], len(self.data[which]), self.seed, epoch,
                             self.global_batch(which))

    def make_parts(self):
        images = self.data["train"].inputs.shape[1:]
        self.model = models.make(self.recipe["model"], images, self.seed)
        for name, parameter in self.model.named_parameters():  # what surgery adds is trained
            parameter.requires_grad_(not matches(self.recipe["model"].get("freeze", []), name))
        self.algorithms = []
        for section in self.recipe["algorithms"]:
            keys = {name: value for name, value in section.items() if name != "kind"}
            self.algorithms.append(surgery.make(self, section["kind"], keys))
        for algorithm in self.algorithms:
            algorithm.replace_layers(self.model)
        named = [(name, one) for name, one in self.model.named_parameters() if one.requires_grad]
        self.optimizers = Optimizers(self.recipe["optimizer"], named)
        self.base_lr = self.recipe["optimizer"]["lr"]

    @torch.no_grad()
    def nudge(self, seed):
        torch.manual_seed(seed)
        rounding = torch.finfo(self.precision or torch.float32).eps / 2
        if self.recipe["optimizer"]["kind"] == "muon":
            self.optimizers.all[0].rounding = torch.finfo(torch.bfloat16).eps / 2
        for parameter in self.model.parameters():
            parameter.mul_(1.0 + rounding * torch.randn(parameter.shape).sign())

    def make_rates(self, ratio):
        section = self.recipe.get("scheduler", {"kind": "constant", "step": "batch"})
        given = {name: value for name, value in section.items() if name not in ("kind", "step")}
        schedules, kind = Schedules(self, ratio), section["kind"]
        self.plateau = None
        if kind == "reduce_lr_on_plateau":
            optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=self.base_lr)
            self.monitor = given.pop("monitor")
            self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **given)
            self.schedule = lambda now: optimizer.param_groups[0]["lr"] / self.base_lr
            self.changes_by_epoch = False
        elif kind in COMPOSERS:
            self.schedule = schedules.composers(COMPOSERS[kind], given)
            self.changes_by_epoch = section["step"] == "epoch"
        else:
            unit = "ba" if section["step"] == "batch" else "ep"
            given.setdefault("last_epoch", -1)
            self.schedule = schedules.torchs(TORCHS[kind], given, self.base_lr, unit)
            self.changes_by_epoch = False

    def batches(self):
        for indices in self.order("train", self.now["ep"]):
            yield self.data["train"][indices]

    def parts(self, x, y):
        """Of each rank, and of its microbatches."""
        train, shares = self.recipe["train"], [len(x) // self.ranks + (rank < len(x) % self.ranks)
                                               for rank in range(self.ranks)]
        for inputs, targets in zip(x.split(shares), y.split(shares)):
            for algorithm in surgery.in_order(self.algorithms):
                inputs, targets = algorithm.change_batch(inputs, targets)
            size = train.get("device_train_microbatch_size") or \
                max(1, math.ceil(len(inputs) / self.microbatches(train.get("grad_accum", 1))))
            yield from ((one, other) for one, other in zip(inputs.split(size), targets.split(size))
                        if len(one))

    def microbatches(self, given):
        if isinstance(given, list):
            return [count for first, count in given if first <= self.now["ba"]][-1]
        return 1 if given == "auto" else given

    def step(self, x, y):
        lr, self.next_lr = self.lr() if self.next_lr is None else self.next_lr, None
        now = {**self.now, "ba": self.now["ba"] + 1, "sp": self.now["sp"] + len(x)}
        statistics = copy.deepcopy(dict(self.model.named_buffers()))
        loss, accuracy = self.gradients(x, y)
        if not self.overflowed():
            for algorithm in self.algorithms:
                algorithm.before_update(lambda: self.gradients(x, y))
            self.optimizers.step(lr / self.base_lr)
        else:
            for name, buffer in self.model.named_buffers():
                buffer.copy_(statistics[name])
        for name, value in (("loss", loss), ("lr", lr), ("train_accuracy", accuracy)):
            self.out[name].append(value)
        self.batch_in_epoch += 1
        self.end_of("ba", now)

    def autocast(self):
        return torch.autocast("cpu", self.precision or torch.bfloat16, enabled=self.precision is not None)

    def gradients(self, x, y):
        """Of the mean loss. Returns it and the accuracy."""
        self.model.train().zero_grad()
        parts = list(self.parts(x, y))
        weight = sum(targets.numel() for _, targets in parts)
        loss, hits = 0.0, 0
        for inputs, targets in parts:
            with self.autocast():
                outputs = self.outputs(inputs)
                part = self.loss(outputs, targets, []) * (targets.numel() / weight)
            hits += (outputs.argmax(-1) == targets).sum().item()
            (part * (self.scale or 1.0)).backward()
            loss += part.item()
        for parameter in self.model.parameters():
            if parameter.grad is not None and self.scale:
                parameter.grad.div_(self.scale)
        if not self.scale or self.all_finite():
            for algorithm in reversed(self.algorithms):
                algorithm.change_gradients()
        return loss, hits / weight

    def outputs(self, inputs):
        try:
            return self.model(inputs)
        except ValueError as error:
            if "more than 1 value per channel" in str(error):
                raise Skip("PyTorch normalises no single value") from error
            raise

    def all_finite(self):
        return all(one.grad.isfinite().all() for one in self.model.parameters() if one.grad is not None)

    def overflowed(self):
        """Follows the scale of the losses, as torch.amp.GradScaler."""
        if not self.scale:
            return False
        keys, finite = self.recipe["precision"], self.all_finite()
        self.since_overflow = self.since_overflow + 1 if finite else 0
        if not finite:
            self.scale *= keys["backoff_factor"]
        elif self.since_overflow == keys["growth_interval"]:
            self.scale, self.since_overflow = self.scale * keys["growth_factor"], 0
        return not finite

    def loss(self, outputs, targets, mixed):
        smoothing = sum(getattr(one, "label_smoothing", 0.0) for one in self.algorithms)
        return F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), label_smoothing=smoothing)

    @torch.no_grad()
    def evaluate(self):
        judged = filter(None, (getattr(one, "judged", None) for one in self.algorithms))
        model = next(judged, self.model).eval()
        loss, hits, weight = 0.0, 0, 0
        for indices in self.order("eval", 0):
            x, y = self.data["eval"][indices]
            with self.autocast():
                outputs = model(x)
                part = F.cross_entropy(outputs.flatten(0, -2), y.flatten(), reduction="sum")
            loss, weight = loss + part.item(), weight + y.numel()
            hits += (outputs.argmax(-1) == y).sum().item()
        values = {"loss": loss / weight, "accuracy": hits / weight}
        self.out["evaluations"].append(values)
        self.out["eval_batch"].append(self.now["ba"])
        if self.plateau:
            self.plateau.step(values["loss"])
