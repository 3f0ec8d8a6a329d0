"""Checks of first_light.py with models, an optimizer and a precision, and of commands that use a run."""

import csv
import functools
import json
import re

from first_light_runs import (DETERMINISTIC, DIGITS, EXPORTED, ROOT, SAME_BITS, SMALL_EVAL, Failed, at_once,
                              beside_cpu, duration, execute, require_close, require_graphs)

LLAMA, MUON = ROOT / "examples/text_llama.toml", ROOT / "examples/text_muon.toml"
OVERFLOWED = re.compile(r"step (\d+): a gradient overflowed; .* scale is now (\S+)")
# The scale grows every third step, to a scale that overflows. Half and twice of each scale would do the same.
OVERFLOWS = ("train.precision=amp_fp16", "precision.init_scale=8589934592", "precision.backoff_factor=0.0625",
             "precision.growth_interval=3", "precision.growth_factor=4096")
PROMPT = "In the beginning"


def overflows(run):
    """The steps that were skipped, with the scale after each."""
    return OVERFLOWED.findall((run.folder / "log/rank-0.log").read_text())


def skips_overflows(light):
    """amp_fp16 whose scale overflows at first, and again: the CPU's steps are skipped, by graphs too."""
    settings = duration(light.steps(30, 14)), SMALL_EVAL, *OVERFLOWS
    run, cpu, difference = beside_cpu(light, "overflow", DIGITS, *settings, tolerance=2e-2)
    graphs = light.runner.train("overflow-graphs", DIGITS, *settings, "train.cuda_graphs=true")
    require_graphs(graphs)
    light.runner.require_same(run, graphs, "overflows by graphs")
    skipped, expected = overflows(run), overflows(cpu)
    steps = [int(step) for step, _ in skipped]
    again = [step for step in steps if step > 1 and step - 1 not in steps]
    if skipped != expected or not again or run.result()["skipped_steps"] != len(steps):
        raise Failed(f"skipped steps and scales: {skipped}, on the CPU {expected}")
    return (f"{len(steps)} of {len(run.losses())} steps overflowed, the CPU's, after good steps first step "
            f"{again[0]}; losses {difference:.1e} from the CPU's; the same bits by graphs")


def predicted(light, run, device):
    """The score of each class, a row a sample, by `tutti predict`."""
    path = light.runner.new_folder(f"predicted-{device}").with_suffix(".csv")
    light.runner.answer("predict", run.folder, "--out", path, "--set", f"device.kind={device}", "--top-k", 10)
    with path.open() as file:
        rows = [{key: float(cell) for key, cell in row.items()} for row in csv.DictReader(file)]
    return [{row[f"class_{rank}"]: row[f"score_{rank}"] for rank in range(1, 11)} for row in rows]


def predicts(light):
    """A run of the device predicts on the device and on the CPU."""
    run = light.runner.train("predict", DIGITS, duration(light.steps(60, 12)), SMALL_EVAL)
    rows = {device: predicted(light, run, device) for device in (light.args.kind, "cpu")}
    own, cpu = rows[light.args.kind], rows["cpu"]
    if len(own) != len(cpu) or not own:
        raise Failed(f"{len(own)} rows, on the CPU {len(cpu)}")
    difference = max(abs(row[label] - other[label]) for row, other in zip(own, cpu) for label in other)
    if not difference <= light.tolerance(1e-4):
        raise Failed(f"scores differ by {difference:.1e} from the CPU's, at most 1e-4 was expected")
    return f"{len(own)} rows of {len(own[0])} scores, {difference:.1e} from the CPU's"


def on_cpu(light, recipe, run):
    """A run on the CPU with the weights of `run`: of one step, which changes nothing."""
    weights = light.runner.new_folder("weights").with_suffix(".safetensors")
    light.runner.answer("export", run.folder, "--to", weights)
    cpu = light.runner.train("on-cpu", recipe, duration(1), SMALL_EVAL, *small_batch(light),
                             f"model.weights='{weights}'", 'optimizer={kind="sgd",lr=0.0}',
                             'scheduler={kind="constant"}', kind="cpu")
    if light.runner.digest(cpu) != light.runner.digest(run):
        raise Failed("the CPU's run has other weights")
    return cpu.folder


def generated(light, folder, length, *more):
    lines = light.runner.answer("generate", folder, PROMPT, "--length", length, "--logprobs", *more)
    return [json.loads(line) for line in lines.splitlines()]


