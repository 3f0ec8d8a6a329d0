"""tutti simulate: seeds that run in simulated time, in several processes, with what goes wrong named in a plan."""
import json
import os
import re
import shlex
import signal
import subprocess
import time
import unittest

import tutti_run
from tutti_run import EXAMPLES, SOURCE, metrics, settings, train, tutti

FAULTS = EXAMPLES / "faults"
TINY = FAULTS / "tiny.toml"
TEN_ALGORITHMS = FAULTS / "ten_algorithms.toml"
DRAWN = FAULTS / "drawn.toml"
SHARDED = FAULTS / "sharded.toml"
MANY = FAULTS / "many_out_of_memory.toml"
MEMORY = FAULTS / "memory_and_ranks.toml"
NETWORK = FAULTS / "network.toml"
IS_NIGHTLY = "TUTTI_NIGHTLY" in os.environ


def seeds(count):
    """So many by night, and a tenth of them in `make test`."""
    return f"1..{count if IS_NIGHTLY else count // 10}"


class Simulate(tutti_run.SimulateTest):
    def test_each_seed_is_another_order_and_all_have_one_result(self):
        text = self.simulate("--ranks", 2, "--seeds", seeds(1000), "--once")
        ran = int(re.search(r"seeds +(\d+) on 2 ranks", text)[1])
        orders = int(re.search(r"orders +(\d+) different", text)[1])
        self.assertGreaterEqual(orders, 0.9 * ran, text)
        self.assertRegex(text, r"weights +[0-9a-f]{16} in all")
        self.assertNotIn("twice", text)

    def test_four_ranks_survive_whatever_goes_wrong(self):
        text = self.simulate("--ranks", 4, "--seeds", seeds(300), "--faults", FAULTS / "all.toml")
        self.assertRegex(text, r"seeds +\d+ on 4 ranks, each twice")
        kinds = re.findall(r'kind = "(\w+)"', (FAULTS / "all.toml").read_text())
        self.assertGreaterEqual(len(kinds), 11)
        for number, kind in enumerate(kinds, 1):
            label = kind if kinds.count(kind) == 1 else fr"{kind} \(rule {number}\)"
            self.assertRegex(text, fr"fault +{label}: [1-9]")

    @unittest.skipUnless(IS_NIGHTLY, "takes minutes")
    def test_hundreds_of_ranks_hear_of_each_other(self):
        many = ["--once", "--jobs", 1, *settings(data__train__samples=2048, data__train__batch_size=1024,
                                                 checkpoint__interval="1ba", train__max_duration="3ba")]
        self.simulate(*many, "--ranks", 1024, "--seeds", "1..1", timeout=1800)
        self.simulate(*many, "--ranks", 300, "--seeds", "1..3", "--faults", FAULTS / "death.toml", timeout=1800)

    def test_ten_algorithms_at_once_survive_it_too(self):
        text = self.simulate("--ranks", 4, "--seeds", f"1..{500 if IS_NIGHTLY else 40}", "--faults",
                             FAULTS / "all.toml", recipe=TEN_ALGORITHMS, timeout=900)
        self.assertIn("failed     0", text)

    def test_sharded_ranks_survive_it_too(self):
        for strategy in ("optimizer", "gradients", "full", "hybrid"):
            more = settings(sharding__shard_size=2) if strategy == "hybrid" else []
            self.simulate("--ranks", 4, "--seeds", f"1..{500 if IS_NIGHTLY else 40}", "--once", "--faults",
                          FAULTS / "all.toml", *settings(sharding__strategy=strategy), *more)

    def test_sharded_ranks_run_out_of_memory_wherever_they_are(self):
        for ranks, more in ((4, settings(sharding__strategy="full")),
                            (8, settings(sharding__strategy="hybrid", sharding__shard_size=4))):
            self.simulate("--ranks", ranks, "--seeds", f"1..{300 if IS_NIGHTLY else 10}", "--once", "--faults",
                          MEMORY, *more, recipe=SHARDED)

    def test_a_rank_with_less_memory_than_the_others(self):
        """Whatever else goes wrong; without a plan, once in each seed."""
        wide = {"model__hidden": [64], "data__train__samples": 240, "data__train__batch_size": 120}
        train(self.folder / "run", "--local-ranks", 3, recipe=TINY, ranks=1, **wide)
        peak = max(line.get("memory_peak_mb", 0) for line in metrics(self.folder / "run"))
        scarce = ["--ranks", 3, *settings(**wide, device__memory_budget_mb=[1, 1, 0.8 * peak])]
        self.assertRegex(self.simulate(*scarce, "--seeds", "1..10"), r"fault +memory_budget: 10\n")
        self.simulate(*scarce, "--seeds", seeds(400), "--once", "--faults", FAULTS / "all.toml")

    def test_every_plan_is_one(self):
        usual = ["--ranks", 3, "--seeds", seeds(40)]
        own = {MANY: ["--ranks", 4, "--seeds", seeds(100), *settings(train__grad_accum_grow_interval="2ba")],
               NETWORK: ["--ranks", 4, "--seeds", seeds(400)]}
        elsewhere = [TINY, TEN_ALGORITHMS, SHARDED, DRAWN, FAULTS / "all.toml", MEMORY]  # no plans, and others' plans
        for plan in sorted(FAULTS.glob("*.toml")):
            if plan not in elsewhere:
                self.simulate(*own.get(plan, usual), "--once", "--jobs", 1, "--faults", plan)

    def test_memory_runs_out_several_times_in_an_attempt(self):
        text = self.simulate("--ranks", 4, "--seeds", seeds(120), "--once", "--faults", MANY)
        times = re.findall(r"fault +out_of_memory \(rule \d\): (\d+)", text)
        self.assertEqual(len(times), 7, text)
        self.assertGreater(sum(map(int, times)), int(re.search(r"attempts +(\d+)", text)[1]), text)

    def test_a_run_that_gives_up_ends_on_all_ranks(self):
        """Some come to know of it while rank 0 is through already: the last checkpoint is of this very step."""
        plan = self.folder / "plan.toml"
        plan.write_text('[[fault]]\nkind = "out_of_memory"\ncount = 3\n')
        self.simulate("--ranks", 3, "--seeds", seeds(60), "--once", "--faults", plan,
                      *settings(train__grad_accum=1, checkpoint__interval="1ba"))

    def test_short_last_batches_break_nothing(self):
        """The last batch of an epoch is one sample: where memory runs out in it, the start ends, and may."""
        self.simulate("--ranks", 3, "--seeds", seeds(400), "--once", "--faults", FAULTS / "all.toml",
                      *settings(data__train__drop_last="false", data__train__samples=61))

    def test_a_fault_that_never_happens_is_a_failure(self):
        plan = self.folder / "plan.toml"
        plan.write_text('[[fault]]\nkind = "death"\nphase = "commit"\nstep = 1000000\n')
        text = self.simulate("--jobs", 1, "--seeds", "1..4", "--faults", plan, code=1)
        self.assertIn("death: never happened", text)
        self.assertRegex(text, r"failed +0; a fault of the plan did not happen in any seed, so the exit code is 1\n$")

    def test_a_rule_that_never_happens_is_a_failure(self):
        plan = self.folder / "plan.toml"
        plan.write_text('[[fault]]\nkind = "death"\n[[fault]]\nkind = "death"\nphase = "commit"\nstep = 1000000\n')
        text = self.simulate("--jobs", 1, "--seeds", "1..4", "--faults", plan, code=1)
        self.assertRegex(text, r"fault +death \(rule 1\): [1-9]")
        self.assertRegex(text, r"fault +death \(rule 2\): never happened")

    def test_faults_of_several_ranks_are_not_missed_on_one(self):
        plan = self.folder / "plan.toml"
        plan.write_text('[[fault]]\nkind = "delay"\n[[fault]]\nkind = "hang"\n')
        text = self.simulate("--ranks", 1, "--seeds", "1..8", "--once", "--jobs", 1, "--faults", plan)
        for kind in ("delay", "hang"):
            self.assertIn(f"{kind}: cannot happen on one rank", text)

    def test_full_disks_are_no_news_of_the_simulator_s_own(self):
        plan = self.folder / "plan.toml"
        plan.write_text('[[fault]]\nkind = "disk_full"\nrank = 0\ncount = 5\nfile = "metrics.jsonl"\n')
        text = self.simulate("--ranks", 2, "--seeds", "1..20", "--once", "--faults", plan)
        self.assertNotIn("cannot write", text)

    def test_faults_of_three_ranks_are_not_missed_on_two(self):
        text = self.simulate("--ranks", 2, "--seeds", "1..4", "--once", "--jobs", 1,
                             "--faults", FAULTS / "reorder.toml")
        self.assertIn("reorder: cannot happen on fewer than three ranks", text)

    def test_a_job_that_cannot_be_is_refused_once(self):
        finished = tutti("simulate", TINY, "--ranks", 13, "--seeds", "1..8").wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)

    def test_a_job_that_does_not_come_to_train_is_refused_once(self):
        finished = tutti("simulate", TINY, "--seeds", "1..8", "--set", "checkpoint.load_path=missing").wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)
        self.assertIn("missing", finished.text)
        self.assertNotIn("seed 1:", finished.text)

    def test_a_failing_seed_says_how_to_have_it_again(self):
        # A run that ends by the clock ends at another step with every seed.
        text = self.simulate("--seeds", "3..8", "--set", "train.max_duration=1sec", "--set", "run_name=it's a failure",
                             code=1)
        seed, finding, line = re.search(r"^seed (\d+): (.*)\n  tutti (.*)  # tutti .*libtorch", text, re.M).groups()
        self.assertIn(f"--seeds {seed} ", line)
        self.assertRegex(text, r"  # tutti 0\.\d.* GNU .*, commit \S+\n")
        if self.is_checkout():
            self.assertNotIn("commit unknown", text)
        again = tutti(*shlex.split(line)).wait()
        self.assertEqual(again.code, 1)
        self.assertIn(f"seed {seed}: {finding}\n", again.text)

    def test_every_failing_seed_is_reported_before_the_whole_and_says_how_to_have_it_again(self):
        text = self.simulate("--seeds", "1..40", "--once", "--set", "train.max_duration=1sec", code=1)
        told = list(re.finditer(r"^seed (\d+): .+\n  tutti simulate .* --seeds (\d+) .*  # tutti ", text, re.M))
        failed = int(re.search(r"^  failed +(\d+), listed above$", text, re.M)[1])
        self.assertGreater(failed, 10, text)
        self.assertEqual(len({seed[1] for seed in told}), failed, text)
        for seed in told:
            self.assertEqual(seed[1], seed[2])
            self.assertLess(seed.end(), text.index("  seeds  "))

    def test_a_process_that_simulates_for_long_says_that_it_continues(self):
        """Else the one that started it would give it up. That it takes longer than five seconds is because it is
        held for so long."""
        running = tutti("simulate", TINY, "--ranks", 2, "--seeds", 1, "--share-of", 1, "--once",
                        *settings(train__max_duration="1000ba", train__eval_interval="0ep",
                                  checkpoint__interval="0ba"))
        running.wait_for(lambda: "tutti-seed-begin" in running.text(), "the seed")
        running.process.send_signal(signal.SIGSTOP)
        time.sleep(5.1)
        running.process.send_signal(signal.SIGCONT)
        finished = running.wait()
        self.assertEqual(finished.code, 0, finished.text)
        self.assertRegex(finished.text, r"tutti-seed-heartbeat\n(.*\n)*tutti-seed-result\t1\t")

    def is_checkout(self):
        described = subprocess.run(["git", "describe", "--always"], cwd=SOURCE, capture_output=True)
        return (SOURCE / ".git").exists() and described.returncode == 0

    def test_bad_plans_are_refused_with_their_place(self):
        plan = self.folder / "plan.toml"
        for written, words in (('[[fault]]\nkind = "deth"\n', ["plan.toml:2", "deth", "death"]),
                               ('starts = 2\n[[fault]]\nkind = "death"\nrank = 2\n', ["plan.toml:4", "2 ranks"]),
                               ('[[fault]]\nkind = "slow"\nphase = "lunch"\n', ["plan.toml:3", "lunch"]),
                               ('[[fault]]\nkind = "out_of_memory"\nphase = "commit"\n',
                                ["plan.toml:3", "commit", "cannot happen in this phase", "backward, evaluation or any"]),
                               ('[[fault]]\nkind = "slow"\nsecs = 3\n', ["plan.toml:3", "seconds"]),
                               ('[[fault]]\nkind = "delay"\nseconds = 0\n', ["plan.toml:3", "more than 0 seconds"])):
            plan.write_text(written)
            text = self.simulate("--faults", plan, code=2)
            for word in words:
                self.assertIn(word, text)

    def test_a_seed_alone_leaves_journals_where_it_is_asked_to(self):
        run = self.folder / "run"
        self.simulate("--ranks", 3, "--seeds", 2, "--faults", FAULTS / "death.toml", "--run-dir", run)
        starts = sorted(path.name for path in (run / "journal").iterdir())
        self.assertEqual(starts[0], "2-000")
        self.assertGreater(len(starts), 1)
        self.assertEqual(tutti("timeline", run).wait().code, 0)
        events = json.loads((run / "timeline.json").read_text())["traceEvents"]
        self.assertEqual({event["pid"] for event in events if event["ph"] == "B"}, {1, 2, 3})
        starts, ends = ({e["id"]: e for e in events if e["ph"] == phase} for phase in "sf")
        self.assertEqual(starts.keys(), ends.keys())
        arrows = {(start["pid"], ends[id]["pid"]) for id, start in starts.items()}
        self.assertLessEqual({(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)}, arrows, "within ranks and between")
        replay = tutti("replay", run).wait()
        self.assertEqual(replay.code, 2, replay.text)
        self.assertIn("tutti simulate repeats it", replay.text)
        several = tutti("simulate", TINY, "--seeds", "1..3", "--run-dir", run).wait()
        self.assertEqual(several.code, 2, several.text)
        self.assertIn("journals are kept of one seed only", several.text)

    def test_journals_of_another_seed_are_left_alone(self):
        run = self.folder / "run"
        self.simulate("--seeds", 9, "--once", "--run-dir", run)
        text = self.simulate("--seeds", 10, "--once", "--run-dir", run, code=2)
        self.assertIn("there are journals in it", text)
        self.assertEqual(os.listdir(run / "journal"), ["9-000"])

    def test_the_twelfth_attempt_is_newer_than_the_third(self):
        plan = self.folder / "plan.toml"
        plan.write_text('starts = 11\n[[fault]]\nkind = "death"\nphase = "start"\n')
        run = self.folder / "run"
        self.simulate("--seeds", 3, "--once", "--faults", plan, "--run-dir", run)
        starts = sorted(os.listdir(run / "journal"))
        self.assertEqual((starts[0], starts[-1], len(starts)), ("3-000", "3-011", 12))

    def test_a_seed_alone_tells_its_story_and_leaves_nothing_behind(self):
        before = sorted(os.listdir("."))
        text = self.simulate("--ranks", 2, "--seeds", "2", "--faults", FAULTS / "death.toml")
        self.assertRegex(text, r"attempt 1: from the beginning; death; published .*was killed")
        self.assertRegex(text, r"attempt \d: from step \d+; no faults; .*trained to the end")
        self.assertEqual(sorted(os.listdir(".")), before)


if __name__ == "__main__":
    tutti_run.main()
