"""Ranks under mpirun on the tests' device, with the CPU's bits, and devices that this machine lacks."""
import os
import re
import signal
import time
import unittest

import tutti_run
from tutti_run import BUILD, DIGITS, start, train

TEST_DEVICE = BUILD / "libtutti_test_device.so"
HAS_DRIVER = any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/dxg"))
FOUND = "without waiting|the host touched"
NIGHTLY = "TUTTI_NIGHTLY" in os.environ
SHORT = {"train__max_duration": "12ba", "train__eval_interval": "6ba", "checkpoint__interval": "6ba"}
SHORTEST = {"train__max_duration": "5ba", "train__eval_interval": "2ba", "checkpoint__interval": "2ba"}


class Devices(tutti_run.RunTest):
    def on_device(self, options, strategy, **more):
        """What a short training on two ranks of one process says, late on the tests' device, and its exit code."""
        self.device_reports(f"late,report,{options}")
        self.runs = getattr(self, "runs", 0) + 1
        ranks = 4 if strategy == "hybrid" else 2
        if ranks == 4:
            more["sharding__shard_size"] = 2
        return start(self.folder / f"{self.runs}", "--local-ranks", ranks, ranks=1, device__kind="test",
                     sharding__strategy=strategy, **SHORTEST, **more).wait()

    @unittest.skipUnless(TEST_DEVICE.exists() and NIGHTLY, "by night")
    def test_each_wait_that_is_left_out_is_found(self):
        for strategy in ("none", "optimizer", "gradients", "full"):
            # Three are missed: in Sync, the wait before a digest, since staged sums are on Sync's own stream, and
            # the one for digests, since Sync has asked for a later copy of that stream; in Compute, that at the end
            # of a pass, since it has waited for each sum. It counts where memory ran out.
            self.leave_out_each_wait(strategy, missed=3)

    @unittest.skipUnless(TEST_DEVICE.exists() and NIGHTLY, "nightly")
    def test_each_wait_that_is_left_out_where_communicators_join_ranks_is_found(self):
        for strategy in ("none", "optimizer", "gradients", "full", "hybrid"):
            # The three of the test above, and two questions at the end of a group: whether its last sum is over. It
            # is in each of these runs; else the group would be aborted.
            self.leave_out_each_wait(strategy, missed=5, collectives__backend="nccl")

    def leave_out_each_wait(self, strategy, missed, **more):
        whole = self.on_device("", strategy, **more)
        self.assertEqual(whole.code, 0, whole.text)
        self.assertNotIn("without waiting", whole.text)
        places = re.findall(r"  waits at: (.*)", whole.text)
        self.assertGreater(len(places), 8, whole.text)
        broken = {place: self.on_device(f"leave_out={place}", strategy, **more).text for place in places}
        silent = [place for place, text in broken.items() if not re.search(FOUND, text)]
        self.assertLessEqual(len(silent), missed, silent)

    @unittest.skipUnless(TEST_DEVICE.exists(), "built without tests")
    def test_ranks_on_a_device_learn_what_they_learn_on_the_cpu(self):
        for strategy in ("none", "full"):
            cpu, device = self.folder / f"{strategy}-cpu", self.folder / f"{strategy}-device"
            train(cpu, ranks=2, device__kind="cpu", sharding__strategy=strategy, **SHORT)
            self.device_reports("late,report")
            text = train(device, ranks=2, device__kind="test", sharding__strategy=strategy, **SHORT).text
            self.assertNotIn("without waiting", text)
            self.assert_learnt_the_same(cpu, device)

    def device_reports(self, options):
        os.environ["TUTTI_TEST_DEVICE"] = options
        self.addCleanup(os.environ.pop, "TUTTI_TEST_DEVICE", None)

    @unittest.skipUnless(TEST_DEVICE.exists() and NIGHTLY, "nightly")
    def test_ranks_that_communicators_join_learn_what_they_learn_on_the_cpu(self):
        cpu = self.folder / "cpu"
        train(cpu, ranks=2, device__kind="cpu", **SHORTEST)
        self.device_reports("report")
        for strategy in ("none", "optimizer", "gradients", "full"):
            text = train(self.folder / strategy, ranks=2, device__kind="test", collectives__backend="nccl",
                         sharding__strategy=strategy, **SHORTEST).text
            self.assertNotIn("without waiting", text)
            self.assert_learnt_the_same(cpu, self.folder / strategy)

    @unittest.skipUnless(TEST_DEVICE.exists(), "built without tests")
    def test_replicas_that_communicators_join_learn_what_they_learn_on_the_cpu(self):
        cpu, device = self.folder / "cpu", self.folder / "device"
        hybrid = {"ranks": 4, "sharding__strategy": "hybrid", "sharding__shard_size": 2, **SHORTEST}
        train(cpu, device__kind="cpu", **hybrid)
        self.device_reports("late,report")
        text = train(device, device__kind="test", collectives__backend="nccl", **hybrid).text
        self.assertNotIn("without waiting", text)
        self.assert_learnt_the_same(cpu, device)

    def lose_rank_1_by(self, number, hang_timeout_s):
        """What a run says that communicators join, after it has run for longer than the timeout."""
        run = self.folder / number.name
        running = start(run, ranks=2, device__kind="test", collectives__backend="nccl", sharding__strategy="full",
                        train__max_duration="1000000ep", train__hang_timeout=f"{hang_timeout_s}sec",
                        checkpoint__interval="0ba")
        metrics = run / "metrics.jsonl"
        running.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 5, "steps")
        time.sleep(hang_timeout_s + 1)
        running.signal_ranks(number, [1])
        finished = running.wait()
        self.assertNotEqual(finished.code, 0)
        return finished.text

    @unittest.skipUnless(TEST_DEVICE.exists(), "built without tests")
    def test_a_rank_that_is_killed_while_communicators_join_ranks_is_named(self):
        self.assertRegex(self.lose_rank_1_by(signal.SIGKILL, 2),
                         "(?m)^error: rank 0: rank 1 is gone: its process ended while .* waited")

    @unittest.skipUnless(TEST_DEVICE.exists() and NIGHTLY, "nightly")
    def test_a_rank_that_hangs_while_communicators_join_ranks_is_named(self):
        self.assertRegex(self.lose_rank_1_by(signal.SIGSTOP, 3),
                         "(?m)^error: rank 0: rank 1 has not been heard for [34] s")

    @unittest.skipIf(HAS_DRIVER, "a driver for GPUs")
    def test_a_machine_without_a_driver_refuses_gpus_in_one_message(self):
        recipe = self.folder / "recipe.toml"
        for kind in ("gpu", "cuda"):
            text = DIGITS.read_text().replace('"data/', f'"{DIGITS.parent}/data/')
            recipe.write_text(text + f'\n[device]\nkind = "{kind}"\n')
            line = recipe.read_text().splitlines().index(f'kind = "{kind}"') + 1
            for ranks in (1, 2):
                refused = start(self.folder / "run", recipe=recipe, ranks=ranks).wait()
                self.assertEqual(refused.code, 2, refused.text)
                self.assertEqual(len(refused.errors()), 1, refused.text)
                self.assertIn(f'{recipe}:{line}: device.kind = "{kind}": ', refused.text)

    @unittest.skipIf(HAS_DRIVER, "a driver for GPUs")
    def test_a_machine_without_a_driver_trains_on_its_cpu_if_it_may_choose(self):
        train(self.folder / "chosen", ranks=1, device__kind="auto", train__max_duration="3ba")
        train(self.folder / "cpu", ranks=1, device__kind="cpu", train__max_duration="3ba")
        self.assert_learnt_the_same(self.folder / "chosen", self.folder / "cpu")


if __name__ == "__main__":
    tutti_run.main()
