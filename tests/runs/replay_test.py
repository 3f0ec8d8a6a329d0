"""A run that was recorded under mpirun is replayed in one process, up to its last record; what is not the same
is named."""
import json
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

import tutti_run
from tutti_run import AUGMENTED, DIGITS, EXAMPLES, TUTTI, Running, copy_trained, start, train, trained, tutti

LONG = {"train__max_duration": "100000ep", "train__eval_interval": "7ep", "checkpoint__interval": "20ep"}
SHORT = {"train__max_duration": "2ep"}  # 30 steps


def record(run, *arguments, **options):
    """On two ranks in one process, where it is not the point how they are started."""
    train(run, "--local-ranks", 2, *arguments, ranks=1, **options)


class Replay(tutti_run.RunTest):
    @classmethod
    def setUpClass(cls):
        """Three attempts of two, one and one epochs, of which checkpoints of the last two epochs are left."""
        cls.thrice = cls.enterClassContext(tutti_run.scratch_folder()) / "thrice"
        train(cls.thrice, checkpoint__keep=2, **SHORT)
        for epochs in 3, 4:
            train(cls.thrice, "--resume", "auto", train__max_duration=f"{epochs}ep", checkpoint__keep=2)

    def copy_of_thrice(self):
        """Which may be changed."""
        return shutil.copytree(self.thrice, self.folder / "run", symlinks=True)

    def replay(self, run, *arguments, code=0):
        finished = tutti("replay", run, *arguments).wait()
        self.assertEqual(finished.code, code, finished.text)
        return finished.text

    def assert_replays(self, run, ranks, *words):
        text = self.replay(run)
        self.assertRegex(text, fr"^replayed {ranks} ranks?, \d+ messages; [1-9]\d+ digests, all equal")
        for word in words:
            self.assertRegex(text, word)

    def test_four_ranks(self):
        run = self.folder / "run"
        train(run, ranks=4, train__max_duration="3ep")
        before = sorted(path for path in run.rglob("*"))
        self.assert_replays(run, 4)
        self.assertEqual(sorted(path for path in run.rglob("*")), before, "a replay leaves nothing behind")

    def test_many_checkpoints_of_many_ranks(self):
        """Ranks tell rank 0 of their parts in any order."""
        for interval in (3, 7):
            run = self.folder / f"run-{interval}"
            train(run, ranks=3, train__max_duration="12ep", checkpoint__interval=f"{interval}ba",
                  train__eval_interval="2ep", checkpoint__keep=2)
            self.assert_replays(run, 3)

    def test_transforms_and_workers(self):
        """Whose run resumes in the middle of an epoch, which has 15 batches."""
        run = self.folder / "run"
        options = {"data__train__num_workers": 3, "data__eval__num_workers": 2, **AUGMENTED}
        train(run, train__max_duration="20ba", **options)
        self.assert_replays(run, 2)
        train(run, "--resume", "auto", train__max_duration="40ba", **options)
        self.assert_replays(run, 2)
        train(self.folder / "whole", train__max_duration="40ba", **AUGMENTED)
        self.assertEqual(tutti_run.digest(run), tutti_run.digest(self.folder / "whole"))

    def test_a_run_that_hung(self):
        """That a rank was given up is a matter of time: the replay ends there, and says so."""
        run = self.folder / "run"
        running = start(run, ranks=3, **{**LONG, "train__hang_timeout": "2sec"})
        running.wait_for(lambda: tutti_run.log(run) and (run / "metrics.jsonl").exists() and
                         len(tutti_run.metrics(run)) > 20, "a step")
        running.signal_ranks(signal.SIGSTOP, [2])
        self.assertNotEqual(running.wait().code, 0)
        self.assert_replays(run, 3, "rank 2 has not been heard for 2 s")

    def test_a_folder_that_was_moved_after_a_resume(self):
        run, moved = self.folder / "run", self.folder / "moved"
        copy_trained(run, **SHORT)
        train(run, "--resume", "auto", train__max_duration="3ep")
        run.rename(moved)
        self.assert_replays(moved, 2)

    def test_a_checkpoint_that_is_gone_is_named(self):
        run = self.copy_of_thrice()
        self.assert_replays(run, 2)
        shutil.rmtree(run / "checkpoints/ep3-ba45")
        self.assertIn("ep3-ba45: the checkpoint that this attempt resumed from is not there", self.replay(run, code=2))

    def test_places_beyond_the_run_are_refused(self):
        run = trained(**SHORT)
        self.assertIn("the run has ranks 0 to 1", self.replay(run, "--rank", 7, code=2))
        self.assertIn("lies behind", self.replay(run, "--until", 3, "--break-at", "step=5", code=2))
        run = self.folder / "run"
        copy_trained(run, **SHORT)
        for option in "--until", "--break-at":
            for step in 31, 999:
                self.assert_refused(f"{option} step={step}: the record of this attempt has steps 1 to 30",
                                    run, option, f"step={step}")
            self.replay(run, option, "step=30")
        for step in 1, 45, 61:
            self.assert_refused(f"--until step={step}: the record of this attempt has steps 46 to 60",
                                self.thrice, "--until", step)
        self.replay(self.thrice, "--until", 46)

    def assert_refused(self, why, run, *arguments):
        self.assertEqual(self.replay(run, *arguments, code=2), f"error: {why}\n")

    def test_any_attempt_can_be_replayed(self):
        run = self.thrice
        for start_of, first, last in (1, 1, 30), (3, 46, 60):
            self.assertRegex(self.replay(run, "--attempt", start_of, "--until", last), r"digests, all equal\n$")
            self.assertIn(f"this attempt has steps {first} to {last}",
                          self.replay(run, "--attempt", start_of, "--until", 61, code=2))
        self.assertEqual(self.replay(run, "--attempt", 3), self.replay(run))
        gone = "the checkpoint that this attempt resumed from is not there any more, so it cannot be replayed"
        self.assert_refused(f"{run}/checkpoints/ep2-ba30: {gone}", run, "--attempt", 2)
        self.assert_refused(f"{run}: there is no attempt 4: it has journals of 3 attempts", run, "--attempt", 4)
        self.assertEqual(tutti("replay", run, "--attempt", 0).wait().code, 2)

    def test_a_checkpoint_that_was_damaged_since_is_named(self):
        run = self.copy_of_thrice()
        path = run / "checkpoints/ep3-ba45/rank-1.h5"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        damaged = self.replay(run, code=2)
        self.assertIn("the checkpoint that this attempt resumed from cannot be read any more", damaged)
        self.assertIn("rank-1.h5", damaged)

    def test_all_ranks_come_to_the_last_step(self):
        run = self.folder / "run"
        train(run, "--local-ranks", 3, ranks=1, train__max_duration="1ep")
        counts = {until: int(re.search(r"; (\d+) digests", self.replay(run, "--until", until)).group(1))
                  for until in (2, 3, 4, 5, 6)}
        self.assertEqual({counts[until + 1] - counts[until] for until in (2, 3, 4, 5)}, {counts[3] - counts[2]})

    def test_digests_that_were_not_recorded_are_not_said_to_be_equal(self):
        run = self.folder / "run"
        record(run, train__max_duration="1ep", journal__level="control")
        self.assertIn("no digests were recorded", self.replay(run))

    def test_a_record_that_is_damaged_is_reported(self):
        """A byte of one rank's journal is not as it was: nobody knows what that rank did from there on."""
        run = self.folder / "run"
        copy_trained(run, **SHORT)
        journal = next((run / "journal").glob("*/rank-1.journal"))
        bytes_ = bytearray(journal.read_bytes())
        bytes_[len(bytes_) // 2] ^= 4
        journal.write_bytes(bytes_)
        text = self.replay(run, code=1)
        self.assertRegex(text, r"^the record of rank 1 cannot be read beyond step \d+, and the run came to step 30; ")
        self.assertRegex(text, r"the record of rank 1 ends in step \d+, where it is torn or damaged, at byte \d+")
        self.assertIn("rank 0 was not replayed further", text)
        self.assertNotIn("the record of rank 0", text)

    def test_a_record_that_was_cut_is_reported_and_no_other(self):
        run = self.folder / "run"
        copy_trained(run, **SHORT)
        journal = next((run / "journal").glob("*/rank-1.journal"))
        journal.write_bytes(journal.read_bytes()[:3000])
        text = self.replay(run, code=1)
        self.assertRegex(text, r"; rank 0 was not replayed further; the record of rank 1 ends in step \d, where it ")
        self.assertNotIn("the record of rank 0", text)

    def test_a_step_that_the_record_of_one_rank_does_not_come_to_is_refused(self):
        run = self.folder / "run"
        copy_trained(run, **SHORT)
        journal = next((run / "journal").glob("*/rank-1.journal"))
        journal.write_bytes(journal.read_bytes()[:3000])
        for option in "--until", "--break-at":
            self.assertRegex(self.replay(run, option, "step=20", code=2),
                             fr"^error: {option} step=20: the record of rank 1 breaks off (in step \d|before its "
                             r"first step)\n$")
            self.assert_refused(f"{option} step=31: the record of this attempt has steps 1 to 30",
                                run, option, "step=31")
        self.assertFalse((run / "replay-step-20").exists())

    def test_an_attempt_killed_before_training_is_ignored(self):
        run = self.folder / "run"
        train(run, ranks=1, train__max_duration="2ep")
        start_of = next((run / "journal").iterdir())
        later = run / "journal" / "29991231T235959.999Z-00000000"
        later.mkdir()
        head = (start_of / "rank-0.journal").read_bytes()
        (later / "rank-0.journal").write_bytes(head[:head.index(b"exit code")][:400])
        self.assert_replays(run, 1)

    def test_losses_that_are_no_numbers(self):
        run = self.folder / "run"
        start(run, train__max_duration="1ep", optimizer__lr="1e30").wait()
        self.replay(run)
        elsewhere = self.replay_elsewhere(run)
        if "the run computed with" not in elsewhere.text:
            self.skipTest("needs a processor with vector instructions")
        self.assertRegex(elsewhere.text, r"30 losses, all equal to a tolerance")

    def test_a_language_model_on_four_ranks(self):
        run = self.folder / "run"
        train(run, recipe=EXAMPLES / "text_gpt.toml", ranks=4, train__max_duration="20ba",
              data__eval__subset_num_batches=4, **tutti_run.SMALL_GPT)
        self.assert_replays(run, 4)

    def test_normalisation_and_microbatches_alone(self):
        run = self.folder / "run"
        train(run, recipe=EXAMPLES / "digits_cnn.toml", ranks=1, train__max_duration="4ba", train__grad_accum=2)
        self.assert_replays(run, 1)

    def test_a_rank_that_ran_out_of_memory(self):
        run = self.folder / "run"
        options = {"recipe": EXAMPLES / "digits_cnn.toml", "train__max_duration": "3ba",
                   "train__eval_interval": "0ba"}
        train(run, **options)
        peak = max(line.get("memory_peak_mb", 0) for line in tutti_run.metrics(run))
        train(run, **options, train__grad_accum="auto", device__memory_budget_mb=[1000, 0.6 * peak])
        self.assertIn("rank 1 ran out of memory", tutti_run.log(run))
        self.assert_replays(run, 2)

    def test_ranks_of_one_process(self):
        run = self.folder / "run"
        train(run, "--local-ranks", 3, ranks=1, **SHORT)
        self.assert_replays(run, 3)

    def test_a_run_that_was_killed(self):
        run = self.folder / "run"
        running = start(run, ranks=3, **LONG)
        running.wait_for(lambda: steps(run) > 100, "a step")
        running.signal_ranks(signal.SIGKILL)
        running.wait()
        self.assert_replays(run, 3, r"the record of rank 2 ends in step \d\d+, where it was killed")

    def test_a_run_that_lost_a_rank(self):
        run = self.folder / "run"
        running = start(run, **LONG)
        running.wait_for(lambda: steps(run) > 100, "a step")
        running.signal_ranks(signal.SIGKILL, [1])
        running.wait()
        self.assert_replays(run, 2, r"the record of rank 1 ends in step \d\d+, where it was killed")

    def test_a_run_that_was_stopped_and_resumed(self):
        run = self.folder / "run"
        running = start(run, **LONG)
        running.wait_for(lambda: steps(run) > 100, "a step")
        self.assertEqual(tutti("stop", run).wait().code, 0)
        self.assertEqual(running.wait().code, 0)
        self.assert_replays(run, 2)
        stopped_at = steps(run)
        running = start(run, "--resume", "auto", **LONG)
        running.wait_for(lambda: steps(run) > stopped_at + 100, "a step")
        running.signal_ranks(signal.SIGTERM)
        self.assertEqual(running.wait().code, 0)
        self.assert_replays(run, 2)

    def test_a_run_that_was_stopped_as_it_began(self):
        run = self.folder / "run"
        running = start(run, **LONG)
        running.wait_for(lambda: "training starts" in tutti_run.log(run), "the start")
        running.signal_ranks(signal.SIGTERM)
        self.assertEqual(running.wait().code, 0)
        self.assert_replays(run, 2)

    def own_recipe_and_data(self):
        """Copies, which a test may change."""
        recipe, data = self.folder / "recipe.toml", self.folder / "data" / "digits.h5"
        data.parent.mkdir()
        data.write_bytes((EXAMPLES / "data" / "digits.h5").read_bytes())
        recipe.write_text(DIGITS.read_text())
        return recipe, data

    def test_a_byte_of_a_sample(self):
        """Named are the rank that reads it, the step and the tensor: in the order of the file, the last of 15."""
        recipe, data = self.own_recipe_and_data()
        run = self.folder / "run"
        record(run, recipe=recipe, train__max_duration="1ep", data__train__shuffle="false")
        self.assert_replays(run, 2)
        change_a_byte_of_a_late_image(data)
        self.assertEqual(self.replay(run, code=1).splitlines()[0],
                         "rank 1, step 15, compute, after BatchReady: batch differs in input")

    def test_a_byte_of_a_sample_of_a_shuffled_epoch(self):
        """A second run, on what the data are now, differs from the first where the replay does."""
        recipe, data = self.own_recipe_and_data()
        run, other = self.folder / "run", self.folder / "other"
        record(run, recipe=recipe, train__max_duration="1ep")
        change_a_byte_of_a_late_image(data)
        record(other, recipe=recipe, train__max_duration="1ep")
        difference = tutti("diff", run, other).wait().text
        step, rank = re.search(r"^first difference: step (\d+), rank ([01]), compute: batch, in input", difference,
                               re.M).groups()
        self.assertEqual(self.replay(run, code=1).splitlines()[0],
                         f"rank {rank}, step {step}, compute, after BatchReady: batch differs in input")

    def test_a_byte_of_what_is_evaluated(self):
        """One of the last 17 of 360 images: in the fourth batch of 96, and in rank 1's half of it."""
        recipe, data = self.own_recipe_and_data()
        run, other = self.folder / "run", self.folder / "other"
        record(run, recipe=recipe, train__max_duration="2ep")
        self.assert_replays(run, 2)
        change_a_byte_of_a_late_image(data, evaluated=True)
        for until in (), ("--until", 15):
            self.assertEqual(self.replay(run, *until, code=1).splitlines()[0],
                             "rank 1, step 15, compute, after BatchReady: batch of eval differs in input")
        self.replay(run, "--until", 14)
        record(other, recipe=recipe, train__max_duration="2ep")
        difference = tutti("diff", run, other).wait()
        self.assertEqual(difference.code, 1, difference.text)
        self.assertIn("first difference: step 15, rank 1, compute: batch of eval #4, in input (digest ",
                      difference.text)

    def test_a_weight(self):
        weights = self.folder / "weights.safetensors"
        write_weights(weights)
        run = self.folder / "run"
        record(run, model__weights=weights, train__max_duration="1ep")
        self.assert_replays(run, 2)
        content = bytearray(weights.read_bytes())
        content[-2] ^= 1  # of the last number of the last tensor
        weights.write_bytes(content)
        self.assertRegex(self.replay(run, code=1).splitlines()[0],
                         r"^rank 1, step 1, compute, after Start: weights differs in model/4\.weight$")

    def replay_elsewhere(self, run):
        """As on a processor that knows no vector instructions."""
        return Running(["env", "ATEN_CPU_CAPABILITY=default", TUTTI, "replay", run]).wait()

    def test_on_another_kind_of_processor_losses_are_compared_to_a_tolerance(self):
        recipe, data = self.own_recipe_and_data()
        run = self.folder / "run"
        record(run, recipe=recipe, train__max_duration="2ep")
        self.assertNotIn("the run computed with", self.replay(run))
        elsewhere = self.replay_elsewhere(run)
        if "the run computed with" not in elsewhere.text:
            self.skipTest("needs a processor with vector instructions")
        self.assertEqual(elsewhere.code, 0, elsewhere.text)
        self.assertRegex(elsewhere.text, r"messages; 60 losses, all equal to a tolerance\n"
                                         r"the run computed with AVX\w+, this machine with DEFAULT: bits may differ")
        change_a_byte_of_a_late_image(data, byte=3)  # by more than any rounding
        elsewhere = self.replay_elsewhere(run)
        self.assertEqual(elsewhere.code, 1, elsewhere.text)
        self.assertRegex(elsewhere.text, r"^rank [01], step \d+, compute, after BatchReady: loss differs\n"
                                         r"the run computed with AVX")

    def test_rounding_that_adds_up_over_many_steps_is_no_difference(self):
        run = self.folder / "run"
        record(run, train__max_duration="60ep", train__eval_interval="60ep", collectives__bucket_mb=0.01)
        for capability in ("default", "avx2"):
            finished = Running(["env", f"ATEN_CPU_CAPABILITY={capability}", TUTTI, "replay", run]).wait()
            self.assertEqual(finished.code, 0, finished.text)

    def test_a_replay_can_end_earlier_and_show_the_state(self):
        run = self.folder / "run"
        copy_trained(run, **SHORT)
        self.assertRegex(self.replay(run, "--until", "step=12"), r"; 74 digests, all equal\n$")
        self.assertRegex(self.replay(run, "--rank", "1", "--until", "step=12"), r"; 37 digests")
        text = self.replay(run, "--break-at", "step=12")
        self.assertIn(f"the state before step 12 is in {run}/replay-step-12", text)
        for rank in (0, 1):
            self.assertTrue((run / "replay-step-12" / f"rank-{rank}.h5").read_bytes().startswith(b"\x89HDF"))
        code = "import h5py, sys; print([f[sys.argv[2]].shape for f in map(h5py.File, sys.argv[1:2])])"
        read = subprocess.run([sys.executable, "-c", code, run / "replay-step-12" / "checkpoint.h5", "0.weight"],
                              capture_output=True, text=True)
        if "No module named 'h5py'" not in read.stderr:
            self.assertEqual(read.stdout, "[(128, 64)]\n", read.stderr)

    def test_a_run_without_a_record_is_refused(self):
        run = self.folder / "run"
        record(run, train__max_duration="1ba", journal__level="off")
        finished = tutti("replay", run).wait()
        self.assertEqual((finished.code, finished.errors()), (2, [f"error: {run}: there is no journal in it"]))


def steps(run):
    path = run / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def change_a_byte_of_a_late_image(path, byte=2, evaluated=False):
    """Images of 64 floats and, at most 2 KiB further on, labels of int64 in one row: 1437 to train on, then 360 to
    evaluate on. So no more than 16 images follow the one that is changed."""
    content = bytearray(path.read_bytes())
    labels = [row.start() for row in re.finditer(rb"(?:[\0-\x09]\0{7}){360,}", content)]
    if len(labels) != 2:
        raise AssertionError(f"{path} is not laid out as this test thinks: {labels}")
    content[labels[evaluated] - 4096 + byte] ^= 0x40
    path.write_bytes(content)


def write_weights(path):
    shapes = {"0.weight": [128, 64], "0.bias": [128], "2.weight": [64, 128], "2.bias": [64],
              "4.bias": [10], "4.weight": [10, 64]}
    draw = random.Random(1)
    header, data = {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{count}f", *(draw.uniform(-0.1, 0.1) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    tutti_run.main()
