"""plain_loop.py TRAINER_H5 OUT_H5 [NAME ...]: trains the cases of trainer.h5 in plain PyTorch.

It goes by tutti's own defaults. OUT_H5 is TRAINER_H5, and the cases of these names in MORE, with the loop's
values in `out`. A case has an attribute `skipped`, the reason, if there is no loop for it, and `failed`, the
traceback, if its loop fails. README.md says what else it has. Exits with 77 if a module is missing.
"""
import collections
import math
import re
import shutil
import sys
import traceback
import warnings

try:
    import h5py
    import numpy
    import torch
except ImportError as missing:
    print(missing)
    sys.exit(77)
from torch import nn
from torch.nn import functional as F

import plain_algorithms
from plain_schedules import Schedules, Skip, Time, time

FREE_OF_NUMBERS = ("foreach", "fused", "capturable", "differentiable")

# Further cases: one of this folder's trainer.h5, and what is other.
EPOCH_WISE = {"step_schedulers_every_batch": False}
MORE = {
    "adam_with_amsgrad": ("case_1", {"opt.name": "torch.optim.Adam", "opt.amsgrad": True, "opt.eps": 1e-6}),
    "dampened_momentum": ("case_2", {"opt.dampening": 0.3}),
    "duration_in_samples": ("case_4", {"max_duration": "500sp", "eval_interval": "0.3dur"}),
    "everything_at_once": ("case_8", {"algo0.name": "SAM", "algo1.name": "EMA", "algo2.name": "SWA",
                                      "algo2.swa_start": "5ba", "algo2.swa_end": "9ba",
                                      "algo2.update_interval": "1ba"}),
    "first_algorithm_not_last": ("case_28", {"draws": "case_29", "algo1.name": "SelectiveBackprop",
                                             "algo1.start": 0.2}),
    "mixed_smooth_labels": ("case_24", {"algo1.name": "LabelSmoothing"}),
    "nesterov_momentum": ("case_0", {"opt.nesterov": True, "opt.weight_decay": 0.01}),
    "sam_over_nesterov": ("case_18", {"opt.nesterov": True}),
    "schedule_by_epoch": ("case_1", EPOCH_WISE),
    "swa_to_its_own_rate": ("case_22", {"algo0.swa_lr": 0.05, "algo0.anneal_strategy": "cos"}),
    "torch_schedule": ("case_0", {"sched.name": "torch.optim.lr_scheduler.StepLR", "sched.step_size": 2}),
    "warmup_that_is_scaled": ("case_3", {"sched.scale_warmup": True}),
}


def value(stored):
    """An attribute as Python has it. Booleans are stored as uint8, lists of texts joined."""
    if isinstance(stored, (bytes, str)):
        text = stored.decode() if isinstance(stored, bytes) else stored
        return None if text == "None" else text
    if stored.size == 1:
        return bool(stored) if stored.dtype == numpy.uint8 else numpy.asarray(stored).reshape(()).item()
    return stored.tolist()


def tensor(dataset):
    return torch.from_numpy(dataset[()])


