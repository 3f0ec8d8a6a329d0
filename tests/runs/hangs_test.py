"""A rank that hangs is named by the others, with the last thing that it did; nobody waits for it for ever."""
import signal

import tutti_run
from tutti_run import log, start

# Longer than the first step of a rank on a busy machine.
FOREVER = {"train__max_duration": "1000000ep", "checkpoint__interval": "0ba", "train__hang_timeout": "6sec"}


class Hangs(tutti_run.RunTest):
    def hang(self, victim, ranks):
        run = self.folder / "run"
        running = start(run, ranks=ranks, **FOREVER)
        metrics = run / "metrics.jsonl"
        running.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") > 50, "a step")
        running.signal_ranks(signal.SIGSTOP, [victim])
        finished = running.wait()
        self.assertNotEqual(finished.code, 0)
        named = f"rank {victim} has not been heard"
        last = r" for \d+ s; the last it did: step \d+, [a-z ]+, \d+\.\d s ago"
        self.assertRegex(finished.text, r"(?m)^error: rank \d: " + named + last)  # whoever meets it first
        for rank in set(range(ranks)) - {victim}:
            self.assertRegex(log(run, rank), "the last that was done:")
        self.assertFalse(any(map(tutti_run.is_alive, running.ranks().values())))

    def test_the_second_of_two_ranks(self):
        self.hang(victim=1, ranks=2)

    def test_the_first_of_three_ranks(self):
        self.hang(victim=0, ranks=3)

    def test_the_last_of_three_ranks(self):
        self.hang(victim=2, ranks=3)

    def test_a_rank_that_never_connects(self):
        """It is stopped before it reaches MPI."""
        command = [tutti_run.TUTTI, *self.command()]
        stopped = ["sh", "-c", "kill -STOP $$"]
        running = tutti_run.Running([tutti_run.MPIRUN, "-np", "1", *command, ":", "-np", "1", *stopped, ":",
                                     "-np", "1", *command])
        finished = running.wait()
        self.assertNotEqual(finished.code, 0)
        # The first to say so ends the job, and may end the other before it does.
        self.assertRegex(finished.text, "(?m)^error: rank [02]: connecting to the other ranks")

    def test_a_rank_that_does_not_leave(self):
        """All is trained and saved; the others say whom they wait for no longer."""
        command = [tutti_run.TUTTI, *self.command("--set", "train.max_duration=2ep")]
        stuck = ["env", f"LD_PRELOAD={tutti_run.BUILD / 'tests' / 'libstuck_finalize.so'}"]
        finished = tutti_run.Running([tutti_run.MPIRUN, "-np", "1", *command, ":", "-np", "1", *stuck,
                                      *command]).wait()
        self.assertEqual(finished.code, 1, finished.text)
        self.assertRegex(finished.text, "(?m)^error: rank 0: leaving the other ranks")
        self.assertTrue((self.folder / "run" / "checkpoints" / "latest").exists())

    def test_a_rank_that_cannot_read_its_data(self):
        """Its file system does not answer when it opens the file."""
        command = [tutti_run.TUTTI, *self.command()]
        stuck = ["env", f"LD_PRELOAD={tutti_run.BUILD / 'tests' / 'libstuck_disk.so'}",
                 "TUTTI_STUCK_FILE=/digits.h5", "TUTTI_STUCK_AT=open", "TUTTI_STUCK_S=60"]
        finished = tutti_run.Running([tutti_run.MPIRUN, "-np", "1", *command, ":", "-np", "1", *stuck,
                                      *command]).wait()
        self.assertNotEqual(finished.code, 0)
        self.assertRegex(finished.text, "(?m)^error: rank 0: rank 1 does not get ready to train: waited for 6 s")

    def command(self, *arguments):
        return ["train", str(tutti_run.DIGITS), "--run-dir", str(self.folder / "run"), *arguments,
                *tutti_run.settings(train__hang_timeout="6sec")]


if __name__ == "__main__":
    tutti_run.main()
