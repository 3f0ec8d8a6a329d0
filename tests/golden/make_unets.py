"""Computes unets.h5: losses and gradients of small U-Nets of segmentation_models_pytorch, by parameter name.

Run: python make_unets.py   (with the packages of tests/clients.sh; writes beside this file)
"""
import pathlib

import h5py
import segmentation_models_pytorch as smp
import torch
import torch.nn as nn
import torch.nn.functional as F
from segmentation_models_pytorch.encoders import encoders
from segmentation_models_pytorch.encoders.resnet import ResNetEncoder

torch.manual_seed(0)
torch.set_num_threads(1)


class Narrow(ResNetEncoder):
    """With fewer channels than the 64 that torchvision's constructor begins with."""

    def __init__(self, width, block, layers, **more):
        super().__init__(block=block, layers=layers, **more)
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.inplanes = width
        for i, count in enumerate(layers):
            setattr(self, f"layer{i + 1}", self._make_layer(block, width << i, count, 1 if i == 0 else 2))
        # Weak branches: beside strong ones, gradients of a net so deep and narrow lose digits.
        for module in self.modules():
            if isinstance(module, block):
                nn.init.constant_((module.bn3 if hasattr(module, "bn3") else module.bn2).weight, 0.2)


def narrow_unet(encoder_name, encoder_width, **options):
    params = dict(encoders[encoder_name]["params"])
    widths = [c * encoder_width // 64 for c in params["out_channels"][1:]]
    params.update(width=encoder_width, out_channels=[3, *widths])
    encoders["narrow"] = {"encoder": Narrow, "params": params, "pretrained_settings": {}}
    return smp.Unet("narrow", encoder_weights=None, **options)


def flat(tensors, group, names):
    """All numbers in the order of the tensors' names, which become an attribute with this name."""
    tensors = dict(sorted(tensors.items()))
    group.attrs[names] = ",".join(tensors)
    return torch.cat([tensor.flatten().float() for tensor in tensors.values()])


def write(file, title, size, **options):
    model = narrow_unet(**options)
    # Norms and biases start as ones and zeros, which would hide a mix-up.
    for p in model.parameters():
        if p.dim() == 1:
            p.data.add_(0.2 * torch.randn_like(p))
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    x, labels = torch.randn(2, options["in_channels"], *size), options["classes"] == 1
    outputs = model(x)
    if labels:
        y = torch.randint(0, 2, outputs.shape)
        loss = F.binary_cross_entropy_with_logits(outputs, y.float())
    else:
        y = torch.randint(0, options["classes"], (2, *size))
        y[1, :5] = -100
        loss = F.cross_entropy(outputs, y)
    loss.backward()
    grads = {k: p.grad for k, p in model.named_parameters() if p.grad is not None}
    buffers = {k: b for k, b in model.named_buffers()}
    group = file.create_group(f"case_{len(file)}")
    group.attrs.update(title=title, **options)
    with torch.no_grad():
        tensors = {"in/input": x, "in/target": y, "in/weights": flat(weights, group, "names"),
                   "out/outputs": outputs, "out/loss": loss, "out/grads": flat(grads, group, "trained"),
                   "out/buffers": flat(buffers, group, "buffers"), "out/eval_outputs": model.eval()(x)}
    for name, tensor in tensors.items():
        packed = dict(compression="gzip", shuffle=True) if tensor.dim() else {}
        group.create_dataset(name, data=tensor.detach().numpy(), track_times=False, **packed)


# Of the sizes of the third, 16 is no divisor. A single channel would have gradients of nought.
with h5py.File(pathlib.Path(__file__).with_name("unets.h5"), "w") as f:
    write(f, "unet", (64, 32), encoder_name="resnet18", encoder_width=2, encoder_depth=5,
          decoder_channels=[7, 6, 5, 4, 3], in_channels=3, classes=3)
    write(f, "unet_mask", (16, 24), encoder_name="resnet50", encoder_width=2, encoder_depth=3,
          decoder_channels=[6, 5, 4], in_channels=1, classes=1)
    write(f, "unet_odd_sizes", (29, 21), encoder_name="resnet18", encoder_width=2, encoder_depth=4,
          decoder_channels=[5, 4, 3, 2], in_channels=2, classes=3)
