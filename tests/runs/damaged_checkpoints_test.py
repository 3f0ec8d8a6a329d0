"""A damaged checkpoint is named and the one before it used: the run ends with the same bits."""
import shutil

import tutti_run
from tutti_run import train, trained, tutti

RECIPE = {"train__max_duration": "60ba", "train__eval_interval": "20ba", "checkpoint__interval": "20ba"}
HALF = {**RECIPE, "train__max_duration": "40ba"}


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1000])


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def tear(path):
    path.write_bytes(path.read_bytes()[:len(path.read_bytes()) // 2])


class DamagedCheckpoints(tutti_run.RunTest):
    @classmethod
    def setUpClass(cls):
        cls.half, cls.whole = trained(**HALF), trained(**RECIPE)

    def setUp(self):
        super().setUp()
        self.run = self.folder / "run"
        shutil.copytree(self.half, self.run, symlinks=True)
        self.checkpoints = self.run / "checkpoints"
        self.newest = self.checkpoints / "ep2-ba40"
        self.assertEqual((self.checkpoints / "latest").readlink().name, self.newest.name)

    def resume_after(self, step, named=(), under_mpirun=False):
        """On two ranks: in one process, but for damage that one rank alone meets, and a torn manifest."""
        how = () if under_mpirun else ("--local-ranks", 2)
        finished = train(self.run, "--resume", "auto", *how, ranks=2 if under_mpirun else 1, **RECIPE)
        for words in named:
            self.assertIn(words, finished.text)
        self.assertEqual("resumes after step" in finished.text, step > 0, finished.text)
        if step > 0:
            self.assertIn(f"resumes after step {step},", finished.text)
        self.assert_learnt_the_same(self.whole, self.run)

    def test_an_undamaged_checkpoint_is_used(self):
        self.resume_after(40)

    def test_a_truncated_file(self):
        truncate(self.newest / "rank-1.h5")
        self.resume_after(20, ["ignored", "ep2-ba40/rank-1.h5: truncated at "], under_mpirun=True)

    def test_a_flipped_bit(self):
        flip_a_byte(self.newest / "rank-0.h5")
        self.resume_after(20, ["ignored", "ep2-ba40/rank-0.h5: corrupt"], under_mpirun=True)

    def test_a_missing_file(self):
        (self.newest / "rank-1.h5").unlink()
        self.resume_after(20, ["ignored", "ep2-ba40/rank-1.h5: missing"])

    def test_a_torn_manifest(self):
        tear(self.newest / "manifest.json")
        self.resume_after(20, ["ignored", "ep2-ba40/manifest.json: it is torn"], under_mpirun=True)

    def test_a_flipped_bit_in_the_manifest(self):
        flip_a_byte(self.newest / "manifest.json")
        self.resume_after(20, ["ignored", "ep2-ba40/manifest.json: "])

    def test_a_missing_manifest(self):
        (self.newest / "manifest.json").unlink()
        self.resume_after(20, ["ignored", "ep2-ba40/manifest.json: missing"])

    def test_all_checkpoints_damaged(self):
        truncate(self.newest / "rank-0.h5")
        truncate(self.checkpoints / "ep1-ba20" / "rank-0.h5")
        self.resume_after(0, ["ep2-ba40/rank-0.h5: truncated at ", "ep1-ba20/rank-0.h5: truncated at "])

    def test_a_lost_link_to_the_latest(self):
        (self.checkpoints / "latest").unlink()
        self.resume_after(40)

    def test_the_checkpoint_resumed_from_outlives_damaged_checkpoints(self):
        truncate(self.newest / "rank-0.h5")
        train(self.run, "--resume", "auto", **{**RECIPE, "train__max_duration": "30ba", "checkpoint__keep": 1,
                                               "checkpoint__interval": "5ba"})
        self.assertEqual((self.checkpoints / "latest").readlink().name, "ep2-ba30")
        self.assertTrue((self.checkpoints / "latest" / "manifest.json").exists())

    def test_a_named_damaged_checkpoint_is_refused(self):
        truncate(self.newest / "rank-0.h5")
        finished = tutti_run.start(self.run, "--resume", self.newest, **RECIPE).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)
        self.assertIn("ep2-ba40/rank-0.h5: truncated at ", finished.errors()[0])

    def test_inspect_shows_the_one_before_it(self):
        flip_a_byte(self.newest / "rank-0.h5")
        finished = tutti("inspect", self.run).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertIn("ignored: ", finished.text)
        self.assertIn("\n  step 20, ", finished.text)


if __name__ == "__main__":
    tutti_run.main()
