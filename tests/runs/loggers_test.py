"""What [[loggers]] write, as other programs read it: TensorBoard's own reader, csv, and children on a pipe.
Of runs that were killed, too."""
import csv
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import zlib

import tutti_run
from tutti_run import DIGITS, TUTTI, Running, start, train

PYTHON = os.environ.get("TUTTI_TORCH_PYTHON", "")
READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing import event_accumulator
sizes = {"scalars": 0, "tensors": 0, "images": 0}
events = event_accumulator.EventAccumulator(sys.argv[1], size_guidance=sizes)
events.Reload()
tags = events.Tags()
print(json.dumps({"scalars": {tag: [(e.step, e.value) for e in events.Scalars(tag)]
                              for tag in tags["scalars"]},
                  "texts": {tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode()
                            for tag in tags["tensors"]},
                  "tables": {tag: [(e.step, e.tensor_proto.string_val[0].decode())
                                   for e in events.Tensors(tag)] for tag in tags["tensors"]},
                  "images": {tag: [(e.step, e.width, e.height, e.encoded_image_string.hex())
                                   for e in events.Images(tag)] for tag in tags["images"]}}))
"""
ALL = """
[[loggers]]
kind = "tensorboard"
[[loggers]]
kind = "csv"
[[loggers]]
kind = "jsonl"
[[loggers]]
kind = "command"
command = "cat >> $OUT"
"""
SHORT = {"train__max_duration": "4ep", "checkpoint__interval": "7ba", "train__auto_log_hparams": "true"}


SHOWING = """
[model]
kind = "mlp"
hidden = [4]
[data.train]
kind = "synthetic"
samples = 48
batch_size = 24
shape = [3, 4, 5]
[optimizer]
kind = "sgd"
[[callbacks]]
kind = "image_visualizer"
interval = "2ba"
num_images = 10
[[loggers]]
kind = "tensorboard"
[[loggers]]
kind = "jsonl"
[train]
max_duration = "4ba"
"""
WRITING = """
[model]
kind = "gpt"
n_layer = 1
n_head = 2
n_embd = 8
n_positions = 8
[data.train]
kind = "synthetic"
samples = 48
batch_size = 24
shape = [8]
targets = "sequence"
[optimizer]
kind = "sgd"
[[callbacks]]
kind = "generate"
prompts = ["In the", "a|b"]
interval = "2ba"
max_new_tokens = 5
do_sample = true
[[loggers]]
kind = "tensorboard"
[[loggers]]
kind = "jsonl"
[train]
max_duration = "4ba"
log_to_console = true
"""


def pixels_of(png):
    """Rows of a PNG's bytes, as (width, height, channels, rows); every chunk's checksum is looked at."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = [], 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        data, (crc,) = png[at + 8:at + 8 + size], struct.unpack(">I", png[at + 8 + size:at + 12 + size])
        assert crc == zlib.crc32(kind + data), kind
        chunks.append((kind, data))
        at += 12 + size
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, bits, colours, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert bits == 8 and rest == [0, 0, 0]
    channels = {0: 1, 2: 3}[colours]
    data, row = zlib.decompress(chunks[1][1]), width * channels + 1
    rows = [data[i * row:(i + 1) * row] for i in range(height)]
    assert len(data) == height * row and all(one[0] == 0 for one in rows)
    return width, height, channels, [one[1:] for one in rows]


def has_tensorboard():
    """The Python that tools/setup.sh installs must; one beside a libtorch of the user's own may not."""
    if not os.path.exists(PYTHON):
        return False
    found = subprocess.run([PYTHON, "-c", "import tensorboard"], stderr=subprocess.PIPE, text=True)
    installed = pathlib.Path(os.path.normpath(PYTHON)).parent.parent / "complete"  # by tools/setup.sh
    if found.returncode != 0 and installed.exists():
        raise AssertionError(f"{PYTHON} lacks tensorboard: {found.stderr}")
    return found.returncode == 0


