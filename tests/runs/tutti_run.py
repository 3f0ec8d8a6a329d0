"""Runs of the executable, for the tests beside this file: started, watched, killed, and compared bit by bit.

TUTTI_BUILD_DIR names the build to test (default: build/ in the source tree).
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TUTTI_BUILD_DIR", SOURCE / "build")).resolve()
TUTTI = str(BUILD / "tutti")
MPIRUN = str(SOURCE / "tools" / "mpirun.sh")
EXAMPLES = SOURCE / "examples"
DIGITS = EXAMPLES / "digits.toml"
AUGMENTED = {"data__train__transforms": '[{kind="random_crop", size=8, padding=2}, {kind="flip"}]'}  # digits
SMALL_GPT = {"model__n_layer": 1, "model__n_head": 2, "model__n_embd": 16}  # where its size is not the point
PATIENCE_S = 240  # far beyond what any of these runs takes
SKIPPED = 77      # ctest's code

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and so would the runs


class Running:
    """A command under way; what it says goes into a file."""
    under_way = set()

    def __init__(self, command, folder=None):
        self.output = tempfile.TemporaryFile()
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        Running.under_way.add(self)

    def ranks(self):
        """Process ids by rank, of those ranks that have started."""
        found = {}
        for pid in children(self.process.pid):
            rank = rank_of(pid)
            if rank is not None:
                found[rank] = pid
        return found

    def text(self):
        return os.pread(self.output.fileno(), 1 << 26, 0).decode(errors="replace")

    def is_over(self):
        return self.process.poll() is not None

    def wait(self, timeout=PATIENCE_S):
        """What it said, once it has ended. One that does not is killed, and that is a failure."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            text = self.text()
            self.kill()
            raise AssertionError(f"still running after {timeout} s:\n{text}") from None
        Running.under_way.discard(self)
        text = self.text()
        finished = Finished(code_of_job(code, text), text, time.monotonic() - self.began)
        self.output.close()
        return finished

    def wait_for(self, condition, what, timeout=PATIENCE_S):
        """Waits until the condition holds of the command under way."""
        while not condition():
            if self.is_over() or time.monotonic() - self.began > timeout:
                text = self.text()
                self.kill()
                raise AssertionError(f"{what} never came to be:\n{text}")
            time.sleep(0.005)

    def signal_ranks(self, number, ranks=None):
        for rank, pid in self.ranks().items():
            if ranks is None or rank in ranks:
                send_signal(pid, number)

    def kill(self):
        """Kills it and its ranks, if they live."""
        for pid in [*self.ranks().values(), self.process.pid]:
            send_signal(pid, signal.SIGKILL)
        self.process.wait()
        self.output.close()
        Running.under_way.discard(self)


class Finished:
    def __init__(self, code, text, took_s):
        self.code = code
        self.text = text
        self.took_s = took_s

    def errors(self):
        """What tutti said was wrong, without what mpirun adds."""
        return [line for line in self.text.splitlines() if line.startswith("error: ")]


def code_of_job(code, text):
    """mpirun's exit code. mpirun itself may crash while it leaves, in PMIx, after it has said how the job ended."""
    if code != -signal.SIGSEGV or "(PMIx_server_finalize" not in text:
        return code
    told = re.search(r"(?m)^ *Exit code: +(\d+)$|exited on signal (\d+)", text)
    return int(told[1] or 128 + int(told[2])) if told else 0


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except FileNotFoundError:
        return []
    return [int(child) for child in text.split()]


