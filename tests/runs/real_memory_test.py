"""Memory that really runs out, by `ulimit -v`, `ulimit -d` or the limit of a control group: a run trains in
smaller parts, with the bits of a run with that grad_accum by hand, or ends with one clear error about memory.

TUTTI_NIGHTLY=1 tries forty limits, else a few.
"""
import contextlib
import os
import pathlib
import re
import time

import tutti_run
from tutti_run import EXAMPLES, MPIRUN, TUTTI, Running, metrics, settings, train

NIGHTLY = "TUTTI_NIGHTLY" in os.environ
TINY = EXAMPLES / "faults" / "tiny.toml"
PATIENCE_S = 300
MB = 1 << 20

STEPS = {"train__max_duration": "3ba", "train__eval_interval": "0ep", "checkpoint__interval": "0ba"}


def synthetic(shape, samples, batch, **values):
    options = {"recipe": TINY, **STEPS, "data__train__shape": str(shape), "data__eval__shape": str(shape),
               "data__train__samples": samples, "data__train__batch_size": batch}
    return {**options, **values}


# Most of what they take are activations, a hundred MB to one GB.
MODELS = {
    "digits_cnn": {"recipe": EXAMPLES / "digits_cnn.toml", **STEPS, "data__train__batch_size": 480},
    "resnet": synthetic([3, 32, 32], 384, 192, model='{kind = "resnet_cifar", depth = 20}',
                        train__max_duration="2ba"),
    "gpt": synthetic([128], 64, 32, model='{kind = "gpt", vocab_size = 257, n_layer = 2, n_head = 4, '
                     'n_embd = 64, n_positions = 128, dropout = 0.1}', data__train__targets="sequence",
                     data__eval__targets="sequence"),
    "mlp": synthetic([64], 8192, 4096, model='{kind = "mlp", hidden = [1024, 1024]}'),
}


class Group:
    """A control group of this process's own, v1 or v2, with a limit of memory."""

    def __init__(self):
        self.folder = None
        mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        for line in mounts:
            words, kind = line.split(" - ")[0].split(), line.split(" - ")[1].split()
            second = kind[0] == "cgroup2"
            if not second and (kind[0] != "cgroup" or "memory" not in kind[2].split(",")):
                continue
            for group in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
                number, controllers, path = group.split(":", 2)
                if (controllers == "") == second and (second or "memory" in controllers.split(",")):
                    if words[3] != "/" and path.startswith(words[3]):
                        path = path[len(words[3]):]
                    self.try_folder(pathlib.Path(words[4] + path.rstrip("/")), second)

    def try_folder(self, parent, second):
        folder = parent / f"tutti-memory-{os.getpid()}"
        limit = "memory.max" if second else "memory.limit_in_bytes"
        if self.folder is not None:
            return
        with contextlib.suppress(OSError):
            folder.mkdir()
            if (folder / limit).exists():
                self.folder, self.limit = folder, limit
            else:
                folder.rmdir()

    def set(self, limit):
        (self.folder / self.limit).write_text(str(limit))

    def close(self):
        """Once all in it have ended."""
        until = time.monotonic() + 10
        while self.folder is not None and self.folder.exists() and time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.folder.rmdir()
            time.sleep(0.02)


def command(run, ranks, rank_limit, group, model):
    """As tutti_run.start, each rank under `ulimit`, or all of the run in a control group."""
    words = [TUTTI, "train", str(model["recipe"]), "--run-dir", str(run), "--set", "train.grad_accum=auto",
             *settings(**{key: value for key, value in model.items() if key != "recipe"})]
    if rank_limit is not None:
        words = ["bash", "-c", f"ulimit {rank_limit[0]} {rank_limit[1] // 1024}; exec \"$@\"", "rank", *words]
    if ranks != 1:
        words = [MPIRUN, "-np", str(ranks), *words]
    if group is not None:
        words = ["bash", "-c", f"echo $$ > {group.folder}/cgroup.procs; exec \"$@\"", "group", *words]
    return words


