"""Checks of first_light.py with several ranks on one device: sums in the memory of the host, and by NCCL."""

import functools
import re

from first_light_runs import (AS_ONE_HOST_A_RANK, DETERMINISTIC, DIGITS, MPIRUN, NCCL_ON_ONE_GPU, RECIPES,
                              SAME_BITS, SMALL_EVAL, Failed, Open, Run, TooLate, at_once, duration,
                              require_close)

STAGED, NCCL = "collectives.backend=mpi", "collectives.backend=nccl"
STRATEGIES = ["none", "optimizer", "gradients", "full"]
HYBRID = "sharding.strategy=hybrid", "sharding.shard_size=2"
REFUSED = re.compile(r"ncclCommInitRankConfig failed.*|connecting GPUs failed.*")


class Refused(Exception):
    """NCCL accepts no two ranks on one GPU."""


def launcher(ranks):
    return [MPIRUN, "-np", ranks]


def train_by_nccl(light, name, ranks, recipe, *settings):
    folder = light.runner.new_folder(name)
    finished = light.runner.try_train(folder, recipe, *settings, NCCL,
                                      environment={**NCCL_ON_ONE_GPU, **DETERMINISTIC},
                                      launcher=[*launcher(ranks), *AS_ONE_HOST_A_RANK])
    refused = REFUSED.search(finished.text)
    if refused and light.torch["devices"] < 2:
        raise Refused(refused[0])
    if finished.code != 0:
        raise Failed(f"{name}: exit code {finished.code}\n{finished.end()}")
    return Run(folder, finished)


def joins_ranks(light):
    """Two ranks: sums in the memory of the host, then NCCL."""
    two = duration(light.steps(45, 12)), SMALL_EVAL
    mpi = {"launcher": launcher(2)}
    cpu = light.runner.train("two-cpu", DIGITS, *two, kind="cpu", **mpi)
    staged = light.runner.train("two-staged", DIGITS, *two, STAGED, **mpi)
    local = light.runner.train("two-local", DIGITS, *two, "collectives.backend=local",
                               more=("--local-ranks", 2))
    found = require_close(staged.losses(), cpu.losses(), light.tolerance(1e-4), "2 ranks beside the CPU")
    light.runner.require_same_weights(staged, local, "2 ranks by mpirun and in one process")
    said = f"2 ranks, staged: {found:.1e} from the CPU, the same bits by mpirun and in one process"
    try:
        nccl = train_by_nccl(light, "two-nccl", 2, DIGITS, *two)
    except Refused as reason:
        raise Open(f"{said}; NCCL refused two ranks on one GPU: {reason}") from None
    except Failed as failure:
        raise type(failure)(f"{said}; NCCL: {failure}") from None
    # A sum of two numbers has one order.
    light.runner.require_same_weights(staged, nccl, "NCCL beside staged sums")
    return f"{said}, and by NCCL ({nccl.seconds:.0f} s)"


def shards_staged(light, recipe, settings):
    """Trainings with sums by the host, by ranks and strategy, after a check of their weights."""
    def train(ranks, name, *more, kind=None):
        return functools.partial(light.runner.train, f"{ranks}-{name}", recipe, *settings, *more, kind=kind,
                                 launcher=launcher(ranks), environment=DETERMINISTIC)

    calls = {(2, strategy): train(2, strategy, STAGED, f"sharding.strategy={strategy}")
             for strategy in STRATEGIES}
    calls[4, "none"] = train(4, "none", STAGED)
    calls[4, "hybrid"] = train(4, "hybrid", STAGED, *HYBRID)
    calls[2, "cpu"] = train(2, "cpu", kind="cpu")
    runs = at_once(calls, light.jobs(4))
    for (ranks, strategy), run in runs.items():
        if strategy != "cpu":
            what = f"{strategy} beside none, {ranks} ranks, staged"
            light.runner.require_same_weights(run, runs[ranks, "none"], what)
    return runs


def shards_by_nccl(light, recipe, settings, staged):
    """The difference of hybrid's losses; the other strategies must have the bits of staged sums."""
    calls = {strategy: functools.partial(train_by_nccl, light, f"2-{strategy}-nccl", 2, recipe, *settings,
                                         f"sharding.strategy={strategy}")
             for strategy in STRATEGIES[1:]}
    calls["hybrid"] = functools.partial(train_by_nccl, light, "4-hybrid-nccl", 4, recipe, *settings, *HYBRID)
    runs = at_once(calls, light.jobs(4))
    for strategy in STRATEGIES[1:]:
        what = f"{strategy} by NCCL and staged"
        light.runner.require_same_weights(runs[strategy], staged[2, strategy], what)
    # Sums of four ranks have an order of NCCL's own.
    return require_close(runs["hybrid"].losses(), staged[4, "hybrid"].losses(), light.tolerance(1e-4),
                         "hybrid by NCCL and staged")


def shards(light):
    """ZeRO-1, 2 and 3 on two ranks, hybrid on four: the bits of ranks that share nothing."""
    recipe = RECIPES / "king_james.toml"
    settings = duration(light.steps(20, 4)), SMALL_EVAL, SAME_BITS
    staged = shards_staged(light, recipe, settings)
    difference = require_close(staged[2, "none"].losses(), staged[2, "cpu"].losses(), light.tolerance(1e-3),
                               "2 ranks beside the CPU")
    said = ("optimizer, gradients and full on 2 ranks and hybrid on 4 (groups of 2) of one device, staged: "
            f"the bits of `none`, which is {difference:.1e} from the CPU")
    try:
        hybrid = shards_by_nccl(light, recipe, settings, staged)
    except Refused as reason:
        raise Open(f"{said}; NCCL refused ranks on one GPU: {reason}") from None
    except TooLate as late:
        raise TooLate(f"{said}; NCCL: {late}") from None
    return f"{said}; by NCCL the same bits on 2 ranks, hybrid {hybrid:.1e} from staged"
