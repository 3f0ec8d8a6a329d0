"""A rank that runs out of memory costs a step's repetition and no bits; one sample that is too large ends the
run with one clear error."""
import tutti_run
from tutti_run import EXAMPLES, log, metrics, start, train

CNN = {"recipe": EXAMPLES / "digits_cnn.toml", "train__max_duration": "6ba"}


def schedule(run):
    """What grad_accum the steps had, as a recipe gives it by hand."""
    steps = []
    for line in metrics(run):
        if "loss" in line and (not steps or steps[-1][1] != line["grad_accum"]):
            steps.append([line["step"] - 1, line["grad_accum"]])
    return steps


class OutOfMemory(tutti_run.RunTest):
    def peak_mb(self, ranks):
        train(self.folder / "clean", ranks=ranks, **CNN)
        return max(line["memory_peak_mb"] for line in metrics(self.folder / "clean") if "loss" in line)

    def test_activations_are_most_of_what_it_holds(self):
        """What grows with the batch, at least three quarters of the peak."""
        peaks = {}
        for samples in (48, 240):
            run = self.folder / str(samples)
            train(run, ranks=1, recipe=CNN["recipe"], train__max_duration="2ba", train__eval_interval="0ep",
                  data__train__batch_size=samples)
            peaks[samples] = max(line["memory_peak_mb"] for line in metrics(run))
        a_sample = (peaks[240] - peaks[48]) / (240 - 48)
        self.assertGreaterEqual(240 * a_sample, 0.75 * peaks[240])

    def learns_as_by_hand(self, ranks, budget):
        finished = train(self.folder / "auto", ranks=ranks, train__grad_accum="auto",
                         device__memory_budget_mb=budget, **CNN)
        found = schedule(self.folder / "auto")
        self.assertGreaterEqual(found[-1][1], 2)
        self.assertEqual(finished.text.count("step 1: rank "), len(bin(found[0][1])) - 3, finished.text)
        train(self.folder / "by_hand", ranks=ranks, train__grad_accum=found, **CNN)
        self.assert_learnt_the_same(self.folder / "auto", self.folder / "by_hand")
        return finished

    def test_one_rank_of_two_with_less_memory(self):
        finished = self.learns_as_by_hand(2, [1000, 0.6 * self.peak_mb(2)])
        self.assertIn("step 1: rank 1 ran out of memory (asked ", finished.text)
        self.assertIn("MB in use); grad_accum is now 2\n", finished.text)

    def test_alone(self):
        self.learns_as_by_hand(1, 0.6 * self.peak_mb(1))

    def test_one_sample_that_is_too_large(self):
        for ranks, budget in ((1, 3), (2, [1000, 3])):
            running = start(self.folder / "run", ranks=ranks, train__grad_accum="auto",
                            device__memory_budget_mb=budget, **CNN)
            finished = running.wait()
            self.assertEqual(finished.code, 1, finished.text)
            self.assertLess(finished.took_s, 20)
            errors = finished.errors()
            self.assertGreaterEqual(len(errors), 1, finished.text)
            self.assertLessEqual(len(errors), ranks, finished.text)
            for error in errors:
                self.assertIn(f"step 1: rank {ranks - 1} ran out of memory (asked ", error)
                self.assertIn(" of 3.0 MB in use) with one sample at a time", error)
                self.assertIn("what held it: parameters 1.1 MB, gradients ", error)

    def test_ranks_of_one_process_leave_in_their_logs_what_they_did_last(self):
        finished = start(self.folder / "run", "--local-ranks", 2, ranks=1, train__grad_accum="auto",
                         device__memory_budget_mb=[1000, 3], **CNN).wait()
        self.assertEqual(finished.code, 1, finished.text)
        for rank, last in ((0, "backward done"), (1, "out of memory at allocation")):
            told = log(self.folder / "run", rank).partition("the last that was done:\n")[2]
            self.assertRegex(told, fr"\d\.\d\d\d s ago  compute +{last} \(step 0, \d+\)")

    def test_a_list_of_budgets_has_one_for_each_rank(self):
        finished = start(self.folder / "run", ranks=2, device__memory_budget_mb=[1, 2, 3], **CNN).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(finished.errors(), ["error: --set: device.memory_budget_mb = [1.0, 2.0, 3.0]: expected "
                                             "one number for each of the 2 ranks, or one for all"])


if __name__ == "__main__":
    tutti_run.main()
