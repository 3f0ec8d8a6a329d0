"""`tutti sweep` and `tutti lr-find`: trials, kills, halving, and what the user is told."""
import contextlib
import json
import os
import re
import signal
import time

import tutti_run
from tutti_run import children, tutti

RECIPE = """
seed = 1
[model]
kind = "mlp"
hidden = [4]
[data.train]
kind = "synthetic"
samples = 48
batch_size = 12
shape = [6]
[data.eval]
kind = "synthetic"
samples = 24
batch_size = 24
shape = [6]
[optimizer]
kind = "sgd"
lr = 0.1
[scheduler]
kind = "cosine_annealing"
[train]
max_duration = "8ep"
eval_interval = "1ep"
[journal]
level = "off"
"""
KILL_AFTER = (1, 4)  # trials that are done


class Sweeps(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(RECIPE)
        self.sweep = self.folder / "sweep"

    def start(self, *arguments):
        return tutti("sweep", self.recipe, "--run-dir", self.sweep, *arguments)

    def results(self):
        """Of all trials that have ended. A trial that continues removes its result, perhaps between list and read."""
        results = {}
        for path in self.sweep.glob("*/result.json"):
            with contextlib.suppress(FileNotFoundError):
                results[path.parent.name] = json.loads(path.read_text())
        return results

    def finished(self):
        return [name for name, result in self.results().items() if result["ended"] == "max_duration"]

    def written(self, name):
        return (self.sweep / name / "result.json").stat().st_mtime_ns

    def kill(self, running, trials_too):
        """Kills the sweep's process group; its trials, in groups of their own, hear of it, or are killed as well."""
        trials = children(running.process.pid)
        os.killpg(running.process.pid, signal.SIGKILL)
        for trial in trials:
            if trials_too:
                tutti_run.send_signal(trial, signal.SIGKILL)
            until = time.monotonic() + 20
            while tutti_run.is_alive(trial):
                self.assertLess(time.monotonic(), until, "a trial outlives its sweep")
                time.sleep(0.01)
        running.kill()

    def test_a_sweep_that_is_killed_twice_trains_every_trial_once(self):
        grid = ("--grid", "lr=0.1,0.2,0.3,0.4", "--grid", "model.hidden=[4],[5],[6]", "--jobs", "2",
                "--set", "checkpoint.interval=1ba")
        written = {}  # when each finished trial wrote its result
        for kill_after in KILL_AFTER:
            running = self.start(*grid)
            running.wait_for(lambda: len(self.finished()) >= kill_after, "a finished trial")
            self.kill(running, trials_too=kill_after == KILL_AFTER[-1])
            written.update({name: self.written(name) for name in self.finished() if name not in written})
        self.assertLess(len(written), 12, "killed too late")
        finished = self.start(*grid).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertEqual(written, {name: self.written(name) for name in written})
        # A trial that was killed behind its last step may lack its result.
        for name in [path.parent.name for path in self.sweep.glob("*/metrics.jsonl")]:
            steps = [line["step"] for line in tutti_run.metrics(self.sweep / name) if "lr" in line]
            self.assertEqual(steps, list(range(1, 33)), name)
        self.assertEqual(len(re.findall(r"(?m)^lr=0\.\d,hidden=\d +ended +epoch 8/8 ", finished.text)), 12, finished.text)
        self.assertRegex(finished.text, r"\nthe best: tutti train \S*recipe.toml --set checkpoint.interval=1ba "
                                        r"--set optimizer.lr=0.\d --set 'model.hidden=\[\d\]'\n$")
        again = self.start(*grid).wait()
        self.assertEqual(again.code, 0, again.text)
        self.assertNotRegex(again.text, ": (starts|continues)\n")

    def test_a_sweep_that_is_stopped_or_killed_stops_its_trials(self):
        lines = lambda: len(tutti_run.metrics(self.sweep / "lr=0.1")) if (self.sweep / "lr=0.1" / "metrics.jsonl").exists() else 0
        running = self.start("--grid", "lr=0.1", "--set", "train.max_duration=1000000ep")
        running.wait_for(lambda: lines() > 9, "steps")
        running.process.send_signal(signal.SIGTERM)
        stopped = running.wait()
        self.assertEqual(stopped.code, 0, stopped.text)
        self.assertTrue(stopped.text.endswith(f"\ncontinue with: tutti sweep {self.sweep}\n"), stopped.text)
        self.assertEqual(self.results()["lr=0.1"]["ended"], "request")
        before = self.results()["lr=0.1"]["steps"]
        running = tutti("sweep", self.sweep)
        running.wait_for(lambda: lines() > before + 9, "more steps")
        self.kill(running, trials_too=False)
        self.assertEqual(self.results()["lr=0.1"]["ended"], "request")

    def test_a_halved_sweep_spends_less_than_half_and_keeps_the_schedule(self):
        rarely = ("--set", "train.eval_interval=3ep")  # rungs are after two and four epochs
        finished = self.start("--grid", "lr=0.05,0.2,0.4,0.7", "--halving", *rarely).wait()
        self.assertEqual(finished.code, 0, finished.text)
        results = self.results()
        steps = sorted(result["steps"] for result in results.values())
        self.assertEqual(steps, [8, 8, 16, 32], finished.text)
        spent = sum(len([line for line in tutti_run.metrics(self.sweep / name) if "lr" in line]) for name in results)
        self.assertEqual(spent, sum(steps), "no step is trained twice")
        self.assertLessEqual(spent, 0.5 * 4 * 32)
        best = max(results, key=lambda name: results[name]["steps"])
        self.assertEqual(results[best]["ended"], "max_duration")
        whole = self.folder / "whole"
        tutti_run.train(whole, "--set", "optimizer." + best, *rarely, recipe=self.recipe, ranks=1)
        halved = [line for line in tutti_run.what_was_learnt(self.sweep / best)["lines"] if "lr" in line]
        self.assertEqual(halved, [line for line in tutti_run.what_was_learnt(whole)["lines"] if "lr" in line])
        self.assertEqual(tutti_run.digest(self.sweep / best), tutti_run.digest(whole))
        rung = {name: [line for line in tutti_run.metrics(self.sweep / name) if line["step"] == 8
                       and "metrics/eval/MulticlassAccuracy" in line] for name in results}
        ranked = sorted(results, key=lambda name: -rung[name][0]["metrics/eval/MulticlassAccuracy"])
        cut = rung[ranked[1]][0]["metrics/eval/MulticlassAccuracy"]
        for name in results:
            if results[name]["steps"] > 8:
                self.assertGreaterEqual(rung[name][0]["metrics/eval/MulticlassAccuracy"], cut)

    def test_a_failed_trial_is_a_row_and_the_others_go_on(self):
        nan = ("--set", "callbacks=[{kind=\"nan_monitor\"}]", "--set", "train.max_duration=1ep")
        finished = self.start("--grid", "lr=1e30,0.1", *nan).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertRegex(finished.text, r"\nlr=1e30 +failed .*NaNMonitor")
        self.assertRegex(finished.text, r"\nlr=0.1 +ended ")
        self.assertIn("the best: ", finished.text)
        all_failed = tutti("sweep", self.recipe, "--run-dir", self.folder / "bad", "--grid", "lr=1e30", *nan).wait()
        self.assertEqual(all_failed.code, 1, all_failed.text)

    def test_diverged_and_damaged_trials_are_not_the_best(self):
        short = ("--set", "train.max_duration=1ep")
        finished = self.start("--grid", "lr=1e10,1e-7", *short).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertRegex(finished.text, r"\nlr=1e10 +failed .*loss is not finite")
        self.assertRegex(finished.text, r"the best: .*lr=1e-7")
        self.assertRegex(tutti("ls", self.sweep).wait().text, r"\nlr=1e10 +failed ")
        page = tutti("report", self.sweep).wait()
        self.assertEqual(page.code, 0, page.text)
        (self.sweep / "report.html").unlink()
        self.assertIn("is the folder of a sweep", tutti("status", self.sweep).wait().text)
        self.assertIn("is the folder of a sweep", tutti("train", self.recipe, "--run-dir", self.sweep).wait().text)
        (self.sweep / "lr=1e-7/recipe.toml").write_text("")
        again = self.start("--grid", "lr=1e10,1e-7", *short).wait()
        self.assertIn("lr=1e-7: continues", again.text)
        self.assertRegex(again.text, r"the best: .*lr=1e-7")

    def test_the_best_of_a_halved_sweep_has_trained_to_the_end(self):
        finished = self.start("--grid", "lr=0.05,0.2,0.4,0.7", "--halving").wait()
        best = re.search(r"the best: .*optimizer\.(lr=\S+)", finished.text).group(1)
        self.assertEqual(self.results()[best]["ended"], "max_duration", finished.text)

    def test_mistakes_are_one_error_before_anything_starts(self):
        for arguments, told in (
                (("--grid", "lr=0.1,fast"), r'optimizer\.lr = "fast": expected a number'),
                (("--grid", "learning=0.1"), "learning"),
                (("--random", "lr=0.1..0.2"), "--random: expected -n N"),
                (("--random", "lr=log:0..1", "-n", "2"), "more than 0 for log:"),
                (("--random", "lr=2..1", "-n", "2"), "a smaller number before"),
                (("--grid", "lr"), "expected KEY=A,B,C"),
                (("--grid", "kind=mlp"), "kind may be "),
                ((), "expected what to vary"),
                (("--grid", "lr=1", "--set", "checkpoint.save_folder=x"), "the trials of a sweep would share it")):
            finished = self.start(*arguments).wait()
            self.assertEqual(finished.code, 2, finished.text)
            self.assertRegex(finished.text, told)
            self.assertFalse(self.sweep.exists())

    def test_another_sweep_in_the_folder_is_refused_with_the_difference(self):
        short = ("--set", "train.max_duration=1ba")
        self.assertEqual(self.start("--grid", "lr=0.1,0.2", *short).wait().code, 0)
        for arguments, told in (
                (("--grid", "lr=0.1,0.3", *short), "begun with --grid optimizer.lr=0.1,0.2, and this is with "
                                                   "optimizer.lr=0.1,0.3"),
                (("--grid", "lr=0.1,0.2", "--set", "train.max_duration=2ba"), "begun with --set ")):
            finished = self.start(*arguments).wait()
            self.assertEqual(finished.code, 2, finished.text)
            self.assertIn(told, finished.text)
        self.assertEqual(tutti("sweep", self.sweep).wait().code, 0)
        self.assertEqual(tutti("sweep", self.sweep, "--grid", "lr=1").wait().code, 2)
        self.recipe.write_text(RECIPE.replace("hidden = [4]", "hidden = [7]"))
        finished = tutti("sweep", self.sweep).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertIn("model.hidden ([4] against [7])", finished.text)

    def test_draws_are_those_of_the_seed(self):
        drawn = ("--random", "lr=log:1e-3..1e-1", "--random", "batch_size=int:6..12", "-n", "3",
                 "--set", "train.max_duration=1ba")
        self.assertEqual(self.start(*drawn).wait().code, 0)
        names = sorted(self.results())
        self.assertEqual(len(names), 3)
        for name in names:
            lr, batch = re.fullmatch(r"lr=([\d.e-]+),batch_size=(\d+)", name).groups()
            self.assertTrue(1e-3 <= float(lr) <= 1e-1 and 6 <= int(batch) <= 12, name)
        other = self.folder / "other"
        tutti("sweep", self.recipe, "--run-dir", other, *drawn, "--seed", "1").wait()
        self.assertNotEqual(sorted(path.parent.name for path in other.glob("*/result.json")), names)

    def test_a_learning_rate_is_found_and_no_checkpoint_is_left(self):
        run = self.folder / "range"
        finished = tutti("lr-find", tutti_run.DIGITS, "--run-dir", run, "--first", "1e-4", "--last", "1000").wait()
        self.assertEqual(finished.code, 0, finished.text)
        rates = [line["lr"] for line in tutti_run.metrics(run) if "lr" in line]
        self.assertAlmostEqual(rates[0], 1e-4)
        for before, after in zip(rates, rates[1:]):
            self.assertAlmostEqual(after / before, 1e7 ** (1 / 99), places=6)
        self.assertIn("suggestions\n  steepest descent ", finished.text)
        self.assertRegex(finished.text, r"\n +[\d.]+ \| *\*")
        self.assertFalse((run / "checkpoints").exists())
        (run / "checkpoints").mkdir()  # as a killed one leaves it
        again = tutti("lr-find", tutti_run.DIGITS, "--run-dir", run, "--steps", "10").wait()
        self.assertEqual(again.code, 0, again.text)
        (run / "lr-find").unlink()
        refused = tutti("lr-find", tutti_run.DIGITS, "--run-dir", run).wait()
        self.assertEqual(refused.code, 2, refused.text)
        self.assertIn("there is a run in it", refused.text)


if __name__ == "__main__":
    tutti_run.main()
