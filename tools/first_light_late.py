"""Checks of first_light.py with algorithms that begin or end in the middle of a training of 40 steps."""

import array
import functools
import itertools
import json
import re
from dataclasses import dataclass

from first_light_runs import (DETERMINISTIC, DIGITS, RECIPES, ROOT, SAME_BITS, SMALL_EVAL, Failed, at_once,
                              beside_cpu, duration, require_close, require_graphs)
from speedup import entry

STEPS = 40
TEXT = (RECIPES / "king_james.toml").read_text().replace("../../", f"{ROOT}/")
IMAGES = DIGITS.read_text().replace('"data/', f'"{ROOT}/examples/data/')


def images(model):
    """digits.toml with another model."""
    return re.sub(r'kind = "mlp"\n.*\n', model, IMAGES)


CONVOLUTIONS = images("""kind = "sequential"
layers = ["Conv2d(1, 16, 3, padding=1)", "GroupNorm(4, 16)", "ReLU()", "Conv2d(16, 32, 3, padding=1)",
          "ReLU()", "AdaptiveAvgPool2d(1)", "Flatten()", "Linear(32, 10)"]
""")
BLOCKS = images('kind = "resnet_cifar"\ndepth = 20\nwidth = 8\n').replace("lr = 0.1", "lr = 0.0005")


@dataclass
class Late:
    kind: str
    keys: dict[str, object]
    recipe: str = IMAGES
    tolerance: float = 1e-3
    by_graphs: bool = False  # nothing acts between BEFORE_FORWARD and AFTER_BACKWARD


LATE = [
    Late("layer_freezing", {"freeze_start": 0.5}, by_graphs=True),
    Late("progressive_resizing", {"delay_fraction": 0.5, "size_increment": 2}, CONVOLUTIONS),
    Late("selective_backprop", {"start": 0.5, "end": 0.9}),
    Late("seq_length_warmup", {"duration": 0.5, "max_seq_length": 128}, TEXT),
    Late("stochastic_depth", {"target_layer_name": '"BasicBlock"', "drop_rate": 0.5,
                              "drop_warmup": '"20ba"'}, BLOCKS, 2e-2),
    Late("swa", {"swa_start": '"0.5dur"', "swa_end": '"0.9dur"', "update_interval": '"4ba"',
                 "schedule_swa_lr": "true", "anneal_steps": 10, "swa_lr": 0.01}, by_graphs=True),
]


def first_change(run, plain):
    """The first step, from 1, whose loss is not that of the run without the algorithm; None: all are."""
    pairs = enumerate(zip(run.losses(), plain.losses()), 1)
    return next((step for step, (loss, other) in pairs if loss != other), None)


def calls_of(light, late):
    """A case's trainings, by case, with or without the algorithm, and device."""
    def train(acts, device, *more):
        settings = duration(STEPS), SMALL_EVAL, SAME_BITS, *more
        name = late.kind if acts else f"no-{late.kind}"
        text = late.recipe + (entry(late.kind, late.keys) if acts else "")
        return functools.partial(light.runner.train, f"{name}-{device}", text, *settings, kind=device,
                                 environment=DETERMINISTIC)

    calls = {(late.kind, acts, device): train(acts, device)
             for acts in (True, False) for device in ("cpu", light.args.kind)}
    if late.by_graphs:
        calls[late.kind, True, "graphs"] = train(True, light.args.kind, "train.cuda_graphs=true")
    return calls


def compare_late(light, late, runs):
    """The largest difference of losses, and the first step that the algorithm changed."""
    run, plain = (runs[late.kind, acts, light.args.kind] for acts in (True, False))
    cpu, cpu_plain = (runs[late.kind, acts, "cpu"] for acts in (True, False))
    difference = require_close(run.losses(), cpu.losses(), light.tolerance(late.tolerance), late.kind)
    begins, expected = first_change(run, plain), first_change(cpu, cpu_plain)
    if expected is None or begins != expected:
        raise Failed(f"{late.kind}: changes losses from step {begins} on, on the CPU from step {expected} on")
    if late.by_graphs:
        graphs = runs[late.kind, True, "graphs"]
        require_graphs(graphs)
        light.runner.require_same_weights(run, graphs, f"{late.kind} by graphs")
    return f"{late.kind} {difference:.1e} (from step {begins})"


