"""What a run shows on a terminal, alone and under mpirun."""
import fcntl
import os
import pty
import struct
import subprocess
import termios

import tutti_run
from tutti_run import DIGITS, MPIRUN, TUTTI, settings

COLUMNS = 60
ERASED = "\r\x1b[K"


def shown(command):
    """All that the command writes to a terminal of COLUMNS columns."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with subprocess.Popen(list(map(str, command)), stdin=terminal, stdout=terminal, stderr=terminal) as running:
        os.close(terminal)
        text = b""
        while True:
            try:
                some = os.read(reader, 65536)
            except OSError:  # the last writer is gone
                break
            if not some:
                break
            text += some
    os.close(reader)
    if running.returncode != 0:
        raise AssertionError(text.decode())
    return text.decode()


class Terminal(tutti_run.RunTest):
    def check(self, launcher):
        run = self.folder / "run"
        values = settings(train__max_duration="40ep", checkpoint__interval="0ep")
        text = shown([*launcher, TUTTI, "train", DIGITS, "--run-dir", run, *values])
        pieces = text.split(ERASED)
        changing = [piece for piece in pieces if piece.startswith("epoch ") and "\n" not in piece]
        staying = [piece for piece in pieces if "MulticlassAccuracy 0." in piece and piece.startswith("epoch ")]
        self.assertGreater(len(changing), 0, text)
        self.assertEqual([piece for piece in changing if len(piece) >= COLUMNS], [])
        self.assertEqual(len(staying), 40)
        for piece in staying:
            self.assertTrue(piece.endswith("\r\n"), piece)
        # After the last line of progress, whole, comes the table.
        self.assertRegex(text, r"epoch 40/40  step 15/15  100%  loss [^\r\n]* samples/s  lr 0\.1\r\n")
        self.assertRegex(text, r"  steps                  600\r\n")

    def test_alone(self):
        self.check([])

    def test_under_mpirun(self):
        self.check([MPIRUN, "-np", "2"])


if __name__ == "__main__":
    tutti_run.main()
