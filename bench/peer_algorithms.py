"""Composer's side of algorithms.py: answers the requests of algorithm_bench.cpp."""

import math
import os
import sys
import time
import warnings

import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn

warnings.filterwarnings("ignore")
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import composer.functional as cf  # noqa: E402
from composer.algorithms.ema.ema import EMAParameters  # noqa: E402
from composer.core import Precision  # noqa: E402

LEAST_NS = 20_000_000
TOKENS, CLASSES = 256, 10


def whole_numbers(shape, limit):
    """Whole numbers below the limit; algorithm_bench.cpp makes the same."""
    return (torch.arange(math.prod(shape)) * 7919 % limit).view(shape)


def numbers(shape):
    return whole_numbers(shape, 1009).float() / 1009


def labels(shape):
    return whole_numbers(shape[:1], CLASSES)


def gpt():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=TOKENS, n_positions=128, n_embd=64, n_layer=2, n_head=4,
                                      resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return BertForMaskedLM(BertConfig(vocab_size=TOKENS, hidden_size=64, num_hidden_layers=2,
                                      num_attention_heads=4, intermediate_size=256, hidden_dropout_prob=0,
                                      attention_probs_dropout_prob=0, max_position_embeddings=128))


def resnet50():
    from torchvision.models import resnet50 as make
    return make(num_classes=CLASSES)


MODELS = {"gpt": gpt, "bert": bert, "resnet50": resnet50}


def model_of(text):
    if text in MODELS:
        return MODELS[text]()
    return nn.Sequential(*(eval(layer, vars(nn)) for layer in text.split(">")))


