"""What users type on the day after the first training: each line works, or one line says what to type."""
import csv
import json
import shutil
import subprocess

import tutti_run
from tutti_run import EXAMPLES, TUTTI


class Everyday(tutti_run.RunTest):
    @classmethod
    def setUpClass(cls):
        """Two runs of the digits with other learning rates, of two epochs."""
        cls.shared = cls.enterClassContext(tutti_run.scratch_folder())
        shutil.copy(EXAMPLES / "digits.toml", cls.shared)
        (cls.shared / "data").mkdir()
        shutil.copy(EXAMPLES / "data/digits.h5", cls.shared / "data")
        for name, rate in {"low": 0.01, "high": 0.1}.items():
            done = cls.typed(f"train digits.toml --set run_name={name} --set optimizer.lr={rate} "
                             "--set train.max_duration=2ep")
            assert done.returncode == 0, done.stderr

    @classmethod
    def typed(cls, line, **options):
        return subprocess.run([TUTTI, *line.split()], capture_output=True, text=True, cwd=cls.shared, timeout=200,
                              **options)

    def well(self, line):
        done = self.typed(line)
        self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def refused(self, line):
        done = self.typed(line)
        self.assertEqual(done.returncode, 2, f"{line}: {done.stdout}{done.stderr}")
        self.assertEqual(len([each for each in done.stderr.splitlines() if "error: " in each]), 1, done.stderr)
        return done.stderr

    def test_a_run_is_enough(self):
        self.assertIn("metrics/eval/MulticlassAccuracy", self.well("eval runs/high"))
        self.well("predict runs/high --out p.csv")
        with open(self.shared / "p.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["row", "class", "score"])
        self.assertEqual(len(rows), 360)
        self.assertIn("loss", self.well("logs runs/high"))
        self.assertIn("the newest in runs/", self.well("status"))
        self.assertIn("report.html", self.well("report"))
        self.assertIn("nothing left to train", self.well("resume runs/low"))
        self.assertIn("nothing left to train", self.well("train digits.toml --resume --set run_name=low "
                                                         "--set optimizer.lr=0.01 --set train.max_duration=2ep"))

    def test_runs_are_side_by_side_in_the_terminal(self):
        lines = self.well("ls --sort accuracy").splitlines()
        self.assertIn("MulticlassAccuracy", lines[0])
        self.assertEqual([line.split()[0] for line in lines[1:3]], ["high", "low"])
        self.assertEqual(len(self.well("ls --where lr<0.05 --csv").splitlines()), 2)
        self.assertIn("lr", self.well("compare runs/low runs/high"))

    def test_data_is_split_and_balanced_by_a_key(self):
        self.assertIn("excludes data.eval.path", self.refused("check digits.toml --set data.eval.split=0.1"))
        self.assertIn("is data.eval.split, as in 0.1", self.refused("check digits.toml --set data.train.split=0.9"))
        self.assertIn("sampler_weights", self.refused("check digits.toml --set data.train.sampler=weighted"))
        self.assertIn("held out", self.well("check digits.toml --set data.eval={split=0.1} --set "
                                            "data.train.sampler=balanced --set "
                                            "model.loss={kind='cross_entropy',weight='balanced'}"))

    def test_what_others_call_otherwise_is_pointed_to(self):
        for line, words in {
                "tune digits.toml": "did you mean sweep?",
                "tail runs/high": "did you mean logs?",
                "check digits.toml --set model.weights=IMAGENET1K_V1": 'weights = "resnet18"',
                "check digits.toml --set model.pretrained=true": 'kind = "hf"',
                "export runs/high --to m.onnx": "docs/hand_over.md",
                "export runs/high --to m.pt": "docs/hand_over.md"}.items():
            self.assertIn(words, self.refused(line), line)
        (self.shared / "neptune.toml").write_text(
            (self.shared / "digits.toml").read_text() + '\n[[loggers]]\nkind = "neptune"\n')
        self.assertIn('kind = "command"', self.refused("check neptune.toml"))
        (self.shared / "checkpoint-6").mkdir()
        (self.shared / "checkpoint-6/config.json").write_text("{}")
        self.assertIn("`tutti import checkpoint-6", self.refused("train digits.toml --run-dir runs/hf --resume checkpoint-6"))
        for topic, words in {"learning rate finder": "tutti lr-find", "batch size finder": "tutti ",
                             "oversampling": "sampler", "unfreeze gradually": "unfreeze", "notebook": "--json",
                             "dpo": "chosen_field", "confusion matrix": "ConfusionMatrix",
                             "weighted sampler": "sampler", "image regression": "mse",
                             "two heads": "loss", "counting": "mse"}.items():
            self.assertIn(words, self.well(f"explain {topic}"), topic)

    def test_a_sweep_ends_with_the_table_of_runs(self):
        told = self.well("sweep digits.toml --grid optimizer.lr=0.01,0.1 --run-dir runs/sweep "
                         "--set train.max_duration=1ep")
        self.assertRegex(told, r"(?m)^run .*MulticlassAccuracy")
        self.assertIn("lr", told)

    def test_the_result_is_json_for_a_notebook(self):
        done = self.typed("train digits.toml --set run_name=json --set train.max_duration=1ep --json")
        result = json.loads(done.stdout)
        self.assertEqual(result["steps"], 15)
        lines = (self.shared / result["run_dir"] / "metrics.jsonl").read_text().splitlines()
        self.assertGreater(len([json.loads(line) for line in lines]), 14)


if __name__ == "__main__":
    tutti_run.main()
