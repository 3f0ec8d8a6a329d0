"""Checks of first_light.py on one device. Each returns what was seen, in a line, or throws Failed or Open."""

import collections
import json
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import algorithms
from first_light_runs import (DETERMINISTIC, DIGITS, EXPORTED, NO_DETERMINISTIC, NO_EVAL, RECIPES, ROOT,
                              Failed, Open, Run, TooLate, classes, duration, execute, require_close,
                              require_graphs)

LOADS_WITHIN_S = 30
HALTS = re.compile(r"cuda\w*Synchronize|cuda(Memcpy|Malloc|Free)$")
# A model that holds far more activations than weights: what forward keeps of a sample is the layers' inputs.
DEEP = RECIPES / "digits_mlp.toml", f"model.hidden={[512] * 32}", *NO_EVAL
DEEP_BYTES = 32 * 512 * 4
# Keys with which two algorithms act in three steps.
IN_THREE_STEPS = {"gyro_dropout": {"sigma": 2, "tau": 1},
                  "seq_length_warmup": {"duration": 0.9, "min_seq_length": 64, "max_seq_length": 128,
                                        "step_size": 64}}


def loads(light):
    """tutti starts, sees the device and does a step."""
    version = light.runner.ask("--version")
    if version.code != 0:
        raise Failed(version.end())
    run = light.runner.train("loads", DIGITS, duration(1), "data.eval.subset_num_batches=1")
    if light.card() not in run.text:
        raise Failed(f"the run does not name {light.card()}:\n{run.text[:200]}")
    seconds = run.lines()[0]["since_start_s"]
    if seconds > LOADS_WITHIN_S:
        raise Failed(f"the first step ended after {seconds:.0f} s")
    count = f"{light.torch['devices']} of it, " if light.is_gpu else ""
    return f"{light.card()}, {count}first step after {seconds:.1f} s, the run {run.seconds:.1f} s"


def learns_digits(light):
    """The CPU's losses, and the same bits twice, the second time by graphs too."""
    settings = duration(light.steps(45, 12)), "data.eval.subset_num_batches=1"
    cpu = light.runner.train("digits-cpu", DIGITS, *settings, kind="cpu")
    one = light.runner.train("digits", DIGITS, *settings)
    found = require_close(one.losses(), cpu.losses(), light.tolerance(1e-4), "digits beside the CPU")
    light.runner.require_same(one, light.runner.train("digits", DIGITS, *settings), "digits twice")
    graphs = light.runner.train("digits-graphs", DIGITS, *settings, "train.cuda_graphs=true")
    require_graphs(graphs)
    light.runner.require_same(one, graphs, "digits by graphs")
    return (f"losses of {len(one.losses())} steps differ from the CPU's by {found:.1e}; the same bits twice, "
            "and by graphs")


def matches_cpu(light, workload, settings, first, rest):
    """fp32 on the device beside the CPU: tolerances of the first step, and of all."""
    runs = [light.runner.train(f"{workload}-{kind}", RECIPES / f"{workload}.toml", *settings, kind=kind)
            for kind in ("cpu", light.args.kind)]
    cpu, device = (run.losses() for run in runs)
    require_close(device[:1], cpu[:1], light.tolerance(first), f"{workload}, fp32 (is TF32 on?)")
    found = require_close(device, cpu, light.tolerance(rest), f"{workload}, fp32")
    return f"`{workload}` fp32 {found:.1e} from the CPU", device


def matches_torch(light, steps, batch, precision, tolerance):
    """gpt_tiny beside PyTorch's eager: the same initial weights and batches."""
    peer = execute([light.python, ROOT / "bench/peer_losses.py", light.folder, "--steps", steps, "--batch",
                    batch, "--device", light.peer_device(), "--precision", precision], light.runner.seconds())
    if peer.code != 0:
        raise Failed(peer.end())
    recipe = re.sub(r"\[data.train\]\n(.+\n)+", f"""[data.train]
kind = "tokens"
path = "{light.folder}/tokens.bin"
sequence_length = 256
device_batch_size = {batch}
""", (RECIPES / "gpt_tiny.toml").read_text())
    run = light.runner.train("gpt-torch", recipe, duration(steps), f"train.precision={precision}",
                             f"model.weights={light.folder}/weights.safetensors")
    expected = json.loads(peer.text.splitlines()[-1])
    return require_close(run.losses(), expected, tolerance, f"gpt_tiny, {precision} beside PyTorch")


