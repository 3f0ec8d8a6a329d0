"""A run folder that not every rank sees is refused at the start, naming the host. Here one rank sees another
file system in its place; tests/two_hosts_test.sh does it with two hosts."""
import shlex
import socket
import subprocess
import unittest

import tutti_run
from tutti_run import DIGITS, MPIRUN, TUTTI, Running

ELSEWHERE = "mount -t tmpfs tmpfs \"$0\" && exec \"$@\""
ALLOWED = subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(ALLOWED, "needs the right to mount file systems of its own")
class NotShared(tutti_run.RunTest):
    def start(self, blind_rank, *arguments):
        folder = self.folder / "shared"
        folder.mkdir(exist_ok=True)
        command = [TUTTI, "train", str(DIGITS), "--run-dir", str(folder / "run"), *arguments]
        blind = ["unshare", "--mount", "sh", "-c", ELSEWHERE, str(folder), *command]
        words = [MPIRUN]
        for rank in range(3):
            words += [":"] * (rank > 0) + ["-np", "1"] + (blind if rank == blind_rank else command)
        return Running(words)

    def refused(self, blind_rank, *arguments):
        finished = self.start(blind_rank, *arguments).wait()
        self.assertEqual(finished.code, 2, f"{shlex.join(arguments)}\n{finished.text}")
        self.assertEqual(len(finished.errors()), 1, finished.text)
        for words in (str(self.folder / "shared" / "run"), "is not shared", f"host {socket.gethostname()} "):
            self.assertIn(words, finished.errors()[0])
        self.assertFalse((self.folder / "shared" / "run" / "metrics.jsonl").exists(), "it trained")

    def test_the_last_rank_sees_another_folder(self):
        self.refused(2)

    def test_the_first_rank_sees_another_folder(self):
        self.refused(0)

    def test_nor_is_it_when_there_is_a_run_to_resume(self):
        tutti_run.train(self.folder / "shared" / "run", train__max_duration="1ep")
        (self.folder / "shared" / "run" / "metrics.jsonl").unlink()
        self.refused(1, "--resume", "auto")


if __name__ == "__main__":
    tutti_run.main()
