"""[[stages]]: trainings one after the other in one recipe, killed and resumed like one run."""
import json
import signal

import tutti_run
from tutti_run import digest, settings, tutti

WHOLE = f"""run_name = "staged"
seed = 3
[model]
kind = "mlp"
hidden = [16]
[data.train]
kind = "hdf5"
path = "{tutti_run.EXAMPLES}/data/digits.h5"
group = "train"
batch_size = 96
shuffle = true
[data.eval]
kind = "hdf5"
path = "{tutti_run.EXAMPLES}/data/digits.h5"
group = "test"
[optimizer]
kind = "sgd"
lr = 0.1
momentum = 0.9
[checkpoint]
interval = "1ep"
[journal]
level = "off"
"""
FIRST = {"train__max_duration": "2ep", "model__freeze": '["0.*"]'}
SECOND = {"train__max_duration": "30ba", "optimizer__lr": "0.01", "data__train__group": "test"}
STAGES = """
[[stages]]
name = "head"
model.freeze = ["0.*"]
train.max_duration = "2ep"
[[stages]]
optimizer.lr = 0.01
data.train.group = "test"
train.max_duration = "30ba"
"""


class Stages(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "recipe.toml"
        self.recipe.write_text(WHOLE + STAGES)
        self.run_dir = self.folder / "run"

    def by_hand(self, ranks):
        """Digests of two runs, the second from the weights of the first."""
        plain = self.folder / "plain.toml"
        plain.write_text(WHOLE)
        first, second = self.folder / "first", self.folder / "second"
        local = ("--local-ranks", ranks)
        tutti_run.train(first, *local, recipe=plain, ranks=1, **FIRST)
        tutti_run.train(second, *local, recipe=plain, ranks=1, checkpoint__load_path=first,
                        checkpoint__load_weights_only="true", **SECOND)
        return [digest(first), digest(second)]

    def steps(self, stage):
        path = self.run_dir / f"stage-{stage}" / "metrics.jsonl"
        return len([line for line in path.read_text().splitlines() if '"lr"' in line]) if path.exists() else 0

    def kill_in(self, stage, after, *command):
        running = tutti(*command, ranks=2)
        running.wait_for(lambda: self.steps(stage) >= after, f"steps of stage {stage}")
        running.signal_ranks(signal.SIGKILL)
        running.kill()

    def test_killed_stages_end_as_two_runs_by_hand(self):
        self.kill_in(1, 18, "train", self.recipe, "--run-dir", self.run_dir)
        self.kill_in(2, 10, "resume", self.run_dir)
        finished = tutti("train", self.recipe, "--run-dir", self.run_dir, "--resume", "auto", "--local-ranks", "2").wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertNotIn("stage 1 of 2", finished.text)
        self.assertIn(f"stage 2 of 2 in {self.run_dir}/stage-2, from the weights of stage 1\n", finished.text)
        self.assertEqual([digest(self.run_dir / "stage-1"), digest(self.run_dir)], self.by_hand(ranks=2))

    def test_other_commands_take_the_folder_of_all_stages(self):
        started = tutti("train", self.recipe, "--run-dir", self.run_dir).wait()
        self.assertEqual(started.code, 0, started.text)
        self.assertEqual([digest(self.run_dir / "stage-1"), digest(self.run_dir)], self.by_hand(ranks=1))
        self.assertIn("stage 1 of 2 (head) in", started.text)
        stage_2 = f"{self.run_dir}/stage-2"
        status = tutti("status", self.run_dir, "--json").wait()
        self.assertEqual(json.loads(status.text)["run_dir"], stage_2, status.text)
        listed = tutti("ls", self.folder).wait()
        for stage in ("stage-1", "stage-2"):
            self.assertRegex(listed.text, rf"(?m)^\S*{stage} +ended ")
        self.assertEqual(tutti("eval", self.run_dir).wait().text, tutti("eval", stage_2).wait().text)
        compared = tutti("compare", self.run_dir, self.run_dir / "stage-1").wait()
        self.assertEqual(compared.code, 0, compared.text)
        out = tutti("report", self.run_dir).wait()
        self.assertEqual(out.code, 0, out.text)
        self.assertTrue((self.run_dir / "report.html").exists(), out.text)
        again = tutti("train", self.recipe, "--run-dir", self.run_dir).wait()
        self.assertEqual(again.code, 2, again.text)
        self.assertIn(f"`tutti resume {self.run_dir}` continues it", again.text)

    def test_mistakes_of_later_stages_come_before_the_first(self):
        for key, message in (("data.train.group = 'none'", "none"), ("optimizer.lr = -1", "optimizer.lr = -1"),
                             ("model.freeze = ['typo*']", "typo*")):
            self.recipe.write_text(WHOLE + STAGES + f"[[stages]]\n{key}\ntrain.max_duration = '1ep'\n")
            for command in (("train", self.recipe, "--run-dir", self.run_dir), ("check", self.recipe)):
                refused = tutti(*command).wait()
                self.assertEqual(refused.code, 2, refused.text)
                self.assertIn(message, refused.text)
        self.assertFalse(self.run_dir.exists())

    def test_a_stage_that_was_stopped_early_is_not_over(self):
        tutti("train", self.recipe, "--run-dir", self.run_dir, *settings(stages__0__train__stop_at="5ba")).wait()
        plain = self.folder / "plain.toml"
        plain.write_text(WHOLE)
        refused = tutti("train", plain, "--run-dir", self.run_dir, *settings(train__max_duration="1ba")).wait()
        self.assertEqual(refused.code, 2, refused.text)
        self.assertIn("has a training in stages", refused.text)
        resumed = tutti("resume", self.run_dir, *settings(stages__0__train__stop_at="0ba")).wait()
        self.assertEqual(resumed.code, 0, resumed.text)
        self.assertEqual([digest(self.run_dir / "stage-1"), digest(self.run_dir)], self.by_hand(ranks=1))

    def test_one_stage_is_simulated_by_its_number(self):
        refused = tutti("simulate", self.recipe, "--seeds", "1").wait()
        self.assertEqual(refused.code, 2, refused.text)
        self.assertIn("--set stage=1", refused.text)

    def test_a_stopped_stage_is_the_last(self):
        running = tutti("train", self.recipe, "--run-dir", self.run_dir, *settings(train__max_duration="100000ep"))
        running.wait_for(lambda: self.steps(1) >= 5, "steps of stage 1")
        self.assertEqual(tutti("stop", self.run_dir).wait().code, 0)
        stopped = running.wait()
        self.assertEqual(stopped.code, 0, stopped.text)
        self.assertIn(f"tutti resume {self.run_dir} continues with stage 1 of 2 (head)\n", stopped.text)
        self.assertFalse((self.run_dir / "stage-2").exists())


if __name__ == "__main__":
    tutti_run.main()