class Run:
    """One training: the loop, and what its algorithms share."""

    def __init__(self, case):
        self.given = {name: value(stored) for name, stored in case.attrs.items() if value(stored) is not None}
        self.data = {which: (tensor(case[f"in/x_{which}"]), tensor(case[f"in/y_{which}"]))
                     for which in ("train", "eval") if f"in/x_{which}" in case}
        self.batch_size = self.given["batch_size"]
        self.epoch_length = math.ceil(len(self.data["train"][0]) / self.batch_size)
        ratio = self.given.get("scale_schedule_ratio", 1.0)
        whole = time(self.given["max_duration"])
        self.max_duration = Time(math.trunc(whole.value * ratio), whole.unit)
        self.now = self.epoch_began = dict(ep=0, ba=0, sp=0)
        self.draws = collections.defaultdict(collections.deque)
        for name, drawn in sorted(case["in/draws"].items()) if "in/draws" in case else []:
            self.draws[name.split("_", 1)[1]].append(tensor(drawn))
        self.make_model(case)
        self.make_optimizer()
        self.make_schedule(ratio)
        self.out = collections.defaultdict(list)

    def arguments(self, prefix):
        return {name.removeprefix(prefix): one for name, one in self.given.items()
                if name.startswith(prefix) and name != prefix + "name"}

    def draw(self, function):
        """The next of the numbers that Composer drew."""
        return self.draws[function].popleft()

    def make_model(self, case):
        layers = re.findall(r"^\s*\(\d+\): (.*\))$", self.given["arch"], re.MULTILINE)
        self.model = nn.Sequential(*(eval("nn." + one, {"nn": nn}) for one in layers))
        self.algorithms = []
        while (prefix := f"algo{len(self.algorithms)}.") + "name" in self.given:
            name, arguments = self.given[prefix + "name"], self.arguments(prefix)
            self.algorithms.append(plain_algorithms.make(self, name, arguments))
        for algorithm in self.algorithms:
            algorithm.replace_layers(self.model)
        if any(isinstance(layer, nn.Dropout) and layer.p > 0 for layer in self.model):
            raise Skip("dropout draws its own numbers")
        own = self.model.state_dict()
        self.model.load_state_dict({name: tensor(one).reshape(own[name].shape if name in own else one.shape)
                                    for name, one in case["in/weights"].items()})

    def make_optimizer(self):
        kind = self.given["opt.name"].rsplit(".", 1)[1]
        given = {name: one for name, one in self.arguments("opt.").items() if name not in FREE_OF_NUMBERS}
        self.decay = 0.0  # decoupled: weights shrink by this times lr / the first lr
        if kind.startswith("Decoupled"):
            self.decay = given.pop("weight_decay", 1e-5 if kind == "DecoupledAdamW" else 0.0)
            given["weight_decay"] = 0.0
            if kind == "DecoupledAdamW":
                given.setdefault("betas", (0.9, 0.95))
            kind = {"DecoupledSGDW": "SGD", "DecoupledAdamW": "AdamW"}[kind]
        self.optimizer = getattr(torch.optim, kind)(self.model.parameters(), **given)
        self.base_lr = self.optimizer.param_groups[0]["lr"]

    def make_schedule(self, ratio):
        package, _, kind = self.given.get("sched.name", "composer.optim.ConstantScheduler").rpartition(".")
        schedules, given = Schedules(self, ratio), self.arguments("sched.")
        is_composers = package.startswith("composer")
        by_epoch = not self.given.get("step_schedulers_every_batch", is_composers)
        if not is_composers:
            self.schedule = schedules.torchs(kind, given, self.base_lr, "ep" if by_epoch else "ba")
        else:
            self.schedule = schedules.composers(kind.removesuffix("Scheduler"), given)
        self.changes_by_epoch = is_composers and by_epoch
        self.next_lr = None

    def lr(self):
        return self.base_lr * self.schedule(self.epoch_began if self.changes_by_epoch else self.now)

    def elapsed(self):
        return self.now[self.max_duration.unit] / self.max_duration.value

    def passed(self, moment):
        return (self.elapsed() if moment.unit == "dur" else self.now[moment.unit]) >= moment.value

    def is_over(self):
        whole = self.max_duration
        return self.passed(Time(whole.value * self.epoch_length, "ba") if whole.unit == "ep" else whole)

    def batches(self):
        x, y = self.data["train"]
        return zip(x.split(self.batch_size), y.split(self.batch_size))

    def train(self):
        while not self.passed(self.max_duration):
            self.batch_in_epoch = 0
            for batch in self.batches():
                self.step(*batch)
                if self.passed(self.max_duration):
                    break
            if self.batch_in_epoch == self.epoch_length:
                self.end_of("ep", {**self.now, "ep": self.now["ep"] + 1})
        for algorithm in self.algorithms:
            algorithm.end_of("fit")
        if self.interval().value > 0 and self.now["ba"] not in self.out["eval_batch"]:
            self.evaluate()
        left = [name for name, queue in self.draws.items() if queue]
        assert not left, f"draws are left: {left}"

    def step(self, x, y):
        lr, self.next_lr = self.lr() if self.next_lr is None else self.next_lr, None
        now = {**self.now, "ba": self.now["ba"] + 1, "sp": self.now["sp"] + len(x)}
        for algorithm in plain_algorithms.after_dataloader(self.algorithms):
            x, y = algorithm.change_batch(x, y)
        loss, accuracy = self.gradients(x, y)
        for algorithm in self.algorithms:
            algorithm.before_update(lambda: self.gradients(x, y))
        self.update(lr)
        for name, one in (("loss", loss), ("lr", lr), ("train_accuracy", accuracy)):
            self.out[name].append(one)
        self.batch_in_epoch += 1
        self.end_of("ba", now)

    def gradients(self, x, y):
        """Of the mean loss. Returns it and the accuracy."""
        self.model.train().zero_grad()
        loss, hits, size = 0.0, 0, self.given.get("device_train_microbatch_size", len(x))
        for inputs, targets in zip(x.split(size), y.split(size)):
            mixed = [algorithm for algorithm in self.algorithms if hasattr(algorithm, "mix")]
            for algorithm in mixed:
                inputs = algorithm.mix(inputs)
            outputs = self.model(inputs)
            hits += (outputs.argmax(1) == targets).sum().item()
            part = self.loss(outputs, targets, mixed) * (len(inputs) / len(x))
            part.backward()
            loss += part.item()
        for algorithm in self.algorithms:
            algorithm.change_gradients()
        return loss, hits / len(x)

    def loss(self, outputs, targets, mixed):
        smoothing = sum(getattr(one, "label_smoothing", 0.0) for one in self.algorithms)
        dense = targets
        for one in (one for one in mixed if not one.interpolate_loss):
            dense = F.one_hot(targets, outputs.shape[1]).float() if dense is targets else dense
            dense = dense.lerp(dense[one.partners], one.share)
        loss = F.cross_entropy(outputs, dense, label_smoothing=smoothing)
        for one in (one for one in mixed if one.interpolate_loss):
            loss = loss.lerp(F.cross_entropy(outputs, targets[one.partners]), one.share)
        return loss

    @torch.no_grad()
    def update(self, lr):
        self.optimizer.param_groups[0]["lr"] = lr
        for parameter in self.model.parameters():
            if parameter.grad is not None and self.decay:
                parameter.mul_(1.0 - self.decay * (lr / self.base_lr if self.base_lr else 1.0))
        self.optimizer.step()

    def end_of(self, unit, now):
        before, self.now = self.now, now
        self.epoch_began = now if unit == "ep" else self.epoch_began
        for algorithm in self.algorithms:
            algorithm.end_of(unit)
        if now["ba"] == 1 and unit == "ba":
            self.out["weights_batch1"] = self.weights(self.model)
        every = self.interval()
        if every.value > 0 and (every.unit == "ep") == (unit == "ep"):
            if now[every.unit] // every.value > before[every.unit] // every.value:
                self.evaluate()

    def interval(self):
        every, whole = time(self.given.get("eval_interval", "1ep")), self.max_duration
        if "eval" not in self.data:
            return Time(0, "ep")
        if every.unit != "dur":
            return every
        if whole.unit == "ep":
            return Time(math.ceil(whole.value * every.value * self.epoch_length), "ba")
        return Time(math.ceil(whole.value * every.value), whole.unit)

    @torch.no_grad()
    def evaluate(self):
        judged = filter(None, (getattr(one, "judged", None) for one in self.algorithms))
        model = next(judged, self.model).eval()
        x, y = self.data["eval"]
        size = self.given.get("eval_batch_size", self.batch_size)
        outputs = torch.cat([model(part) for part in x.split(size)])
        self.out["eval_accuracy"].append((outputs.argmax(1) == y).double().mean().item())
        self.out["eval_cross_entropy"].append(F.cross_entropy(outputs.double(), y).item())
        self.out["eval_batch"].append(self.now["ba"])

    @staticmethod
    def weights(model):
        return {name: one.reshape(one.shape or (1,)).clone() for name, one in model.state_dict().items()}


