"""A run that is asked to stop, in whatever way, finishes its step, writes a checkpoint and exits with 0;
resumed, it learns the same bits as one that never stopped."""
import os
import pathlib
import pty
import signal
import subprocess
import time

import tutti_run
from tutti_run import children, log, start, train, tutti

FOREVER = {"train__max_duration": "100000ep", "train__eval_interval": "7ep", "checkpoint__interval": "30ep"}
EPOCHS = 40
STEPS = 15 * EPOCHS


def ends_after(step):
    """The next multiple of 40 epochs: so runs that are stopped in time are compared with one and the same."""
    return {**FOREVER, "train__max_duration": f"{(step // STEPS + 1) * EPOCHS}ep"}


class Stops(tutti_run.RunTest):
    def stop(self, ask, *arguments, ranks=2):
        """Starts a run, asks it to stop, resumes it, and compares it with one that was not asked."""
        stopped = self.folder / "stopped"
        running = start(stopped, *arguments, ranks=ranks, **FOREVER)
        running.wait_for(lambda: steps(stopped) > 20, "a step")
        ask(running, stopped)
        finished = running.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertEqual(finished.errors(), [])
        self.assertIn("asked to stop", log(stopped, 0) + log(stopped, 1))
        stopped_at = tutti_run.metrics(stopped)[-1]["step"]
        self.assertRegex((stopped / "checkpoints" / "latest").readlink().name, f"-ba{stopped_at}$")
        self.assert_resumes(stopped, stopped_at, *arguments, ranks=ranks)

    def assert_resumes(self, stopped, step, *arguments, ranks):
        options = {"ranks": ranks, **ends_after(step)}
        resumed = train(stopped, "--resume", "auto", *arguments, **options)
        self.assertIn(f"resumes after step {step},", resumed.text)
        self.assert_learnt_the_same(tutti_run.trained(*arguments, **options), stopped)

    def test_sigterm_to_all_ranks(self):
        self.stop(lambda running, _: running.signal_ranks(signal.SIGTERM))

    def test_sigterm_to_one_rank(self):
        self.stop(lambda running, _: running.signal_ranks(signal.SIGTERM, [1]))

    def test_sigint_to_all_ranks(self):
        self.stop(lambda running, _: running.signal_ranks(signal.SIGINT))

    def test_sigterm_to_a_run_of_one_process(self):
        self.stop(lambda running, _: running.process.send_signal(signal.SIGTERM), ranks=1)

    def test_sigterm_to_two_ranks_in_one_process(self):
        self.stop(lambda running, _: running.process.send_signal(signal.SIGTERM), "--local-ranks", 2, ranks=1)

    def test_sighup_to_all_ranks(self):
        self.stop(lambda running, _: running.signal_ranks(signal.SIGHUP))

    def test_warnings_of_batch_systems(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
            with self.subTest(number.name):
                run = self.folder / number.name
                running = start(run, ranks=1, **{**FOREVER, "checkpoint__interval": "0ep"})
                running.wait_for(lambda: steps(run) > 20, "a step")
                running.process.send_signal(number)
                self.assert_saved(run, running.wait().code)

    def test_a_terminal_that_is_closed(self):
        """The kernel sends SIGHUP, and there is nothing more to print to."""
        run = self.folder / "run"
        words = [tutti_run.TUTTI, "train", str(tutti_run.DIGITS), "--run-dir", str(run),
                 *tutti_run.settings(**{**FOREVER, "checkpoint__interval": "0ep"})]
        process, terminal = pty.fork()
        if process == 0:
            os.execv(words[0], words)
        while steps(run) < 20:
            os.read(terminal, 1 << 16)
        os.close(terminal)
        self.assert_saved(run, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

    def test_nohup(self):
        run = self.folder / "run"
        running = tutti_run.Running(["nohup", tutti_run.TUTTI, "train", str(tutti_run.DIGITS), "--run-dir", str(run),
                                     *tutti_run.settings(train__max_duration="60ep")])
        running.wait_for(lambda: steps(run) > 20, "a step")
        running.process.send_signal(signal.SIGHUP)
        self.assertEqual(running.wait().code, 0)
        self.assertEqual(tutti_run.metrics(run)[-1]["epoch"], 60)

    def assert_saved(self, run, code):
        self.assertEqual(code, 0)
        last = tutti_run.metrics(run)[-1]["step"]
        self.assertRegex((run / "checkpoints" / "latest").readlink().name, f"-ba{last}$")

    def test_a_run_without_checkpoints_saves_where_it_stops(self):
        run = self.folder / "run"
        running = start(run, **{**FOREVER, "checkpoint__interval": "0ep"})
        running.wait_for(lambda: steps(run) > 20, "a step")
        running.signal_ranks(signal.SIGTERM)
        self.assert_saved(run, running.wait().code)

    def test_sigint_to_mpirun(self):
        """Which gives its ranks two seconds (Open MPI 5: half a second), and says that it was interrupted."""
        run = self.folder / "run"
        running = start(run, **FOREVER)
        running.wait_for(lambda: steps(run) > 20, "a step")
        running.process.send_signal(signal.SIGINT)
        finished = running.wait()
        self.assertEqual(finished.code, 1, finished.text)
        if "Open MPI) 4" in subprocess.run([tutti_run.MPIRUN, "--version"], capture_output=True, text=True).stdout:
            self.assertIn("writes a checkpoint and ends; after a Ctrl-C mpirun kills", finished.text)
        options = {"ranks": 2, **ends_after(tutti_run.metrics(run)[-1]["step"])}
        train(run, "--resume", "auto", **options)
        self.assert_learnt_the_same(tutti_run.trained(**options), run)

    def test_sigint_to_tutti_run(self):
        """Which gives its ranks all the time that they need. Ctrl-Z stops them too, until they are continued."""
        run = self.folder / "run"
        words = ["run", "-np", 2, "train", tutti_run.DIGITS, "--run-dir", run, *tutti_run.settings(**FOREVER)]
        running = tutti(*words)
        running.wait_for(lambda: steps(run) > 20, "a step")
        state = lambda pid: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[0]
        started = [rank for child in children(running.process.pid) for rank in children(child)]
        everyone = lambda: [state(pid) for pid in (running.process.pid, *started)]
        running.process.send_signal(signal.SIGTSTP)
        running.wait_for(lambda: everyone() == ["T"] * 3, "the stop of all")
        running.process.send_signal(signal.SIGCONT)
        running.wait_for(lambda: "T" not in everyone(), "their continuing")
        running.process.send_signal(signal.SIGINT)
        finished = running.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertIn("; Ctrl-C twice ends it at once, without that checkpoint", finished.text)
        self.assert_resumes(run, tutti_run.metrics(run)[-1]["step"], ranks=2)

    def test_a_stop_of_tutti_run_before_its_ranks_listen(self):
        for delay_s in (0.0, 0.2):
            running = tutti("run", "-np", 2, "train", tutti_run.DIGITS, "--run-dir", self.folder / str(delay_s),
                            *tutti_run.settings(**FOREVER))
            running.wait_for(lambda: children(running.process.pid), "mpirun")
            time.sleep(delay_s)
            running.process.send_signal(signal.SIGTERM)
            self.assertIn(running.wait().code, (0, 1))

    def test_sigint_twice(self):
        """The first says what the second does. A run whose disk is slow still saves when the second comes."""
        once = start(self.folder / "once", ranks=1, **FOREVER)
        once.wait_for(lambda: steps(self.folder / "once") > 20, "a step")
        once.process.send_signal(signal.SIGINT)
        finished = once.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertIn("; Ctrl-C twice ends it at once, without that checkpoint", finished.text)
        twice = start(self.folder / "twice", ranks=1, recipe=self.long_steps(), train__eval_interval="0ba")
        twice.wait_for(lambda: "epoch 1" in twice.text(), "a step")
        twice.process.send_signal(signal.SIGINT)
        twice.wait_for(lambda: "asked to stop" in twice.text(), "its word")
        twice.process.send_signal(signal.SIGINT)
        finished = twice.wait()
        self.assertEqual(finished.code, 1, finished.text)
        self.assertTrue(finished.errors())
        for error in finished.errors():  # the second where a busy machine does not end the step in time
            self.assertRegex(error, "^error: ((rank 0: )?interrupted twice|rank 0: ends by force: an actor does not return)$")

    def long_steps(self):
        """Of a second or so each."""
        recipe = self.folder / "long.toml"
        recipe.write_text('''
[model]
kind = "mlp"
hidden = [4096, 4096, 4096]
[data.train]
kind = "synthetic"
samples = 100000
shape = [4096]
classes = 10
batch_size = 512
[optimizer]
kind = "sgd"
lr = 0.1
[train]
max_duration = "1000ba"
''')
        return recipe

    def test_a_reader_of_the_progress_that_leaves_does_not_end_the_run(self):
        for ranks in (1, 2):
            run = self.folder / str(ranks)
            words = [tutti_run.TUTTI, *(["run", "-np", "2"] if ranks == 2 else []), "train", str(tutti_run.DIGITS),
                     "--run-dir", str(run), *tutti_run.settings(train__max_duration="20ep")]
            finished = tutti_run.Running(["bash", "-o", "pipefail", "-c", '"$@" | head -n 1', "-", *words]).wait()
            self.assertEqual(finished.code, 0, finished.text)
            self.assertEqual(len(finished.text.splitlines()), 1)
            self.assertEqual(tutti_run.metrics(run)[-1]["epoch"], 20)

    def test_tutti_stop(self):
        def ask(_, run):
            self.assertEqual(tutti("stop", run).wait().code, 0)
        self.stop(ask)

    def test_tutti_stop_of_what_is_no_run_is_refused(self):
        finished = tutti("stop", self.folder).wait()
        self.assertEqual(finished.code, 2)
        self.assertEqual(len(finished.errors()), 1)

    def test_tutti_stop_of_a_run_that_is_over_is_refused(self):
        run = self.folder / "run"
        tutti_run.copy_trained(run, train__max_duration="2ep")
        finished = tutti("stop", run).wait()
        self.assertEqual(finished.code, 2)
        self.assertEqual(finished.errors(), [f"error: {run}: no run is under way"])

    def test_an_order_to_stop_does_not_outlast_its_run(self):
        run = self.folder / "run"
        tutti_run.copy_trained(run, train__max_duration="2ep")
        (run / "stop").touch()
        train(run, "--resume", "auto", train__max_duration="4ep")
        self.assertEqual(tutti_run.metrics(run)[-1]["step"], 60)


def steps(run):
    path = run / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


if __name__ == "__main__":
    tutti_run.main()