def compare_texts(light, recipe, run, length):
    """The largest difference of log-probabilities: of the likeliest tokens, then of drawn ones."""
    folders, largest = {light.args.kind: run.folder, "cpu": on_cpu(light, recipe, run)}, 0.0
    for more in (("--temperature", 0), ("--temperature", 1, "--top-k", 40, "--seed", 3)):
        texts = at_once({device: functools.partial(generated, light, folder, length, *more)
                         for device, folder in folders.items()}, 2)
        own, cpu = texts[light.args.kind], texts["cpu"]
        tokens = [[token["token"] for token in text] for text in (own, cpu)]
        if tokens[0] != tokens[1] or len(own) != length:
            raise Failed(f"generate {more}: tokens {tokens[0]}, on the CPU {tokens[1]}")
        largest = max(largest, *(abs(a["logprob"] - b["logprob"]) for a, b in zip(own, cpu)))
    bound = max(light.tolerance(1e-3), 1e-5)  # on some processors bits depend on where rows lie
    if not largest <= bound:
        raise Failed(f"log-probabilities differ by {largest:.1e} from the CPU's; at most {bound:g} is right")
    return largest


def generates(light):
    """Texts of a GPT and a Llama, likeliest tokens and drawn ones: the CPU's tokens."""
    steps, length = light.steps(40, 2), light.steps(100, 20)
    said = []
    for recipe in (ROOT / "examples/text_gpt.toml", LLAMA):
        run = light.runner.train(recipe.stem, recipe, duration(steps), SMALL_EVAL, *small_batch(light))
        said.append(f"{recipe.stem} {compare_texts(light, recipe, run, length):.1e}")
    return f"{length} tokens, the CPU's; log-probabilities from the CPU's: {', '.join(said)}"


def small_batch(light):
    """Of the recipes for texts, whose steps take a second on a loaded CPU."""
    return () if light.is_gpu else ("data.train.batch_size=2", "data.eval.device_batch_size=2")


def trains_llama(light):
    """RMSNorm, rotary positions and grouped queries: beside the CPU, by graphs, and in bf16."""
    settings = duration(light.steps(20, 4)), SMALL_EVAL, SAME_BITS, *small_batch(light)
    run, _, difference = beside_cpu(light, "llama", LLAMA, *settings, tolerance=1e-3,
                                    environment=DETERMINISTIC)
    others = at_once({name: functools.partial(light.runner.train, f"llama-{name}", LLAMA, *settings, *more,
                                              environment=DETERMINISTIC)
                      for name, more in {"graphs": ["train.cuda_graphs=true"],
                                         "checkpointing": ["sharding.activation_checkpointing=true"],
                                         "bf16": ["train.precision=amp_bf16"]}.items()}, light.jobs(3))
    require_graphs(others["graphs"])
    for name in ("graphs", "checkpointing"):
        light.runner.require_same_weights(run, others[name], f"llama with {name}")
    half = require_close(others["bf16"].losses(), run.losses(), 5e-2, "llama, bf16 beside fp32")
    return (f"{len(run.losses())} steps {difference:.1e} from the CPU's; the same bits by graphs and with "
            f"activation checkpointing; bf16 {half:.1e} from fp32")


def trains_by_muon(light):
    """Muon: products in bf16, which the CPU makes in fp32 and rounds."""
    settings = duration(light.steps(20, 4)), SMALL_EVAL, SAME_BITS, *small_batch(light)
    run, _, difference = beside_cpu(light, "muon", MUON, *settings, tolerance=1e-2, is_exact=False,
                                    environment=DETERMINISTIC)
    second = light.runner.train("muon", MUON, *settings, environment=DETERMINISTIC)
    light.runner.require_same(run, second, "muon twice")
    return f"losses of {len(run.losses())} steps {difference:.1e} from the CPU's; the same bits twice"


def trains_exported_vit(light):
    """A vision transformer that the machine's PyTorch exports."""
    program = light.folder / "vit.pt2"
    written = execute([light.python, ROOT / "tools/first_light_vit.py", program], light.runner.seconds())
    if written.code != 0:
        raise Failed(f"torch.export: {written.end()}")
    settings = f"model.path={program}", duration(light.steps(20, 6)), SMALL_EVAL, SAME_BITS
    run, _, difference = beside_cpu(light, "vit", EXPORTED, *settings, tolerance=1e-3,
                                    environment=DETERMINISTIC)
    others = at_once({name: functools.partial(light.runner.train, f"vit-{name}", EXPORTED, *settings, *more,
                                              environment=DETERMINISTIC)
                      for name, more in {"graphs": ["train.cuda_graphs=true"],
                                         "bf16": ["train.precision=amp_bf16"]}.items()}, light.jobs(2))
    require_graphs(others["graphs"])
    light.runner.require_same_weights(run, others["graphs"], "the exported ViT by graphs")
    half = require_close(others["bf16"].losses(), run.losses(), 5e-2, "the exported ViT, bf16 beside fp32")
    return (f"losses of {len(run.losses())} steps {difference:.1e} from the CPU's; the same bits by graphs; "
            f"bf16 {half:.1e} from fp32")