def learns_models(light):
    """A GPT and a ResNet."""
    steps, batch = light.steps(10, 2), 8 if light.is_gpu else 1
    small = duration(steps), f"data.train.device_batch_size={batch}"
    gpts = {count: matches_cpu(light, "gpt_tiny", [*small, *classes(count)], 1e-5, 1e-3)[0]
            for count in (2047, 2048)}
    gpt = ", ".join(f"{found} ({count} classes)" for count, found in gpts.items())
    resnet, full = matches_cpu(light, "resnet20", small, 1e-4, 1e-2)
    half = light.runner.train("resnet-bf16", RECIPES / "resnet20.toml", *small, "train.precision=amp_bf16")
    found = require_close(half.losses(), full, 5e-2, "resnet20, bf16 beside fp32")
    # Many CPUs take minutes for products in bf16.
    precision, tolerance = ("amp_bf16", 2e-3) if light.is_gpu else ("fp32", 1e-5)
    beside_torch = matches_torch(light, light.steps(20, 2), batch, precision, tolerance)
    return (f"{steps} steps, {gpt}, {resnet}; `resnet20` bf16 {found:.1e} from fp32; `gpt_tiny` {precision} "
            f"{beside_torch:.1e} from PyTorch eager with the same weights and batches")


def run_algorithm(light, case, steps):
    """What went wrong with an algorithm in both modes, and if there are no deterministic kernels."""
    workload, kind, keys = case
    text = (RECIPES / f"{workload}.toml").read_text().replace("../../", f"{ROOT}/")
    text += algorithms.entry(kind, IN_THREE_STEPS.get(kind, keys))
    settings = [duration(steps), *NO_EVAL, *algorithms.NEEDED.get(kind, [])]
    if "[data.eval]" in text:
        settings.append("data.eval.subset_num_batches=1")  # at the end there is an evaluation
    failure, refused = None, False
    try:
        cpu = light.runner.train(f"{kind}-cpu", text, *settings, kind="cpu")
        for mode in ("false", "true"):
            run = light.runner.train(f"{kind}-{mode}", text, *settings, f"train.deterministic_mode={mode}",
                                     environment=DETERMINISTIC)
            require_close(run.losses(), cpu.losses(), light.tolerance(2e-2), f"deterministic_mode={mode}")
    except TooLate:
        raise
    except Failed as reason:
        refused = NO_DETERMINISTIC in str(reason)
        failure = None if refused else f"{kind}: {reason}"
    return kind, failure, refused


def runs_algorithms(light):
    """All algorithms; all that fail are named."""
    cases = {case[1]: case for case in algorithms.step_cases()}.values()
    with ThreadPoolExecutor(light.args.jobs) as pool:
        found = list(pool.map(lambda case: run_algorithm(light, case, 3), cases))
    failures = [failure for _, failure, _ in found if failure]
    if failures:
        raise Failed(f"{len(failures)} of {len(cases)}: " + "\n".join(failures))
    refused = ", ".join(kind for kind, _, refused in found if refused)
    return (f"{len(cases)} algorithms, losses to {light.tolerance(2e-2):g} of the CPU's; without "
            f"deterministic kernels: {refused or 'none'}")


def survives(light, name, *settings):
    run = light.runner.train(name, *DEEP, duration(2), "train.grad_accum=auto", *settings)
    if run.grad_accum() < 2:
        raise Failed(f"{name}: memory sufficed: peak {run.peak_mb():.0f} MB")
    return run


def runs_out_of_memory(light):
    """By a budget, with the bits of that grad_accum set by hand; then for real."""
    batch = "data.train.device_batch_size=2048"
    peak = light.runner.train("memory", *DEEP, duration(1), batch).peak_mb()
    budget = survives(light, "budget", batch, f"device.memory_budget_mb={0.7 * peak:.0f}")
    by_hand = light.runner.train("by-hand", *DEEP, duration(2), batch,
                                 f"train.grad_accum={budget.grad_accum()}")
    light.runner.require_same_weights(budget, by_hand, "grad_accum found and set by hand")
    said = f"budget {0.7 * peak:.0f} MB: grad_accum {budget.grad_accum()}, bits as by hand"
    if not light.is_gpu:  # freed memory of the tests' device is reused for blocks of the same size only
        return said
    samples = 1 << (light.torch["memory"] // DEEP_BYTES).bit_length()  # more than there is room for
    real = survives(light, "real", f"data.train.device_batch_size={samples}",
                    f"data.train.samples={2 * samples}")
    return (f"{said}; {samples} samples of {DEEP_BYTES / 1e3:.0f} KB: grad_accum {real.grad_accum()}, peak "
            f"{real.peak_mb():.0f} MB")


def killed_run(light, settings):
    """A run that was killed after its first checkpoint, and the step of its newest one."""
    run = light.runner.new_folder("killed")
    newest, said = run / "checkpoints/latest", run.with_suffix(".log")
    until = time.monotonic() + light.runner.seconds()
    with said.open("w") as log:
        endless = light.runner.command(run, DIGITS, [duration(10**6), *settings])
        process = subprocess.Popen([str(word) for word in endless], stdout=log, stderr=log)
    while not newest.is_symlink() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.001)
    process.kill()
    if time.monotonic() >= until:
        raise TooLate("no checkpoint to kill the run after, and the time is over")
    if process.wait() != -signal.SIGKILL or not newest.is_symlink():
        raise Failed(f"no checkpoint to kill the run after\n{said.read_text()[-2000:]}")
    return run, int(re.search(r"\d+$", str(newest.readlink()))[0])


