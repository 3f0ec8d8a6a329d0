"""Bad input gets one clear message, with place, key and value, and exit code 2, on every number of ranks;
`check` finds it without training."""
import os
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
        it; so does `check` with the arguments `check`, unless that is None."""
        run = self.folder / "run"
        for count in ranks:
            self.assert_refused(start(run, *arguments, recipe=self.recipe, ranks=count), words)
        local = ["--local-ranks", max(ranks), *arguments]
        self.assert_refused(start(run, *local, recipe=self.recipe, ranks=1), words)
        if check is not None:
            self.assert_refused(tutti("check", self.recipe, "--ranks", max(ranks), *check), words)
        self.assertFalse((run / "metrics.jsonl").exists(), "it trained")

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

    def test_an_unknown_key_of_a_scheduler_in_a_sequence(self):
        place = self.alter("[train]", """[scheduler]
kind = "sequential_lr"
milestones = [5]
[[scheduler.schedulers]]
kind = "linear_lr"
[[scheduler.schedulers]]
kind = "cosine_annealing_lr"
T_mux = 15
[train]""", named="T_mux")
        self.refused(place, "scheduler.schedulers.1.T_mux = 15", "did you mean T_max?")

    def test_a_plateau_of_a_metric_that_is_not_measured(self):
        place = self.alter("[train]", """[scheduler]
