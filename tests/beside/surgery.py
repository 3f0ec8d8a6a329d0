"""Algorithms by their sections: those of plain_algorithms.py, and further ones."""
import dataclasses
import math

import torch
from torch import nn

import plain_algorithms
from models import CausalAttention
from plain_algorithms import Algorithm, replace

NAMES = {"blurpool": "BlurPool", "ema": "EMA", "ghost_batchnorm": "GhostBatchNorm",
         "gradient_clipping": "GradientClipping", "label_smoothing": "LabelSmoothing",
         "layer_freezing": "LayerFreezing", "progressive_resizing": "ProgressiveResizing", "sam": "SAM",
         "squeeze_excite": "SqueezeExcite", "swa": "SWA", "weight_standardization": "WeightStandardization"}


@dataclasses.dataclass
class SeqLengthWarmup(Algorithm):
    duration: float = 0.3
    min_seq_length: int = 8
    max_seq_length: int = 1024
    step_size: int = 8
    truncate: bool = True
    preserve_end_of_sequence: bool = False

    def change_batch(self, x, y):
        whole = self.run.max_duration
        batches = int(whole.value * (self.run.epoch_length if whole.unit == "ep" else 1))
        rises = (self.max_seq_length - self.min_seq_length) // self.step_size
        passed = self.run.now["ba"] // (int(batches * self.duration) // rises)
        length = min(self.min_seq_length + self.step_size * passed, self.max_seq_length)
        if length >= x.shape[1]:
            return x, y
        if self.truncate:
            return x[:, :length], y[:, :length]
        kept = x.shape[1] // length * length
        return x[:, :kept].reshape(-1, length), y[:, :kept].reshape(-1, length)


def slopes(heads):
    """Press et al., 2022, section 3, and the authors' code for other numbers than powers of two."""
    power = 1 << (heads.bit_length() - 1)
    line = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    between = [2.0 ** (-8.0 * (i + 0.5) / power) for i in range(power)]
    return (line + between)[:heads]


@dataclasses.dataclass
class Alibi(Algorithm):
    max_sequence_length: int
    train_sequence_length_scaling: float = 0.25

    def replace_layers(self, model):
        for module in model.modules():
            if isinstance(module, CausalAttention):
                heads = module.heads if hasattr(module, "heads") else \
                    module.q_proj.out_features // module.features
                module.slopes = torch.tensor(slopes(heads))
            if hasattr(module, "wpe"):
                module.wpe = nn.Embedding(self.max_sequence_length, module.wpe.embedding_dim)
                module.wpe.weight.requires_grad_(False).zero_()

    def change_batch(self, x, y):
        length = int(x.shape[1] * self.train_sequence_length_scaling)
        return x.reshape(-1, length), y.reshape(-1, length)


@dataclasses.dataclass
class ChannelsLast(Algorithm):
    def replace_layers(self, model):
        model.to(memory_format=torch.channels_last)


class Factorized(nn.Module):
    def __init__(self, linear, latent):
        super().__init__()
        self.module0 = nn.Linear(linear.in_features, latent, bias=False)
        self.module1 = nn.Linear(latent, linear.out_features, bias=linear.bias is not None)

    def forward(self, x):
        return self.module1(self.module0(x))


@dataclasses.dataclass
class Factorize(Algorithm):
    """Of linear layers."""

    min_features: int
    latent_features: float
    factorize_convs: bool = True
    factorize_linears: bool = True
    min_channels: int = 256
    latent_channels: float = 0.25

    def replace_layers(self, model):
        def latent(linear):
            return int(self.latent_features * min(linear.in_features, linear.out_features))

        def suits(linear):
            sizes = linear.in_features, linear.out_features
            return min(sizes) >= self.min_features and latent(linear) * sum(sizes) < math.prod(sizes)

        replace(model, nn.Linear, lambda linear: Factorized(linear, latent(linear)), suits)


class LoraLinear(nn.Linear):
    def __init__(self, linear, rank, scaling):
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None)
        self.scaling = scaling
        self.load_state_dict(linear.state_dict())
        self.lora_A = nn.Linear(linear.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return super().forward(x) + self.scaling * self.lora_B(self.lora_A(x))


@dataclasses.dataclass
class Lora(Algorithm):
    """Of all linear layers."""

    r: int
    targets: list
    alpha: float = 8.0
    dropout: float = 0.0
    use_rslora: bool = False
    modules_to_save: tuple = ()

    def replace_layers(self, model):
        scaling = self.alpha / (math.sqrt(self.r) if self.use_rslora else self.r)
        replace(model, nn.Linear, lambda linear: LoraLinear(linear, self.r, scaling))
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("lora_" in name)


HERE = {"alibi": Alibi, "channels_last": ChannelsLast, "factorize": Factorize, "lora": Lora,
        "seq_length_warmup": SeqLengthWarmup}


def make(run, kind, keys):
    keys = {name: value for name, value in keys.items() if name not in ("input_key", "target_key")}
    if kind in HERE:
        return HERE[kind](run, **keys)
    return plain_algorithms.make(run, NAMES[kind], keys)


def in_order(algorithms):
    """As they change a batch: the last of the recipe first, but SeqLengthWarmup behind Alibi."""
    return sorted(reversed(algorithms), key=lambda one: isinstance(one, SeqLengthWarmup))