def fill(model):
    """The trained weights, with values that depend on their shapes alone."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    with torch.no_grad():
        for weight in weights:
            values = numbers(weight.shape)
            weight.copy_((values - 0.5) / math.sqrt(weight[0].numel()) if weight.dim() > 1 else values)
    return weights


# Functions that change a model: the model and an option.
SURGERY = {
    "no surgery": lambda model, _: None,
    "apply_alibi": lambda model, _: cf.apply_alibi(model, 128),
    "apply_blurpool": lambda model, _: cf.apply_blurpool(model),
    "apply_channels_last": lambda model, _: cf.apply_channels_last(model),
    "apply_factorization": lambda model, _: cf.apply_factorization(model, min_channels=128),
    "apply_gated_linear_units": lambda model, _: cf.apply_gated_linear_units(model, []),
    "apply_ghost_batchnorm": lambda model, _: cf.apply_ghost_batchnorm(model, 8),
    "apply_gyro_dropout": lambda model, _: cf.apply_gyro_dropout(model, 1000, 1, 0.5, 256, 16),
    "apply_low_precision_groupnorm":
        lambda model, _: cf.apply_low_precision_groupnorm(model, Precision.AMP_BF16),
    "apply_low_precision_layernorm":
        lambda model, _: cf.apply_low_precision_layernorm(model, Precision.AMP_BF16),
    "apply_squeeze_excite": lambda model, _: cf.apply_squeeze_excite(model),
    "apply_stochastic_depth":
        lambda model, method: cf.apply_stochastic_depth(model, "ResNetBottleneck", method),
    "apply_weight_standardization": lambda model, _: cf.apply_weight_standardization(model),
}


def pass_of(function, option, shape, text):
    """Forward and backward of a model after surgery."""
    model = model_of(text).train()
    SURGERY[function](model, option)
    if text in ("gpt", "bert"):
        model.tie_weights()  # Composer's Alibi unties those of BERT
    weights = fill(model)
    inputs = whole_numbers(shape, TOKENS) if text in ("gpt", "bert") else numbers(shape)

    def forward():
        with torch.autocast("cpu", torch.bfloat16, enabled=option == "amp_bf16"):
            outputs = model(inputs)
        return outputs if isinstance(outputs, torch.Tensor) else outputs.logits

    first = forward()
    grad = (numbers(first.shape) - 0.5).to(first.dtype)

    def work():
        outputs = forward()
        return *torch.autograd.grad(outputs, weights, grad, allow_unused=True), outputs

    return work


def clipping(option, shape, text):
    model = model_of(text)
    weights = fill(model)
    for weight in weights:
        weight.grad = numbers(weight.shape) - 0.5
    threshold = {"norm": 1.0, "value": 0.1, "adaptive": 0.01}[option]

    def work():
        cf.apply_gradient_clipping(model, option, threshold, fsdp_enabled=False)
        return [weight.grad for weight in weights]

    return work


def averaging(option, shape, text):
    model = model_of(text)
    fill(model)
    averages = EMAParameters(model)
    kept = [tensor.zero_() for _, tensor in (*averages.named_parameters(), *averages.named_buffers())]

    def work():
        cf.compute_ema(model, averages)
        return kept

    return work


def selection(option, shape, text):
    inputs, targets = numbers(shape), labels(shape)

    def loss(outputs, targets, reduction):
        return F.cross_entropy(outputs, targets, reduction=reduction)

    return lambda: cf.select_using_loss(inputs, targets, lambda x: x.flatten(1)[:, :CLASSES], loss)


def of_images(function):
    """Of a function of images, or of images and labels, the images that the function gives."""

    def make(option, shape, text):
        x, y = numbers(shape), labels(shape)
        return lambda: [function(x, y, option)]

    return make


def of_picture(function):
    """Of a function of one picture."""

    def make(option, shape, text):
        picture = Image.fromarray(whole_numbers(shape, 256).to(torch.uint8).numpy())
        return lambda: function(picture) and []

    return make


def smoothing(option, shape, text):
    logits, targets = numbers(shape), labels(shape)
    return lambda: [cf.smooth_labels(logits, targets)]


def shortening(option, shape, text):
    tokens = whole_numbers(shape, TOKENS)
    batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    how = {"truncate": option != "reshape", "preserve_end_of_sequence": option == "preserve"}
    return lambda: list(cf.set_batch_sequence_length(dict(batch), shape[1] // 2, **how).values())


FUNCTIONS = {
    "colout_batch": of_images(lambda x, y, _: cf.colout_batch(x)),
    "cutmix_batch": of_images(lambda x, y, _: cf.cutmix_batch(x, y)[0]),
    "cutout_batch": of_images(lambda x, y, _: cf.cutout_batch(x)),
    "mixup_batch": of_images(lambda x, y, _: cf.mixup_batch(x, y)[0]),
    "resize_batch": of_images(lambda x, y, mode: cf.resize_batch(x, y, 0.5, mode)[0]),
    "randaugment_image": of_picture(cf.randaugment_image),
    "augmix_image": of_picture(cf.augmix_image),
    "smooth_labels": smoothing,
    "set_batch_sequence_length": shortening,
    "select_using_loss": selection,
    "apply_gradient_clipping": clipping,
    "compute_ema": averaging,
}


class Case:
    """A work with the number of repeats that take long enough."""

    def __init__(self, line):
        function, option, shape, text = line.split("\t")
        shape = [int(size) for size in shape.split("x") if size]
        if function in FUNCTIONS:
            self.work = FUNCTIONS[function](option, shape, text)
        else:
            self.work = pass_of(function, option, shape, text)
        self.sum = sum(float(one.detach().double().abs().sum()) for one in self.work() if one is not None)
        self.repeats = 1

    def nanoseconds(self):
        while True:
            begin = time.thread_time_ns()
            for _ in range(self.repeats):
                self.work()
            taken = time.thread_time_ns() - begin
            if taken >= LEAST_NS:
                return taken / self.repeats
            self.repeats *= 2


def main():
    torch.set_num_threads(1)
    cases = {}
    for line in sys.stdin:
        line = line.rstrip("\n")
        if line not in cases:
            cases[line] = Case(line)
        print(cases[line].nanoseconds(), cases[line].sum, flush=True)


if __name__ == "__main__":
    main()
