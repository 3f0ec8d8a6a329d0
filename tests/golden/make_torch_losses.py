"""Computes torch_losses.h5: losses and gradients of torch's and torchvision's functions, and of Dice.

Run: python make_torch_losses.py   (torch 2.11.0, torchvision 0.26.0, numpy, h5py; writes torch_losses.h5
beside this file). Composer's soft_cross_entropy and binary_cross_entropy_with_logits are in losses.h5.
"""
import pathlib

import h5py
import torch
import torch.nn.functional as F
from torchvision.ops import sigmoid_focal_loss

generator = torch.Generator().manual_seed(0)
IMAGES = (2, 3, 4, 5)


def scores(*shape):
    return 3 * torch.randn(shape, generator=generator)


def labels(*shape):
    return (torch.rand(shape, generator=generator) < 0.4).float()


def indices(classes, *shape):
    return torch.randint(classes, shape, generator=generator)


def one_hot(target, classes):
    return F.one_hot(target, classes).movedim(-1, 1).float()


def with_ignored(target):
    target.view(-1)[::3] = -100
    return target


def case(file, kind, title, outputs, target, loss_of, **parameters):
    group = file.create_group(f"case_{len(file)}")
    group.attrs["title"] = f"{kind}, {title}"
    group.attrs["kind"] = kind
    group.attrs.update({"rtol": 1e-5, "atol": 1e-6})
    for name, value in parameters.items():
        group.attrs[name] = value
    outputs.requires_grad_()
    loss = loss_of(outputs, target)
    loss.backward()
    arrays = {"in/outputs": outputs.detach(), "in/target": target, "out/loss": loss.detach()}
    arrays["out/grad"] = outputs.grad
    for name, tensor in arrays.items():
        group.create_dataset(name, data=tensor.numpy(), track_times=False)


def cross_entropies(file):
    weight = torch.tensor([0.5, 2.0, 1.25])
    say = dict(weight=weight.numpy().astype(float))
    weighted = lambda x, y: F.cross_entropy(x, y, weight)
    kind = "cross_entropy"
    case(file, kind, "indices", scores(5, 3), indices(3, 5), F.cross_entropy)
    case(file, kind, "weights", scores(5, 3), indices(3, 5), weighted, **say)
    case(file, kind, "weights, ignored", scores(7, 3), with_ignored(indices(3, 7)), weighted, **say)
    case(file, kind, "pixels", scores(*IMAGES), with_ignored(indices(3, 2, 4, 5)), F.cross_entropy)
    case(file, kind, "pixels, weights", scores(*IMAGES), with_ignored(indices(3, 2, 4, 5)), weighted, **say)
    case(file, kind, "probabilities", scores(5, 3), scores(5, 3).softmax(1), F.cross_entropy)
    case(file, kind, "probabilities, weights", scores(5, 3), scores(5, 3).softmax(1), weighted, **say)
    case(file, kind, "pixels of probabilities", scores(*IMAGES), scores(*IMAGES).softmax(1), F.cross_entropy)


def binary_cross_entropies(file):
    kind, plain = "bce_with_logits", F.binary_cross_entropy_with_logits
    pos = torch.tensor([0.5, 2.0, 1.25])
    say = dict(pos_weight=pos.numpy().astype(float))
    case(file, kind, "labels", scores(5, 3), labels(5, 3), plain)
    case(file, kind, "weights", scores(5, 3), labels(5, 3), lambda x, y: plain(x, y, pos_weight=pos), **say)
    case(file, kind, "one weight", scores(5, 3), labels(5, 3),
         lambda x, y: plain(x, y, pos_weight=torch.tensor([3.0])), pos_weight=[3.0])
    case(file, kind, "integers", scores(5, 3), labels(5, 3).long(), lambda x, y: plain(x, y.float()))
    case(file, kind, "one score a sample", scores(5, 1), labels(5), lambda x, y: plain(x[:, 0], y))
    case(file, kind, "indices", scores(5, 3), indices(3, 5), lambda x, y: plain(x, one_hot(y, 3)))
    case(file, kind, "pixels, weights", scores(*IMAGES), labels(*IMAGES),
         lambda x, y: plain(x, y, pos_weight=pos.view(3, 1, 1)), **say)
    mask = lambda x, y: plain(x[:, 0], y.float())
    case(file, kind, "masks", scores(2, 1, 4, 5), labels(2, 4, 5).long(), mask)
    summed = lambda x, y: plain(x, y, reduction="sum", pos_weight=pos) / len(y)
    case(file, "binary_cross_entropy_with_logits", "weights", scores(5, 3), labels(5, 3), summed, **say)


def focals(file):
    mean = lambda **how: lambda x, y: sigmoid_focal_loss(x, y, reduction="mean", **how)
    case(file, "focal", "defaults", scores(5, 3), labels(5, 3), mean())
    case(file, "focal", "gamma", scores(5, 3), labels(5, 3), mean(gamma=1.5, alpha=0.6), gamma=1.5, alpha=0.6)
    case(file, "focal", "no alpha", scores(5, 3), labels(5, 3), mean(alpha=-1), alpha=-1.0)
    case(file, "focal", "indices", scores(5, 3), indices(3, 5), lambda x, y: mean()(x, one_hot(y, 3)))
    case(file, "focal", "pixels", scores(*IMAGES), labels(*IMAGES), mean())


def values(file):
    kinds = {"mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss}
    for kind, loss_of in kinds.items():
        case(file, kind, "several", scores(5, 3), scores(5, 3), loss_of)
        case(file, kind, "one a sample", scores(5, 1), scores(5), lambda x, y: loss_of(x[:, 0], y))
        case(file, kind, "integers", scores(5, 1), indices(4, 5), lambda x, y: loss_of(x[:, 0], y.float()))
        case(file, kind, "images", scores(*IMAGES), scores(*IMAGES), loss_of)
    beta = lambda x, y: F.smooth_l1_loss(x, y, beta=0.25)
    case(file, "smooth_l1", "beta", scores(5, 3), scores(5, 3), beta, beta=0.25)


def dice(x, y):
    dims = tuple(range(2, x.dim()))
    both, sums = (x * y).sum(dims), (x + y).sum(dims)
    return (1 - (2 * both + 1e-5) / (sums + 1e-5)).mean()


def dices(file):
    softmax = lambda x, y: dice(x.softmax(1), one_hot(y, 3))
    case(file, "dice", "softmax", scores(*IMAGES), indices(3, 2, 4, 5), softmax, softmax=1)
    sigmoid = lambda x, y: dice(x.sigmoid(), y)
    case(file, "dice", "sigmoid", scores(*IMAGES), labels(*IMAGES), sigmoid, sigmoid=1)
    mask = lambda x, y: dice(x.sigmoid(), y.float()[:, None])
    case(file, "dice", "masks", scores(2, 1, 4, 5), labels(2, 4, 5).long(), mask, sigmoid=1)


with h5py.File(pathlib.Path(__file__).with_name("torch_losses.h5"), "w", libver="latest") as file:
    for part in (cross_entropies, binary_cross_entropies, focals, values, dices):
        part(file)