class Loggers(tutti_run.RunTest):
    def recipe(self, sections):
        path = self.folder / "recipe.toml"
        text = DIGITS.read_text().replace('path = "', f'path = "{DIGITS.parent}/')
        path.write_text(text + sections.replace("$OUT", str(self.folder / "piped.jsonl")))
        return path

    def events(self, run):
        if not has_tensorboard():
            self.skipTest("no tensorboard beside libtorch")
        return json.loads(subprocess.run([PYTHON, "-c", READ_EVENTS, run / "tensorboard"], check=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)

    def losses(self, run):
        """By Composer's step, as metrics.jsonl has them."""
        return {line["step"] - 1: line["loss"] for line in tutti_run.metrics(run) if "loss" in line}

    def rows(self, run, name):
        with open(run / "metrics-rank0.csv", newline="") as file:
            return [row for row in csv.DictReader(file) if row["name"] == name]

    def test_tensorboard_and_others_read_what_was_logged(self):
        run = self.folder / "run"
        train(run, recipe=self.recipe(ALL), **SHORT)
        losses = self.losses(run)
        self.assertEqual(len(losses), 60)
        found = {int(row["batch"]): float(row["value"]) for row in self.rows(run, "loss/train/total")}
        self.assert_close(found, losses)
        self.assertEqual([int(row["batch"]) for row in self.rows(run, "metrics/eval/MulticlassAccuracy")],
                         [15, 30, 45, 60])
        piped = [json.loads(line) for line in (self.folder / "piped.jsonl").read_text().splitlines()]
        self.assertEqual((piped[0]["type"], piped[-1]["type"]), ("start", "end"))
        found = {line["batch"]: line["metrics"]["loss/train/total"] for line in piped
                 if "loss/train/total" in line.get("metrics", {})}
        self.assert_close(found, losses)
        written = [json.loads(line) for line in (run / "logs-rank0.jsonl").read_text().splitlines()]
        records = [line for line in piped if line["type"] not in ("start", "step_end", "end")]
        self.assertEqual(written, records)
        events = self.events(run)
        self.assert_close(dict(events["scalars"]["loss/train/total"]), losses)
        self.assertEqual([step for step, _ in events["scalars"]["time/epoch"]], [0, 15, 30, 45, 60])
        self.assertIn("| train.max_duration | \"4ep\" |", events["texts"]["hyperparameters/text_summary"])

    def write_recipe(self, text):
        path = self.folder / "own.toml"
        path.write_text(text)
        return path

    def test_tensorboard_shows_images(self):
        run = self.folder / "run"
        train(run, recipe=self.write_recipe(SHOWING))
        self.assertNotIn("Images", (run / "logs-rank0.jsonl").read_text())
        found = self.events(run)["images"]
        self.assertEqual(list(found), ["Images/Train"])
        self.assertEqual([step for step, *_ in found["Images/Train"]], [0, 2])
        for _, width, height, png in found["Images/Train"]:
            # Ten of the twelve images of rank 0's part: eight to a row, and two in the next one.
            self.assertEqual((width, height), (8 * 5, 2 * 4))
            shown = pixels_of(bytes.fromhex(png))
            self.assertEqual(shown[:3], (width, height, 3))
            black = 6 * 5 * 3
            self.assertTrue(all(not any(row[-black:]) for row in shown[3][4:]), "no image is the last six")
            first = b"".join(row[:5 * 3] for row in shown[3][:4])
            self.assertEqual((min(first), max(first)), (0, 255), "an image with negative values is stretched")

    def test_tables_of_texts_are_shown(self):
        run = self.folder / "run"
        shown = train(run, recipe=self.write_recipe(WRITING)).text
        table = '\t Train generations: {"columns": ["prompt", "generation"], "rows": [["In the", '
        self.assertEqual(shown.count(table), 2)
        lines = [json.loads(line) for line in (run / "logs-rank0.jsonl").read_text().splitlines()]
        tables = [line for line in lines if line["type"] == "table"]
        self.assertEqual([(one["name"], one["batch"], one["columns"]) for one in tables],
                         [("generations", step, ["prompt", "generation"]) for step in (2, 4)])
        self.assertEqual([row[0] for row in tables[0]["rows"]], ["In the", "a|b"])
        found = self.events(run)["tables"]["generations/text_summary"]
        self.assertEqual([step for step, _ in found], [2, 4])
        for _, text in found:
            self.assertEqual(text.splitlines()[:2], ["| prompt | generation |", "| --- | --- |"])
            self.assertIn("\n| In the | ", text)
            self.assertIn("\n| a\\|b | ", text)

    def test_bytes_of_a_model_reach_no_terminal_raw(self):
        run = self.folder / "run"
        shown = train(run, recipe=self.write_recipe(WRITING.replace("max_new_tokens = 5", "max_new_tokens = 100"))).text
        told = Running([TUTTI, "generate", run, "a\x1b[2J\x07b", "--temperature", "100"]).wait()
        self.assertEqual(told.code, 0, told.text)
        self.assertTrue(told.text.startswith("a\\x1b[2J\\x07b"), told.text)
        for text in shown, told.text:
            self.assertRegex(text, r"\\x[01][0-9a-f]|\\u00[01][0-9a-f]", "the model wrote control characters")
            self.assertEqual(set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)), set())

    def assert_close(self, found, wanted):
        self.assertEqual(found.keys(), wanted.keys())
        for step, value in found.items():
            self.assertAlmostEqual(value, wanted[step], delta=1e-6)

    def test_files_of_a_killed_run_are_readable_and_continued(self):
        whole, run = self.folder / "whole", self.folder / "run"
        recipe = self.recipe(ALL)
        train(whole, recipe=recipe, **SHORT)
        options = {**SHORT, "train__max_duration": "400ep"}
        running = start(run, recipe=recipe, **options)
        csv_file = run / "metrics-rank0.csv"
        running.wait_for(lambda: csv_file.exists() and len(self.losses_of_csv(run)) > 80, "step 80")
        running.signal_ranks(signal.SIGKILL)
        running.wait()
        steps = [int(row["step"]) for row in self.rows(run, "loss/train/total")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        if has_tensorboard():
            points = self.events(run)["scalars"]["loss/train/total"]
            self.assertEqual([step for step, _ in points], list(range(len(points))))
            self.assertGreaterEqual(len(points), 20)  # each logger is written in its own time
        last = max(int(path.name.split("ba")[1]) for path in (run / "checkpoints").glob("ep*"))
        train(run, "--resume", "auto", recipe=recipe, **{**options, "train__max_duration": f"{last + 10}ba"})
        steps = [int(row["step"]) for row in self.rows(run, "loss/train/total")]
        self.assertEqual(steps, list(range(1, last + 11)))
        for one, two in zip(self.rows(run, "loss/train/total"), self.rows(whole, "loss/train/total")):
            self.assertEqual(one, two)
        self.assert_close(dict(self.events(run)["scalars"]["loss/train/total"]), self.losses(run))

    def losses_of_csv(self, run):
        return self.rows(run, "loss/train/total")

    def test_a_child_that_is_stuck_holds_nobody_up(self):
        run = self.folder / "run"
        sections = '[[loggers]]\nkind = "command"\ncommand = "exec sleep 1000"\n'
        finished = train(run, recipe=self.recipe(sections), train__max_duration="40ep")
        self.assertLess(finished.took_s, 60)
        self.assertIn("does not end, and is killed", tutti_run.log(run))
        self.assertEqual(tutti_run.metrics(run)[-1]["step"], 600)
        pgrep = ["pgrep", "-f", "^sleep 1000$"]
        left = subprocess.run(pgrep, stdout=subprocess.PIPE, text=True).stdout.split()
        mine = [pid for pid in left if str(self.folder) in os.readlink(f"/proc/{pid}/fd/1")]
        self.assertEqual(mine, [])

    def test_a_child_that_dies_harms_nobody(self):
        run = self.folder / "run"
        sections = '[[loggers]]\nkind = "command"\ncommand = "head -n 1 > /dev/null; echo gone; kill -9 $$"\n'
        train(run, recipe=self.recipe(sections), train__max_duration="40ep")
        self.assertIn("reads no more", tutti_run.log(run))
        self.assertEqual((run / "log" / "command-rank-0.log").read_text(), "gone\n")

    def test_a_replay_logs_nothing_and_comes_to_the_same(self):
        run = self.folder / "run"
        train(run, recipe=self.recipe(ALL), **SHORT)
        before = {path: path.read_bytes() for path in [*run.glob("*"), *run.glob("tensorboard/*"),
                                                        self.folder / "piped.jsonl"] if path.is_file()}
        finished = tutti_run.tutti("replay", run).wait()
        self.assertRegex(finished.text, r"^replayed 2 ranks, \d+ messages; [1-9]\d+ digests, all equal")
        self.assertEqual({path: path.read_bytes() for path in before}, before)

    def test_the_console_and_the_progress_bar_are_shown_where_wanted(self):
        loud = train(self.folder / "loud", train__max_duration="1ep", train__log_to_console="true",
                     train__console_log_interval="5ba")
        self.assertIn("[epoch=1/1][batch=5/15]:\n\t Train time/epoch: 0\n", loud.text)
        self.assertEqual(loud.text.count("Train loss/train/total: "), 3)
        self.assertRegex(loud.text, r"epoch \d/\d  step \d+/\d+  ")
        quiet = train(self.folder / "quiet", train__max_duration="1ep", train__progress_bar="false")
        self.assertNotRegex(quiet.text, r"epoch \d/\d  step \d+/\d+  ")
        self.assertNotIn("Train ", quiet.text)
        self.assertIn("checkpoints/ep1-ba15", quiet.text)

    def test_a_reader_that_stalls_holds_nobody_up(self):
        """As does `tutti train ... | sleep 1000`, for more than a pipe holds."""
        run = self.folder / "run"
        values = {"train__max_duration": "40ep", "train__log_to_console": "true",
                  "train__console_stream": "stdout", "train__progress_interval": "1ba"}
        command = [tutti_run.TUTTI, "train", DIGITS, "--run-dir", run, *tutti_run.settings(**values)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
            try:
                self.assertEqual(running.wait(timeout=120), 0)
            finally:
                running.kill()
            shown = running.stdout.read().decode()
        self.assertIn("epoch 1/40  step 1/15  ", shown)
        self.assertEqual(tutti_run.metrics(run)[-1]["step"], 600)
        self.assertRegex(tutti_run.log(run), r"progress: \d+ lines were not shown")
        self.assertRegex(tutti_run.log(run), r"logger console: \d+ lines were not shown")

    def test_a_reader_that_goes_away_ends_nothing(self):
        run = self.folder / "run"
        command = [tutti_run.TUTTI, "train", DIGITS, "--run-dir", run,
                   *tutti_run.settings(train__max_duration="2ep", train__progress_interval="1ba")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
            running.stdout.readline()
            running.stdout.close()
            self.assertEqual(running.wait(timeout=120), 0)
        self.assertEqual(tutti_run.metrics(run)[-1]["step"], 30)

    def test_the_console_prints_on_the_stream_that_is_named(self):
        for stream, other in (("stdout", "stderr"), ("stderr", "stdout")):
            done = subprocess.run([tutti_run.TUTTI, "train", DIGITS, "--run-dir", self.folder / stream,
                                   "--set", "train.max_duration=2ba", "--set", "train.log_to_console=true",
                                   "--set", f"train.console_stream={stream}"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Train loss/train/total: ", getattr(done, stream))
            self.assertNotIn("Train loss/train/total: ", getattr(done, other))


if __name__ == "__main__":
    tutti_run.main()
