"""A rank that runs out of memory costs a step's repetition and no bits; one sample that is too large ends the
run with one clear error."""
import json

import tutti_run
from tutti_run import EXAMPLES, log, metrics, start, train, trained, tutti

CNN = {"recipe": EXAMPLES / "digits_cnn.toml", "train__max_duration": "4ba", "data__eval__subset_num_batches": 1}

# Nearly all that it holds are scores, their logarithms and the gradients of both: two of a batch's size at the
# end of a forward, and three in its backward. Epochs have three whole batches, and a tenth of one.
SCORES = {"recipe": EXAMPLES / "faults" / "tiny.toml", "data__train__samples": 744, "data__train__batch_size": 240,
          "data__train__classes": 4096, "data__eval__classes": 4096, "train__max_duration": "6ba"}


def schedule(run):
    """What grad_accum the steps had, as a recipe gives it by hand."""
    steps = []
    for line in metrics(run):
        if "loss" in line and (not steps or steps[-1][1] != line["grad_accum"]):
            steps.append([line["step"] - 1, line["grad_accum"]])
    return steps


def first_shortages(run):
    """By rank, what it did when it first ran out of memory: the event of its timeline before that."""
    told = tutti("timeline", run).wait()
    if told.code != 0:
        raise AssertionError(told.text)
    found, newest = {}, {}
    for event in json.loads((run / "timeline.json").read_text())["traceEvents"]:
        rank, name = event["pid"] - 1, event.get("name")
        if event["ph"] == "B" and name in ("forward", "backward"):
            newest[rank] = name
        elif event["ph"] == "i" and name == "out of memory":
            found.setdefault(rank, newest[rank])
    return found


class OutOfMemory(tutti_run.RunTest):
    def peak_mb(self, ranks, options=CNN):
        return max(line["memory_peak_mb"] for line in metrics(trained(ranks=ranks, **options)) if "loss" in line)

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

    def learns_as_by_hand(self, ranks, budget, options=CNN, **of_auto):
        finished = train(self.folder / "auto", ranks=ranks, train__grad_accum="auto",
                         device__memory_budget_mb=budget, **options, **of_auto)
        found = schedule(self.folder / "auto")
        self.assertGreaterEqual(found[-1][1], 2)
        self.assertEqual(finished.text.count("step 1: rank "), len(bin(found[0][1])) - 3, finished.text)
        by_hand = trained(ranks=ranks, train__grad_accum=found, **options)
        self.assert_learnt_the_same(self.folder / "auto", by_hand)
        return finished

    def test_one_rank_of_two_with_less_memory(self):
        finished = self.learns_as_by_hand(2, [1000, 0.6 * self.peak_mb(2)])
        self.assertIn("step 1: rank 1 ran out of memory (asked ", finished.text)
        self.assertIn("MB in use); grad_accum is now 2\n", finished.text)

    def test_both_ranks_with_too_little(self):
        budget = 0.6 * self.peak_mb(2)
        finished = self.learns_as_by_hand(2, [budget, budget])
        self.assertIn("step 1: rank 0 and 1 other ran out of memory (asked ", finished.text)

    def test_two_ranks_that_run_out_in_different_phases(self):
        """Rank 0 in a backward, and once its batch is halved no more; rank 1 in a forward, and again."""
        peak = self.peak_mb(2, SCORES)
        finished = self.learns_as_by_hand(2, [0.85 * peak, 0.45 * peak], SCORES)
        self.assertEqual(schedule(self.folder / "auto"), [[0, 4]])
        self.assertEqual(first_shortages(self.folder / "auto"), {0: "backward", 1: "forward"})
        self.assertIn("step 1: rank 0 and 1 other ran out of memory (asked ", finished.text)
        self.assertIn("step 1: rank 1 ran out of memory (asked ", finished.text)

    def test_microbatches_grow_back(self):
        """After three steps in halves, for the small batch that ends the epoch; the next one is too large again."""
        options = {**SCORES, "train__max_duration": "8ba"}
        budget = 0.85 * self.peak_mb(2, options)
        self.learns_as_by_hand(2, [budget, budget], options, train__grad_accum_grow_interval="3ba")
        self.assertEqual(schedule(self.folder / "auto"), [[0, 2], [3, 1], [4, 2]])
        told = log(self.folder / "auto")
        self.assertIn("step 4: memory has sufficed for long; grad_accum is now 1", told)
        self.assertIn("step 5: rank 0 and 1 other ran out of memory (asked ", told)

    def test_alone(self):
        self.learns_as_by_hand(1, 0.6 * self.peak_mb(1))

    def test_one_sample_that_is_too_large(self):
        for ranks, budget in ((1, 3), (2, [1000, 3])):
            running = start(self.folder / "run", ranks=ranks, train__grad_accum="auto",
                            device__memory_budget_mb=budget, **CNN)
            finished = running.wait()
            self.assertEqual(finished.code, 1, finished.text)
            self.assertLess(finished.took_s, 20)
            self.assertEqual(len(finished.errors()), 1, finished.text)
            error = finished.errors()[0]
            self.assertIn(f"step 1: rank {ranks - 1} ran out of memory (asked ", error)
            self.assertIn(" of 3.0 MB in use) with one sample at a time", error)
            self.assertIn("what held it: parameters 1.1 MB, gradients ", error)

    def test_ranks_of_one_process_leave_in_their_logs_what_they_did_last(self):
        finished = start(self.folder / "run", "--local-ranks", 2, ranks=1, train__grad_accum="auto",
                         device__memory_budget_mb=[1000, 3], **CNN).wait()
        self.assertEqual(finished.code, 1, finished.text)
        for rank, last in ((0, "backward done"), (1, "out of memory at allocation")):
            told = log(self.folder / "run", rank).partition("the last that was done:\n")[2]
            self.assertRegex(told, fr"\d\.\d\d\d s ago  compute +{last} \(after step 0, \d+\)")

    def test_a_list_of_budgets_has_one_for_each_rank(self):
        finished = start(self.folder / "run", ranks=2, device__memory_budget_mb=[1, 2, 3], **CNN).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(finished.errors(), ["error: --set: device.memory_budget_mb = [1.0, 2.0, 3.0]: expected "
                                             "one number for each of the 2 ranks, or one for all"])


if __name__ == "__main__":
    tutti_run.main()
