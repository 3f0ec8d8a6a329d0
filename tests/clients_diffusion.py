"""A UNet of diffusers' goes in and out by name, a pipeline's folder too, and draws what diffusers draws.

tests/clients.sh runs this, with the clients' pinned versions.
"""
import json
import sys
import unittest

import diffusers
import h5py
import torch
from safetensors.torch import load_file, save_file

from client_case import ClientCase, shaken

RECIPE = """
seed = 3
[model]
{model}
[data.train]
kind = "hdf5"
path = "data.h5"
group = "train"
batch_size = 4
[optimizer]
kind = "sgd"
lr = 0.0
[train]
max_duration = "1ba"
"""
SIZES = dict(block_out_channels=[16, 32], down_block_types=["DownBlock2D", "AttnDownBlock2D"],
             up_block_types=["AttnUpBlock2D", "UpBlock2D"], layers_per_block=1, norm_num_groups=4)
NOISE = dict(num_train_timesteps=50, beta_schedule="squaredcos_cap_v2", prediction_type="v_prediction")


def keys(**values):
    return "".join(f"\n{name} = {json.dumps(value)}" for name, value in values.items())


class Diffusion(ClientCase, unittest.TestCase):
    def client(self):
        return shaken(diffusers.UNet2DModel(sample_size=8, in_channels=3, out_channels=3, **SIZES))

    def train(self, model, run="run"):
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["train/input"] = (torch.rand(8, 3, 8, 8) * 2 - 1).numpy()
        (self.folder / "recipe.toml").write_text(RECIPE.format(model=model))
        self.tutti("train", "recipe.toml", "--run-dir", run, "--local-ranks", "2")

    def drawn(self, sampler, steps, run="run"):
        self.tutti("generate", run, "--output", "images.h5", "--samples", 3, "--steps", steps,
                   "--sampler", sampler)
        with h5py.File(self.folder / "images.h5") as file:
            return torch.from_numpy(file["images"][:])

    def beginning(self):
        """The noise from which tutti begins: a network that predicts none leaves it but for a factor."""
        noise = dict(NOISE, prediction_type="epsilon")
        model = self.client()
        for parameter in model.conv_out.parameters():
            parameter.data.zero_()
        save_file(model.state_dict(), self.folder / "zero.safetensors")
        sizes = keys(sample_size=8, clip_sample=False, **SIZES, **noise)
        self.train('kind = "diffusion_unet"\nweights = "zero.safetensors"' + sizes, "zero")
        scheduler = diffusers.DDIMScheduler(**noise, clip_sample=False)
        scheduler.set_timesteps(10)
        return self.drawn("ddim", 10, "zero") * scheduler.alphas_cumprod[scheduler.timesteps[0]] ** 0.5

    def test_a_unet_goes_in_and_out_and_draws(self):
        images = self.beginning()
        self.assertLess(abs(images.std().item() - 1), 0.15)
        model = self.client()
        save_file(model.state_dict(), self.folder / "unet.safetensors")
        self.train('kind = "UNet2DModel"\nweights = "unet.safetensors"'
                   + keys(sample_size=8, **SIZES, **NOISE))
        self.tutti("export", "run", "--to", "back.safetensors")
        back = load_file(self.folder / "back.safetensors")
        diffusers.UNet2DModel(sample_size=8, **SIZES).load_state_dict(back, strict=True)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter, back[name]), name)
        scheduler = diffusers.DDIMScheduler(**NOISE)
        scheduler.set_timesteps(10)
        with torch.no_grad():
            for t in scheduler.timesteps:
                images = scheduler.step(model(images, t).sample, t, images).prev_sample
        got = self.drawn("ddim", 10)
        self.assert_close(got, images)
        self.assertEqual(self.drawn("ddpm", 50).shape, (3, 3, 8, 8))

    def test_a_pipeline_goes_through_its_folder(self):
        model, scheduler = self.client(), diffusers.DDPMScheduler(**NOISE)
        diffusers.DDPMPipeline(unet=model, scheduler=scheduler).save_pretrained(self.folder / "pipeline")
        self.train('kind = "hf"\npath = "pipeline"')
        self.tutti("export", "run", "--to-hf", "back")
        pipeline = diffusers.DDPMPipeline.from_pretrained(self.folder / "back")
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter, pipeline.unet.get_parameter(name)), name)
        for name, value in NOISE.items():
            self.assertEqual(pipeline.scheduler.config[name], value)
        images, t = torch.randn(2, 3, 8, 8), torch.tensor([3, 40])
        with torch.no_grad():
            got, wanted = pipeline.unet(images, t).sample, model(images, t).sample
        self.assert_close(got, wanted)
        pipeline.set_progress_bar_config(disable=True)
        self.assertEqual(len(pipeline(batch_size=2, num_inference_steps=3, output_type="np").images), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
