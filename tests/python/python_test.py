"""The Python package: modules and arrays trained by the program, runs read back, errors as exceptions.

Run by unittest or pytest where tutti can be imported: installed, or with python/ on PYTHONPATH and
TUTTI_PROGRAM naming the program.
"""
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import tomllib
import types
import unittest
import unittest.mock

try:
    import numpy as np
    import torch
except ImportError:
    sys.exit(77)  # ctest's code of a skipped test

import tutti
from tutti import _arrays, _program, _recipe

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
SAMPLES, FEATURES, CLASSES = 96, 12, 3
PATIENCE_S = 60
LONGER = bool(os.environ.get("TUTTI_NIGHTLY"))  # all that costs a second and is seldom broken
SYNTHETIC = {"model": {"kind": "mlp"}, "data": {"train": {"kind": "synthetic", "batch_size": 32}},
             "optimizer": {"kind": "sgd", "lr": 0.1}, "train": {"max_duration": "1ep"}, "seed": 3}


def made_data(seed=0):
    """Images, and the third of each image that is the brightest."""
    x = np.random.RandomState(seed).rand(SAMPLES, 1, 4, FEATURES // 4).astype("f4")
    return x, x.sum((1, 2)).argmax(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.drop = torch.nn.BatchNorm2d(1), torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(FEATURES, CLASSES)

    def forward(self, images):
        return self.head(self.drop(self.norm(images).flatten(1)))


class TwoInputs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(FEATURES, CLASSES), torch.nn.Linear(FEATURES, CLASSES)

    def forward(self, left, mask=None, right=None):
        scores = self.a(left.flatten(1)) + self.b(right.flatten(1))
        return (scores if mask is None else scores * mask) if self.training else 0 * scores


def recipe(**changes):
    return {"seed": 17, "data": {"train": {"batch_size": 32, "shuffle": True}},
            "optimizer": {"kind": "adamw", "lr": 0.05}, "train": {"max_duration": "3ep"}, **changes}


def said(*arguments):
    """What the program says on the command line: exit code, output, errors."""
    command = [_program.program(), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def trained(run, *, model=None, **options):
    """A run of a module on the made data; also the module."""
    model = model or Net()
    options = {"data": made_data(), "eval_data": made_data(1), "progress": False, **options}
    return tutti.train(options.pop("recipe", recipe()), model=model, run_dir=run, **options), model


class PythonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
        cls.shared = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tutti-python-"))
        cls.run_of_net, cls.net = trained(pathlib.Path(cls.shared) / "net")

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tutti-python-")))

    def test_the_module_has_the_trained_weights(self):
        x, y = made_data(1)
        self.assertTrue(self.net.training)
        with torch.no_grad():
            scores = self.net.eval()(torch.tensor(x)).numpy()
        self.net.train()
        accuracy = self.run_of_net.metrics["metrics/eval/MulticlassAccuracy"][-1]
        self.assertEqual((scores.argmax(1) == y).mean(), accuracy)
        self.assertGreater(accuracy, 0.6)
        predicted = self.run_of_net.predict(x)
        self.assertEqual(predicted["class"].tolist(), scores.argmax(1).tolist())
        other = Net()
        self.run_of_net.load_into(other, checkpoint="latest")
        self.assertEqual([(a == b).all().item() for a, b in zip(other.state_dict().values(),
                                                               self.net.state_dict().values())], [True] * 7)

    @unittest.skipUnless(LONGER and PAGE.exists(), "nightly")
    def test_the_page_has_lines_that_run(self):
        block = re.search(r"(?m)^    import torch, tutti\n(    .*\n|\n)+", PAGE.read_text())[0]
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(textwrap.dedent(block), names)
        self.assertIn("epoch 5/5  step 15/15  100%", shown.getvalue())
        self.assertEqual(len(names["run"].metrics["loss"]), 5 * 15)

    def test_weights_of_other_layers_are_refused(self):
        module = Net()
        module.head = torch.nn.Linear(FEATURES, CLASSES + 1)
        before = module.head.weight.clone()
        with self.assertRaisesRegex(ValueError, "head.weight"):
            _arrays.copy_into(module, self.net.state_dict())
        self.assertTrue(torch.equal(module.head.weight, before))

    @unittest.skipUnless(LONGER, "nightly")
    def test_bits_are_those_of_the_command_line(self):
        written = self.run_of_net.path / "recipe.toml"
        self.assertEqual(said("train", written, "--run-dir", self.folder / "same")[0], 0)
        self.assertEqual(tutti.Run(self.folder / "same").digest(), self.run_of_net.digest())
        self.assertEqual(said("replay", self.run_of_net.path)[0], 0)

    def test_bits_of_two_ranks_are_those_of_the_command_line(self):
        written = self.run_of_net.path / "recipe.toml"
        run = tutti.train(written, run_dir=self.folder / "two", ranks=2, progress=False)
        said("train", written, "--run-dir", self.folder / "same", "--local-ranks", 2)
        self.assertEqual(tutti.Run(self.folder / "same").digest(), run.digest())
        self.assertNotEqual(run.digest(), self.run_of_net.digest())

    def test_metrics_are_arrays(self):
        run, metrics = self.run_of_net, self.run_of_net.metrics
        self.assertEqual(metrics["step"].tolist(), list(range(1, 10)))
        self.assertEqual(metrics.steps["metrics/eval/loss"].tolist(), [3, 6, 9])
        lines = list(map(json.loads, (run.path / "metrics.jsonl").read_text().splitlines()))
        self.assertEqual(metrics["loss"].tolist(), [line["loss"] for line in lines if "loss" in line])
        self.assertEqual(run.result["ended"], "max_duration")
        self.assertEqual(run.config["optimizer"]["lr"], 0.05)
        self.assertEqual([path.name for path in run.checkpoints], ["ep1-ba3", "ep2-ba6", "ep3-ba9"])
        self.assertIn("state", repr(run).replace("ended", "state"))
        self.assertIn("<html", run.report(self.folder / "page.html").read_text()[:200])

    @unittest.skipUnless(LONGER, "nightly")
    def test_bytes_become_images(self):
        x, y = made_data()
        images = (255 * x).astype("u1")
        layers = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.Flatten(),
                                     torch.nn.Linear(FEATURES, CLASSES))
        for given, keys in ((images, {"layout": "NCHW"}),
                            (images.transpose(0, 2, 3, 1), {"mean": 0.5, "std": 0.5})):
            scaled = (torch.tensor(images / np.float32(255)) - keys.get("mean", 0)) / keys.get("std", 1)
            expected = torch.nn.functional.cross_entropy(layers(scaled), torch.tensor(y)).item()
            short = recipe(data={"train": {"batch_size": SAMPLES, **keys}}, train={"max_duration": "1ba"})
            run, _ = trained(self.folder / str(len(keys)), model=layers, data=(given, y), eval_data=None,
                             recipe=short)
            self.assertAlmostEqual(run.metrics["loss"][0], expected, 5)

    @unittest.skipUnless(LONGER, "nightly")
    def test_a_resumed_run_has_the_bits_of_a_whole_run(self):
        written = self.run_of_net.path / "recipe.toml"
        tutti.train(written, run_dir=self.folder / "run", settings={"train.stop_at": "1ep"}, progress=False)
        run, module = trained(self.folder / "run", resume=True)
        self.assertEqual(run.digest(), self.run_of_net.digest())
        self.assertTrue(torch.equal(module.head.weight, self.net.head.weight))
        self.assertFalse((run.path / "checkpoints" / "earlier").exists())

    def test_a_loss_may_be_a_function(self):
        one = torch.nn.functional.cross_entropy
        run, module = trained(self.folder / "function", loss=lambda output, target: 2 * one(output, target))
        self.assertAlmostEqual(run.metrics["loss"][0], 2 * self.run_of_net.metrics["loss"][0], 5)
        self.assertFalse(torch.equal(module.head.weight, Net().head.weight))
        self.assertIn("metrics/train/MulticlassAccuracy", run.metrics)
        x, _ = made_data()
        self.assertEqual(len(run.predict(x)["class"]), SAMPLES)

    @unittest.skipUnless(LONGER, "nightly")
    def test_hooks_of_the_module_stay_with_a_loss(self):
        """The same as without a loss of Python, whose module has the hooks, and a forward of its own."""
        def silent(module, given, output):
            assert isinstance(output, torch.Tensor), "the module's own output"
            return output * 0
        x, y = made_data()
        def hooked():
            module = Net()
            module.register_forward_hook(silent)
            module.register_forward_pre_hook(lambda module, given: (given[0] * 2,))
            inner = module.forward
            module.forward = lambda images: inner(images) + 1
            return module
        losses = [tutti.train(recipe(train={"max_duration": "1ep"}), model=hooked(), loss=loss, data=(x, y),
                              run_dir=self.folder / name, progress=False).metrics["loss"][0]
                  for name, loss in (("named", "cross_entropy"), ("own", torch.nn.functional.cross_entropy))]
        self.assertAlmostEqual(losses[0], losses[1], 6)
        self.assertAlmostEqual(losses[0], np.log(CLASSES), 5)

    def test_a_damaged_run_is_named(self):
        (self.folder / "metrics.jsonl").write_bytes(b'{"step": 1, "loss": null}\n\xff\0\n')
        with self.assertRaisesRegex(ValueError, "metrics.jsonl:2: damaged: "):
            tutti._run.Metrics(self.folder / "metrics.jsonl")

    def test_wrong_arguments_are_named(self):
        x, y = made_data()
        for ranks in (0, -1, 2.0, "2"):
            with self.assertRaisesRegex(ValueError, "ranks is "):
                tutti.train(recipe(), ranks=ranks)
        for data in (x, torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y)), (x,)):
            with self.assertRaisesRegex(TypeError, r"expected a pair \(x, y\)"):
                tutti.train(recipe(), model=Net(), data=data, run_dir=self.folder / "run")

    @unittest.skipUnless(LONGER, "nightly")
    def test_a_loss_may_be_of_values(self):
        x, _ = made_data()
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(FEATURES, 2))
        loss = torch.nn.MSELoss()
        y = x.sum((1, 2))[:, :2]
        expected = loss(model(torch.tensor(x)), torch.tensor(y)).item()
        whole = recipe(data={"train": {"batch_size": SAMPLES}})
        run, _ = trained(self.folder / "run", model=model, data=(x, y), eval_data=(x, y), loss=loss,
                         recipe=whole)
        self.assertAlmostEqual(run.metrics["loss"][0], expected, 5)
        predicted = run.predict(x[:5])
        with torch.no_grad():
            scores = model(torch.tensor(x[:5])).numpy()
        np.testing.assert_allclose([predicted["output_0"], predicted["output_1"]], scores.T, rtol=1e-5)

    @unittest.skipUnless(LONGER, "nightly")
    def test_a_loss_may_have_weights(self):
        weight = torch.tensor([1.0, 2.0, 3.0])
        layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(FEATURES, CLASSES))
        x, y = made_data()
        expected = torch.nn.CrossEntropyLoss(weight)(layers(torch.tensor(x)), torch.tensor(y))
        run, _ = trained(self.folder / "module", model=layers, loss=torch.nn.CrossEntropyLoss(weight),
                         recipe=recipe(data={"train": {"batch_size": SAMPLES}}))
        self.assertAlmostEqual(run.metrics["loss"][0], expected.item(), 5)
        with self.assertRaisesRegex(TypeError, "the loss has parameters"):
            trained(self.folder / "parameters", loss=torch.nn.Bilinear(1, 1, 1))

    @unittest.skipUnless(LONGER, "nightly")
    def test_inputs_have_names(self):
        x, y = made_data()
        ones = np.ones((SAMPLES, 1))
        elsewhere = {"model": {"kind": "resnet", "depth": 18, "weights_strict": False},
                     "data": {"train": {"kind": "hdf5", "path": "none.h5", "group": "a", "batch_size": 32}}}
        for name, inputs in [("dict", {"right": x, "left": 0 * x}), ("tuple", (0 * x, ones, x))][:LONGER + 1]:
            model = TwoInputs().eval()
            before = [model.a.weight.clone(), model.b.weight.clone()]
            run, _ = trained(self.folder / name, model=model, data=(inputs, y), eval_data=None, loss="focal",
                             recipe=recipe(optimizer={"kind": "sgd", "lr": 0.1}, **elsewhere))
            self.assertTrue(torch.equal(model.a.weight, before[0]), name)  # its input is zero
            self.assertFalse(torch.equal(model.b.weight, before[1]), name)
            self.assertFalse(model.training or model.a.training)
            section = run.config["model"]
            self.assertEqual((section["loss"], section["weights_strict"]), ("focal", False))
            self.assertEqual(len(run.predict(inputs)["class"]), SAMPLES)

    def test_errors_have_the_words_of_the_program(self):
        wrong = {**SYNTHETIC, "optimizer": {"kind": "sgd", "lr": 0.1, "momentun": 0.9}}
        with self.assertRaises(tutti.RecipeError) as raised:
            tutti.train(wrong, run_dir=self.folder / "run", ranks=1 + LONGER, progress=False)
        code, _, text = said("check", self.folder / "run" / "python" / "recipe.toml")
        self.assertEqual((code, text), (2, f"error: {raised.exception}"))
        self.assertIn("did you mean momentum?", text)
        noise = f"warning: w\nerror: e\n  | e\n{'-' * 70}\nmpirun: a rank exited\n"
        self.assertEqual(str(_program.failure(2, noise)), "e\n  | e")
        with self.assertRaisesRegex(tutti.RecipeError, "batch_sise"):
            tutti.train({"data": {"train": {"batch_sise": 4}}}, data=([[0.0, 1.0]] * 8, [0] * 8),
                        run_dir=self.folder / "typo")
        with self.assertRaisesRegex(tutti.RecipeError, "cannot read the recipe"):
            tutti.train(self.folder / "none.toml")
        with self.assertRaisesRegex(tutti.RecipeError, "input has the dtype <U1; expected numbers"):
            tutti.train(recipe(), data=(["a", "b"], [0, 1]), run_dir=self.folder / "text")
        with self.assertRaisesRegex(TypeError, "example= is missing"):
            tutti.train(SYNTHETIC, model=Net(), run_dir=self.folder / "example")

    @unittest.skipUnless(LONGER, "nightly")
    def test_a_failed_run_names_its_folder(self):
        (self.folder / "run" / "checkpoints").mkdir(parents=True)
        diverging = {"optimizer.lr": 1e30, "train.max_duration": "9ep"}
        with self.assertRaises(tutti.RunFailed) as raised:
            tutti.train(SYNTHETIC, run_dir=self.folder / "run", settings=diverging, progress=False)
        self.assertEqual((raised.exception.code, raised.exception.run), (4, self.folder / "run"))
        self.assertIn(str(self.folder / "run"), str(raised.exception))

    def test_a_dict_has_paths_of_the_current_folder(self):
        np.savez(self.folder / "data.npz", **dict(zip(("input", "target"), made_data())))
        stage = {"name": "one", "data": {"train": {"path": "data.npz"}}}
        section = {"kind": "numpy", "path": "data.npz", "batch_size": 32}
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        run = tutti.train({**SYNTHETIC, "run_name": "named", "data": {"train": section}, "stages": [stage]},
                          progress=False)
        self.assertEqual(run.path, self.folder / "runs" / "named" / "stage-1")
        self.assertEqual(run.config["data"]["train"]["path"], str(self.folder / "data.npz"))
        named = {"model": {"kind": "hf", "path": "org/model", "weights": "resnet18"}}
        self.assertEqual(_recipe.with_absolute_paths(named, self.folder), named)

    def test_equal_arrays_are_written_once(self):
        paths = [_arrays.write(self.folder, "train", {"input": np.full(3, value)}) for value in (1, 1, 2)]
        self.assertEqual(paths[0], paths[1])
        self.assertNotEqual(paths[0], paths[2])
        self.assertEqual([np.load(path / "input.npy").tolist() for path in paths[1:]], [[1] * 3, [2] * 3])

    def test_a_recipe_is_written_as_toml(self):
        table = {"a": 1, "b": -0.5, "c": float("inf"), "d": 1e-30, "e": True, "empty": {},
                 "text": "\\ \"\n\x7f\u00e9\U0001f600", "list": [[1, 2], [], ["x"]], "a key": {"x.y": 1},
                 "tables": [{"kind": "a", "inner": {"x": [{"y": 1}]}}, {"kind": "b"}]}
        self.assertEqual(tomllib.loads(_recipe.text(table)), table)
        self.assertEqual(tomllib.loads(f"x = {_recipe.value_text(table)}"), {"x": table})
        given = {"lr": np.float32(0.5), "path": pathlib.Path("a"), "none": None, "sizes": (1, np.int64(2))}
        self.assertEqual(_recipe.plain(given), {"lr": 0.5, "path": "a", "sizes": [1, 2]})

    def test_ctrl_c_stops_the_run_with_a_checkpoint(self):
        for ranks in range(1, LONGER + 2):
            run = self.folder / str(ranks)
            threading.Thread(target=interrupt_once_trained, args=(run,), daemon=True).start()
            module, before = Net(), Net().head.weight
            with self.assertRaisesRegex(KeyboardInterrupt, "continues"):
                trained(run, model=module, ranks=ranks, eval_data=None,
                        recipe=recipe(train={"max_duration": "1000000ep"}, checkpoint={"interval": "0ep"}))
            self.assertEqual(tutti.Run(run).result["ended"], "request")
            self.assertEqual(len(tutti.Run(run).checkpoints), 1)
            self.assertFalse(torch.equal(module.head.weight, before))

    def test_a_run_ends_with_its_python(self):
        run = self.folder / "run"
        call = f"tutti.train({SYNTHETIC | {'train': {'max_duration': '1000000ep'}}}, run_dir={str(run)!r})"
        command = [sys.executable, "-c", f"import tutti; {call}"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as python:
            wait_for(lambda: (run / "metrics.jsonl").exists())
            python.kill()
        wait_for(lambda: (run / "result.json").exists())
        self.assertEqual(tutti.Run(run).result["ended"], "request")

    def test_a_notebook_has_one_line_of_progress(self):
        shown, displays = [], []
        handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

        def display(data, raw, display_id):
            shown.append(data["text/plain"])
            displays.append(handle)
            return handle

        shell = types.SimpleNamespace(kernel=object())
        self.enterContext(unittest.mock.patch.dict(sys.modules, {
            "IPython": types.SimpleNamespace(get_ipython=lambda: shell),
            "IPython.display": types.SimpleNamespace(display=display)}))
        printed = self.enterContext(unittest.mock.patch("builtins.print"))
        tutti.train(SYNTHETIC, run_dir=self.folder / "run")
        lines = [call.args[0] for call in printed.call_args_list]
        self.assertEqual([line[:9] for line in shown], ["epoch 1/1", "epoch 1/1"])
        self.assertEqual(len(displays), 1)
        self.assertTrue(lines[0].startswith("mlp: "), lines)
        self.assertEqual([line for line in lines if line.startswith("epoch")], [])


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("never came to be")
        time.sleep(0.01)


def interrupt_once_trained(run):
    wait_for(lambda: (run / "metrics.jsonl").exists() and (run / "metrics.jsonl").stat().st_size > 0)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    unittest.main(verbosity=2)
