"""What a run shows on terminals of several widths, alone and under mpirun, read off a terminal emulator's
screen; and without a terminal."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import sys

import tutti_run
from tutti_run import DIGITS, MPIRUN, TUTTI, settings

try:
    import pyte
except ImportError:
    sys.exit(tutti_run.SKIPPED)

LINES = 200  # of the screen, so that nothing scrolls away
VALUES = settings(train__max_duration="40ep", checkpoint__interval="0ep")
COLORS = re.compile(r"\x1b\[[\d;]*m")


class Shown:
    """A command's output on a terminal: `text` as written, `lines` as a user sees them in the end."""

    def __init__(self, command, columns, **environment):
        reader, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        environment = {**{key: value for key, value in os.environ.items() if key != "NO_COLOR"},
                       "TERM": "xterm", **environment}
        with subprocess.Popen(list(map(str, command)), stdin=terminal, stdout=terminal, stderr=terminal,
                              env=environment) as running:
            os.close(terminal)
            self.text = b""
            while some := read_some(reader):
                self.text += some
        os.close(reader)
        self.text = self.text.decode()
        self.code = running.returncode
        self.screen = pyte.Screen(columns, LINES)
        pyte.Stream(self.screen).feed(self.text)
        self.lines = [line.rstrip() for line in self.screen.display if line.strip()]

    def colors_of(self, words):
        """The colors of the characters of the first line that has the words."""
        for row, line in enumerate(self.screen.display):
            if words in line:
                at = line.index(words)
                return {self.screen.buffer[row][column].fg for column in range(at, at + len(words))}
        raise AssertionError(f"{words} is not shown:\n" + "\n".join(self.lines))


def read_some(reader):
    try:
        return os.read(reader, 65536)
    except OSError:  # the last writer is gone
        return b""


class Terminal(tutti_run.RunTest):
    def check(self, columns, launcher=()):
        """The screen has each line once, and nothing of the line that changes but its last state."""
        run = self.folder / str(columns)
        shown = Shown([*launcher, TUTTI, "train", DIGITS, "--run-dir", run, *VALUES], columns)
        self.assertEqual(shown.code, 0, shown.text)
        told = "\n".join(shown.lines)
        staying = [line for line in shown.lines if line.startswith("epoch ")]
        evaluations = [line for line in staying if "MulticlassAccuracy 0." in line]
        self.assertEqual(len(evaluations), 40, told)
        self.assertEqual([line for line in staying if line not in evaluations],
                         [line for line in staying if line.startswith("epoch 40/40  step 15/15  100%  loss ")][-1:], told)
        self.assertEqual(shown.lines[0][:5], "mlp: ", told)
        self.assertIn("ended                  max_duration of 40ep is reached", told)
        self.assertIn("steps                  600 (40 epochs)", told)
        pieces = [COLORS.sub("", piece) for piece in shown.text.split("\r\x1b[K")]
        changing = [piece for piece in pieces if piece.startswith("epoch ") and "\n" not in piece]
        self.assertGreater(len(changing), 0, shown.text)
        self.assertEqual([piece for piece in changing if len(piece) >= columns], [])
        return shown

    def test_an_error_has_colors(self):
        command = [TUTTI, "check", DIGITS, "--set", "optimizer.lr=fast"]
        marked = Shown(command, 80)
        self.assertEqual(marked.code, 2)
        self.assertEqual(marked.colors_of("error:"), {"red"})
        self.assertEqual(marked.colors_of("^^^^"), {"red"})
        self.assertEqual(marked.colors_of("optimizer.lr ="), {"default"})
        for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual(Shown(command, 80, **plain).colors_of("error:"), {"default"}, plain)

    def test_60_columns(self):
        self.check(60)

    def test_80_columns_under_mpirun(self):
        self.check(80, [MPIRUN, "-np", "2"])

    def test_200_columns_in_colors(self):
        shown = self.check(200)
        self.assertEqual(shown.colors_of("epoch 3/40  step 15/15  MulticlassAccuracy"), {"green"})
        self.assertEqual(shown.colors_of("epoch 40/40  step 15/15  100%"), {"default"})

    def test_colors_only_where_they_are_wanted(self):
        short = [TUTTI, "train", DIGITS, *settings(train__max_duration="2ep"), "--run-dir"]
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            shown = Shown([*short, self.folder / "plain"], 80, **environment)
            self.assertNotRegex(shown.text, COLORS)
            self.assertIn("MulticlassAccuracy", shown.text)
            self.assertEqual("TERM" in environment, "\x1b" not in shown.text, environment)
        piped = subprocess.run([*map(str, short), self.folder / "piped"], capture_output=True, text=True)
        self.assertNotIn("\x1b", piped.stdout + piped.stderr)
        self.assertIn("\nepoch 2/2  step 15/15  MulticlassAccuracy", piped.stdout)

    def test_errors_and_warnings_are_in_color(self):
        shown = Shown([TUTTI, "train", "none.toml"], 80)
        self.assertEqual(shown.code, 2)
        self.assertEqual(shown.colors_of("error:"), {"red"})

    def test_a_warning_takes_the_place_of_the_changing_line(self):
        run = self.folder / "warned"
        shown = Shown([TUTTI, "train", DIGITS, "--run-dir", run, *VALUES, "--set", "train.log_to_console=true",
                       "--set", "train.console_log_interval=10ep"], 100)
        self.assertEqual(shown.code, 0, shown.text)
        for line in shown.lines:
            self.assertEqual(line.count("epoch "), 1 if "epoch " in line else 0, line)


if __name__ == "__main__":
    tutti_run.main()