def train(case):
    if "error" in case.attrs:
        raise Skip("what Composer refuses has no plain loop")
    run = Run(case)
    run.train()
    run.out["weights"] = run.weights(run.model)
    for algorithm in run.algorithms:
        algorithm.report(run.out, case.attrs)
    for name, found in run.out.items():
        for path, one in found.items() if isinstance(found, dict) else [("", found)]:
            case[f"out/{name}/{path}".removesuffix("/")] = numpy.array(one)


def add(file, name, original, changes):
    file.copy(original, name)
    for key, one in changes.items():
        file[name].attrs[key] = numpy.uint8(one) if isinstance(one, bool) else one
    file[name].attrs["title"] = name
    if "draws" in changes:
        file[f"{name}/in/draws"] = file[changes["draws"] + "/in/draws"]


def main(given, results, *more):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # schedulers are stepped without their optimizers
    shutil.copyfile(given, results)
    with h5py.File(results, "r+") as file:
        for name in more:
            add(file, name, *MORE[name])
        for case in file.values():
            del case["out"]
            try:
                train(case)
            except Skip as reason:
                case.attrs["skipped"] = str(reason)
            except Exception:
                case.attrs["failed"] = traceback.format_exc()


if __name__ == "__main__":
    main(*sys.argv[1:])
