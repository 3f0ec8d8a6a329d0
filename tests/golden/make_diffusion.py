"""Computes diffusion_unets.h5: outputs and gradients of small UNets of diffusers', by parameter name, and
diffusion_noise.h5: what its DDPMScheduler and DDIMScheduler do with noise.

Run: python make_diffusion.py   (torch, diffusers, numpy, h5py; writes beside this file)
"""
import itertools
import json
import pathlib

import h5py
import torch
import torch.nn.functional as F
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

torch.manual_seed(0)
torch.set_num_threads(1)
HERE = pathlib.Path(__file__).parent
UNETS = {
    "attention": dict(layers_per_block=1, block_out_channels=[4, 8], norm_num_groups=2, attention_head_dim=4,
                      down_block_types=["DownBlock2D", "AttnDownBlock2D"],
                      up_block_types=["AttnUpBlock2D", "UpBlock2D"]),
    # As the models of the DDPM paper are configured.
    "ddpm": dict(layers_per_block=1, block_out_channels=[4, 4, 4], norm_num_groups=2, attention_head_dim=None,
                 downsample_padding=0, flip_sin_to_cos=False, freq_shift=1, norm_eps=1e-6,
                 down_block_types=["DownBlock2D", "AttnDownBlock2D", "DownBlock2D"],
                 up_block_types=["UpBlock2D", "AttnUpBlock2D", "UpBlock2D"]),
    "scaled_and_shifted": dict(layers_per_block=2, block_out_channels=[2, 4], norm_num_groups=2,
                               attention_head_dim=2, resnet_time_scale_shift="scale_shift", act_fn="gelu",
                               mid_block_scale_factor=1.5, center_input_sample=True,
                               down_block_types=["DownBlock2D", "DownBlock2D"],
                               up_block_types=["UpBlock2D", "UpBlock2D"]),
    "without_attention": dict(layers_per_block=1, block_out_channels=[4], norm_num_groups=2, act_fn="relu",
                              add_attention=False, down_block_types=["DownBlock2D"],
                              up_block_types=["UpBlock2D"]),
}


def write_unet(file, title, options):
    model = UNet2DModel(sample_size=8, in_channels=2, out_channels=2, **options)
    # Norms start as ones and zeros, which would hide a mix-up.
    for p in model.parameters():
        if p.dim() == 1:
            p.data.add_(0.2 * torch.randn_like(p))
    images, target = torch.randn(3, 2, 8, 8), torch.randn(3, 2, 8, 8)
    timesteps = torch.tensor([0, 7, 913])
    outputs = model(images, timesteps).sample
    F.mse_loss(outputs, target).backward()
    case = file.create_group(f"case_{len(file)}")
    case.attrs.update(title=title, config=model.to_json_string(), rtol=1e-4, atol=1e-5)
    for name, array in dict(images=images, timesteps=timesteps, target=target).items():
        case[f"in/{name}"] = array.numpy()
    case["out/outputs"] = outputs.detach().numpy()
    for name, p in model.named_parameters():
        case[f"in/weights/{name}"], case[f"out/grads/{name}"] = p.detach().numpy(), p.grad.numpy()


def write_noise(file, schedule, prediction, variance):
    options = dict(num_train_timesteps=100, beta_schedule=schedule, prediction_type=prediction)
    ddpm = DDPMScheduler(**options, variance_type=variance, clip_sample_range=0.9)
    ddim = DDIMScheduler(**options, clip_sample=False)
    images, noise, output = torch.rand(4, 1, 3, 3) * 2 - 1, torch.randn(4, 1, 3, 3), torch.randn(4, 1, 3, 3)
    timesteps = torch.tensor([0, 1, 60, 99])
    case = file.create_group(f"case_{len(file)}")
    case.attrs.update(title=f"{schedule}_{prediction}_{variance}", ddpm=json.dumps(dict(ddpm.config)),
                      ddim=json.dumps(dict(ddim.config)), rtol=1e-5, atol=1e-6)
    for name, array in dict(images=images, noise=noise, output=output, timesteps=timesteps).items():
        case[f"in/{name}"] = array.numpy()
    noisy = ddpm.add_noise(images, noise, timesteps)
    case["out/noisy"] = noisy.numpy()
    case["out/velocity"] = ddpm.get_velocity(images, noise, timesteps).numpy()
    case["out/alphas"] = ddpm.alphas_cumprod.numpy()
    count = 8
    for name, scheduler in dict(ddpm=ddpm, ddim=ddim).items():
        scheduler.set_timesteps(count)
        case[f"out/{name}/timesteps"] = scheduler.timesteps.numpy()
        # The generator's only draws are the noise of a step, of which the last has none.
        generator = lambda: torch.Generator().manual_seed(1)
        steps = [scheduler.step(output, t, noisy, generator=generator()) for t in scheduler.timesteps]
        case[f"out/{name}/steps"] = torch.stack([step.prev_sample for step in steps]).numpy()
    case["in/step_noise"] = torch.randn(noisy.shape, generator=generator()).numpy()


with h5py.File(HERE / "diffusion_unets.h5", "w", libver="latest") as f:
    for title, options in UNETS.items():
        write_unet(f, title, options)
with h5py.File(HERE / "diffusion_noise.h5", "w", libver="latest") as f:
    for schedule, prediction in itertools.product(["linear", "scaled_linear", "squaredcos_cap_v2"],
                                                  ["epsilon", "sample", "v_prediction"]):
        write_noise(f, schedule, prediction, "fixed_small")
    write_noise(f, "linear", "epsilon", "fixed_large")
