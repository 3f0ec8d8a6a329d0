#!/usr/bin/env python3
"""Kills a random rank of a training, all, or mpirun, at random moments (kill -9). Each time the survivors end
within 10 s and `--resume auto` goes on, until the run is done: then the losses of all its steps and its weights
are the same bits as those of a run that was never killed. And so on, until there were enough kills."""
import argparse
import pathlib
import random
import re
import signal
import sys
import tempfile
import time

import tutti_run

SURVIVORS_END_WITHIN_S = 10


class Ordeal:
    def __init__(self, folder, options):
        self.folder = folder
        self.options = options
        self.random = random.Random(options.seed)
        self.recipe = {"ranks": options.ranks, "train__max_duration": f"{options.epochs}ep",
                       "train__eval_interval": "7ep", "checkpoint__interval": f"{options.interval}ba",
                       "checkpoint__keep": 2}
        self.kills = self.runs = self.resumed = 0
        self.slowest_end_s = 0.0

    def undergo(self):
        finished = tutti_run.train(self.folder / "unkilled", **self.recipe)
        self.takes_s = finished.took_s
        self.expected = tutti_run.what_was_learnt(self.folder / "unkilled")
        while self.kills < self.options.kills:
            self.run_to_its_end(self.folder / f"killed-{self.runs}")
            self.runs += 1

    def run_to_its_end(self, run):
        text = ""
        for attempt in range(1000):
            training = tutti_run.start(run, "--resume", "auto", **self.recipe)
            may_kill = self.kills < self.options.kills
            victims = self.kill_at_random(training) if may_kill else None
            finished = training.wait()
            text += f"\n--- attempt {attempt}, killed: {victims}\n{finished.text}"
            self.check_resume(attempt, finished)
            if not victims:
                break
            expect(finished.code != 0, "a run that lost a rank exits with 0", text)
        expect(finished.code == 0, f"exit code {finished.code}", text)
        expect(tutti_run.what_was_learnt(run) == self.expected, "other bits than those of the unkilled run",
               text + self.first_difference(run))

    def kill_at_random(self, training):
        """Kills ranks, and waits for the others. None: the run was over before."""
        moment_s = self.random.uniform(0, self.takes_s)
        while time.monotonic() - training.began < moment_s or not training.ranks():
            if training.is_over():
                return None
            time.sleep(0.001)
        ranks = training.ranks()
        victims = self.choose_victims(ranks, training.process.pid)
        for pid in victims.values():
            tutti_run.send_signal(pid, signal.SIGKILL)
        killed_at = time.monotonic()
        if training.process.wait(tutti_run.PATIENCE_S) == 0:  # it had ended by itself
            return None
        self.kills += 1
        self.note_end(training, ranks, killed_at)
        return list(victims)

    def choose_victims(self, ranks, mpirun):
        chance = self.random.random()
        if chance < 0.1:
            return {"mpirun": mpirun}
        if chance < 0.4:
            return ranks
        rank = self.random.choice(sorted(ranks))
        return {rank: ranks[rank]}

    def note_end(self, training, ranks, killed_at):
        while any(tutti_run.is_alive(pid) for pid in ranks.values()):
            time.sleep(0.01)
            waited_s = time.monotonic() - killed_at
            expect(waited_s < SURVIVORS_END_WITHIN_S, "survivors live on", training.text())
        took_s = time.monotonic() - killed_at
        expect(took_s < SURVIVORS_END_WITHIN_S, f"survivors take {took_s:.1f} s to end", training.text())
        self.slowest_end_s = max(self.slowest_end_s, took_s)

    def check_resume(self, attempt, finished):
        """A run that resumes says after which step; there was a checkpoint."""
        said = re.search(r"^resumes after step (\d+)", finished.text, re.MULTILINE)
        if not said:
            return
        self.resumed += 1
        expect(attempt > 0, "a first attempt resumes", finished.text)
        step = int(said[1])
        expect(step % self.options.interval == 0 or step == self.expected["lines"][-1]["step"],
               f"resumes after step {step}, where no checkpoint was", finished.text)

    def first_difference(self, run):
        learnt = tutti_run.what_was_learnt(run)
        for mine, its in zip(learnt["lines"], self.expected["lines"]):
            if mine != its:
                return f"\nfirst difference: {mine}\nunkilled:         {its}"
        return f"\n{len(learnt['lines'])} lines instead of {len(self.expected['lines'])}"


def expect(holds, what, text):
    if not holds:
        print(text)
        sys.exit(f"FAILED: {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--interval", type=int, default=200, help="steps between checkpoints")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tutti-kills-") as folder:
        ordeal = Ordeal(pathlib.Path(folder), options)
        ordeal.undergo()
    print(f"{ordeal.kills} kills in {ordeal.runs} runs of {ordeal.takes_s:.1f} s, {ordeal.resumed} resumed; "
          f"the slowest end after {ordeal.slowest_end_s:.1f} s; always the same bits")


if __name__ == "__main__":
    main()
