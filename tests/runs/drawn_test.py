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
        for seed, text in zip((3, 4, 5), texts):  # `check` refuses the first draws of 3
            ranks = re.search(r", on (\d) ranks?\n", text)[1]
            check = tutti("check", folder / f"{seed}.toml", "--ranks", ranks).wait()
            self.assertEqual(check.code, 0, check.text)
        self.assertIn("there is no [[draw]] in", self.simulate("--write", folder, code=2))

    def test_a_plan_for_more_ranks_than_any_draw_has(self):
        space, plan = self.folder / "space.toml", self.folder / "plan.toml"
        space.write_text((FAULTS / "tiny.toml").read_text() + '[[draw]]\nkey = "seed"\nvalues = [1, 2]\n')
        plan.write_text('[[fault]]\nkind = "delay"\n[[fault]]\nkind = "slow"\n')
        one_rank = ["--ranks", 1, "--seeds", "1..2", "--once", "--faults", plan]
        text = self.simulate(*one_rank, recipe=space)
        self.assertRegex(text, r"fault +delay: cannot happen on one rank\n")
        plan.write_text('[[fault]]\nkind = "slow"\nrank = 2\n')
        text = self.simulate(*one_rank, recipe=space, code=2)
        self.assertIn("plan.toml:3: fault.0.rank = 2: there is one rank, 0", text)
        with space.open("a") as file:
            file.write('[[draw]]\nkey = "ranks"\nvalues = [1, 2, 3]\n')
        self.assertRegex(self.simulate(*one_rank, recipe=space), r"fault +slow: [1-9]")

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
