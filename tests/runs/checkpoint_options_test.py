"""Keys of [checkpoint] and of data that each rank has to itself, under mpirun."""
import shutil

import tutti_run
from tutti_run import DIGITS, EXAMPLES, metrics, settings, start, train, tutti

SHORT = {"train__max_duration": "20ba", "checkpoint__interval": "10ba"}
LIMITS = {"train__max_duration": "10000ep", "train__eval_interval": "0ba"}


def names(folder):
    return {path.name for path in folder.iterdir()}


class CheckpointOptions(tutti_run.RunTest):
    def steps(self, run):
        return [line["step"] for line in metrics(run) if "loss" in line]

    def test_names_of_a_pattern_are_resumed_from_and_replayed(self):
        run = self.folder / "run"
        pattern = {"checkpoint__save_filename": "{run_name}-{batch}",
                   "checkpoint__save_latest_filename": "newest"}
        train(run, **SHORT, **pattern)
        self.assertEqual(names(run / "checkpoints"), {"digits-10", "digits-20", "newest", ".lock"})
        finished = train(run, "--resume", "auto", **{**SHORT, "train__max_duration": "30ba"}, **pattern)
        self.assertIn("resumes after step 20,", finished.text)
        self.assertIn(f"checkpoint             {run / 'checkpoints' / 'digits-30'}\n", finished.text)
        replayed = tutti("replay", run).wait()
        self.assertEqual(replayed.code, 0, replayed.text)
        self.assertEqual(tutti("inspect", run, "--digest").wait().code, 0)

    def test_the_best_checkpoints_stay(self):
        run = self.folder / "run"
        values = {"train__max_duration": "8ep", "checkpoint__interval": "4ep", "checkpoint__keep": 1,
                  "checkpoint__best": '{ metric = "CrossEntropy", keep = 2 }', "optimizer__lr": 0.5}
        train(run, ranks=2, **values)
        resumed = {**values, "train__max_duration": "12ep", "checkpoint__keep": 2}
        train(run, "--resume", "auto", ranks=2, **resumed)
        losses = {line["metrics/eval/CrossEntropy"]: line["step"] for line in metrics(run)
                  if "metrics/eval/CrossEntropy" in line}
        best = [losses[loss] for loss in sorted(losses)[:2]]
        found = [path.name for path in (run / "checkpoints").glob("ep*")]
        newest = sorted(int(name.split("-ba")[1]) for name in found)[-1]
        for step in best:
            self.assertIn(f"ep{step // 15}-ba{step}", found)
        self.assertEqual(newest, 180)
        self.assertLessEqual(len(found), 4, found)
        self.assertEqual((run / "checkpoints" / "best").readlink().name, f"ep{best[0] // 15}-ba{best[0]}")

    def test_autoresume_after_a_kill_resumes_with_its_own(self):
        train(self.folder / "first", **SHORT)
        options = {**SHORT, "checkpoint__keep": -1, "checkpoint__autoresume": "true",
                   "checkpoint__save_folder": self.folder / "saved",
                   "checkpoint__load_path": self.folder / "first", "checkpoint__load_weights_only": "true"}
        train(self.folder / "whole", **{**options, "checkpoint__save_folder": self.folder / "other"})
        run = self.folder / "run"
        running = start(run, **{**options, **LIMITS, "checkpoint__interval": "10ba"})
        running.wait_for(lambda: (self.folder / "saved" / "latest").exists(), "a checkpoint")
        running.kill()
        for path in (self.folder / "saved").glob("ep*"):
            if not path.name.endswith("-ba10"):
                shutil.rmtree(path)
        finished = train(run, **options)
        self.assertIn("resumes after step 10,", finished.text)
        self.assertEqual(tutti_run.digest(self.folder / "saved"), tutti_run.digest(self.folder / "other"))
        for folder in ("whole", "run"):
            replayed = tutti("replay", self.folder / folder).wait()
            self.assertEqual(replayed.code, 0, replayed.text)

    def test_surgery_that_the_weights_need_is_done_again_with_a_warning(self):
        first, recipe = self.folder / "first", EXAMPLES / "bert_recipe.toml"
        short = {"train__max_duration": "1ba", "train__eval_interval": "0ba"}
        train(first, recipe=recipe, **short)
        bare = self.folder / "bare.toml"
        parts = recipe.read_text().replace("data/king", f"{EXAMPLES}/data/king").split("\n\n")
        bare.write_text("\n\n".join(part for part in parts if not part.startswith("[[algorithms]]")))
        finished = train(self.folder / "run", recipe=bare, checkpoint__load_path=first, **short,
                         checkpoint__load_weights_only="true")
        for name in ("Alibi", "GatedLinearUnits"):
            warning = f"it was trained with {name}, which is not in the recipe; it is applied, since the weights need it"
            self.assertEqual(finished.text.count(warning), 1, finished.text)
            self.assertIn(warning, tutti_run.log(self.folder / "run"))

    def test_ignored_keys_are_reported_once(self):
        train(self.folder / "first", **SHORT, model__hidden="[128]")
        finished = train(self.folder / "run", **SHORT, checkpoint__load_path=self.folder / "first",
                         checkpoint__load_weights_only="true", checkpoint__load_strict_model_weights="false",
                         checkpoint__load_ignore_keys='["state/model/2.*", "modle/*"]')
        self.assertEqual(finished.text.count("names 'modle/*'"), 1, finished.text)
        self.assertEqual(finished.text.count("there is no 'model/4.weight'"), 1, finished.text)
        self.assertIn(f"training starts from {self.folder / 'first'}", tutti_run.log(self.folder / "run"))

    def test_a_duration_in_seconds_ends_on_the_same_step_everywhere(self):
        run = self.folder / "run"
        train(run, ranks=3, train__max_duration="1sec", train__eval_interval="0ba")
        self.assertGreater(self.steps(run)[-1], 5)
        told = tutti("replay", run).wait()
        self.assertEqual(told.code, 0, told.text)
        self.assertIn("replayed 3 ranks", told.text)

    def test_progress_in_steps(self):
        finished = train(self.folder / "run", **SHORT, train__progress_interval="5ba",
                         train__eval_interval="0ba")
        shown = [" ".join(line.split()[:4]) for line in finished.text.splitlines() if line.startswith("epoch ")]
        self.assertEqual(shown, [f"epoch {epoch}/2 step {step}/15"
                                 for epoch, step in ((1, 1), (1, 5), (1, 10), (1, 15), (2, 5))])

    def test_a_deepspeed_block_is_the_same_run(self):
        recipe = self.folder / "recipe.toml"
        (self.folder / "data").symlink_to(EXAMPLES / "data")
        text = DIGITS.read_text()
        self.assertEqual(text.count("batch_size = 96 "), 1)
        recipe.write_text(text.replace("batch_size = 96 ", "# batch_size = 96 ") +
                          "\n[deepspeed]\ntrain_batch_size = 96\ngradient_accumulation_steps = 2\n")
        train(self.folder / "one", recipe=recipe, **SHORT)
        learnt = tutti_run.digest(self.folder / "one")
        in_one_process = ["--local-ranks", 2]
        train(self.folder / "two", *in_one_process, ranks=1, **SHORT, train__grad_accum=2)
        self.assertEqual(learnt, tutti_run.digest(self.folder / "two"))
        again = self.folder / "again"
        train(again, *in_one_process, ranks=1, recipe=self.folder / "one" / "recipe.toml")
        self.assertEqual(learnt, tutti_run.digest(again))
        train(self.folder / "three", recipe=recipe, ranks=3, train__max_duration="2ba")  # 96 = 3 x 2 x 16
        recipe.write_text(recipe.read_text().replace("steps = 2", "steps = 5"))
        refused = start(self.folder / "bad", recipe=recipe, ranks=3).wait()
        self.assertEqual(refused.code, 2, refused.text)
        self.assertIn("deepspeed.gradient_accumulation_steps = 5: expected a divisor of the batch", refused.text)


