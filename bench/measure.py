"""Runs a training and measures its processes."""

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

MPIRUN = Path(__file__).resolve().parent.parent / "tools/mpirun.sh"
TICK_MS = 1e3 / os.sysconf("SC_CLK_TCK")


@dataclass
class Figures:
    step_ms: float  # median
    cpu_ms: float  # of all ranks together, a step
    first_step_s: float  # from the launch to the end of the first step
    rss_mb: float  # peak resident set of the largest rank
    mean_ms: float = 0.0  # mean of the steps, with whatever some of them wait for

    def as_dict(self):
        return asdict(self)


class Failed(Exception):
    pass


def wait(process):
    """Waits for a process; returns the peak resident set, of it and its waited-for children, in MB."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024


def end_session(leader):
    """Kills all processes of a session: mpirun gives each rank a group of its own, so a group is not all."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(stat.parent.name), signal.SIGKILL)


def communicate(process, seconds):
    """What a process of a session of its own says. The session ends if the wait does not end well."""
    try:
        return process.communicate(timeout=seconds)
    except BaseException:  # Ctrl-C too
        end_session(process.pid)
        raise


def check(process):
    if process.returncode != 0:
        raise Failed(f"{' '.join(map(str, process.args))}: exit code {process.returncode}")


def cpu_ms_of_tree(pid):
    """User and system time so far of a process and its living descendants."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [child for task in Path(f"/proc/{pid}/task").iterdir()
                    for child in (task / "children").read_text().split()]
    except OSError:
        return 0.0
    own = (int(fields[11]) + int(fields[12])) * TICK_MS
    return own + sum(cpu_ms_of_tree(child) for child in children)


class MetricsWatch(threading.Thread):
    """Follows a run's metrics.jsonl: the time of the first step, and the CPU time at the steps seen."""

    def __init__(self, path, pid):
        super().__init__(daemon=True)
        self.path, self.pid = path, pid
        self.launched = time.monotonic()
        self.first_step_s = None
        self.seen = []  # (steps, CPU ms so far)
        self.finished = threading.Event()

    def run(self):
        while not self.finished.wait(0.005 if self.first_step_s is None else 0.05):
            steps = self.path.read_bytes().count(b'"step_ms"') if self.path.exists() else 0
            if steps and self.first_step_s is None:
                self.first_step_s = time.monotonic() - self.launched
            if steps and (not self.seen or steps > self.seen[-1][0]):
                self.seen.append((steps, cpu_ms_of_tree(self.pid)))

    def cpu_ms_a_step(self):
        (first, before), (last, after) = self.seen[0], self.seen[-1]
        return (after - before) / max(last - first, 1)


def run_tutti(tutti, recipe, run_dir, ranks, steps, warmup, settings=()):
    duration = f"train.max_duration={warmup + steps}ba"
    command = [tutti, "train", recipe, "--run-dir", run_dir]
    for setting in (duration, *settings):
        command += ["--set", setting]
    if ranks > 1:
        command = [MPIRUN, "-np", str(ranks), *command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watch = MetricsWatch(run_dir / "metrics.jsonl", process.pid)
    watch.start()
    rss_mb = wait(process)
    check(process)
    watch.finished.set()
    watch.join()
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    step_ms = [line["step_ms"] for line in lines if "step_ms" in line]
    return Figures(statistics.median(step_ms[warmup:]), watch.cpu_ms_a_step(), watch.first_step_s, rss_mb,
                   statistics.mean(step_ms[warmup:]))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_peer(command, ranks):
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    launched = time.monotonic()
    processes = [subprocess.Popen(command, env={**shared, "RANK": str(rank)}, text=True,
                                  stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL)
                 for rank in range(ranks)]
    output = processes[0].stdout
    if output.readline().strip() != "first step":
        raise Failed(f"{' '.join(map(str, command))} did not get to its first step")
    first_step_s = time.monotonic() - launched
    said = json.loads(output.readline())
    rss_mb = max(wait(process) for process in processes)  # gloo now and then aborts as it exits
    return Figures(said["step_ms"], said["cpu_ms"], first_step_s, rss_mb, said["mean_ms"])
