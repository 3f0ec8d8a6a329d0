"""tools/first_light.sh, rehearsed on the tests' device: a good tutti passes, and one that learns something
else, does not resume, or hangs, is seen."""
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
    def rehearse(self, *checks, tutti=TUTTI, options=()):
        """Exit code, text and page of these checks."""
        page = self.folder / "page.md"
        command = [SOURCE / "tools/first_light.sh", "--kind", "test", "--tutti", tutti, "--out", page,
                   *map(str, options), "--only", *map(str, checks)]
        python = os.environ.get("TUTTI_TORCH_PYTHON", "python3")
        finished = subprocess.run(command, env={**os.environ, "TUTTI_PYTHON": python}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=20 * PATIENCE_S)
        return finished.returncode, finished.stdout, page.read_text()

    def rehearse_with_wrong_tutti(self, *checks, when, then, options=()):
        wrong = self.folder / "tutti"
        wrong.write_text(WRONG_TUTTI.format(when=when, then=then))
        wrong.chmod(0o755)
        code, text, page = self.rehearse(*checks, tutti=wrong, options=options)
        self.assertEqual(code, 1, text)
        return text, page

    def test_all_is_well(self):
        checks = range(1, 28) if NIGHTLY else (1, 2, 8, 17)
        code, text, page = self.rehearse(*checks)
        self.assertEqual(code, 0, text)
        outcomes = dict(re.findall(r"(?m)^\| (\d+)\..*? \| (\w+) \|", page))
        self.assertEqual([int(number) for number in outcomes], list(checks), page)
        may_be_open = {"5", "9", "23"}
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

    def test_a_hang_is_ended_and_costs_no_other_check(self):
        hung = self.folder / "hung"
        text, page = self.rehearse_with_wrong_tutti("overflow", "predict", when="device.kind=test",
                                                    then=f"; echo $$ >> {hung}; exec sleep 1000",
                                                    options=["--limit", 1])
        self.assertRegex(text, "17 overflow .*TOO LONG: .*\n(.*\n)*18 predict ")
        self.assertIn("TOO LONG: overflow, predict", page)
        processes = hung.read_text().split()
        self.assertEqual([process for process in processes if os.path.exists(f"/proc/{process}")], [])

    def test_checks_that_no_time_is_left_for_are_named(self):
        code, text, page = self.rehearse("loads", "muon", options=["--budget", 1e-3])
        self.assertEqual(code, 0, text)
        self.assertIn("no time was left for: loads, muon", text)
        self.assertIn("no time was left for: loads, muon", page)

    @unittest.skipUnless(NIGHTLY, "minutes")
    def test_planted_failures_are_seen(self):
        plants = {
            "sharding": ("strategy=full.*backend=nccl", '"$@" --set optimizer.lr=0.0021',
                         "full by NCCL and staged: weights"),
            "late": ("no-swa-test", '"$@" --set optimizer.lr=0.1001', "swa: changes losses from step 2 on"),
            "averages": ("export.*--trained", '"${@:1:$#-1}"', "ema: weights are"),
            "overflow": ("kind=test.*growth_interval", '"$@" --set precision.init_scale=17179869184',
                         "skipped steps and scales"),
            "predict": ("^predict.*kind=test", '"$@" --set train.precision=amp_bf16', "scores differ by"),
            "generate": ("generate.*-text_gpt", '"${@/In the/At the}"', "tokens"),
            "llama": ("train.*llama-graphs", '"$@" --set optimizer.lr=0.0021', "llama with graphs: weights"),
            "exported_vit": ("vit-test", '"$@" --set optimizer.lr=0.0031', "vit beside the CPU: losses"),
            "muon": ("muon-test", '"$@" --set optimizer.lr=0.1', "muon beside the CPU: losses"),
            "kernels": ("columns-60-test", '"$@" --set model.dropout=0.1', "columns-60 beside the CPU"),
            "deterministic": ("gpt_tiny-true", '"$@" --set seed=$RANDOM', "twice: losses differ"),
        }
        for check, (when, then, said) in plants.items():
            with self.subTest(check):
                text, _ = self.rehearse_with_wrong_tutti(check, when=when, then=then)
                self.assertIn("FAILED: ", text)
                self.assertIn(said, text)


if __name__ == "__main__":
    tutti_run.main()
