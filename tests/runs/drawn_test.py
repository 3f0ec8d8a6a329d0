"""Simulated recipes that are drawn from a space of them, their files, and the rare states that they must reach."""
import os
import re
import unittest

import tutti_run
from tutti_run import EXAMPLES, SOURCE, tutti

FAULTS = EXAMPLES / "faults"
DRAWN = FAULTS / "drawn.toml"
IS_NIGHTLY = "TUTTI_NIGHTLY" in os.environ


class Drawn(tutti_run.SimulateTest):
    def test_each_seed_draws_a_recipe(self):
        text = self.simulate("--seeds", f"1..{10000 if IS_NIGHTLY else 300}", "--once", "--faults",
                             FAULTS / "all.toml", *(["--all-probes"] if IS_NIGHTLY else []), recipe=DRAWN,
                             timeout=10000)
        self.assertRegex(text, r"refused +\d+ drawn recipes, for \d+ reasons\n")
        self.assertRegex(text, r"weights +\d+ different\n")

    @unittest.skipUnless(IS_NIGHTLY, "takes minutes")
    def test_the_canary_is_found(self):
        """A callback that loses its state in every tenth recipe: the seeds find it, and shrink it."""
        recipe = self.folder / "canary.toml"
        recipe.write_text(DRAWN.read_text().replace("../data/", f"{EXAMPLES}/data/").replace(
            "data/letters", f"{FAULTS}/data/letters") + f"""
[plugins]
library = "{tutti_run.BUILD}/tests/libcanary.so"
[[draw]]
probability = 0.1
options = [{{ callbacks = [{{ kind = "plugin", name = "canary" }}] }}]
""")
        small = self.folder / "small"
        text = self.simulate("--seeds", "1..100", "--once", "--faults", FAULTS / "all.toml", "--shrink", small,
                             recipe=recipe, code=1, timeout=1800)
        findings = re.findall(r"(?m)^seed \d+: (.*)", text)
        self.assertTrue(findings, text)
        for finding in findings:
            self.assertIn("canary/steps", finding)
        self.assertLessEqual((small / "plan.toml").read_text().count("[[fault]]"), 3)
        command = text.rstrip().splitlines()[-1].split("#")[0].split()
        self.assertIn("canary/steps", tutti(*command[1:]).wait().text)

    def test_drawn_recipes_are_files(self):
        folder = self.folder / "drawn"
        for _ in range(2):
            text = self.simulate("--seeds", "3..5", "--write", folder, recipe=DRAWN)
            self.assertRegex(text, r"3 drawn recipes in .*; \d+ draws were refused\n")
            texts = [(folder / f"{seed}.toml").read_text() for seed in (3, 4, 5)]
            self.assertEqual(len(set(texts)), 3)
            self.assertEqual(texts, getattr(self, "first", texts))
            self.first = texts
        self.assertRegex(texts[0], r"\A# seed 3 of .*drawn.toml, on \d ranks?\n")
        codes = [tutti("check", folder / f"{seed}.toml").wait().code for seed in (3, 4, 5)]
        self.assertIn(0, codes)  # the start of a run may refuse some
        self.assertIn("there is no [[draw]] in", self.simulate("--write", folder, code=2))

    def test_a_probe_that_is_never_hit_is_a_failure_if_asked_for(self):
        plan = self.folder / "plan.toml"
        plan.write_text('[[fault]]\nkind = "out_of_memory"\nphase = "microbatch"\n')
        few = ["--ranks", 1, "--seeds", "1..3", "--once", "--faults", plan]
        text = self.simulate(*few, "--all-probes", code=1)
        hit, probes = map(int, re.search(r"^  probes +(\d+) of (\d+) hit$", text, re.M).groups())
        self.assertGreater(hit, 10, text)
        never = re.findall(r"^  never hit +(\w\S+\.cpp):\d+: (.+)$", text, re.M)
        self.assertEqual(len(never), probes - hit, text)
        for source, _ in never:
            self.assertTrue((SOURCE / source).exists(), source)
        self.assertIn("verdict: memory ran out on all ranks", [name for _, name in never])
        self.assertEqual(len(re.findall(r"^  rarest +[1-3]: .+: .+$", text, re.M)), 10, text)
        self.assertRegex(text, r"failed +0; a probe was never hit, so the exit code is 1\n$")
        self.assertRegex(self.simulate(*few), fr"probes +{hit} of {probes} hit; --all-probes lists the others\n")


if __name__ == "__main__":
    tutti_run.main()
