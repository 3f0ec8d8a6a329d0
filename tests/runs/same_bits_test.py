"""The same recipe gives the same bits: run again, and however its two ranks are carried."""
import tutti_run
from tutti_run import AUGMENTED, EXAMPLES, train, trained

GPT = EXAMPLES / "text_gpt.toml"
CNN = EXAMPLES / "digits_cnn.toml"


class SameBits(tutti_run.RunTest):
    def local_equals_mpirun(self, **options):
        train(self.folder / "local", "--local-ranks", "2", ranks=1, **options)
        self.assert_learnt_the_same(trained(ranks=2, **options), self.folder / "local")

    def test_a_recipe_run_twice_learns_the_same(self):
        train(self.folder / "again", ranks=2)
        self.assert_learnt_the_same(trained(ranks=2), self.folder / "again")

    def test_another_seed_learns_otherwise(self):
        options = {"ranks": 2, "train__max_duration": "3ep"}
        train(self.folder / "two", seed=18, **options)
        self.assertNotEqual(tutti_run.digest(trained(**options)), tutti_run.digest(self.folder / "two"))

    def test_ranks_in_one_process_equal_mpirun_on_digits(self):
        self.local_equals_mpirun()

    def test_ranks_in_one_process_equal_mpirun_on_gpt(self):
        self.local_equals_mpirun(recipe=GPT, train__max_duration="6ba", train__eval_interval="3ba",
                                 data__eval__drop_last="true", data__eval__subset_num_batches=3)

    def test_ranks_in_one_process_equal_mpirun_on_resnet_with_accumulation(self):
        self.local_equals_mpirun(recipe=CNN, train__max_duration="10ba", train__grad_accum=2)

    def test_ranks_in_one_process_equal_mpirun_in_many_small_buckets(self):
        self.local_equals_mpirun(collectives__bucket_mb=0.01, train__max_duration="3ep")

    def test_buckets_do_not_alter_bits(self):
        small = trained(ranks=2, collectives__bucket_mb=0.01, train__max_duration="3ep")
        self.assert_learnt_the_same(trained(ranks=2, train__max_duration="3ep"), small)

    def test_workers_do_not_alter_bits(self):
        """Ranks that share a process have none."""
        options = {"train__max_duration": "20ba", "ranks": 2, **AUGMENTED}
        train(self.folder / "alone", **options)
        train(self.folder / "workers", data__train__num_workers=3, data__eval__num_workers=2, **options)
        self.assert_learnt_the_same(self.folder / "alone", self.folder / "workers")
        train(self.folder / "local", "--local-ranks", "2", data__train__num_workers=3, **{**options, "ranks": 1})
        self.assert_learnt_the_same(self.folder / "alone", self.folder / "local")

    def test_one_and_three_ranks_learn_the_same_but_for_rounding(self):
        train(self.folder / "one", ranks=1)
        train(self.folder / "three", ranks=3)
        first = [line["loss"] for line in tutti_run.metrics(self.folder / "one") if "loss" in line]
        second = [line["loss"] for line in tutti_run.metrics(self.folder / "three") if "loss" in line]
        self.assertEqual(len(first), len(second))
        for a, b in zip(first[:20], second[:20]):
            self.assertAlmostEqual(a, b, delta=1e-4)
        self.assertGreaterEqual(self.accuracy("one"), 0.97)
        self.assertGreaterEqual(self.accuracy("three"), 0.97)

    def accuracy(self, run):
        return tutti_run.metrics(self.folder / run)[-1]["metrics/eval/MulticlassAccuracy"]


if __name__ == "__main__":
    tutti_run.main()
