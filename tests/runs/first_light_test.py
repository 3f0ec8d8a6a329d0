"""tools/first_light.sh, rehearsed on the tests' device: a good tutti passes, and one that learns something
else, or does not resume, is found."""
import os
import re
import subprocess
import unittest

import tutti_run
from tutti_run import BUILD, PATIENCE_S, SOURCE, TUTTI

NIGHTLY = "TUTTI_NIGHTLY" in os.environ
# Changes the arguments that the executable gets: "$@".
WRONG_TUTTI = f"""#!/bin/bash
if [[ $* =~ {{when}} ]]; then set -- {{then}}; fi
exec {TUTTI} "$@"
"""


@unittest.skipUnless((BUILD / "libtutti_test_device.so").exists(), "built without tests")
class FirstLight(tutti_run.RunTest):
    def rehearse(self, *checks, tutti=TUTTI):
        """Exit code, text and page of these checks."""
        page = self.folder / "page.md"
        command = [SOURCE / "tools/first_light.sh", "--kind", "test", "--tutti", tutti, "--out", page,
                   "--only", *map(str, checks)]
        python = os.environ.get("TUTTI_TORCH_PYTHON", "python3")
        finished = subprocess.run(command, env={**os.environ, "TUTTI_PYTHON": python}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=20 * PATIENCE_S)
        return finished.returncode, finished.stdout, page.read_text()

    def rehearse_with_wrong_tutti(self, *checks, when, then):
        wrong = self.folder / "tutti"
        wrong.write_text(WRONG_TUTTI.format(when=when, then=then))
        wrong.chmod(0o755)
        code, text, page = self.rehearse(*checks, tutti=wrong)
        self.assertEqual(code, 1, text)
        return text, page

    def test_all_is_well(self):
        checks = range(1, 14) if NIGHTLY else (1, 2, 8)
        code, text, page = self.rehearse(*checks)
        self.assertEqual(code, 0, text)
        outcomes = dict(re.findall(r"(?m)^\| (\d+)\..*? \| (\w+) \|", page))
        self.assertEqual([int(number) for number in outcomes], list(checks), page)
        may_be_open = {"5", "9"}
        self.assertEqual({outcomes[number] for number in outcomes.keys() - may_be_open}, {"ok"}, page)

    def test_other_losses_are_found_and_end_the_checks(self):
        text, page = self.rehearse_with_wrong_tutti(2, 8, when="device.kind=test",
                                                    then='"$@" --set optimizer.lr=0.1001')
        self.assertRegex(text, r"2 digits .*FAILED: digits beside the CPU: losses differ .* first in step 2:")
        self.assertIn("| 2. digits | FAILED |", page)
        self.assertNotIn("| 8.", page)

    def test_a_run_that_does_not_resume_is_found(self):
        text, _ = self.rehearse_with_wrong_tutti(8, when="--resume", then='"${@:1:$#-2}"')
        self.assertIn("FAILED: not resumed after a kill", text)


if __name__ == "__main__":
    tutti_run.main()
