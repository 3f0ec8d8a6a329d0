"""Ranks that share the parameters: a model larger than a rank, ranks that are killed or run out of memory, and
gathers beside the computing. That sharded runs have the bits of others: tests/sharding."""
import json
import signal

import tutti_run
from tutti_run import EXAMPLES, digest, log, metrics, start, train, tutti

FULL = {"sharding__strategy": "full"}
# The weights are most of what it holds.
LAYERS = 4
GPT = {"recipe": EXAMPLES / "text_gpt.toml", "model__n_layer": LAYERS, "data__train__batch_size": 3,
       "data__train__sequence_length": 16, "data__eval__sequence_length": 16, "data__eval__batch_size": 3,
       "data__eval__subset_num_batches": 2, "checkpoint__interval": "3ba"}


def events(run, rank=0):
    """Slices and marks of a rank's timeline, in order: (name, arguments)."""
    told = tutti("timeline", run).wait()
    if told.code != 0:
        raise AssertionError(told.text)
    found = [event for event in json.loads((run / "timeline.json").read_text())["traceEvents"]
             if event["pid"] == rank + 1 and event["ph"] in "Bi"]
    return [(event["name"], event.get("args", {})) for event in sorted(found, key=lambda event: event["ts"])]


class Sharded(tutti_run.RunTest):
    def replay(self, run, ranks):
        finished = tutti("replay", run).wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertRegex(finished.text, fr"^replayed {ranks} ranks, \d+ messages; [1-9]\d+ digests, all equal")
        return finished.text

    def test_a_model_larger_than_a_rank_trains_resumes_and_evaluates(self):
        peaks = {}
        for strategy in ("none", "full"):
            run = self.folder / strategy
            train(run, ranks=2, sharding__strategy=strategy, train__max_duration="6ba", train__eval_interval="3ba",
                  **GPT)
            peaks[strategy] = max(line.get("memory_peak_mb", 0) for line in metrics(run))
        budget = (peaks["none"] + peaks["full"]) / 2
        small = {**GPT, "device__memory_budget_mb": budget, "train__eval_interval": "3ba"}
        refused = start(self.folder / "refused", ranks=2, train__max_duration="6ba", **small).wait()
        self.assertEqual(refused.code, 1, refused.text)
        self.assertIn("ran out of memory", refused.text)
        run = self.folder / "small"
        train(run, ranks=2, train__max_duration="3ba", **FULL, **small)
        train(run, "--resume", "auto", ranks=2, train__max_duration="6ba", **FULL, **small)
        self.assertNotIn("out of memory", log(run))
        self.assertEqual(digest(run), digest(self.folder / "none"))
        evaluated = [line for line in metrics(run) if "metrics/eval/LanguageCrossEntropy" in line]
        self.assertEqual([line["step"] for line in evaluated], [3, 6])

    def test_a_run_that_was_killed_is_replayed(self):
        run = self.folder / "run"
        running = start(run, ranks=3, train__max_duration="100000ba", sharding__activation_checkpointing="true", **FULL,
                        **GPT)
        running.wait_for(lambda: (run / "metrics.jsonl").exists() and len(metrics(run)) > 20, "a step")
        running.signal_ranks(signal.SIGKILL, [1])
        self.assertNotEqual(running.wait().code, 0)
        self.assertRegex(self.replay(run, 3), r"the record of rank 1 ends in step \d+, where it was killed")

    def test_a_run_out_of_memory_is_replayed(self):
        options = {**GPT, **FULL, "data__train__batch_size": 32, "train__max_duration": "4ba",
                   "train__eval_interval": "0ba"}
        plain = self.folder / "plain"
        train(plain, ranks=2, **options)
        peak = max(line["memory_peak_mb"] for line in metrics(plain))
        run = self.folder / "run"
        train(run, ranks=2, train__grad_accum="auto", device__memory_budget_mb=[1000, 0.8 * peak], **options)
        self.assertIn("rank 1 ran out of memory", log(run))
        self.replay(run, 2)

    # All prompts at once do not fit, but parts of them do.
    def test_a_generation_out_of_memory_continues_in_parts_and_is_replayed(self):
        text = (EXAMPLES / "text_gpt.toml").read_text().replace('"data/', f'"{EXAMPLES}/data/')
        prompts = json.dumps([f"prompt {number}" for number in range(400)])
        recipe = self.folder / "recipe.toml"
        recipe.write_text(f"{text}\n[[callbacks]]\nkind = 'generate'\nprompts = {prompts}\ninterval = '2ba'\n"
                          "max_new_tokens = 3\n[[loggers]]\nkind = 'file'\n")
        options = {**GPT, **FULL, "recipe": recipe, "train__max_duration": "2ba", "train__eval_interval": "0ba"}
        plain, small = self.folder / "plain", self.folder / "small"
        train(plain, ranks=2, **options)
        budget = 1.1 * max(line["memory_peak_mb"] for line in metrics(plain))
        train(small, ranks=2, device__memory_budget_mb=budget, **options)
        self.assertIn("out of memory", [name for name, _ in events(small)])
        self.assertNotIn("out of memory", [name for name, _ in events(plain)])
        self.assertEqual(digest(small), digest(plain))
        self.replay(small, 2)

    def test_a_unit_is_gathered_while_the_one_before_it_computes(self):
        run = self.folder / "run"
        train(run, ranks=2, train__max_duration="20ba", **{**GPT, **FULL, "data__train__batch_size": 16,
                                                           "data__train__sequence_length": 128,
                                                           "data__eval__sequence_length": 128,
                                                           "train__eval_interval": "0ba"})
        ahead = behind = 0
        begun, current = set(), None
        for name, arguments in events(run):
            if "microbatch" in arguments:
                begun, current = set(), None
            elif name.startswith("gather of unit"):
                begun.add(arguments["unit"])
            elif name.startswith("forward of unit") and "unit" in arguments:
                current = arguments["unit"]
            elif name == "forward" and current is not None:
                ahead += current < LAYERS and current + 1 in begun
                behind += current < LAYERS and current + 1 not in begun
                current = None
        self.assertGreater(ahead, 9 * behind)
        self.assertGreaterEqual(ahead + behind, 20 * (LAYERS - 1))


if __name__ == "__main__":
    tutti_run.main()
