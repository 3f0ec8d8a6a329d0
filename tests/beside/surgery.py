"""Algorithms of recipes: those of plain_algorithms.py by tutti's names, and those of models of this folder."""
import dataclasses
import math

import torch

import plain_algorithms
from models import CausalAttention
from plain_algorithms import Algorithm

NAMES = {"ema": "EMA", "gradient_clipping": "GradientClipping", "label_smoothing": "LabelSmoothing",
         "layer_freezing": "LayerFreezing", "progressive_resizing": "ProgressiveResizing", "sam": "SAM",
         "swa": "SWA"}


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
                module.wpe = torch.nn.Embedding(self.max_sequence_length, module.wpe.embedding_dim)
                module.wpe.weight.requires_grad_(False).zero_()

    def change_batch(self, x, y):
        length = int(x.shape[1] * self.train_sequence_length_scaling)
        return x.reshape(-1, length), y.reshape(-1, length)


HERE = {"alibi": Alibi, "seq_length_warmup": SeqLengthWarmup}


def make(run, kind, keys):
    keys = {name: value for name, value in keys.items() if name not in ("input_key", "target_key")}
    if kind in HERE:
        return HERE[kind](run, **keys)
    return plain_algorithms.make(run, NAMES[kind], keys)