def is_alive(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def rank_of(pid):
    try:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for one in environment:
        if one.startswith(b"OMPI_COMM_WORLD_RANK="):
            return int(one.split(b"=")[1])
    return None


def tutti(*arguments, ranks=1, folder=None):
    """Starts the executable: on more than one rank, or where `ranks` is given as text, under mpirun."""
    launcher = [MPIRUN, "-np", str(ranks)] if ranks != 1 else []
    return Running([*launcher, TUTTI, *map(str, arguments)], folder)


def start_each(lines):
    """Starts the executable under mpirun, each rank with a command line of its own."""
    words = [MPIRUN]
    for rank, line in enumerate(lines):
        words += [":"] * (rank > 0) + ["-np", "1", TUTTI, *map(str, line)]
    return Running(words)


def settings(**values):
    """--set arguments; a dot in a key is written as two underscores."""
    return [word for key, value in values.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]


def start(run, *arguments, recipe=DIGITS, ranks=2, **values):
    """Starts a training in the folder `run`."""
    return tutti("train", recipe, "--run-dir", run, *arguments, *settings(**values), ranks=ranks)


def train(run, *arguments, **options):
    """Trains to the end in the folder `run`, which must go well."""
    finished = start(run, *arguments, **options).wait()
    if finished.code != 0:
        raise AssertionError(f"exit code {finished.code}:\n{finished.text}")
    return finished


def trained(*arguments, **options):
    """The folder of a run that went well: trained once for all tests of a script, which leave it as it is."""
    key = repr((arguments, sorted(options.items())))
    if key not in trained.runs:
        if trained.folder is None:
            trained.folder = tempfile.TemporaryDirectory(prefix="tutti-runs-")
        run = pathlib.Path(trained.folder.name) / str(len(trained.runs))
        train(run, *arguments, **options)
        trained.runs[key] = run
    return trained.runs[key]


trained.folder, trained.runs, trained.digests = None, {}, {}


def copy_trained(run, *arguments, **options):
    """Makes the folder `run` a copy of a trained run, which may then be changed."""
    shutil.copytree(trained(*arguments, **options), run, symlinks=True)


def digest(path):
    if path in trained.digests:
        return trained.digests[path]
    finished = tutti("inspect", path, "--digest").wait()
    if finished.code != 0:
        raise AssertionError(finished.text)
    told = finished.text.splitlines()[-1]
    if path in trained.runs.values():
        trained.digests[path] = told
    return told


def metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def what_was_learnt(run):
    """All that must be the same bits in two runs of one recipe: the lines of metrics.jsonl without what a
    clock or the memory meter says, numbers as they are written, and the final weights."""
    measured = {"step_ms", "data_wait_ms", "data_read_ms", "data_disk_ms", "samples_per_s",
                "memory_peak_mb", "since_start_s"}
    lines = [json.loads(line, parse_float=str) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {"weights": digest(run),
            "lines": [{key: value for key, value in line.items() if key not in measured} for line in lines]}


def all_shown_in(page, language):
    """All code that the page of docs shows in this language."""
    return re.findall(rf"```{language}\n(.*?)```", (SOURCE / "docs" / page).read_text(), re.S)


def shown_in(page, language, having=""):
    """The first of it that has this text."""
    return next(code for code in all_shown_in(page, language) if having in code)


def log(run, rank=0):
    path = run / "log" / f"rank-{rank}.log"
    return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def scratch_folder():
    with tempfile.TemporaryDirectory(prefix="tutti-runs-") as folder:
        yield pathlib.Path(folder)


def end_all():
    for running in list(Running.under_way):
        running.kill()


class RunTest(unittest.TestCase):
    """A test with a folder of its own, that leaves nothing behind."""
    maxDiff = 2000

    def setUp(self):
        self.folder = self.enterContext(scratch_folder())
        self.addCleanup(end_all)

    def assert_learnt_the_same(self, one, two):
        first, second = what_was_learnt(one), what_was_learnt(two)
        for a, b in zip(first["lines"], second["lines"]):
            self.assertEqual(a, b)
        self.assertEqual(len(first["lines"]), len(second["lines"]))
        self.assertEqual(first["weights"], second["weights"])


class SimulateTest(RunTest):
    def simulate(self, *arguments, code=0, recipe=EXAMPLES / "faults/tiny.toml", timeout=300):
        finished = tutti("simulate", recipe, *arguments).wait(timeout=timeout)
        self.assertEqual(finished.code, code, finished.text)
        return finished.text


def main():
    """unittest's main, with ctest's exit code when every test was skipped."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.testsRun == len(result.skipped) else 0)
