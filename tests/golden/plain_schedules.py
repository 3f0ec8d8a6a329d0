"""Times of plain_loop.py, and the learning rates that go by them."""
import collections
import math
import re

import torch

Time = collections.namedtuple("Time", "value unit")


class Skip(Exception):
    """Why a case is not trained."""


def listed(one):
    return one.split(",") if isinstance(one, str) else one if isinstance(one, list) else [one]


def time(given):
    found = re.fullmatch(r"([\d.]+)(ep|ba|sp|dur)", given if isinstance(given, str) else f"{given}ep")
    if not found:
        raise Skip(f"no plain loop counts {given}")
    return Time(float(found[1]), found[2])


def line(part, start, end):
    return start + part * (end - start)


class Schedules:
    """Multipliers of the learning rate: functions of the time, a dict of ep, ba and sp."""

    def __init__(self, run, ratio):
        self.run, self.ratio = run, ratio

    def converted(self, given, ratio):
        """In batches, or in the unit of the training. max_duration is scaled already."""
        at, whole, length = time(given), self.run.max_duration, self.run.epoch_length
        if at.unit == "dur" and whole.unit == "ep":
            return Time(math.trunc(at.value * length * whole.value), "ba")
        if at.unit == "dur":
            return Time(math.trunc(whole.value * at.value), whole.unit)
        if at.unit == "ep":
            return Time(math.trunc(at.value * length * ratio), "ba")
        return Time(math.trunc(at.value * ratio), at.unit)

    def composers(self, kind, given):
        """The formulas of composer.optim, with a warm-up that ends at its top."""
        kind, warms_up = kind.removesuffix("WithWarmup"), kind.endswith("WithWarmup")
        begin, unit = 0.0, None
        if warms_up:
            begin, unit = self.converted(given["t_warmup"], self.ratio if given.get("scale_warmup") else 1.0)
        first = given.get("alpha_i", given.get("alpha", 1.0))
        is_cyclic = kind == "CosineAnnealingWarmRestarts"
        main = self.restarts(given) if is_cyclic else self.main(kind, given, begin, warms_up)
        return lambda now: first * now[unit] / begin if warms_up and now[unit] < begin else main(now)

    def main(self, kind, given, begin, warms_up):
        given = {"power": 2.0, "alpha": 1.0, "alpha_i": 1.0, "alpha_f": 0.0, "gamma": 0.1, **given}
        end, unit = self.converted(given.get("t_max", "1dur"), self.ratio)
        low, gamma = given["alpha_f"], given["gamma"]
        at = {name: [self.converted(one, self.ratio) for one in listed(given.get(name, "1ep"))]
              for name in ("step_size", "decay_period", "milestones")}

        def part(now):
            return min(1.0, (now[unit] - begin) / (end - begin)) if end > begin else 0.0

        def periods(now, name):
            return now[at[name][0].unit] / at[name][0].value

        return {
            "Constant": lambda now: given["alpha"] if warms_up or now[unit] < end else 1.0,
            "Step": lambda now: gamma ** math.floor(periods(now, "step_size")),
            "MultiStep": lambda now: gamma ** sum(now[one.unit] >= one.value for one in at["milestones"]),
            "Linear": lambda now: line(part(now), given["alpha_i"], low),
            "Exponential": lambda now: gamma ** periods(now, "decay_period"),
            "CosineAnnealing": lambda now: line((1.0 + math.cos(part(now) * math.pi)) / 2.0, low, 1.0),
            "Polynomial": lambda now: line((1.0 - part(now)) ** given["power"], low, 1.0),
        }[kind]

    def restarts(self, given):
        first, unit = self.converted(given["t_0"], self.ratio)

        def multiplier(now):
            begin, length = 0.0, first
            while begin + length <= now[unit]:
                begin, length = begin + length, math.trunc(length * given.get("t_mult", 1.0))
            part = (now[unit] - begin) / length
            return line((1.0 + math.cos(part * math.pi)) / 2.0, given.get("alpha_f", 0.0), 1.0)

        return multiplier

    def torchs(self, kind, given, lr, unit):
        """Of a torch.optim.lr_scheduler that is stepped every `unit`."""
        if self.ratio != 1.0 or kind in ("ReduceLROnPlateau", "SequentialLR"):
            raise Skip(f"no plain loop scales or watches what {kind} does")
        if "milestones" in given:
            given["milestones"] = listed(given["milestones"])
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
        scheduler = getattr(torch.optim.lr_scheduler, kind)(optimizer, **given)
        rates = [optimizer.param_groups[0]["lr"]]

        def multiplier(now):
            while len(rates) <= now[unit]:
                scheduler.step()
                rates.append(optimizer.param_groups[0]["lr"])
            return rates[now[unit]] / lr

        return multiplier
