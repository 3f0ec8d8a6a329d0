"""Outputs and gradients of the zoo beside its clients': a step of SGD in tutti moves each weight by what the
client's backward gives, times the rate.

tests/clients.sh runs this, with the clients' pinned versions.
"""
import json
import unittest

import h5py
import segmentation_models_pytorch as smp
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import cross_entropy

from client_case import ClientCase, shaken
from clients import LLAMAS, llama

RATE = 1000.0  # so that a weight's rounding is little of its change
OF_GRADIENTS, ROUNDING = 1e-4, 1e-2  # as tests/golden/expect_near.h
RECIPE = f"""
seed = 3
[model]
%s
[data.train]
kind = "hdf5"
path = "data.h5"
batch_size = 4
[data.eval]
kind = "hdf5"
path = "data.h5"
batch_size = 4
[optimizer]
kind = "sgd"
lr = {RATE}
[train]
max_duration = "1ba"
eval_interval = "0ep"
"""


class States(nn.Module):
    """The outputs of an LSTM or GRU, of its last place."""

    def forward(self, both):
        return both[0].select(1, -1)


class Gradients(ClientCase, unittest.TestCase):
    def check(self, section, model, x, y, classes, call):
        run = f"run{len(list(self.folder.glob('run*')))}"
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["input"], file["target"] = x.numpy(), y.numpy()
            file["target"].attrs["num_classes"] = classes
        (self.folder / "recipe.toml").write_text(RECIPE % section)
        self.tutti("predict", "recipe.toml", "--out", "out.h5")
        with torch.no_grad(), h5py.File(self.folder / "out.h5") as file:
            self.assert_close(torch.from_numpy(file["output"][:]), call(model.eval(), x))
        self.tutti("train", "recipe.toml", "--run-dir", run)
        self.tutti("export", run, "--to", "back.safetensors")
        scores = call(model.train(), x).movedim(-1, 1) if y.dim() == 2 else call(model.train(), x)
        cross_entropy(scores, y).backward()
        back, trained = load_file(self.folder / "back.safetensors"), dict(model.named_parameters())
        trained = {name: one for name, one in trained.items() if one.grad is not None}
        largest = max(one.grad.abs().max().item() for one in trained.values())
        for name, one in trained.items():
            moved = (one.detach() - back[name]) / RATE
            size = max(one.grad.abs().max().item(), ROUNDING * largest)
            self.assertLessEqual((moved - one.grad).abs().max().item(), OF_GRADIENTS * size, name)

    def saved(self, model):
        save_file({name: one.contiguous() for name, one in model.state_dict().items()},
                  self.folder / "weights.safetensors")

    def test_torchvisions_vit(self):
        sizes = dict(image_size=16, patch_size=4, num_layers=3, num_heads=3, hidden_dim=24, mlp_dim=40)
        model = torchvision.models.VisionTransformer(num_classes=7, **sizes)
        nn.init.normal_(model.heads.head.weight, std=0.3)
        self.saved(shaken(model))
        keys = "".join(f"\n{name} = {value}" for name, value in sizes.items())
        self.check(f'kind = "vit"\nnum_classes = 7\nweights = "weights.safetensors"{keys}', model,
                   torch.randn(4, 3, 16, 16), torch.randint(0, 7, (4,)), 7, lambda net, x: net(x))

    def test_transformers_llamas(self):
        ids = torch.randint(0, 40, (4, 12))
        for name in LLAMAS:
            with self.subTest(name):
                model = llama(name)
                model.save_pretrained(self.folder / f"hub_{name}")
                self.check(f'kind = "hf"\npath = "hub_{name}"', model, ids, ids.roll(-1, 1), 40,
                           lambda net, x: net(x).logits)

    def test_segmentation_models_pytorchs_unet(self):
        sizes = dict(encoder_name="resnet18", encoder_depth=3, decoder_channels=[16, 8, 4], in_channels=2,
                     classes=3)
        model = smp.Unet(encoder_weights=None, **sizes)
        self.saved(shaken(model))
        keys = "".join(f"\n{name} = {json.dumps(value)}" for name, value in sizes.items())
        self.check(f'kind = "unet"\nweights = "weights.safetensors"{keys}', model,
                   torch.randn(4, 2, 32, 24), torch.randint(0, 3, (4, 32, 24)), 3, lambda net, x: net(x))

    def test_torchs_lstm_and_gru(self):
        for kind, options in (("LSTM", {}), ("GRU", {}), ("LSTM", dict(bidirectional=True)),
                              ("GRU", dict(num_layers=3, bias=False))):
            with self.subTest(kind, **options):
                width = 14 if options.get("bidirectional") else 7
                model = nn.Sequential(getattr(nn, kind)(6, 7, batch_first=True, **options), States(),
                                      nn.Linear(width, 5))
                self.saved(shaken(model))
                layers = [str(model[0]), "Select(1, -1)", str(model[2])]
                self.check(f'kind = "sequential"\nweights = "weights.safetensors"\n'
                           f'layers = {json.dumps(layers)}', model, torch.randn(4, 9, 6),
                           torch.randint(0, 5, (4,)), 5, lambda net, x: net(x))


if __name__ == "__main__":
    transformers.utils.logging.disable_progress_bar()
    unittest.main()
