"""What a run leaves in its folder, and what can be done with it."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import unittest.mock

import tutti_run
from tutti_run import DIGITS, EXAMPLES, MPIRUN, TUTTI, Running, metrics, start, train, tutti

SHORT = {"train__max_duration": "2ep", "checkpoint__interval": "1ep"}
SHORT_IN_HALVES = {**SHORT, "train__grad_accum": 2}
STEPS_AN_EPOCH = 15  # 1,437 samples in batches of 96, the last one of 93


class RunFolder(tutti_run.RunTest):
    @classmethod
    def setUpClass(cls):
        cls.run_dir = tutti_run.trained(**SHORT_IN_HALVES)

    def steps(self, run=None):
        return [line for line in metrics(run or self.run_dir) if "loss" in line]

    def evaluations(self, run=None):
        return [line for line in metrics(run or self.run_dir) if "loss" not in line]

    def said(self, *arguments, ranks=1):
        finished = tutti(*arguments, ranks=ranks).wait()
        self.assertEqual(finished.code, 0, finished.text)
        return finished.text

    def test_a_run_folder_has_the_documented_files(self):
        checkpoints = self.run_dir / "checkpoints"
        self.assertEqual(names(self.run_dir), {"recipe.toml", "metrics.jsonl", "result.json", "log", "journal", "checkpoints",
                                               ".lock"})
        self.assertEqual(names(self.run_dir / "log"), {"rank-0.log", "rank-1.log"})
        self.assertEqual(names(checkpoints), {"ep1-ba15", "ep2-ba30", "latest", ".lock"})
        self.assertEqual((checkpoints / "latest").readlink().name, "ep2-ba30")
        self.assertEqual(names(checkpoints / "latest"),
                         {"manifest.json", "checkpoint.h5", "rank-0.h5", "rank-1.h5"})

    def test_a_run_that_resumes_from_a_finished_one_elsewhere_has_a_checkpoint_too(self):
        run = self.folder / "run"
        train(run, "--resume", self.run_dir, **SHORT)
        self.assertEqual((run / "checkpoints" / "latest").readlink().name, "ep2-ba30")
        self.assertEqual(tutti_run.digest(run), tutti_run.digest(self.run_dir))

    def test_its_own_checkpoint_is_known_however_its_path_is_written(self):
        checkpoint = self.folder / "run" / "checkpoints" / "ep1-ba15"
        for resume in ([], ["--resume", f"{checkpoint}/"]):
            command = ["train", DIGITS, "--run-dir", "run", *resume, *tutti_run.settings(**SHORT)]
            self.assertEqual(tutti(*command, folder=self.folder).wait().code, 0)
        self.assertEqual([line["step"] for line in self.steps(self.folder / "run")], list(range(1, 31)))

    def test_output_is_dropped_where_the_streams_are_closed(self):
        run = self.folder / "run"
        command = [tutti_run.TUTTI, "train", DIGITS, "--run-dir", run, *tutti_run.settings(**SHORT)]
        closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *map(str, command)]
        self.assertEqual(tutti_run.Running(closed).wait().code, 0)
        files = [path for path in run.rglob("*") if path.is_file()]
        self.assertEqual([path for path in files if b"epoch 1/" in path.read_bytes()], [])

    def test_checkpoints_may_lie_in_the_run_folder_itself(self):
        run = self.folder / "run"
        for folder in (run, f"{run}/../run/"):
            train(run, "--resume", "auto", ranks=1, checkpoint__save_folder=folder, **SHORT)
            self.assertEqual((run / "latest").readlink().name, "ep2-ba30")

    def test_a_copy_that_followed_links_resumes(self):
        run = self.folder / "copy"
        shutil.copytree(self.run_dir, run)  # `latest` is then a folder
        said = train(run, "--resume", "auto", train__max_duration="3ep").text
        self.assertIn("resumes after step 30", said)
        self.assertEqual((run / "checkpoints" / "latest").readlink().name, "ep3-ba45")

    def test_a_language_model_of_few_tokens_writes_no_text(self):
        """Numbers below 128 are then not characters."""
        run, tokens = self.folder / "run", self.folder / "tokens.bin"
        tokens.write_bytes(struct.pack("<4096H", *(i * i % 16 for i in range(4096))))
        recipe = (EXAMPLES / "text_gpt.toml").read_text().replace('kind = "bytes"', 'kind = "tokens"')
        recipe = recipe.replace('path = "data/king_james.txt"', f'path = "{tokens}"\nvocab_size = 16')
        (self.folder / "small.toml").write_text(recipe)
        finished = train(run, recipe=self.folder / "small.toml", ranks=1, train__max_duration="2ba",
                         **tutti_run.SMALL_GPT)
        self.assertNotIn("text", finished.text.replace("text_gpt", ""))
        self.assertEqual(self.steps(run)[-1]["step"], 2)

    def test_each_step_has_a_line(self):
        lines = self.steps()
        self.assertEqual([line["step"] for line in lines], list(range(1, 31)))
        self.assertEqual([line["epoch"] for line in lines], [1] * 15 + [2] * 15)
        keys = {"step", "epoch", "loss", "lr", "step_ms", "data_wait_ms", "data_read_ms", "data_disk_ms",
                "samples_per_s", "grad_accum", "memory_peak_mb",
                "metrics/train/MulticlassAccuracy"}
        self.assertEqual(set(lines[0]), keys | {"since_start_s"})
        for line in lines[1:]:
            self.assertEqual(set(line), keys)
            self.assertEqual((line["lr"], line["grad_accum"]), (0.1, 2))
            self.assertGreater(line["memory_peak_mb"], 0)

    def test_samples_are_those_of_all_ranks(self):
        for line in self.steps():
            samples = line["samples_per_s"] * line["step_ms"] / 1e3
            self.assertAlmostEqual(samples, 93 if line["step"] % STEPS_AN_EPOCH == 0 else 96, places=3)

    def test_losses_have_all_their_bits(self):
        text = (self.run_dir / "metrics.jsonl").read_text()
        losses = re.findall(r'"loss": ([^,]+),', text)
        self.assertEqual(len(losses), 30)
        for loss in losses:
            as_float = struct.unpack("f", struct.pack("f", float(loss)))[0]
            self.assertEqual(loss, f"{as_float:.9g}")
        self.assertGreater(max(len(loss.replace(".", "")) for loss in losses), 8)

    def test_evaluations_have_lines_of_their_own(self):
        lines = self.evaluations()
        self.assertEqual([(line["step"], line["epoch"]) for line in lines], [(15, 1), (30, 2)])
        for line in lines:
            self.assertEqual(set(line), {"step", "epoch", "metrics/eval/MulticlassAccuracy",
                                         "metrics/eval/CrossEntropy", "metrics/eval/loss"})
        accuracy = lines[-1]["metrics/eval/MulticlassAccuracy"]
        self.assertAlmostEqual(accuracy * 360, round(accuracy * 360), places=6)

    def test_eval_reproduces_the_last_evaluation(self):
        for checkpoint in ("checkpoints/latest", "checkpoints", "."):
            text = self.said("eval", self.run_dir / "recipe.toml", "--checkpoint", self.run_dir / checkpoint)
            values = dict(re.findall(r"^(metrics/\S+) (\S+)$", text, re.MULTILINE))
            for name, value in self.evaluations()[-1].items():
                if name.startswith("metrics/"):
                    self.assertAlmostEqual(float(values[name]), value, delta=2e-6)

    def test_its_recipe_runs_again_to_the_same_bits(self):
        again = self.folder / "again"
        train(again, recipe=self.run_dir / "recipe.toml")
        self.assert_learnt_the_same(self.run_dir, again)
        self.assertEqual((self.run_dir / "recipe.toml").read_text(), (again / "recipe.toml").read_text())

    def test_eval_needs_the_model_alone(self):
        text = self.said("eval", EXAMPLES / "digits.toml", "--checkpoint", self.run_dir,
                         *tutti_run.settings(optimizer='{kind="adamw"}'))
        self.assertIn("metrics/eval/MulticlassAccuracy ", text)

    def test_resuming_from_another_run_keeps_earlier_files(self):
        run = self.folder / "run"
        train(run, seed=3, **SHORT)
        train(run, "--resume", self.run_dir / "checkpoints" / "ep1-ba15", train__grad_accum=2, **SHORT)
        self.assertEqual(names(run / "checkpoints" / "earlier"), {"ep1-ba15", "ep2-ba30"})
        self.assertEqual(len((run / "metrics.earlier.jsonl").read_text().splitlines()), 32)
        self.assertEqual([line["step"] for line in self.steps(run)], list(range(16, 31)))
        self.assertEqual(tutti_run.digest(run), tutti_run.digest(self.run_dir))

    def test_check_shows_the_recipe_and_the_batches(self):
        text = self.said("check", self.run_dir / "recipe.toml", "--ranks", 2, "--all")
        self.assertTrue(text.startswith((self.run_dir / "recipe.toml").read_text()), text)
        self.assertIn("  batches  global batch 96 = 2 ranks x 48 = 2 x 2 microbatches of 24\n", text)
        self.assertIn("  epoch    15 steps over 1437 samples\n", text)
        launched = Running([MPIRUN, "-np", "2", TUTTI, "check", EXAMPLES / "digits.toml", "--steps", "0"]).wait()
        self.assertEqual(launched.text.count("ok: "), 1, launched.text)
        self.assertIn("  batches  global batch 96 = 2 ranks x 48\n", launched.text)
        self.assertIn("  model    mlp: 17,226 parameters\n", launched.text)
        text = self.said("check", EXAMPLES / "digits.toml", "--ranks", 3, "--data")
        self.assertTrue(text.startswith(f"ok: {EXAMPLES / 'digits.toml'}\n"), text)
        self.assertIn("  batches  global batch 96 = 3 ranks x 32\n", text)
        self.assertRegex(text, r"(?m)^  step     \d\S* ms, \d\S* MB at its peak, of each rank, ")
        self.assertRegex(text, r"(?m)^  all      about \d+\.\d s, without ")

    def test_json_is_one_object(self):
        run = self.folder / "json"
        finished = train(run, "--json", ranks=2, train__max_duration="1ep")
        told = json.loads(finished.text)
        self.assertEqual((told["ended"], told["steps"], told["epochs"]), ("max_duration", 15, 1))
        self.assertEqual(told["checkpoint"], str(run / "checkpoints" / "ep1-ba15"))
        self.assertEqual(told, json.loads((run / "result.json").read_text()))
        status = json.loads(self.said("status", run, "--json"))
        self.assertEqual((status["state"], status["step"], status["result"]), ("ended", 15, told))
        self.assertEqual([one["name"] for one in status["checkpoints"]], ["ep1-ba15"])

    def test_status_of_a_run_under_way_and_of_a_killed_one(self):
        run = self.folder / "runs" / "killed"
        running = start(run, ranks=1, train__max_duration="100000ep")
        running.wait_for(lambda: (run / "metrics.jsonl").exists(), "a step")
        self.assertIn(": running, on host ", self.said("status", run))
        running.kill()
        self.assertIn(": killed, ", self.said("status", run))
        self.assertRegex(self.said("ls", self.folder / "runs"), r"\nkilled  killed  epoch \d+/")

    def test_links_are_not_written_through(self):
        """In a folder that somebody else made."""
        run, victim = self.folder / "runs" / "run", self.folder / "victim"
        victim.write_text("untouched\n")
        tutti_run.copy_trained(run, **SHORT_IN_HALVES)

        def link(*links):
            for name in links:
                (run / name).unlink(missing_ok=True)
                (run / name).symlink_to(victim)

        def refused(*arguments, **options):
            finished = tutti(*arguments, **options).wait()
            self.assertNotEqual(finished.code, 0, finished.text)
            self.assertIn(" is a link", finished.text)
            self.assertEqual(len(finished.errors()), 1, finished.text)

        link("report.html", "timeline.json", "log/rank-0.log", "stop", ".reported", "result.json.unfinished")
        refused("timeline", run)
        resumed = train(run, "--resume", "auto", ranks=1, train__max_duration="3ep", train__grad_accum=2)
        self.assertIn(f"no log file: {run}/log/rank-0.log is a link", resumed.text)
        (run / "log" / "rank-0.log").unlink()
        refused("report", run)
        link(".lock")
        self.assertIn(f"{run}/.lock: is a link", self.said("ls", run.parent))
        for command in ("status", "report", "stop"):
            refused(command, run)
        refused("train", run / "recipe.toml", "--run-dir", run, "--resume", "auto")
        (run / ".lock").unlink()
        self.said("status", run)
        self.assertFalse((run / ".lock").exists())
        link("recipe.toml")
        refused("train", DIGITS, "--run-dir", run)
        self.assertEqual(victim.read_text(), "untouched\n")

    def ends_when(self, change, gone, ranks=2, **options):
        """A run after its first checkpoint, with one error that names the folder which is gone."""
        run = self.folder / "run"
        checkpoints = options.get("checkpoint__save_folder", run / "checkpoints")
        running = start(run, ranks=ranks, train__max_duration="100000ep", checkpoint__interval="1ep", **options)
        running.wait_for(lambda: (checkpoints / "latest").exists(), "a checkpoint")
        change()
        finished = running.wait()
        self.assertEqual(finished.code, 1, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)
        self.assertIn(f"{gone}: was moved, removed or emptied under way", finished.errors()[0])

    def test_a_folder_that_is_moved_under_way_ends_the_run(self):
        run, elsewhere = self.folder / "run", self.folder / "elsewhere"
        for ranks in (2, 1):
            self.ends_when(lambda: run.rename(elsewhere), run, ranks)
            # A checkpoint that began just then may have made its own folder again.
            self.assertEqual([path.name for path in run.glob("*")], ["checkpoints"] if run.exists() else [])
            shutil.rmtree(elsewhere)
            shutil.rmtree(run, ignore_errors=True)

    def test_a_folder_that_is_emptied_under_way_ends_the_run(self):
        run = self.folder / "run"
        self.ends_when(lambda: subprocess.run(["rm", "-rf", *run.iterdir()], check=False), run)
        shutil.rmtree(run, ignore_errors=True)
        self.ends_when(lambda: subprocess.run(f"rm -rf {run}/*", shell=True, check=False), run,
                       checkpoint__save_folder=self.folder / "saved")

    def test_a_save_folder_that_is_moved_or_removed_under_way_ends_the_run(self):
        saved, elsewhere = self.folder / "saved", self.folder / "elsewhere"
        self.ends_when(lambda: saved.rename(elsewhere), saved, checkpoint__save_folder=saved)
        self.assertFalse(saved.exists())

    def test_slurms_tasks_without_pmix_are_refused_and_the_first_says_so(self):
        with unittest.mock.patch.dict(os.environ, {"SLURM_NTASKS": "4"}):
            for task in ({}, {"SLURM_PROCID": "0"}, {"SLURM_PROCID": "3"}):
                with unittest.mock.patch.dict(os.environ, task):
                    finished = start(self.folder / "alone", ranks=1).wait()
                self.assertEqual(finished.code, 2, finished.text)
                if task == {"SLURM_PROCID": "3"}:
                    self.assertEqual(finished.text, "")
                else:
                    self.assertEqual(finished.text.count("`srun --mpi=pmix tutti train ...`"), 1)
            train(self.folder / "local", "--local-ranks", 1, ranks=1, train__max_duration="1ba")
            train(self.folder / "mpirun", ranks="1", train__max_duration="1ba")

    def test_inspect_shows_where_training_stood_and_every_tensor(self):
        text = self.said("inspect", self.run_dir)
        for words in ("run digits, seed 17, written by 2 ranks", "step 30, epoch 2 batch 0, 2874 samples",
                      "model/0.weight  float32  128 x 64", "model/4.bias  float32  10", "\n  timestamp  state\n",
                      "\n  dataset_state  state\n"):
            self.assertIn(words, text)

    def test_without_a_name_it_lies_in_runs(self):
        finished = tutti("train", EXAMPLES / "digits.toml", "--set", "train.max_duration=1ba",
                         "--set", "run_name=one", folder=self.folder).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertTrue((self.folder / "runs" / "one" / "checkpoints" / "latest" / "manifest.json").exists())

    def test_resuming_what_is_over_adds_nothing(self):
        run = self.folder / "run"
        tutti_run.copy_trained(run, **SHORT_IN_HALVES)
        before = tutti_run.what_was_learnt(run)
        finished = train(run, "--resume", "auto", **SHORT_IN_HALVES)
        self.assertIn("resumes after step 30, from ", finished.text)
        self.assertRegex(finished.text, r"\n  ended +nothing left to train: the checkpoint is at the end\n"
                                        r"  steps +30 \(2 epochs\)\n")
        self.assertEqual(tutti_run.what_was_learnt(run), before)

    def test_a_run_can_be_resumed_elsewhere_and_for_longer(self):
        other = self.folder / "other"
        finished = train(other, "--resume", self.run_dir, train__max_duration="3ep", train__grad_accum=2)
        self.assertIn("resumes after step 30, from ", finished.text)
        self.assertEqual([line["step"] for line in self.steps(other)], list(range(31, 46)))
        whole = self.folder / "whole"
        train(whole, train__max_duration="3ep", train__grad_accum=2)
        self.assertEqual(tutti_run.digest(other), tutti_run.digest(whole))

    def test_another_number_of_ranks_can_go_on(self):
        other = self.folder / "other"
        train(other, "--resume", self.run_dir / "checkpoints" / "latest", ranks=3, train__max_duration="20ep")
        self.assertGreaterEqual(self.evaluations(other)[-1]["metrics/eval/MulticlassAccuracy"], 0.96)

    def test_starting_afresh_puts_earlier_checkpoints_aside(self):
        run = self.folder / "run"
        tutti_run.copy_trained(run, **SHORT_IN_HALVES)
        finished = train(run, **{**SHORT, "train__max_duration": "1ep"})
        self.assertIn("checkpoints that this run does not resume from are now in ", finished.text)
        checkpoints = run / "checkpoints"
        self.assertEqual(names(checkpoints / "earlier"), {"ep1-ba15", "ep2-ba30"})
        self.assertEqual(names(checkpoints), {"ep1-ba15", "latest", "earlier", ".lock"})
        self.assertEqual(len((run / "metrics.earlier.jsonl").read_text().splitlines()), 32)
        self.assertIn("resumes after step 15,", train(run, "--resume", "auto", **SHORT).text)
        train(run, **{**SHORT, "train__max_duration": "1ep"})
        self.assertEqual(names(checkpoints / "earlier"), {"ep1-ba15", "ep2-ba30"})
        self.assertEqual(names(checkpoints / "earlier-2"), {"ep1-ba15", "ep2-ba30"})

    def test_a_second_run_in_it_is_refused_and_harms_nothing(self):
        run = self.folder / "run"
        first = start(run, train__max_duration="100000ep", checkpoint__interval="5ep")
        first.wait_for(lambda: (run / "checkpoints" / "latest").exists(), "a checkpoint")
        first.signal_ranks(signal.SIGSTOP)  # they leave the cores to those that are refused
        elsewhere = {"checkpoint__save_folder": run / "checkpoints"}
        for second in (start(run), start(self.folder / "other", ranks=1, **elsewhere)):
            finished = second.wait()
            self.assertEqual(finished.code, 2, finished.text)
            self.assertEqual(len(finished.errors()), 1, finished.text)
            self.assertRegex(finished.errors()[0], f"^error: {run}.*: a run is under way in it, on host ")
            self.assertIn("; waits 5 s for its end\n", finished.text)
        first.signal_ranks(signal.SIGCONT)
        self.assertFalse(first.is_over())
        self.assertEqual(tutti("stop", run).wait().code, 0)
        finished = first.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertIn("max_duration = \"100000ep\"", (run / "recipe.toml").read_text())
        self.assertFalse((run / "checkpoints" / "earlier").exists())

    def test_initial_weights_may_be_those_of_a_checkpoint(self):
        weights = self.run_dir / "checkpoints" / "latest"
        run = self.folder / "run"
        train(run, train__max_duration="1ba", optimizer__lr=0, model__weights=weights)
        self.assertEqual(tutti_run.digest(run), tutti_run.digest(self.run_dir))

    def test_a_loss_that_is_not_finite_is_skipped_and_reported(self):
        run = self.folder / "run"
        finished = start(run, train__max_duration="30ba", optimizer__lr=1e30).wait()
        self.assertEqual(finished.code, 4)
        self.assertIn("the loss is not finite; the step is skipped", finished.text)
        self.assertEqual(len(self.steps(run)), 30)
        for line in (run / "metrics.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=self.fail)
        reason = (r"max_duration of 30ba is reached; the last \d\d steps were all skipped: nothing finite to train on; "
                  "exit code 4")
        self.assertRegex(finished.text, fr"\n  ended +{reason}\n")
        self.assertRegex(tutti("status", run).wait().text, fr"failed, its loss is not finite in the end; {reason}\n")


def names(folder):
    return {path.name for path in folder.iterdir()}


if __name__ == "__main__":
    tutti_run.main()
