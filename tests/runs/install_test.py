"""What `cmake --install` puts down is enough for a program of one's own, built outside the tree."""
import json
import os
import random
import re
import shutil
import subprocess

import tutti_run
from tutti_run import BUILD, SOURCE


def last_accuracy(run):
    key = "metrics/eval/MulticlassAccuracy"
    return [line[key] for line in tutti_run.metrics(run) if key in line][-1]


def tensors(path):
    """Of a safetensors file: dtype, shape and bytes of each tensor."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    return {name: (at["dtype"], at["shape"], data[end:][slice(*at["data_offsets"])])
            for name, at in header.items() if name != "__metadata__"}


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(tutti_run.RunTest):
    @classmethod
    def setUpClass(cls):
        """The installed examples are built once, against the headers and libraries that were installed."""
        cls.installed = cls.enterClassContext(tutti_run.scratch_folder()) / "installed"
        cls.sources = cls.installed / "share/tutti/examples/cpp"
        cls.build = cls.sources / "build"
        call("cmake", "--install", BUILD, "--prefix", cls.installed)
        (cls.installed.parent / "torch/lib").mkdir(parents=True)  # of another program: without headers
        (cls.installed.parent / "torch/lib/libtorch_cpu.so").touch()
        launcher = shutil.which("ccache") or ""
        cached = {**os.environ, "CCACHE_BASEDIR": str(cls.installed.parent), "CCACHE_NOHASHDIR": "1"}
        cls.written = cls.installed.parent / "written"  # by `tutti new`
        cls.written.mkdir()
        cls.told = {name: call(cls.installed / "bin/tutti", "new", kind, name, cwd=cls.written)
                    for kind, name in {"program": "mine", "plugin": "noise"}.items()}
        for folder in (cls.sources, cls.written / "mine", cls.written / "noise"):
            prefix = [f"-DCMAKE_PREFIX_PATH={cls.installed}"] if folder == cls.sources else []
            call("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", *prefix)
            call("cmake", "--build", folder / "build", "--parallel", 2, env=cached)

    def test_headers_are_included_by_the_name_of_tutti(self):
        include = self.installed / "include"
        self.assertEqual([path.name for path in include.iterdir()], ["tutti"])
        headers = list(include.glob("**/*.h"))
        own = [path for path in headers if re.search(r'^#include "', path.read_text(), re.M)]
        self.assertEqual(own, [])
        for header in headers:
            for name in re.findall(r"^#include <(tutti/.*)>", header.read_text(), re.M):
                self.assertTrue((include / name).exists(), f"{header} includes {name}")
        self.assertGreater(len(headers), 100)

    def test_shells_man_and_editors_find_their_files(self):
        share, command = self.installed / "share", self.installed / "bin/tutti"
        for path, words in {"bash-completion/completions/tutti": ["completion", "bash"],
                            "zsh/site-functions/_tutti": ["completion", "zsh"],
                            "fish/vendor_completions.d/tutti.fish": ["completion", "fish"],
                            "man/man1/tutti.1": ["man"],
                            "tutti/tutti.schema.json": ["explain", "--schema"]}.items():
            self.assertEqual((share / path).read_text(), call(command, *words))
        schema = (share / "tutti/tutti.schema.json").resolve()
        self.assertEqual(call(command, "init", "--out", "-").splitlines()[0], f"#:schema file://{schema}")

    def test_programs_are_built_and_train(self):
        losses = re.findall(r"loss (\S+),", call(self.build / "own_loop"))
        self.assertEqual(len(losses), 5)
        words = [self.build / "train_digits", self.sources / "train_digits.toml",
                 SOURCE / "examples/data/digits.h5"]
        told = call(*words, cwd=self.folder)
        self.assertEqual(len(re.findall(r"^epoch \d+: loss", told, re.M)), 12, "10 of the recipe, then 2 more")
        self.assertGreater(float(re.search(r"MulticlassAccuracy\s+(\S+)", told).group(1)), 0.85)
        alone = (self.folder / "runs/train_digits").rename(self.folder / "alone")
        done = tutti_run.Running([tutti_run.MPIRUN, "-np", "2", *map(str, words)], folder=self.folder).wait()
        self.assertEqual(done.code, 0, done.text)
        self.assertEqual(len(re.findall(r"epoch \d+: loss", done.text)), 12)
        for ranks in ([], [tutti_run.MPIRUN, "-np", "2"]):
            done = tutti_run.Running([*ranks, str(words[0]), str(words[1]), "absent.h5"], folder=self.folder).wait()
            self.assertEqual(done.errors(), ["error: absent.h5: no such file"], done.text)
            self.assertEqual(done.code, 2)
        self.assertTrue((self.installed / "bin/tutti").exists())
        self.assertGreater(len(tutti_run.metrics(alone)), 100)

    def test_a_module_trains_in_a_program_of_few_lines(self):
        code = (self.sources / "four_ranks.cpp").read_text()
        self.assertLessEqual(len(code.splitlines()), 20)
        self.assertIn(code, (SOURCE / "docs/your_model.md").read_text())
        program, recipe, run = self.build / "four_ranks", self.sources / "four_ranks.toml", self.folder / "run"
        done = tutti_run.Running([tutti_run.MPIRUN, "-np", "4", str(program), str(recipe), "--run-dir", str(run)]).wait()
        self.assertEqual(done.code, 0, done.text)
        self.assertIn("4 ranks x 1 thread", done.text)
        self.assertGreater(last_accuracy(run), 0.9)
        alike = self.folder / "alike"
        call(program, recipe, "--run-dir", alike, "--local-ranks", 4, "--set", "sharding.strategy=none")
        self.assert_learnt_the_same(alike, run)
        for ranks in ([], [tutti_run.MPIRUN, "-np", "2"]):
            done = tutti_run.Running([*ranks, str(program), str(recipe), "--set", "optimizer.lr=fast"]).wait()
            self.assertEqual(done.code, 2, done.text)
            self.assertEqual(done.text.count('optimizer.lr = "fast": expected a number'), 1, done.text)
        self.assertIn("did you mean --local-ranks?", self.refused(program, recipe, "--localranks", 2))
        self.assertIn("--set KEY=VALUE", call(program, "--help"))

    def test_folders_of_tutti_new_are_built_and_train(self):
        for name, runs in {"mine": [str(self.written / "mine/build/mine")],
                           "noise": [str(self.installed / "bin/tutti"), "train"]}.items():
            folder = self.written / name
            told = call("ctest", "--test-dir", folder / "build", "--no-tests=error", "--output-on-failure")
            self.assertIn("100% tests passed", told)
            self.assertEqual({path.name for path in folder.iterdir()},
                             {"CMakeLists.txt", f"{name}.cpp", "recipe.toml", "build"})
            typed = re.findall(r"^  (.*)$", self.told[name], re.M)
            self.assertEqual(typed[:3], [f"cd {name}", "cmake -B build && cmake --build build", "ctest --test-dir build"])
            said = [word.replace(str(folder) + "/", "").rpartition("bin/")[2] for word in runs]
            self.assertEqual(typed[3], " ".join(["mpirun -np 2", *said, "recipe.toml"]))
            done = tutti_run.Running([tutti_run.MPIRUN, "-np", "2", *runs, "recipe.toml"], folder=folder).wait()
            self.assertEqual(done.code, 0, done.text)
            lines = tutti_run.metrics(folder / "runs" / name)
            losses = [line["loss"] for line in lines if "lr" in line]
            self.assertEqual(len(losses), 40)
            self.assertLess(losses[-1], losses[0])
        self.assertLessEqual(min(losses), [line["noise/lowest_loss"] for line in lines
                                           if "noise/lowest_loss" in line][-1] + 1e-6)
        again = self.refused(self.installed / "bin/tutti", "new", "plugin", self.written.name, cwd=self.written.parent)
        self.assertIn("written: exists already", again)

    def test_a_sharded_loop_of_ones_own_gives_the_bits_of_the_recipe(self):
        recipe, command = self.sources / "own_loop.toml", self.installed / "bin/tutti"
        for ranks, strategies in {1: ["none"], 2: ["none", "full"], 4: ["full"]}.items():
            run, exported = self.folder / f"run{ranks}", self.folder / f"run{ranks}.safetensors"
            call(command, "train", recipe, "--run-dir", run, "--local-ranks", ranks)
            call(command, "export", run, "--to", exported)
            for strategy in strategies:
                written = self.folder / "written.safetensors"
                launcher = [tutti_run.MPIRUN, "-np", str(ranks)] if ranks > 1 else []
                done = tutti_run.Running([*launcher, str(self.build / "own_loop"), strategy, str(written)]).wait()
                self.assertEqual(done.code, 0, done.text)
                self.assertEqual(len(re.findall(r"batch \d: loss", done.text)), 5, done.text)
                self.assertEqual(tensors(written), tensors(exported), f"{strategy} on {ranks} ranks")
                written.unlink()

    def test_a_loop_of_ones_own_gives_the_bits_of_the_trainer(self):
        told = call(self.build / "functional_loop", cwd=self.folder)
        self.assertIn("10 losses, the same bits", told)
        self.assertEqual(len(set(re.findall(r"loss (\S+) by", told))), 10, told)

    def test_an_algorithm_of_ones_own_passes_its_test(self):
        told = call("ctest", "--test-dir", self.build, "--no-tests=error", "--output-on-failure")
        self.assertIn("100% tests passed", told)

    def test_a_plugin_brings_what_a_recipe_names(self):
        recipe, run, command = self.sources / "plugin.toml", self.folder / "run", self.installed / "bin/tutti"
        told = call(command, "train", recipe, "--run-dir", run)
        self.assertEqual(len(re.findall(r"^epoch \d+: loss", told, re.M)), 4, "its algorithm halves the training")
        self.assertIn("  ended                  max_duration of 4ep is reached (8ep at the start)\n", told)
        self.assertRegex(told, r"(?m)^epoch 4/4  step 15/15  ")
        self.assertRegex(told, r"(?m)^[1-9]\d+ values logged$")
        self.assertIn(f'file = "{self.sources}/few.txt"', (run / "recipe.toml").read_text())
        replayed = call(command, "replay", run)
        self.assertIn("replayed", replayed)
        self.assertNotIn("values logged", replayed)
        self.assertIn('width = 24', call(command, "check", recipe, "--all"))
        told = call(command, "eval", recipe, "--checkpoint", run)
        accuracy = re.search(r"MulticlassAccuracy (\S+)", told).group(1)
        self.assertAlmostEqual(float(accuracy), last_accuracy(run), places=4, msg="its algorithm made another model")
        call(command, "predict", recipe, "--checkpoint", run, "--out", self.folder / "out.h5")
        wide = 'model.name = "wide": the library of [plugins] has no such model; there are narrow'
        for name, words in {"model.name=wide": wide, "plugins.library=none.so": "none.so",
                            "model.options.width=0": "model.options.width = 0: expected an integer >= 1",
                            "model.options.widht=3": "unknown key; did you mean width?",
                            "model.options.width=25": "[data.eval]: the model cannot evaluate the first sample: in 1 "
                            "(LayerNorm with weight [24]): Given normalized_shape=[24], expected"}.items():
            self.assertIn(words, self.refused(command, "check", recipe, "--set", name))
        bare = self.sources / "bare.toml"
        bare.write_text(recipe.read_text().replace("library =", "# library ="))
        self.assertIn("the recipe names no [plugins] library", self.refused(command, "check", bare))

    def test_an_mlperf_result_is_written_once_and_not_by_replays(self):
        recipe, command = self.sources / "mlperf.toml", self.installed / "bin/tutti"
        result, run = self.sources / "result_0.txt", self.folder / "run"
        self.on_two_ranks(command, "train", recipe, "--run-dir", run)
        written = result.read_text()
        self.assertRegex(written, r'^:::MLLOG {"namespace": "", "time_ms": \d+, "event_type": "INTERVAL_START", '
                         r'"key": "init_start", "value": null, "metadata": {}}\n')
        lines = [json.loads(line.removeprefix(":::MLLOG ")) for line in written.splitlines()]
        epoch = ["epoch_start", "block_start", "epoch_stop", "eval_start", "eval_stop", "eval_accuracy", "block_stop"]
        begin = ["init_start", "submission_benchmark", "submission_division", "submission_org",
                 "submission_platform", "seed", "global_batch_size", "gradient_accumulation_steps",
                 "train_samples", "eval_samples", "init_stop", "run_start"]
        keys = [line["key"] for line in lines]
        self.assertEqual(keys[:len(begin)], begin)
        self.assertEqual(keys[len(begin):-1], epoch * ((len(keys) - len(begin)) // len(epoch)))
        self.assertEqual(keys[-1], "run_stop")
        values = [line["value"] for line in lines if line["key"] == "eval_accuracy"]
        self.assertTrue(values[-1] > 0.8 >= max(values[:-1], default=0), values)
        values = {line["key"]: line["value"] for line in lines}
        self.assertEqual([values[key] for key in ("global_batch_size", "submission_org")], [96, "us"])
        call(command, "replay", run)
        self.assertEqual(result.read_text(), written)
        again = tutti_run.Running([str(command), "train", str(recipe), "--run-dir", str(self.folder / "again")]).wait()
        self.assertIn(f"{result} already exists", again.text)
        self.assertEqual(result.read_text(), written)

    def test_a_plugin_brings_what_a_training_is_made_of(self):
        """Loss, metric, transform, optimizer and schedule: on one rank and two, resumed, replayed."""
        recipe, command = self.sources / "own_training.toml", self.installed / "bin/tutti"
        alone, run, resumed = self.folder / "alone", self.folder / "run", self.folder / "resumed"
        call(command, "train", recipe, "--run-dir", alone)
        self.on_two_ranks(command, "train", recipe, "--run-dir", run)
        for trained in alone, run:
            self.assertGreater(last_accuracy(trained), 0.9)
            lines = tutti_run.metrics(trained)
            margins = [line["metrics/eval/TopMargin"] for line in lines if "metrics/eval/TopMargin" in line]
            self.assertEqual(len(margins), 6)
            self.assertTrue(0 < margins[0] < margins[-1] < 1, margins)
            rates = [line["lr"] for line in lines if "lr" in line]
            for step in range(6):
                self.assertAlmostEqual(rates[step], 0.01 * step / 5)
            self.assertTrue(0 < rates[-1] < rates[45] < 0.01, rates)
        self.assert_close_losses(alone, run, steps=5)
        self.assertIn("/exp_avg", call(command, "inspect", run))
        shutil.copytree(run, resumed, symlinks=True)
        newest = max((resumed / "checkpoints").glob("ep*"), key=lambda path: path.name)
        shutil.rmtree(newest)
        told = self.on_two_ranks(command, "train", recipe, "--run-dir", resumed, "--resume", "auto")
        self.assertIn("resumes after step 60,", told)
        self.assert_learnt_the_same(resumed, run)
        self.assertIn("all equal", call(command, "replay", run))
        for name, words in {
                "model.loss.name=margn": 'model.loss.name = "margn": the library of [plugins] has no such loss; '
                "did you mean margin?",
                "model.loss.options.margim=2": "model.loss.options.margim = 2: unknown key; did you mean margin?",
                "optimizer.options.lr=-1": "optimizer.options.lr = -1: expected a number >= 0",
                "optimizer.options.betas=[0.9]": "optimizer.options.betas = [0.9]: expected two numbers",
                "scheduler.options.t_warmup=9ep": "expected a time before the end"}.items():
            self.assertIn(words, self.refused(command, "check", recipe, "--set", name))

    def test_a_loss_of_a_plugin_compares_the_samples_of_all_ranks(self):
        recipe, command = self.sources / "contrastive.toml", self.installed / "bin/tutti"
        margin = 'name = "margin", options = {margin = 3.0}'
        text = (self.sources / "own_training.toml").read_text()
        self.assertIn(margin, text)
        recipe.write_text(text.replace(margin, 'name = "contrastive"'))
        alone, run = self.folder / "alone", self.folder / "run"
        short = ["--set", "train.max_duration=1ep", "--set", "optimizer={kind='sgd', lr=0.1}"]
        call(command, "train", recipe, "--run-dir", alone, *short)
        self.on_two_ranks(command, "train", recipe, "--run-dir", run, *short)
        self.assert_close_losses(alone, run, steps=15)
        self.assertIn("all equal", call(command, "replay", run))
        told = self.refused(command, "check", recipe, "--ranks", 2, "--set", "train.grad_accum=auto")
        self.assertIn('train.grad_accum = "auto": the model computes with the samples of all ranks', told)

    def on_two_ranks(self, *words):
        done = tutti_run.Running([tutti_run.MPIRUN, "-np", "2", *map(str, words)]).wait()
        self.assertEqual(done.code, 0, done.text)
        return done.text

    def assert_close_losses(self, one, other, steps):
        losses = [[line["loss"] for line in tutti_run.metrics(run) if "lr" in line][:steps] for run in (one, other)]
        self.assertEqual([len(each) for each in losses], [steps, steps])
        for a, b in zip(*losses):
            self.assertAlmostEqual(a, b, delta=1e-3 * abs(a))

    def test_the_model_of_the_manual_trains(self):
        shown = re.search(r"```cpp\n(.*?)```", (SOURCE / "docs/models.md").read_text(), re.S).group(1)
        code = (self.sources / "own_model.cpp").read_text()
        self.assertEqual(shown, code[code.index("namespace {"):])
        recipe, run, command = self.sources / "own_model.toml", self.folder / "run", self.installed / "bin/tutti"
        call(command, "train", recipe, "--run-dir", run)
        self.assertGreater(last_accuracy(run), 0.8)
        losses = [line["loss"] for line in tutti_run.metrics(run) if "lr" in line]
        self.assertGreater(len(losses), 10)
        sharded = self.folder / "sharded"
        call(command, "train", recipe, "--run-dir", sharded, "--local-ranks", 2, "--set",
             "sharding.strategy=full", "--set", "sharding.activation_checkpointing=true")
        others = [line["loss"] for line in tutti_run.metrics(sharded) if "lr" in line]
        self.assertEqual(len(others), len(losses))
        for one, other in zip(losses, others):  # dropout draws by the samples' places
            self.assertAlmostEqual(one, other, delta=1e-3)
        told = self.refused(command, "check", recipe, "--set", "model.options.blocks=none")
        self.assertIn("model.options.blocks", told)

    def test_the_data_and_callbacks_of_the_manual_train(self):
        """On one rank and two, resumed with the callback's state, replayed."""
        shown = re.findall(r"```cpp\n(.*?)```", (SOURCE / "docs/plugins.md").read_text(), re.S)
        code = (self.sources / "own_data.cpp").read_text()
        self.assertEqual([part for part in shown if part not in code], [])
        random.seed(1)
        for name, count in {"train.records": 250, "eval.records": 50}.items():  # a bright row, by the class
            rows = [random.choices(range(4), [4, 3, 2, 1])[0] for _ in range(count)]
            pixels = [[random.randrange(200) + 55 * (at // 16 == row) for at in range(64)] for row in rows]
            (self.sources / name).write_bytes(b"".join(bytes([row, *pixel]) for row, pixel in zip(rows, pixels)))
        recipe, command = self.sources / "own_data.toml", self.installed / "bin/tutti"
        alone, run, resumed = self.folder / "alone", self.folder / "run", self.folder / "resumed"
        call(command, "train", recipe, "--run-dir", alone)
        self.on_two_ranks(command, "train", recipe, "--run-dir", run)
        self.assertIn("all equal", call(command, "replay", run))
        rising = ("--set", "optimizer.lr=1.0", "--run-dir")  # so that the loss waits to fall again
        told = self.on_two_ranks(command, "train", recipe, *rising, self.folder / "rising")
        self.assertIn("the loss has not fallen for 2 epochs", told)
        end = re.search(r"steps +(\d+)", told).group(1)
        self.on_two_ranks(command, "train", recipe, *rising, resumed, "--set", f"train.max_duration={int(end) - 9}ba")
        self.on_two_ranks(command, "train", recipe, *rising, resumed, "--resume")
        self.assert_learnt_the_same(resumed, self.folder / "rising")
        self.assert_close_losses(alone, run, steps=9)
        lines = {each: tutti_run.metrics(each) for each in (alone, run)}
        least = [line["plateau/least_loss"] for line in lines[run] if "plateau/least_loss" in line]
        self.assertEqual(least, sorted(least, reverse=True))
        for of in (alone, run):
            shares = [[line[f"class_share/{i}"] for i in range(4)] for line in lines[of] if "class_share/3" in line]
            self.assertEqual(shares[0], [[line[f"class_share/{i}"] for i in range(4)] for line in lines[alone]
                                         if "class_share/3" in line][0], "sums are over all ranks")
            self.assertAlmostEqual(sum(shares[0]), 1)
        (self.sources / "cut.records").write_bytes(b"cut")
        for words, value in {"expected records of 65 bytes, found 3 bytes": "data.train.options.file=cut.records",
                             "expected an integer >= 1": "callbacks.0.options.patience=0"}.items():
            self.assertIn(words, self.refused(command, "check", recipe, "--set", value))

    def test_a_module_of_libtorch_trains(self):
        recipe, command = self.sources / "torch_module.toml", self.installed / "bin/tutti"
        runs = []
        for name, words in {"alone": [], "sharded": ["--local-ranks", 2, "--set", "sharding.strategy=full"]}.items():
            run = self.folder / name
            call(command, "train", recipe, "--run-dir", run, *words)
            runs.append([line["loss"] for line in tutti_run.metrics(run) if "lr" in line])
            self.assertGreater(last_accuracy(run), 0.8)
        self.assertGreater(len(runs[0]), 10)
        for one, other in zip(*runs, strict=True):  # ranks normalise their own samples
            self.assertAlmostEqual(one, other, delta=0.3)
        told = call(command, "inspect", self.folder / "alone")
        self.assertIn("first.weight", told)
        self.assertIn("replayed", call(command, "replay", self.folder / "sharded"))

    def test_a_library_that_is_no_plugin_of_this_build_is_refused(self):
        recipe = SOURCE / "examples/cpp/plugin.toml"
        other = 'const char* tutti_plugin_build_stamp() { return "tutti 0"; } void tutti_plugin(void* p) {}'
        for code, words in {other: "it was built for tutti 0; this is tutti 0.1", "int x;": "is no plugin"}.items():
            source, library = self.folder / "other.c", self.folder / "other.so"
            source.write_text(code)
            call("cc", "-shared", "-fPIC", "-o", library, source)
            told = self.refused(tutti_run.TUTTI, "check", recipe, "--set", f"plugins.library={library}",
                                "--set", f"data.train.path={SOURCE / 'examples/data/digits.h5'}")
            self.assertIn(words, told)

    def refused(self, *words, **options):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_the_installed_command_trains(self):
        call(self.installed / "bin/tutti", "train", tutti_run.DIGITS, "--run-dir", self.folder / "run",
             "--set", "train.max_duration=2ep")


if __name__ == "__main__":
    tutti_run.main()
