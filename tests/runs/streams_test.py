"""Trains on what a command writes, over kills, in replays and by the executable's other commands."""
import gzip
import json
import os
import pathlib
import re
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
            self.assertNotEqual(running.wait().code, 0)
        self.assertIn("resumes after step ", train(run, "--resume", "auto", recipe=self.recipe).text)
        self.assertEqual(tutti_run.digest(run), tutti_run.digest(self.folder / "whole"))
        self.assertEqual(self.programs(), [])

    def test_ranks_in_one_process_workers_and_replay_give_the_same(self):
        train(self.folder / "mpirun", recipe=self.recipe)
        train(self.folder / "local", "--local-ranks", "2", recipe=self.recipe, ranks=1)
        self.assert_learnt_the_same(self.folder / "mpirun", self.folder / "local")
        train(self.folder / "workers", recipe=self.recipe, data__train__num_workers=3)
        self.assert_learnt_the_same(self.folder / "mpirun", self.folder / "workers")
        replayed = tutti("replay", self.folder / "mpirun", *self.commands()).wait()
        self.assertEqual(replayed.code, 0, replayed.text)

    def commands(self):
        """Those of the recipe, of which a run keeps the first word."""
        found = re.findall(r'(?s)\[(data\.\w+)\][^\[]*?command = "(.*?)"', self.recipe.read_text())
        return [word for section, command in found for word in ("--set", f"{section}.command={command}")]

    def test_a_secret_is_written_nowhere(self):
        """That of a command, nor that of the environment."""
        os.environ["PARTS_OF_TEXT"] = str(self.folder / "v3ryhidden")
        (self.folder / "v3ryhidden").symlink_to(self.folder)
        self.recipe.write_text(self.recipe.read_text().replace(f"zcat {self.folder}/*", "zcat ${PARTS_OF_TEXT}/*") +
                               '[[loggers]]\nkind = "command"\ncommand = "cat > /dev/null # v3ryhidden"\n'
                               '[[loggers]]\nkind = "jsonl"\n')
        run, report = self.folder / "run", self.folder / "report.html"
        hidden = f"'zcat {self.folder}/0.* # v3ryhidden'"
        told = train(run, recipe=self.recipe, ranks=1, data__eval__command=hidden).text
        told += tutti("report", run, "--out", report).wait().text + tutti("inspect", run).wait().text
        self.assertNotIn("v3ryhidden", told + report.read_text())
        files = [path for path in run.rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertGreater(len(files), 10)
        self.assertEqual([path for path in files if b"v3ryhidden" in path.read_bytes()], [])
        self.assertIn('command = "zcat ..."', (run / "recipe.toml").read_text())
        replayed = tutti("replay", run).wait()
        self.assertEqual(replayed.code, 2, replayed.text)
        self.assertIn("give the whole: --set data.train.command='...'", replayed.text)
        resumed = train(run, "--resume", "auto", recipe=self.recipe, ranks=1, train__max_duration="70ba",
                        data__eval__command=hidden)
        self.assertNotIn("train.command", resumed.text)

    def test_a_run_that_waits_for_a_command_can_be_stopped(self):
        whole = self.recipe.read_text()
        for name, command in (("silent", "exec sleep 1000"), ("endless", "yes 'in the beginning'")):
            for ranks in (1, 2):
                with self.subTest(name, ranks=ranks):
                    self.recipe.write_text(re.sub('command = "zcat[^\n]*\n', f'command = "{command}"\nlines = "text"\n',
                                                  whole.replace("epoch_samples = 100\n", ""), count=1))
                    running = start(self.folder / "run", recipe=self.recipe, ranks=ranks)
                    running.wait_for(lambda: len(commands_of(running, ranks)) == ranks, "its command")
                    for rank in ranks_of(running, ranks):
                        os.kill(rank, signal.SIGTERM)
                    finished = running.wait()
                    self.assertEqual(finished.code, 1, finished.text)
                    self.assertEqual(finished.errors(), ["error: stopped while a command was read"])

    def test_a_run_that_waits_for_a_file_can_be_stopped(self):
        """Which a command fetches, so slowly as never."""
        recipe = self.folder / "fetch.toml"
        recipe.write_text(f"""
[model]
kind = "mlp"
[data.train]
kind = "mds"
path = "{self.folder}/cache"
remote = "s3://bucket"
fetch = "true {{source}} {{target}}; exec sleep 1000"
batch_size = 4
[optimizer]
kind = "sgd"
lr = 0.1
[train]
max_duration = "1ep"
""")
        running = start(self.folder / "run", recipe=recipe, ranks=1)
        running.wait_for(lambda: commands_of(running, 1), "its command")
        running.process.send_signal(signal.SIGTERM)
        finished = running.wait()
        self.assertEqual(finished.code, 1, finished.text)
        self.assertEqual(finished.errors(), ["error: stopped while a file was fetched"])

    def test_samples_are_passed_over_until_a_stop(self):
        """Of a slow command. Nothing was trained, and nothing is lost."""
        run = self.folder / "run"
        train(run, recipe=self.recipe, ranks=1, train__max_duration="30ba")
        slow = f"zcat {self.folder}/*.jsonl.gz | while read -r line; do echo \"$line\"; sleep 0.1; done"
        running = start(run, "--resume", "auto", "--set", f"data.train.command={slow}", recipe=self.recipe, ranks=1)
        running.wait_for(lambda: "resumes after step 30" in running.text(), "its start")
        running.process.send_signal(signal.SIGTERM)
        finished = running.wait()
        self.assertEqual(finished.code, 1, finished.text)
        self.assertIn("stopped while the samples before those of the resumed run were read",
                      finished.errors()[0])
        self.assertEqual((run / "checkpoints" / "latest").readlink().name.split("-ba")[1], "30")

    def test_simulated_faults_lose_no_sample(self):
        finished = tutti("simulate", self.recipe, "--ranks", "2", "--seeds", "3",
                         *tutti_run.settings(train__max_duration="8ba")).wait()
        self.assertEqual(finished.code, 0, finished.text)

    def test_a_command_that_fails_in_the_midst_of_training_is_named(self):
        finished = start(self.folder / "run", recipe=self.recipe, ranks=1, data__train__epoch_samples=10000,
                         data__train__command=f"'zcat {self.folder}/0.jsonl.gz; echo torn >&2; exit 3'").wait()
        self.assertEqual(finished.code, 2, finished.text)
        said = re.search(r"Loader: zcat .*: the command failed with exit code 3; what it printed last is in (\S+)",
                         finished.text)
        self.assertTrue(said, finished.text)
        self.assertEqual(pathlib.Path(said[1]).read_text(), "torn\n")
        pathlib.Path(said[1]).unlink()
        self.assertIn("epoch 1, step ", log(self.folder / "run"))

    def test_samples_that_were_counted_are_told(self):
        checked = tutti("check", self.recipe, "--data", *tutti_run.settings(data__train__epoch_samples="100")).wait()
        self.assertEqual(checked.code, 0, checked.text)
        self.assertRegex(checked.text, r"data.eval: the command was run once to count its samples, \d+, ")


def ranks_of(running, ranks):
    return list(running.ranks().values()) if ranks > 1 else [running.process.pid]


def commands_of(running, ranks):
    """Children of its ranks."""
    return [child for rank in ranks_of(running, ranks) for child in tutti_run.children(rank)]


if __name__ == "__main__":
    tutti_run.main()