kind = "reduce_lr_on_plateau"
monitor = "metrics/eval/LanguageCrossEntropy"
[train]""", named="monitor")
        self.refused(place, "no evaluator measures it; there are metrics/eval/MulticlassAccuracy")

    def test_an_unknown_section(self):
        place = self.alter("[optimizer]", "[optimiser]")
        self.refused(place, "optimiser", "did you mean optimizer?")

    def test_an_unknown_kind(self):
        place = self.alter('kind = "sgd"', 'kind = "sdg"')
        self.refused(place, 'optimizer.kind = "sdg"', "sgd")

    def test_a_wrong_type(self):
        place = self.alter("lr = 0.1", 'lr = "fast"')
        self.refused(place, 'optimizer.lr = "fast"', "expected a number")

    def test_a_value_out_of_range(self):
        place = self.alter("batch_size = 96 ", "batch_size = 0 ")
        self.refused(place, "data.train.batch_size = 0", "expected")

    def test_a_duration_without_a_unit(self):
        place = self.alter('max_duration = "20ep"', 'max_duration = "20"')
        self.refused(place, 'train.max_duration = "20"', "expected")

    def test_no_toml(self):
        self.refused(self.alter("momentum = 0.9", "momentum = = 0.9"))

    def test_what_this_build_cannot_do(self):
        place = self.alter("[optimizer]", '[device]\nkind = "gpu"\n\n[optimizer]', 'kind = "gpu"')
        self.refused(place, 'device.kind = "gpu"', "trains on CPUs", ranks=(1, 2))

    def test_a_duration_of_itself(self):
        place = self.alter('max_duration = "20ep"', 'max_duration = "1dur"')
        self.refused(place, 'train.max_duration = "1dur"', ranks=(2,))

    def test_another_order_of_samples_in_mid_run(self):
        other = self.another_run()
        override = ["--set", "data.train.drop_last=true"]
        self.refused(f'command line: --resume = "{other}": ', "data.train.drop_last = false", ranks=(2,),
                     arguments=["--resume", other, *override], check=None)

    def test_a_key_given_by_two_names(self):
        self.alter('interval = "5ep"', 'interval = "5ep"\nsave_interval = "5ep"')
        self.refused(f"{self.recipe}:", "save_interval", "interval")

    def test_an_override_of_an_unknown_key(self):
        override = ["--set", "optimizer.momentun=0.5"]
        self.refused("--set: ", "optimizer.momentun = 0.5", "did you mean momentum?", arguments=override,
                     check=override)

    def test_a_model_that_no_memory_holds(self):
        place = self.alter("hidden = [128, 64]", "hidden = [1000000000, 1000000]", "[model]")
        self.refused(place, "[model]: its parameters and gradients need", "GB", ranks=(1, 2))

    def test_evaluation_data_that_the_model_cannot_take(self):
        place = self.alter('kind = "hdf5"\npath = "data/digits.h5"\ngroup = "test"',
                           'kind = "synthetic"\nshape = [65]', "shape = [65]")
        self.refused(place, "data.eval.shape = [65]", "float32 [1, 8, 8]", ranks=(1, 2))

    def test_a_number_that_is_not_finite(self):
        place = self.alter("lr = 0.1", "lr = inf")
        self.refused(place, "optimizer.lr = inf: expected a finite number", ranks=(1, 2))

    def test_a_missing_recipe(self):
        self.recipe.unlink()
        self.refused(f"{self.recipe}: ", "No such file")

    def test_a_missing_file(self):
        place = self.alter(TRAIN_PATH, TRAIN_PATH.replace("digits", "digit"))
        self.refused(place, 'data.train.path = "', "data/digit.h5", "no such file")

    def test_a_batch_of_fewer_samples_than_ranks(self):
        place = self.alter("batch_size = 96 ", "batch_size = 1 ")
        self.refused(place, "data.train.batch_size = 1:", "a sample for each of 2 ranks", ranks=[2])

    def test_hdf5_without_the_dataset(self):
        place = self.alter('group = "train"', 'group = "training"')
        self.refused(place, 'data.train.group = "training"', "data/digits.h5", "'/training/'", "train/input")

    def test_a_file_that_is_no_hdf5(self):
        place = self.alter(TRAIN_PATH, 'path = "recipe.toml"\ngroup = "train"')
        self.refused(place, 'data.train.path = "', "recipe.toml")

    def test_labels_out_of_range(self):
        place = self.alter(TRAIN_PATH, 'path = "digits.h5"\ngroup = "train"')
        for label in (-1, 99):
            with self.subTest(label=label):
                self.write_digits_with(label)
                self.refused(place, "data.train.path", "'train/target', row ", f"{label} is not in [0, 10)",
                             check=["--data"])

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

    def test_a_checkpoint_of_another_seed(self):
        other = self.another_run(seed=3)
        self.refused(f'command line: --resume = "{other}": ', "seed 3", "17", arguments=["--resume", other],
                     check=None)
        place = self.alter("keep = 3", f'resume = "{other}"')
        self.assert_refused(tutti("check", self.recipe), [place, f'checkpoint.resume = "{other}"', "seed 3"])

    def test_a_checkpoint_that_is_not_there(self):
        place = self.alter("keep = 3", 'resume = "nowhere"')
        self.refused(place, 'checkpoint.resume = "', "nowhere", "expected the folder of a checkpoint")

    def test_initial_weights_of_another_model(self):
        weights = self.another_run(model__hidden="[32]") / "checkpoints" / "latest"
        place = self.alter("hidden = [128, 64]", f'hidden = [128, 64]\nweights = "{weights}"', "weights")
        self.refused(place, f'model.weights = "{weights}"', "0.weight")

    def test_initial_weights_that_are_not_there(self):
        place = self.alter("hidden = [128, 64]", 'weights = "none.safetensors"')
        self.refused(place, 'model.weights = "', "none.safetensors")

    def test_initial_weights_whose_file_was_copied_without_those_it_shows(self):
        alone = self.folder / "alone.h5"
        shutil.copyfile(self.another_run() / "checkpoints" / "latest" / "checkpoint.h5", alone)
        place = self.alter("hidden = [128, 64]", f'hidden = [128, 64]\nweights = "{alone}"', "weights")
        self.refused(place, f'model.weights = "{alone}"', "lies in 'rank-0.h5', which is not there")

    def test_a_text_that_is_not_utf8(self):
        name = ["--set", os.fsdecode(b"run_name=a\xff")]
        self.refused("--set: run_name = ", "expected a text in UTF-8", arguments=name, check=name)

    def test_a_time_in_tokens_of_a_model_that_counts_none(self):
        place = self.alter('interval = "5ep"', 'interval = "5tok"')
        self.refused(place, 'checkpoint.interval = "5tok"', "mlp counts no tokens", ranks=(2,))

    def test_an_evaluation_of_what_is_no_checkpoint(self):
        for named in (self.recipe, self.folder / "nowhere", self.another_run(model__hidden="[32]")):
            evaluation = tutti("eval", self.recipe, "--checkpoint", named)
            self.assert_refused(evaluation, [f'command line: --checkpoint = "{named}": ', str(named)])

    def test_a_start_that_is_refused_leaves_the_run_as_it_was(self):
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
        self.assert_refused(start(run, recipe=self.recipe), [str(self.recipe), 'journal.level = "full"', f"{run}/journal"])

    def test_a_metric_that_nothing_measures(self):
        place = self.alter("[checkpoint]", '[[callbacks]]\nkind = "early_stopper"\n'
                           'monitor = "MulticlasAccuracy"\n\n[checkpoint]', named="monitor")
        self.refused(place, 'callbacks.0.monitor = "MulticlasAccuracy"', "did you mean MulticlassAccuracy?")

    def test_a_metric_that_is_not_measured_in_training(self):
        place = self.alter("[checkpoint]", '[[callbacks]]\nkind = "early_stopper"\ndataloader_label = "train"\n'
                           'monitor = "CrossEntropy"\n\n[checkpoint]', named="monitor")
        self.refused(place, 'callbacks.0.monitor = "CrossEntropy"', "it measures MulticlassAccuracy")

    def test_a_metric_of_data_that_there_is_not(self):
        place = self.alter("[checkpoint]", '[[callbacks]]\nkind = "threshold_stopper"\ndataloader_label = "evil"\n'
                           'monitor = "CrossEntropy"\nthreshold = 1\n\n[checkpoint]', named="monitor")
        self.refused(place, 'callbacks.0.monitor = "CrossEntropy"', 'nothing is measured under the label "evil"')

    def test_a_metric_of_mlperfs_that_there_is_not(self):
        place = self.alter("[checkpoint]", '[[callbacks]]\nkind = "mlperf_callback"\nroot_folder = "mlperf"\n'
                           'index = 0\nmetric_name = "Acuracy"\n\n[checkpoint]', named="metric_name")
        self.refused(place, 'callbacks.0.metric_name = "Acuracy"', "there is no such metric")

    def test_a_metric_that_cannot_measure_the_model(self):
        place = self.alter("[data.eval]", '[data.eval]\nmetric_names = ["MeanSquaredError"]', named="[data.eval]")
        self.refused(place, "MeanSquaredError cannot measure this model on this data")

    def test_a_callback_that_is_a_section(self):
        place = self.alter("[checkpoint]", '[[callbacks]]\nkind = "checkpoint_saver"\nfolder = "x"\n\n[checkpoint]',
                           named='"checkpoint_saver"')
        self.refused(place, 'callbacks.0.kind = "checkpoint_saver"', "[checkpoint]", "save_folder")

    def test_a_logger_of_a_hosted_service(self):
        place = self.alter("[checkpoint]", '[[loggers]]\nkind = "wandb"\nproject = "x"\n\n[checkpoint]',
                           named='"wandb"')
        self.refused(place, 'loggers.0.kind = "wandb"', "Not carried over", 'kind = "command"')

    def test_a_log_that_several_ranks_would_write(self):
        place = self.alter("[checkpoint]", '[[loggers]]\nkind = "csv"\nrank_zero_only = false\n'
                           'filename = "all.csv"\n\n[checkpoint]', named="all.csv")
        self.refused(place, 'loggers.0.filename = "all.csv"', "expected {rank} in it")

    def test_a_log_that_the_run_itself_writes(self):
        place = self.alter("[checkpoint]", '[[loggers]]\nkind = "jsonl"\nfilename = "./metrics.jsonl"\n\n[checkpoint]',
                           named='"./metrics.jsonl"')
        self.refused(place, 'loggers.0.filename = "./metrics.jsonl"', "is the run's own", ranks=(1, 2))

    def test_weights_in_the_place_of_the_recipe(self):
        place = self.alter("[checkpoint]", '[[callbacks]]\nkind = "export_for_inference"\n'
                           'save_path = "recipe.toml"\n\n[checkpoint]', named='"recipe.toml"')
        self.refused(place, 'callbacks.0.save_path = "recipe.toml"', "is the run's own", ranks=(1, 2))

    def test_two_logs_of_one_name(self):
        self.alter("[checkpoint]", '[[loggers]]\nkind = "csv"\n\n[[loggers]]\nkind = "csv"\n\n[checkpoint]')
        self.refused(f"{self.recipe}:", "loggers.1.filename", "writes there too", ranks=(1, 2))

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