class OwnData(tutti_run.RunTest):
    TEXT = (EXAMPLES / "data" / "king_james.txt").read_bytes()
    RECIPE = EXAMPLES / "text_gpt.toml"

    def parts(self, *lengths):
        for rank, length in enumerate(lengths):
            (self.folder / f"part-{rank}.txt").write_bytes(self.TEXT[rank * 30000:rank * 30000 + length])
        path = self.folder / "part-{rank}.txt"
        return {"data__train__path": path, "data__train__sampling": "own", "data__train__split": "all",
                "train__max_duration": "6ba", "train__eval_interval": "0ba", "checkpoint__interval": "3ba",
                **tutti_run.SMALL_GPT}

    def test_each_rank_opens_its_own_and_so_does_a_replay(self):
        options = self.parts(20000, 20000)
        run = self.folder / "run"
        train(run, recipe=self.RECIPE, **options)
        local = self.folder / "local"
        train(local, "--local-ranks", 2, recipe=self.RECIPE, ranks=1, **options)
        self.assert_learnt_the_same(run, local)
        for folder in (run, local):
            replayed = tutti("replay", folder).wait()
            self.assertEqual(replayed.code, 0, replayed.text)
        simulated = tutti("simulate", self.RECIPE, "--ranks", 2, "--seeds", "1..2",
                          *settings(**options)).wait()
        self.assertEqual(simulated.code, 0, simulated.text)
        checked = tutti("check", self.RECIPE, "--ranks", 2, *settings(**options)).wait()
        self.assertEqual(checked.code, 0, checked.text)

    def test_a_missing_file_of_one_rank_ends_all_ranks(self):
        options = self.parts(20000, 20000, 20000)
        (self.folder / "part-1.txt").unlink()
        for ranks in (2, 3):
            finished = start(self.folder / "run", recipe=self.RECIPE, ranks=ranks, **options).wait()
            self.assertEqual(finished.code, 2, finished.text)
            self.assertEqual(len(finished.errors()), 1, finished.text)
            self.assertIn("rank 1: ", finished.text)
            self.assertIn("part-1.txt", finished.text)

    def test_uneven_files(self):
        options = self.parts(20000, 15000)
        finished = start(self.folder / "run", recipe=self.RECIPE, **options).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertEqual(len(finished.errors()), 1, finished.text)
        self.assertIn('samples; on_uneven = "shortest"', finished.text)
        train(self.folder / "run", recipe=self.RECIPE, **options, data__train__on_uneven="shortest")

    def test_resuming_on_another_ranks_data_is_refused(self):
        options = self.parts(20000, 20000)
        run = self.folder / "run"
        train(run, recipe=self.RECIPE, **options)
        train(run, "--resume", "auto", recipe=self.RECIPE, **{**options, "train__max_duration": "7ba"})
        (self.folder / "part-1.txt").write_bytes(self.TEXT[:20000])
        finished = start(run, "--resume", "auto", recipe=self.RECIPE,
                         **{**options, "train__max_duration": "8ba"}).wait()
        self.assertEqual(finished.code, 2, finished.text)
        self.assertIn("it was trained on other data", finished.text)


if __name__ == "__main__":
    tutti_run.main()