def resumes_after_a_kill(light):
    """kill -9 after a checkpoint, then a resume."""
    settings = "checkpoint.interval=10ba", "checkpoint.keep=2", "train.eval_interval=0ep"
    run, saved = killed_run(light, settings)
    settings = duration(saved + light.steps(200, 40)), *settings
    finished = light.runner.try_train(run, DIGITS, *settings, more=("--resume", "auto"))
    resumed = re.search(r"resumes after step (\d+)", finished.text)
    if finished.code != 0 or not resumed:
        raise Failed(f"not resumed after a kill: exit code {finished.code}\n{finished.end()}")
    whole = light.runner.train("whole", DIGITS, *settings)
    light.runner.require_same_weights(Run(run, finished), whole, "resumed and not killed")
    return f"killed, resumed after step {resumed[1]}, {settings[0]}: the bits of a run that was not killed"


def host_waits_of_traces(light, steps):
    """Calls of CUDA in which the host waits, by name, a step that [profiler] has recorded."""
    run = light.runner.train("waits", DIGITS, duration(2 * steps), *NO_EVAL, "journal.level=off",
                             "profiler.skip_first=2", "profiler.active=10")
    events = [event for trace in (run.folder / "torch_traces").glob("*.json")
              for event in json.loads(trace.read_text())["traceEvents"]]
    return calls_that_halt(events)


def calls_that_halt(events):
    recorded = {event["name"] for event in events if event["name"].startswith("ProfilerStep#")}
    calls = [event["name"] for event in events if event.get("cat") == "cuda_runtime"]
    if not calls or not recorded:
        raise Open("not measured: [profiler] has recorded no calls of CUDA")
    counts = collections.Counter(name for name in calls if HALTS.match(name))
    return {name: count / len(recorded) for name, count in counts.items()}


def host_waits_of_test_device(light, steps):
    said = light.runner.try_train(light.runner.new_folder("waits"), DIGITS, duration(steps), *NO_EVAL,
                                  "journal.level=off", more=("--local-ranks", 1),
                                  environment={"TUTTI_TEST_DEVICE": "report"})
    if said.code != 0 or "without waiting" in said.text:
        raise Failed(said.end(40))
    if "host waits" not in said.text:
        raise Open("not measured: the tests' device did not report")
    return {cause: int(count) for cause, count in re.findall(r"host waits: (.+), (\d+)", said.text)}


def waits_for_the_device(light):
    """Calls in which the host waits, a step; on the tests' device, the difference of two runs."""
    steps = 20
    if light.is_gpu:
        a_step = host_waits_of_traces(light, steps)
    else:
        short, longer = (host_waits_of_test_device(light, count) for count in (steps, 2 * steps))
        a_step = {name: (count - short.get(name, 0)) / steps for name, count in longer.items()}
    found = ", ".join(f"{name} {count:g}" for name, count in sorted(a_step.items()) if count > 0)
    return f"a step: {found or 'none'}"


def spends_less(light):
    """Less memory or time with the bits of the plain run."""
    settings = [duration(light.steps(6, 6)), *classes(2048), "data.train.device_batch_size=2",
                "train.deterministic_mode=true", *NO_EVAL]
    variants = {"plain": [],
                "checkpointing": ["sharding.activation_checkpointing=true"],
                "offload": ["sharding.offload=['optimizer']"],
                "both": ["sharding.activation_checkpointing=2",
                         "sharding.offload=['optimizer', 'activations']"],
                "graphs": ["train.cuda_graphs=true"]}
    runs = {name: light.runner.train(name, RECIPES / "gpt_tiny.toml", *settings, *more,
                                     environment=DETERMINISTIC)
            for name, more in variants.items()}
    require_graphs(runs["graphs"])
    for name, run in runs.items():
        light.runner.require_same_weights(runs["plain"], run, name)
    peaks = ", ".join(f"{name} {run.peak_mb():.0f}" for name, run in runs.items())
    return f"`gpt_tiny`: the same bits; peaks in MB: {peaks}"


def replays(light):
    """A recorded run again, on the device and on the CPU."""
    run = light.runner.train("recorded", DIGITS, duration(light.steps(20, 8)),
                             "data.eval.subset_num_batches=1")
    for more in ([], ["--on-cpu"]):
        said = light.runner.ask("replay", run.folder, *more)
        if said.code != 0:
            raise Failed(f"replay {' '.join(more)}: {said.end()}")
    return f"{len(run.losses())} steps: on the device the same bits, on the CPU the same control"


def trains_programs(light):
    """A network of torch.export."""
    settings = duration(light.steps(20, 4)), "data.eval.subset_num_batches=1"
    cpu, run = (light.runner.train(f"exported-{kind}", EXPORTED, *settings, kind=kind)
                for kind in ("cpu", light.args.kind))
    found = require_close(run.losses(), cpu.losses(), light.tolerance(1e-3), "an exported net beside the CPU")
    return f"losses of {len(run.losses())} steps {found:.1e} from the CPU's"