def begins_late(light):
    """Algorithms that begin, end or change in the middle, and first act in the same step as on the CPU."""
    calls = dict(itertools.chain.from_iterable(calls_of(light, late).items() for late in LATE))
    runs = at_once(calls, light.args.jobs)
    compared = ", ".join(compare_late(light, late, runs) for late in LATE)
    graphs = " and ".join(late.kind for late in LATE if late.by_graphs)
    return f"{STEPS} steps, from the CPU's losses: {compared}; {graphs}: the same bits by graphs"


EVERY, START, END = 4, 20, 36  # steps: of updates, and from which to which an average is taken
SMOOTHING = 0.7
BEGINS = f'"{START / STEPS}dur"'
AVERAGES = {"ema": {"smoothing": SMOOTHING, "ema_start": BEGINS, "update_interval": f'"{EVERY}ba"'},
            "swa": {"swa_start": BEGINS, "swa_end": f'"{END / STEPS}dur"', "update_interval": f'"{EVERY}ba"'}}


def weights(light, run, step, *more):
    """All numbers of the weights that a checkpoint exports, in the order of their names."""
    folder = next((run.folder / "checkpoints").glob(f"*-ba{step}"))
    path = light.runner.new_folder(f"weights-{step}").with_suffix(".safetensors")
    light.runner.answer("export", folder, "--to", path, *more)
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    numbers = array.array("f")
    for name, tensor in sorted(json.loads(content[8:begin]).items()):
        if name != "__metadata__":
            first, last = tensor["data_offsets"]
            numbers.frombytes(content[begin + first:begin + last])
    return numbers


def require_average(what, exported, average):
    difference = max(map(abs, (a - b for a, b in zip(exported, average, strict=True))))
    if not difference < 1e-6:
        raise Failed(f"{what}: weights are {difference:.1e} from the average of the checkpoints' weights")
    return difference


def averages_weights(light):
    """EMA and SWA beside averages that Python takes of the checkpoints' weights, and beside the CPU."""
    settings = (duration(STEPS), SMALL_EVAL, f"checkpoint.interval={EVERY}ba", "checkpoint.keep=100")
    runs = {kind: beside_cpu(light, kind, IMAGES + entry(kind, keys), *settings, tolerance=1e-4)
            for kind, keys in AVERAGES.items()}
    for kind, (run, cpu, _) in runs.items():
        require_close([run.evaluated()], [cpu.evaluated()], light.tolerance(1e-4), f"{kind}, evaluated")
    ema, swa = runs["ema"][0], runs["swa"][0]
    calls = {step: functools.partial(weights, light, ema, step, "--trained")
             for step in range(START, STEPS + 1, EVERY)}
    calls |= {kind: functools.partial(weights, light, run, step)
              for kind, run, step in (("ema", ema, STEPS), ("swa", swa, END))}
    exported = at_once(calls, light.args.jobs)
    trained = [exported[step] for step in range(START, STEPS + 1, EVERY)]
    moving = functools.reduce(lambda average, now: [SMOOTHING * a + (1 - SMOOTHING) * b
                                                    for a, b in zip(average, now)], trained)
    until_end = trained[:(END - START) // EVERY + 1]
    mean = [sum(numbers) / len(until_end) for numbers in zip(*until_end)]
    said = [f"{kind} {difference:.1e} from the CPU's losses, evaluated {run.evaluated():.5f}, "
            f"weights {require_average(kind, exported[kind], average):.1e} from an average by Python"
            for (kind, (run, _, difference)), average in zip(runs.items(), (moving, mean))]
    return "; ".join(said)
