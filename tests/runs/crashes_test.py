"""A rank that ends by a fault of its own leaves in its log what it did last, and ends as it would have; one that
is killed is named by the others."""
import json
import os
import re
import shutil
import signal
import time

import tutti_run
from tutti_run import DIGITS, EXAMPLES, log, start

FOREVER = {"train__max_duration": "1000000ep", "checkpoint__interval": "0ba"}
LAST = r"\n +\d+\.\d\d\d s ago  compute +[a-z ]+ \(after step \d+, -?\d+\)\n"


class Crashes(tutti_run.RunTest):
    def crash(self, number, ranks):
        run = self.folder / number.name
        running = start(run, ranks=ranks, **FOREVER)
        metrics = run / "metrics.jsonl"
        running.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 50, "a step")
        if ranks == 1:
            running.process.send_signal(number)
        else:
            running.signal_ranks(number, [1])
        finished = running.wait()
        self.assertNotEqual(finished.code, 0, finished.text)
        head = f"rank {ranks - 1} is ended by signal {int(number)} ({number.name}); the last that was done:"
        self.assertRegex(log(run, ranks - 1).partition(head)[2], LAST)
        return finished

    def test_one_rank_of_two_by_a_segmentation_fault(self):
        self.crash(signal.SIGSEGV, ranks=2)

    def test_one_rank_of_two_by_abort(self):
        self.crash(signal.SIGABRT, ranks=2)

    def test_a_rank_that_is_killed_is_named_with_the_last_that_it_did(self):
        run = self.folder / "run"
        running = start(run, ranks=2, **FOREVER, train__hang_timeout="3sec")
        began = time.monotonic()
        running.wait_for(lambda: log(run) and time.monotonic() - began > 3, "a heartbeat")
        running.signal_ranks(signal.SIGKILL, [1])
        self.assertRegex(running.wait().text, "(?m)^error: rank 0: rank 1 is gone: its process ended "
                         r"while .* waited; the last it did: step \d+, [a-z ]+, \d+\.\d s ago")

    def test_every_rank_of_a_sharded_model_ends_soon_without_mpirun(self):
        """mpirun ends none of them here. Of ranks in shards of two, the one diagonal to the lost rank is in no
        group with it, and waits for ranks that end because of it."""
        run = self.folder / "run"
        arguments = tutti_run.settings(**FOREVER, sharding__strategy="hybrid", sharding__shard_size=2)
        running = tutti_run.Running([tutti_run.MPIRUN, "--enable-recovery", "-np", "4", tutti_run.TUTTI, "train",
                                     str(DIGITS), "--run-dir", str(run), *arguments])
        metrics = run / "metrics.jsonl"
        running.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 50, "a step")
        running.signal_ranks(signal.SIGKILL, [3])
        finished = running.wait()
        self.assertEqual(len(finished.errors()), 1, finished.text)
        self.assertRegex(finished.errors()[0], r"^error: rank [0-2]: rank 3 is gone: its process ended while ")
        for rank in (0, 1, 2):  # a late one may find another gone, which ended because of rank 3
            self.assertRegex(log(run, rank), r"rank [0-3] is gone[^\n]*\n(.*\n)*.*the last that was done:")

    def test_alone_its_exit_status_is_that_of_the_signal(self):
        for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT):
            with self.subTest(number.name):
                self.assertEqual(self.crash(number, ranks=1).code, -number)

    def test_by_what_else_ends_a_process(self):
        for number in (signal.SIGQUIT, signal.SIGALRM):
            with self.subTest(number.name):
                self.assertEqual(self.crash(number, ranks=1).code, -number)

    def test_each_rank_of_one_process(self):
        run = self.folder / "run"
        running = start(run, "--local-ranks", 2, ranks=1, **FOREVER)
        metrics = run / "metrics.jsonl"
        running.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 50, "a step")
        running.process.send_signal(signal.SIGSEGV)
        self.assertEqual(running.wait().code, -signal.SIGSEGV)
        for rank in (0, 1):
            self.assertRegex(log(run, rank), f"(?s)rank {rank} is ended by signal 11 .*{LAST}")

    def test_a_data_file_that_is_cut_short_is_reported_once_for_all_ranks(self):
        run, data = self.folder / "run", self.folder / "digits.h5"
        shutil.copy(tutti_run.EXAMPLES / "data" / "digits.h5", data)
        running = start(run, ranks=3, data__train__path=data, **FOREVER)
        metrics = run / "metrics.jsonl"
        running.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 50, "a step")
        os.truncate(data, 5000)
        finished = running.wait()
        self.assertEqual(finished.code, 1, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)
        self.assertRegex(finished.errors()[0], rf"^error: rank \d: {data}: it was cut short while it was read$")

    def test_an_error_that_all_ranks_meet_is_reported_once_with_its_step(self):
        recipe = self.folder / "recipe.toml"
        recipe.write_text(DIGITS.read_text() + '[[callbacks]]\nkind = "nan_monitor"\n')
        values = {"optimizer__lr": 1e30, "data__train__path": EXAMPLES / "data/digits.h5",
                  "data__eval__path": EXAMPLES / "data/digits.h5"}
        what = "step 2, Compute: NaNMonitor: the training loss of step 2 is not a number$"
        together = start(self.folder / "run", recipe=recipe, ranks=3, **values)
        in_one = start(self.folder / "local", "--local-ranks", 3, recipe=recipe, ranks=1, **values)
        told = start(self.folder / "json", "--json", recipe=recipe, ranks=2, **values)
        for running, error in {together: rf"^error: rank \d: {what}", in_one: f"^error: {what}"}.items():
            finished = running.wait()
            self.assertEqual(finished.code, 1, finished.text)
            self.assertEqual(len(finished.errors()), 1, finished.text)
            self.assertRegex(finished.errors()[0], error)
        [result] = re.findall(r"^{.*}$", told.wait().text, re.M)
        self.assertEqual(result + "\n", (self.folder / "json" / "result.json").read_text())
        self.assertEqual(json.loads(result)["ended"], "error")


if __name__ == "__main__":
    tutti_run.main()