def peak_of(run, ranks, model):
    """Bytes of address space, of data and of resident memory that a rank takes which nothing limits."""
    running, peaks = Running(command(run, ranks, None, None, model)), {}
    while not running.is_over():
        pids = running.ranks().values() if ranks != 1 else [running.process.pid]
        for pid in pids:
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{pid}/status").read_text()
                for key in ("VmPeak", "VmData", "VmHWM"):
                    found = re.search(fr"{key}:\s+(\d+) kB", text)
                    peaks[key] = max(peaks.get(key, 0), int(found.group(1)) * 1024 if found else 0)
        time.sleep(0.01)
    finished = running.wait()
    if finished.code != 0:
        raise AssertionError(finished.text)
    return peaks


def schedule(run):
    steps = []
    for line in metrics(run):
        if "loss" in line and (not steps or steps[-1][1] != line["grad_accum"]):
            steps.append([line["step"] - 1, line["grad_accum"]])
    return steps


class RealMemory(tutti_run.RunTest):
    def tries(self, name, ranks, kind, limits):
        """Runs under each limit; what each came to."""
        model, group = MODELS[name], Group() if kind == "group" else None
        if group is not None:
            self.addCleanup(group.close)
        by_hand, found = {}, []
        for limit in limits:
            run = self.folder / f"{name}-{ranks}-{kind}-{limit}"
            if group is not None:
                group.set(limit)
            started = Running(command(run, ranks, None if group else (kind, limit), group, model))
            how = "control group" if group else f"ulimit {kind}"
            with self.subTest(how, limit=limit):  # a limit that fails keeps no other from being tried
                what = self.outcome(started.wait(PATIENCE_S), run, ranks, model, by_hand)
                found.append(what)
                print(f"{name}, {ranks} ranks, {how} {limit // MB} MiB: {what}", flush=True)
        return found

    def outcome(self, finished, run, ranks, model, by_hand):
        if finished.code == 0:
            steps = str(schedule(run))
            if steps not in by_hand:
                by_hand[steps] = self.folder / f"by-hand-{len(by_hand)}-{run.name}"
                train(by_hand[steps], ranks=ranks, **{**model, "train__grad_accum": steps})
            self.assert_learnt_the_same(run, by_hand[steps])
            return f"trained, grad_accum {steps}"
        errors = finished.errors()
        loader = re.findall("^.*error while loading shared libraries.*$", finished.text, re.M)
        self.assertTrue(errors or loader, f"exit code {finished.code}, no error:\n{finished.text}")
        for error in errors:
            self.assertRegex(error, r"memory|ulimit -v", finished.text)
        self.assertLessEqual(len(errors), 1, finished.text)
        self.assertIn(finished.code, (1,) if not loader else (1, 127), finished.text)
        return f"one error: {(errors + loader)[0]}"

    def limits(self, peaks, kind, count):
        most = {"-v": peaks["VmPeak"], "-d": peaks["VmData"], "group": peaks["VmHWM"]}[kind]
        least = {"-v": 0.35, "-d": 0.1, "group": 0.2}[kind]
        return [int(most * (least + (1 - least) * (i + 0.5) / count)) // MB * MB for i in range(count)]

    def sweep(self, name, ranks, kind, count):
        if kind == "group":
            group = Group()
            group.close()
            if group.folder is None:
                kind = "-d"  # no control group can be made here
        peaks = peak_of(self.folder / "whole", ranks, MODELS[name])
        if kind == "group":
            for key in peaks:
                peaks[key] *= ranks
        found = self.tries(name, ranks, kind, self.limits(peaks, kind, count))
        self.assertTrue(any("trained" in what for what in found), "\n".join(found))


def add(name, ranks, kind, count):
    def test(self):
        self.sweep(name, ranks, kind, count)
    setattr(RealMemory, f"test_{name}_{ranks}_ranks_{kind.strip('-')}", test)


if NIGHTLY:
    for model in MODELS:
        for rank_count in (1, 2):
            add(model, rank_count, "-v", 3 if rank_count == 1 else 2)
            add(model, rank_count, "group", 3 if rank_count == 1 else 2)
else:
    add("digits_cnn", 1, "-v", 2)
    add("digits_cnn", 2, "group", 1)


if __name__ == "__main__":
    tutti_run.main()
