"""Bad input gets one clear message, with place, key and value, and exit code 2, on every number of ranks;
`check` finds it without training. Six wrong recipes, each found in another place: by the TOML reader, in the
keys, in --set, when data are opened, when a checkpoint is read, and in training. All others are refused in one
process, by tests/commands/wrong_recipes_test.cpp."""
import re
import shutil
import struct

import tutti_run
from tutti_run import DIGITS, EXAMPLES, start, start_each, train, tutti

TRAIN_PATH = 'path = "data/digits.h5"\ngroup = "train"'


class BadInput(tutti_run.RunTest):
    def setUp(self):
        super().setUp()
        (self.folder / "data").symlink_to(EXAMPLES / "data")
        self.recipe = self.folder / "recipe.toml"
        shutil.copyfile(DIGITS, self.recipe)

    def alter(self, old, new, named=None):
        """Alters the recipe; gives the place of `named` (else of `new`) as messages name it."""
        text = self.recipe.read_text()
        self.assertEqual(text.count(old), 1, old)
        text = text.replace(old, new)
        self.recipe.write_text(text)
        return f"{self.recipe}:{text[:text.index(named or new)].count(chr(10)) + 1}: "

    def refused(self, *words, ranks=(1, 2, 3), arguments=(), check=()):
        """Every way to start gives one message that begins with the first of the words and has the others in
        it; so does `check` with the arguments `check`, unless that is None. All at once: they mostly wait."""
        under_way = [start(self.folder / f"run-{count}", *arguments, recipe=self.recipe, ranks=count)
                     for count in ranks]
        local = ["--local-ranks", max(ranks), *arguments]
        under_way.append(start(self.folder / "run-local", *local, recipe=self.recipe, ranks=1))
        if check is not None:
            under_way.append(tutti("check", self.recipe, "--ranks", max(ranks), *check))
        for running in under_way:
            self.assert_refused(running, words)
        self.assertEqual(list(self.folder.glob("run-*/metrics.jsonl")), [], "it trained")

    def assert_refused(self, running, words):
        finished = running.wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)
        error = finished.errors()[0].removeprefix("error: ")
        self.assertTrue(error.startswith(words[0]), f"{error!r} does not begin with {words[0]!r}")
        for word in words[1:]:
            self.assertIn(word, error)
        self.assertNotIn("terminate called", finished.text)

    def another_run(self, **options):
        run = self.folder / "other"
        train(run, ranks=1, train__max_duration="1ba", **options)
        return run

    def test_an_unknown_key(self):
        place = self.alter('max_duration = "20ep"', 'max_duratoin = "20ep"')
        self.refused(place, 'train.max_duratoin = "20ep"', "did you mean max_duration?")

    def test_no_toml(self):
        self.refused(self.alter("momentum = 0.9", "momentum = = 0.9"))

    def test_an_override_of_an_unknown_key(self):
        override = ["--set", "optimizer.momentun=0.5"]
        self.refused("--set: ", "optimizer.momentun = 0.5", "did you mean momentum?", arguments=override,
                     check=override)

    def test_a_missing_file(self):
        place = self.alter(TRAIN_PATH, TRAIN_PATH.replace("digits", "digit"))
        self.refused(place, 'data.train.path = "', "data/digit.h5", "no such file")

    def test_labels_out_of_range(self):
        place = self.alter(TRAIN_PATH, 'path = "digits.h5"\ngroup = "train"')
        self.write_digits_with(99)
        self.refused(place, "data.train.path", "'train/target', row ", "99 is not in [0, 10)", check=["--data"])

    def write_digits_with(self, label):
        """A digits.h5 with another label in the middle of the 1,437 to train on, which lie there in a row."""
        content = bytearray((EXAMPLES / "data" / "digits.h5").read_bytes())
        labels = re.search(rb"(?:[\0-\x09]\0{7}){1437,}", content)
        middle = labels.start() + (labels.end() - labels.start()) // 16 * 8
        content[middle:middle + 8] = struct.pack("<q", label)
        (self.folder / "digits.h5").write_bytes(content)

    def test_a_checkpoint_of_another_model(self):
        other = self.another_run(model__hidden="[32]")
        self.refused(f'command line: --resume = "{other}": ', "model/0.weight", "[32, 64]", "[128, 64]",
                     arguments=["--resume", other], check=None)
        place = self.alter("keep = 3", f'resume = "{other}"')
        self.refused(place, f'checkpoint.resume = "{other}"', "model/0.weight", "[32, 64]", "[128, 64]")

    def test_a_refused_attempt_leaves_the_run_as_it_was(self):
        run = self.folder / "run"
        train(run, ranks=2, train__max_duration="2ep", checkpoint__interval="1ep")
        before = files(run)
        self.alter("hidden = [128, 64]", "hidden = [32]")
        self.assert_refused(start(run, "--resume", "auto", recipe=self.recipe), ["command line: --resume"])
        self.alter("hidden = [32]", 'weights = "none.h5"')
        self.assert_refused(start(run, recipe=self.recipe), [str(self.recipe)])
        self.assertEqual(files(run), before)

    def test_a_recipe_that_one_rank_lacks(self):
        self.refused_by_one("rank 1: ", "nowhere.toml: ", "No such file", other=["train", "nowhere.toml"])

    def test_recipes_that_differ(self):
        other = ["train", self.recipe, "--set", "optimizer.lr=0.2"]
        self.refused_by_one("rank 1 was given another recipe than rank 0: "
                            "optimizer.lr (0.2 against 0.1)", other=other)

    def test_long_recipes_that_differ(self):
        self.alter("[checkpoint]", f'[checkpoint]\nsave_ignore_keys = ["{"x" * 5000}"]')
        self.refused_by_one("rank 1 was given another recipe than rank 0: train.max_duration",
                            other=["train", self.recipe, "--set", "train.max_duration=3ep"])

    def test_a_command_line_that_is_wrong_on_one_rank(self):
        self.refused_by_one("rank 1: ", "--resum", other=["train", self.recipe, "--resum", "auto"])

    def refused_by_one(self, *words, other):
        """Rank 1 is given another command line than the others."""
        run = ["--run-dir", self.folder / "run"]
        lines = [["train", self.recipe, *run], [*other, *run], ["train", self.recipe, *run]]
        self.assert_refused(start_each(lines), words)

    def test_a_file_where_journals_go(self):
        run = self.folder / "run"
        run.mkdir()
        (run / "journal").touch()
        words = [str(self.recipe), 'journal.level = "full"', f"{run}/journal"]
        self.assert_refused(start(run, recipe=self.recipe), words)

    def test_an_unknown_option(self):
        self.refused("", "--resum", arguments=["--resum", "auto"], check=None)

    def test_a_run_folder_that_cannot_be_made(self):
        run = self.folder / "run"
        run.write_text("")
        for ranks in (1, 2):
            self.assert_refused(start(run, recipe=self.recipe, ranks=ranks),
                                [f'command line: --run-dir = "{run}": ', str(run)])


def files(run):
    """When each file was written; logs and locks are written by starts that are refused too."""
    kept = [path for path in run.rglob("*")
            if path.is_file() and path.suffix != ".log" and path.name != ".lock"]
    return {path: path.stat().st_mtime_ns for path in kept}


if __name__ == "__main__":
    tutti_run.main()
