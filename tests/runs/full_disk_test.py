"""A full disk under the checkpoints does not end a training: the failure is reported, and the last good checkpoint stays."""
import contextlib
import re
import shutil
import subprocess

import tutti_run
from tutti_run import digest, settings, start, train

DISK_BYTES = 3 << 20
RECIPE = {"train__max_duration": "16ep", "train__eval_interval": "4ep", "checkpoint__interval": "2ep",
          "checkpoint__keep": -1, "model__hidden": "[256, 256]"}  # 0.7 MB a checkpoint


class FullDisk(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        self.run = self.folder / "run"
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        mounting = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", self.disk],
                                  capture_output=True, text=True)
        if mounting.returncode != 0:
            self.skipTest(f"needs the right to mount a tmpfs: {mounting.stderr}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.disk], check=True)

    def fill(self, leave_bytes=0):
        """Writes a file, so that only so much space is left."""
        with open(self.disk / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while shutil.disk_usage(self.disk).free > leave_bytes:
                ballast.write(bytes(4096))

    def test_training_continues_to_the_end_and_exits_with_3(self):
        finished = self.finished_without_room()
        self.assertEqual(finished.code, 3, finished.text)
        self.assertEqual(tutti_run.metrics(self.run)[-1]["step"], 240)
        published = re.findall(r"checkpoint (\S+) is published", tutti_run.log(self.run))
        failed = re.findall(r"checkpoint (\S+) failed \((\d+) so far\), the last good one stays: .*No space",
                            finished.text)
        self.assertGreaterEqual(len(published), 1)
        counts = [int(count) for _, count in failed]
        self.assertEqual(counts, list(range(1, 9 - len(published))), finished.text)
        self.assertEqual(failed[-1][0], "ep16-ba240")
        self.assertEqual((self.disk / "latest").readlink().name, published[-1])
        self.assertEqual([path.name for path in self.disk.glob(".ep*")], [], "unfinished checkpoints stay")
        self.assert_goes_on_from(published[-1].rpartition("ba")[2])

    def finished_without_room(self):
        """A run whose last checkpoint failed. Of two that are written at once both may fail: the last has room."""
        for _ in range(5):
            finished = start(self.run, checkpoint__save_folder=self.disk, **RECIPE).wait()
            if finished.code != 0:
                break
            for path in (self.run, *self.disk.iterdir()):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return finished

    def assert_goes_on_from(self, step):
        shutil.rmtree(self.disk / "ep2-ba30")  # makes room
        room = {"checkpoint__save_folder": self.disk, "checkpoint__keep": 1, "checkpoint__interval": "16ep"}
        resumed = train(self.run, "--resume", "auto", **{**RECIPE, **room})
        self.assertIn(f"resumes after step {step},", resumed.text)
        whole = self.folder / "whole"
        train(whole, **RECIPE)
        self.assertEqual(digest(whole), digest(self.disk))

    def test_a_limit_on_the_size_of_files_is_like_a_full_disk(self):
        recipe = {**RECIPE, "train__max_duration": "2ep"}
        command = [tutti_run.TUTTI, "train", tutti_run.DIGITS, "--run-dir", self.run, *settings(**recipe)]
        limited = ["sh", "-c", 'ulimit -f 800; exec "$@"', "sh", *map(str, command)]  # blocks of 512 bytes
        finished = tutti_run.Running(limited).wait()
        self.assertEqual(finished.code, 3, finished.text)
        self.assertRegex(finished.text, "checkpoint ep2-ba30 failed .*rank-0.h5: cannot write: File too large")

    def test_where_old_checkpoints_make_room_the_run_ends_well(self):
        finished = train(self.run, checkpoint__save_folder=self.disk, **{**RECIPE, "checkpoint__keep": 1})
        self.assertNotIn("failed", finished.text)

    def test_a_disk_that_is_full_for_a_while(self):
        self.fill(leave_bytes=100_000)
        running = start(self.run, checkpoint__save_folder=self.disk,
                        **{**RECIPE, "train__max_duration": "60ep", "checkpoint__keep": 1})
        running.wait_for(lambda: "failed (2 so far)" in running.text(), "the second failure")
        (self.disk / "ballast").unlink()
        finished = running.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertRegex((self.disk / "latest").readlink().name, "ep60-ba900")

    def test_a_run_folder_on_a_full_disk(self):
        run = self.disk / "run"
        running = start(run, **{**RECIPE, "train__max_duration": "150ep", "checkpoint__interval": "150ep"})
        running.wait_for(lambda: (run / "metrics.jsonl").exists(), "the first step")
        self.fill()
        finished = running.wait()
        self.assertEqual(finished.code, 3, finished.text)
        self.assertIn("metrics.jsonl: cannot write: No space left on device", finished.text)


if __name__ == "__main__":
    tutti_run.main()
