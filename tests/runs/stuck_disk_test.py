"""A disk that stalls under a log, or never answers again: the training goes on without it, says so, and ends
as it should."""
import os
import re

import tutti_run
from tutti_run import BUILD, DIGITS, MPIRUN, TUTTI, Running, settings, train, tutti

FOREVER = 1_000_000
LONG = {"train__max_duration": "100000ep", "train__eval_interval": "10ep", "checkpoint__interval": "0ba"}
SHORT = {"train__max_duration": "40ep", "checkpoint__interval": "200ba"}


class StuckDisk(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"

    def start(self, file, seconds, at=1, ranks=1, recipe=DIGITS, until=None, **values):
        """Where the `at`-th write to a file of this name takes so long; with "3+" the third and all later.
        Or until a file `until` is there."""
        struck = ["env", f"LD_PRELOAD={BUILD / 'tests' / 'libstuck_disk.so'}", f"TUTTI_STUCK_FILE=/{file}",
                  f"TUTTI_STUCK_AT={at}", f"TUTTI_STUCK_S={seconds}"]
        struck += [f"TUTTI_STUCK_UNTIL={until}"] if until else []
        launcher = [MPIRUN, "-np", str(ranks)] if ranks > 1 else []
        command = [TUTTI, "train", recipe, "--run-dir", self.run_folder, *settings(**values)]
        return Running([*launcher, *struck, *map(str, command)])

    def recipe(self, sections):
        path = self.folder / "recipe.toml"
        path.write_text(DIGITS.read_text().replace('path = "', f'path = "{DIGITS.parent}/') + sections)
        return path

    def steps(self):
        """Of the whole lines that metrics.jsonl has so far."""
        path = self.run_folder / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [int(found[1]) for line in lines if line.endswith("\n")
                if (found := re.match(r'{"step": (\d+), .*"loss": ', line))]

    def gaps(self):
        steps = self.steps()
        return [(one, two) for one, two in zip(steps, steps[1:]) if two != one + 1]

    def test_a_stalled_disk_loses_lines_and_no_time(self):
        """Were the training to wait for the disk, no line would be lost."""
        back = self.folder / "back"
        running = self.start("metrics.jsonl", FOREVER, at=20, ranks=2, until=back, **LONG)
        told = "metrics.jsonl does not keep up; records are lost"
        running.wait_for(lambda: told in running.text(), "the stall")
        back.touch()
        running.wait_for(lambda: self.gaps(), "a line after the stall")
        self.assertEqual(tutti("stop", self.run_folder).wait().code, 0)
        finished = running.wait()
        self.assertEqual(finished.code, 0, finished.text)
        steps = self.steps()
        self.assertEqual(steps, sorted(set(steps)))
        [gap] = self.gaps()
        lost = int(re.search(r"metrics.jsonl lost (\d+) records", finished.text)[1])
        self.assertGreaterEqual(lost, gap[1] - gap[0] - 1)
        self.assertEqual(finished.text.count("records are lost"), 1)
        replayed = tutti("replay", self.run_folder).wait()
        self.assertRegex(replayed.text, r"^replayed 2 ranks, \d+ messages; [1-9]\d+ digests, all equal")

    def test_a_disk_stalled_for_a_moment_loses_nothing(self):
        finished = self.start("metrics.jsonl", seconds=0.8, at=20, **SHORT).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertEqual(self.steps(), list(range(1, 601)))
        self.assertNotIn("metrics.jsonl", tutti_run.log(self.run_folder))

    def assert_ended_without(self, finished, *names):
        self.assertEqual(finished.code, 0, finished.text)
        self.assertLess(finished.took_s, 90)
        hang = f"{', '.join(names)} hangs or is slow: the run ends without it"
        self.assertIn(hang, finished.text)
        self.assertIn(hang, tutti_run.log(self.run_folder))
        for name in names:
            self.assertIn(f"does not wait for {name}, which is slow to write", finished.text)
        self.assertEqual(os.readlink(self.run_folder / "checkpoints" / "latest"), "ep40-ba600")

    def test_a_logger_that_hangs_is_named_at_the_end(self):
        recipe = self.recipe('\n[[loggers]]\nkind = "csv"\n')
        finished = self.start("metrics-rank0.csv", FOREVER, recipe=recipe, **SHORT).wait()
        self.assert_ended_without(finished, "logger CsvLogger")
        self.assertEqual(self.steps(), list(range(1, 601)))
        self.assertIn("steps ", finished.text)

    def test_a_logger_that_is_slow_is_abandoned(self):
        """Writing what waits for it takes it longer than the other rank waits at the end."""
        recipe = self.recipe('\n[[loggers]]\nkind = "csv"\n'
                             '[[callbacks]]\nkind = "optimizer_monitor"\nbatch_log_interval = 1\n')
        finished = self.start("metrics-rank0.csv", seconds=7, at="1+", ranks=2, recipe=recipe,
                              train__hang_timeout="3sec", **SHORT).wait()
        self.assert_ended_without(finished, "logger CsvLogger")
        self.assertEqual(self.steps(), list(range(1, 601)))
        replayed = tutti("replay", self.run_folder).wait()
        self.assertRegex(replayed.text, r"^replayed 2 ranks, \d+ messages; [1-9]\d+ digests, all equal")

    def test_metrics_that_hang_are_named_at_the_end(self):
        finished = self.start("metrics.jsonl", FOREVER, at=5, ranks=2, **SHORT).wait()
        self.assert_ended_without(finished, "metrics.jsonl")
        self.assertLess(len(self.steps()), 600)
        replayed = tutti("replay", self.run_folder).wait()
        self.assertRegex(replayed.text, r"^replayed 2 ranks, \d+ messages; [1-9]\d+ digests, all equal")
        self.assertNotIn("the record of rank", replayed.text)
        train(self.run_folder, "--resume", "auto", **{**SHORT, "train__max_duration": "41ep"})
        self.assertEqual(self.steps()[-15:], list(range(601, 616)))


if __name__ == "__main__":
    tutti_run.main()
