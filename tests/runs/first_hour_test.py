"""Types the commands of docs/first_hour.md, in one shell, and compares what they print with what the page shows.

Shown output may leave lines out ("..."), and the end of a line ("resumes after ..."). Numbers may differ.
"""
import os
import re
import shutil
import subprocess
import sys

import tutti_run

sys.path.append(str(tutti_run.SOURCE / "tests"))
from shown_output import first_missing

PYTHON = os.environ.get("TUTTI_TORCH_PYTHON", "python3")
MARK = "---- end of a command: "
NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")
REFUSED = "learnig_rate"  # the only command that must fail


def commands(page):
    """Each command with the lines shown below it."""
    for block in tutti_run.all_shown_in(page, "console"):
        for one in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = one.splitlines()
            yield command, shown


def fits(shown, printed):
    start = NUMBER.sub("#", shown.split("...")[0].rstrip())
    there = NUMBER.sub("#", printed.rstrip())
    return there.startswith(start) if shown.endswith("...") or shown.startswith("epoch ") else there == start


class Page(tutti_run.RunTest):
    """A page of the docs, and what it needs."""
    PAGE = ""
    AT_LEAST = 0  # commands

    def setUp(self):
        super().setUp()
        if subprocess.run([PYTHON, "-c", "import h5py"], capture_output=True).returncode:
            self.skipTest(f"{PYTHON} has no h5py")
        bin_dir = self.folder / "bin"
        bin_dir.mkdir()
        (bin_dir / "tutti").symlink_to(tutti_run.TUTTI)
        options = "--oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
        (bin_dir / "mpirun").write_text("#!/bin/bash\n"
                                        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
                                        f'exec {shutil.which("mpirun")} {options} "$@"\n')
        (bin_dir / "mpirun").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}"}

    def type_the_page(self):
        for block in tutti_run.all_shown_in(self.PAGE, "python"):
            subprocess.run([PYTHON, "-c", block], cwd=self.folder, check=True)
        all_of = list(commands(self.PAGE))
        self.assertGreaterEqual(len(all_of), self.AT_LEAST)
        script = "".join(f"{command}\necho \"{MARK}$?\"\n" for command, _ in all_of)
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=tutti_run.PATIENCE_S)
        pieces = re.split(rf"{MARK}(\d+)\n", done.stdout)
        self.assertEqual(len(pieces), 2 * len(all_of) + 1, done.stdout)
        for (command, shown), printed, code in zip(all_of, pieces[::2], pieces[1::2]):
            self.assertEqual(code, "2" if REFUSED in command else "0", f"{command}\n{printed}")
            missing = first_missing(shown, printed.splitlines(), fits)
            self.assertIsNone(missing, f"{command}\nThe page shows, and it did not print there: {missing}\n{printed}")


class FirstHour(Page):
    PAGE = "first_hour.md"
    AT_LEAST = 15

    def test_the_commands_of_the_page(self):
        self.type_the_page()
        self.assertGreater((self.folder / "report.html").stat().st_size, 10000)


if __name__ == "__main__":
    tutti_run.main()
