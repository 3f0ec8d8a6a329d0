"""Checks of first_light.py that measure steps. Times are told, and are no failure."""

import time

import gpu
from first_light_runs import (DETERMINISTIC, NO_DETERMINISTIC, NO_EVAL, RECIPES, Failed, Open, TooLate,
                              duration, require_close)
from measure import Failed as NotMeasured

WARMUP = 4
THOROUGH_S = 350  # of two rounds of the check of throughput


def is_deterministic(light):
    """What deterministic mode costs: the same losses twice, and near those of the other kernels."""
    workloads = ["gpt2_124m", "resnet50"] if light.is_gpu else ["gpt_tiny", "resnet20"]
    settings = [duration(WARMUP + light.steps(10, 3)), *NO_EVAL, "journal.level=off",
                'checkpoint.save_ignore_keys=["model/*", "optimizers/*"]',
                *([] if light.is_gpu else ["data.train.device_batch_size=2"])]
    try:
        return ", ".join(cost_of_determinism(light, workload, settings) for workload in workloads)
    except Failed as failure:
        if NO_DETERMINISTIC in str(failure):
            raise Open(str(failure)) from None
        raise


def cost_of_determinism(light, workload, settings):
    plain, first, second = (
        light.runner.train(f"{workload}-{mode}", RECIPES / f"{workload}.toml", *settings,
                           f"train.deterministic_mode={mode}", environment=DETERMINISTIC)
        for mode in ("false", "true", "true"))
    require_close(second.losses(), first.losses(), 0.0, f"{workload} in deterministic mode, twice")
    difference = require_close(plain.losses(), first.losses(), 5e-2, f"{workload}, deterministic_mode=false")
    own, other = first.step_ms(WARMUP), plain.step_ms(WARMUP)
    return (f"{workload} {own:.1f} ms a step beside {other:.1f} ({own / other:.2f}), losses {difference:.1e} "
            "apart")


def measured(light, workloads, *options):
    """bench/gpu.py's comparisons of tutti with PyTorch; their rows go to the page."""
    words = ["--tutti", light.runner.tutti, "--python", light.python, "--kind", light.args.kind, "--card",
             light.card(), *options, "--workloads", *workloads]
    if not light.is_gpu:
        words += ["--steps", light.steps(0, 20), "--rounds", 1, "--peers", "eager"]
    args = gpu.arguments([str(word) for word in words])
    args.until = light.runner.until
    try:
        return gpu.measure(args, light.add_row)
    except NotMeasured as failure:
        if time.monotonic() >= args.until:
            raise TooLate(str(failure)) from None
        if "out of memory" in str(failure):
            raise Open(f"too little memory: {failure}") from None
        raise Failed(str(failure)) from None


def in_words(comparison):
    """A comparison's figures, and the aims that were missed."""
    rates = ", ".join(f"{name} {comparison.rate(name)}" for name in comparison.runs)
    ratios = ", ".join(f"{comparison.ratio(peer):.2f} of {peer}" for peer, runs in comparison.runs.items()
                       if runs and peer != "tutti")
    missed = "; missed: " + ", ".join(comparison.missed()) if comparison.missed() else ""
    return f"{comparison.case.unit}/s: {rates}; {ratios}{missed}"


def require_all(comparisons):
    missing = [f"{one.workload}, {peer}: {why}" for one in comparisons for peer, why in one.missing.items()]
    if missing:
        raise Open("; ".join(missing))


def figure(workload, stand_in, gigabytes):
    """A check that measures a workload once beside the peers of its aims; in rehearsals a small stand-in."""
    def is_measured(light):
        if not light.is_gpu:
            return in_words(*measured(light, [stand_in], "--batch", 2, "--warmup", 1))
        if light.torch["memory"] < 1e9 * gigabytes:
            raise Open(f"needs {gigabytes} GB; the card has {light.torch['memory'] / 1e9:.0f}")
        comparisons = measured(light, [workload], "--rounds", 1, "--seconds", 12)
        said = in_words(*comparisons)
        for peer, why in comparisons[0].missing.items():
            said += f"; {peer} not measured: {why}"
        return said

    return is_measured


def is_fast(light):
    """Beside PyTorch. What is slower than aimed at is said, and is no failure."""
    chosen = light.args.workloads or (gpu.DEFAULT if light.is_gpu else ["digits_mlp"])
    rounds = 2 if light.seconds_left() >= THOROUGH_S else 1
    if rounds == 1 and not light.args.workloads:
        chosen = [workload for workload in chosen if workload != "gpt_1b3"]  # a check of its own
    comparisons = measured(light, chosen, "--seconds", light.args.seconds * rounds / 2, "--rounds", rounds)
    require_all(comparisons)
    missed = [text for one in comparisons for text in one.missed()]
    return "missed: " + ", ".join(missed) if missed else "all aims are reached"
