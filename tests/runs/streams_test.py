"""Trains on what a command writes, over kills, in replays and by the executable's other commands."""
import gzip
import json
import pathlib
import signal

import tutti_run
from tutti_run import SOURCE, log, start, train, tutti

TOKENIZER = SOURCE / "tests" / "golden" / "tokenizers" / "gpt2.json"
RECIPE = """
seed = 3
[model]
kind = "gpt"
vocab_size = 901
n_layer = 1
n_head = 2
n_embd = 16
[optimizer]
kind = "adamw"
lr = 0.001
[train]
max_duration = "60ba"
eval_interval = "30ba"
[checkpoint]
interval = "5ba"
[data.train]
kind = "text"
command = "zcat FOLDER/*.jsonl.gz"
tokenizer = "TOKENIZER"
add_eos_token = false
sequence_length = 16
epoch_samples = 100
shuffle_buffer = 20
batch_size = 8
shuffle = true
[data.eval]
kind = "text"
command = "zcat FOLDER/0.jsonl.gz | head -n 20"
tokenizer = "TOKENIZER"
add_eos_token = false
sequence_length = 16
"""


class Streams(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        for part in range(3):
            with gzip.open(self.folder / f"{part}.jsonl.gz", "wt") as file:
                for i in range(50):
                    text = f"In the beginning of part {part} was the word {i ** 3}, and the word was {i * part}."
                    file.write(json.dumps({"text": text}) + "\n")
        self.recipe = self.folder / "stream.toml"
        self.recipe.write_text(RECIPE.replace("FOLDER", str(self.folder)).replace("TOKENIZER", str(TOKENIZER)))

    def programs(self):
        """The commands of this test that run."""
        found = []
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                line = (place / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in line and b"tutti" not in line.split(b"\0")[0]:
                found.append(line)
        return [line for line in found if line.startswith((b"sh\0", b"zcat", b"gzip"))]

    def test_a_run_that_is_killed_and_resumed_learns_the_same(self):
        train(self.folder / "whole", recipe=self.recipe)
        run = self.folder / "killed"
        for steps in (12, 37):
            running = start(run, "--resume", "auto", recipe=self.recipe)
            metrics = run / "metrics.jsonl"
            running.wait_for(lambda: metrics.exists() and f'"step":{steps},' in metrics.read_text().replace(" ", ""),
                             f"step {steps}")
            running.signal_ranks(signal.SIGKILL, [1])
            self.assertNotEqual(running.wait(timeout=60).code, 0)
        self.assertIn("resumes after step ", train(run, "--resume", "auto", recipe=self.recipe).text)
        self.assertEqual(tutti_run.digest(run), tutti_run.digest(self.folder / "whole"))
        self.assertEqual(self.programs(), [])

    def test_ranks_in_one_process_workers_and_replay_give_the_same(self):
        train(self.folder / "mpirun", recipe=self.recipe)
        train(self.folder / "local", "--local-ranks", "2", recipe=self.recipe, ranks=1)
        self.assert_learnt_the_same(self.folder / "mpirun", self.folder / "local")
        train(self.folder / "workers", recipe=self.recipe, data__train__num_workers=3)
        self.assert_learnt_the_same(self.folder / "mpirun", self.folder / "workers")
        replayed = tutti("replay", self.folder / "mpirun").wait()
        self.assertEqual(replayed.code, 0, replayed.text)

    def test_simulated_faults_lose_no_sample(self):
        finished = tutti("simulate", self.recipe, "--ranks", "2", "--seeds", "3",
                         *tutti_run.settings(train__max_duration="8ba")).wait()
        self.assertEqual(finished.code, 0, finished.text)

    def test_a_command_that_fails_in_the_midst_of_training_is_named(self):
        finished = start(self.folder / "run", recipe=self.recipe, ranks=1, data__train__epoch_samples=10000,
                         data__train__command=f"'zcat {self.folder}/0.jsonl.gz; echo torn >&2; exit 3'").wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertRegex(finished.text, "Loader: zcat .*: the command failed with exit code 3: torn")
        self.assertIn("epoch 1, step ", log(self.folder / "run"))

    def test_samples_that_were_counted_are_told(self):
        checked = tutti("check", self.recipe, "--data", *tutti_run.settings(data__train__epoch_samples="100")).wait()
        self.assertEqual(checked.code, 0, checked.text)
        self.assertRegex(checked.text, r"data.eval: the command was run once to count its samples, \d+, ")


if __name__ == "__main__":
    tutti_run.main()
