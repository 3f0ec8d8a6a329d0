"""Programs of timm's and transformers' models under ranks, strategies and accumulation, killed and resumed,
and replayed: the bits that the same strategies promise for the zoo. tests/clients.sh runs this.
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import timm
import torch
import transformers as hf

from client_case import SOURCE, TUTTI, ClientCase

MPIRUN = SOURCE / "tools/mpirun.sh"
sys.path.insert(0, str(SOURCE / "tests/golden"))
import make_exported  # noqa: E402

IMAGES = """shape = [3, 32, 32]
classes = 10"""
TOKENS = """shape = [16]
targets = "sequence"
vocab = 100"""
LOGITS = 'prediction = "logits"'
RECIPE = """
seed = 5
[model]
kind = "exported"
path = "model.pt2"
{prediction}
[data.train]
kind = "synthetic"
samples = 192
batch_size = 16
{data}
shuffle = true
[optimizer]
kind = "adamw"
lr = 1e-3
[train]
max_duration = "12ba"
eval_interval = "0ep"
[checkpoint]
interval = "4ba"
keep = 3
"""


def convnext():
    return timm.create_model("convnext_atto", num_classes=10, dims=(8, 16, 24, 32), depths=(1, 1, 2, 1),
                             drop_path_rate=0.1), "", IMAGES


def vit():
    config = hf.ViTConfig(num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64,
                          image_size=32, patch_size=8, num_labels=10, hidden_dropout_prob=0.1,
                          attention_probs_dropout_prob=0.1)
    return hf.ViTForImageClassification(config), LOGITS, IMAGES


def llama():
    config = hf.LlamaConfig(num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, hidden_size=32,
                            intermediate_size=64, vocab_size=100, use_cache=False, attention_dropout=0.1)
    return hf.LlamaForCausalLM(config), LOGITS, TOKENS


class Trained(ClientCase):
    def setUp(self):
        super().setUp()
        model, prediction, data = self.make()
        images = data is IMAGES
        inputs = torch.randn(2, 3, 32, 32) if images else torch.randint(0, 100, (2, 16))
        torch.export.save(make_exported.export(model.train(), (inputs,)), self.folder / "model.pt2")
        (self.folder / "recipe.toml").write_text(RECIPE.format(prediction=prediction, data=data))

    def train(self, name, ranks, *settings, more=()):
        words = [word for one in settings for word in ("--set", one)]
        self.tutti("train", "recipe.toml", "--run-dir", name, *words, *more,
                   launcher=[MPIRUN, "-np", ranks] if ranks > 1 else ())
        return self.digest(name)

    def digest(self, name):
        return self.tutti("inspect", name, "--digest").split()[-1]

    def test_strategies_have_the_bits_of_none(self):
        for accumulation in (1, 4):
            found = {strategy: self.train(f"{strategy}{accumulation}", 2, f'sharding.strategy="{strategy}"',
                                          f"train.grad_accum={accumulation}")
                     for strategy in ("none", "optimizer", "gradients", "full")}
            self.assertEqual(found["none"], found["optimizer"])
            self.assertEqual(found["gradients"], found["full"])
            if accumulation == 1:
                self.assertEqual(found["none"], found["full"])
        self.assertEqual(self.train("single", 1, "train.grad_accum=2"), self.digest("none1"))

    def test_killed_resumed_and_replayed(self):
        for ranks, strategy in ((1, "none"), (2, "none"), (2, "full")):
            with self.subTest(ranks=ranks, strategy=strategy):
                setting, name = f'sharding.strategy="{strategy}"', f"{strategy}{ranks}"
                whole = self.train(f"{name}-whole", ranks, setting)
                self.tutti("replay", f"{name}-whole")
                self.kill_after_a_checkpoint(name, ranks, setting)
                self.assertEqual(self.train(name, ranks, setting, more=("--resume", "auto")), whole)

    def kill_after_a_checkpoint(self, name, ranks, setting):
        """The run has no end of its own, so that it is killed in the middle."""
        launcher = [str(MPIRUN), "-np", str(ranks)] if ranks > 1 else []
        endless = subprocess.Popen([*launcher, str(TUTTI), "train", "recipe.toml", "--run-dir", name, "--set",
                                    setting], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        newest = self.folder / name / "checkpoints/latest"
        until = time.monotonic() + 120
        while not newest.is_symlink() and endless.poll() is None and time.monotonic() < until:
            time.sleep(0.001)
        os.killpg(endless.pid, signal.SIGKILL)
        endless.wait()
        self.assertTrue(newest.is_symlink())
        self.assertLess(int(re.search(r"\d+$", os.readlink(newest))[0]), 12, "killed too late")


class ConvNext(Trained, unittest.TestCase):
    make = staticmethod(convnext)


class Vit(Trained, unittest.TestCase):
    make = staticmethod(vit)


class Llama(Trained, unittest.TestCase):
    make = staticmethod(llama)


if __name__ == "__main__":
    hf.utils.logging.disable_progress_bar()
    unittest.main()
