"""Computes exported.h5, and exported/*.pt2: programs of torch.export, what they give in evaluation and in
training, and gradients by parameter name.

Run: python make_exported.py [--clients] [--to FOLDER]   (torch, numpy, h5py)
With --clients: models of torchvision, timm, transformers, segmentation_models_pytorch and diffusers, with
random weights.
"""
import argparse
import pathlib

import h5py
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    """Batch norm, channels that drop, constants, a number of the batch in forward."""

    def __init__(self, width=6):
        super().__init__()
        convolution = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.stem = nn.Sequential(convolution, nn.BatchNorm2d(width), nn.ReLU())
        self.block = nn.Module()
        self.block.conv = nn.Conv2d(width, width, 3, padding=1, groups=2)
        self.block.norm = nn.BatchNorm2d(width, momentum=0.2)
        self.drop = nn.Dropout2d(0.0)
        self.head = nn.Linear(width, 5)
        self.register_buffer("mean", torch.tensor([0.1, 0.2, 0.3]).view(1, 3, 1, 1))
        self.register_buffer("unsaved", torch.ones(1), persistent=False)

    def forward(self, x):
        x = self.stem(x - self.mean)
        x = F.relu(x + self.block.norm(self.block.conv(x)))
        x = self.drop(x).reshape(x.shape[0], x.shape[1], -1).mean(-1)
        return {"logits": self.head(x) * self.unsaved, "features": x}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        dropout = 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.out(y.transpose(1, 2).reshape(n, t, width))


class Language(nn.Module):
    """Tied weights, positions computed without gradients, lists of layers, a mask from the batch."""

    def __init__(self, width=8, vocabulary=11):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(12, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"norm": nn.LayerNorm(width), "mix": Attention(width, 2)}) for _ in range(2))
        self.drop = nn.Dropout(0.0)

    def forward(self, ids, mask):
        with torch.no_grad():
            places = torch.arange(ids.shape[1], device=ids.device).float() * 2.0
        x = self.drop(self.tokens(ids) + self.positions((places / 2).long()))
        for block in self.blocks:
            x = x + block["mix"](block["norm"](x))
        x = x * mask.unsqueeze(-1).to(x.dtype)
        return F.linear(x, self.tokens.weight)


class Shared(nn.Module):
    """A layer that is called twice, and a batch norm in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.twice = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.frozen = nn.BatchNorm1d(6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 2)
        self.unused = nn.Linear(3, 3)

    def train(self, mode=True):
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x):
        x = self.frozen(self.norm(self.twice(self.twice(x))))
        return self.head(torch.cat(torch.split(x, [2, 4], dim=1), dim=1)),


class Places(nn.Module):
    """Takes nothing."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(6))

    def forward(self):
        return torch.tanh(self.table)


class Watcher(nn.Module):
    """Gives nothing that is used."""

    def __init__(self):
        super().__init__()
        self.probe = nn.Linear(6, 2)

    def forward(self, x):
        self.probe(x)


class Odd(nn.Module):
    """A batch norm that is called twice, one whose weights are not trained, modules that take or give
    nothing, a tensor that is no buffer."""

    def __init__(self):
        super().__init__()
        self.places, self.watcher = Places(), Watcher()
        self.linear, self.norm, self.fixed = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.BatchNorm1d(6)
        self.fixed.requires_grad_(False)
        self.head, self.order = nn.Linear(6, 2), torch.tensor([1, 0])

    def forward(self, x):
        x = self.norm(self.linear(x + self.places()))
        self.watcher(x)
        x = self.norm(self.linear(torch.tanh(x)))
        return self.head(self.fixed(x))[:, self.order]


class Tied(nn.Module):
    """A table that the last layer has too, under another name, and a layer that is not trained."""

    def __init__(self):
        super().__init__()
        self.tokens, self.fixed, self.head = nn.Embedding(7, 4), nn.Linear(4, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.tokens.weight
        self.fixed.requires_grad_(False)

    def forward(self, ids):
        return self.head(self.fixed(self.tokens(ids)))


class Modes(nn.Module):
    """Operators with an argument that says that they are in training."""

    def __init__(self):
        super().__init__()
        self.recurrent = nn.LSTM(4, 4, 2, dropout=0.5)
        self.drop, self.leak, self.head = nn.AlphaDropout(0.5), nn.RReLU(), nn.Linear(4, 2)

    def forward(self, x):
        x = self.recurrent(x.unsqueeze(0))[0][0]
        return self.head(self.leak(self.drop(x)))


class Drops(nn.Module):
    """All kinds of random numbers that tutti draws by sample."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(6, 18)
        self.channels = nn.Dropout2d(0.3)
        self.drop = nn.Dropout(0.4, inplace=True)
        self.drop_inputs = nn.Dropout(0.1, inplace=True)

    def forward(self, x: torch.Tensor):
        q, k, v = self.qkv(self.drop_inputs(x)).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.2 if self.training else 0.0)
        if self.training:
            y = y * torch.empty([y.size(0), 1, 1]).bernoulli_(0.5)
        return self.channels(self.drop(y).unsqueeze(-1)).flatten(1)


class Refused(nn.Module):
    """What tutti does not run, of a kind."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.linear = kind, nn.Linear(4, 2)
        if kind == "complex":
            self.turn = nn.Parameter(torch.ones(2, dtype=torch.cfloat))
        if kind in ("writes_unseen", "foreign_norm"):
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("variance", torch.ones(2))
        self.norm = nn.BatchNorm1d(2) if kind == "decomposed" else nn.Identity()

    def forward(self, x):
        x = self.linear(x)
        if self.kind == "complex":
            x = (x * self.turn).real
        if self.kind == "writes_unseen":
            with torch.no_grad():
                self.mean.mul_(0.9).add_(x.mean(0))
        if self.kind == "foreign_norm":
            x = F.batch_norm(x, self.mean, self.variance, training=True)
        if self.kind == "branches":
            x = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
        return self.norm(x)


def programs_without_numbers():
    yield "modes", export(Modes().train(), (torch.randn(4, 4),))
    yield "tied", export(Tied().train(), (torch.randint(0, 7, (4, 5)),))
    for kind in ("complex", "writes_unseen", "foreign_norm", "branches", "decomposed"):
        program = export(Refused(kind).train(), (torch.randn(4, 4),))
        yield kind, program.run_decompositions() if kind == "decomposed" else program
    yield "drops", export(Drops().train(), (torch.randn(4, 5, 6),))


def own_models():
    ids = torch.randint(0, 11, (4, 12))
    yield "convnet", ConvNet(), (torch.randn(4, 3, 6, 6),), "logits", True
    yield "convnet_in_evaluation", ConvNet(), (torch.randn(4, 3, 6, 6),), "features", False
    yield "language", Language(), (ids, torch.rand(4, 12) > 0.3), None, True
    yield "shared", Shared(), (torch.randn(4, 6),), None, True
    yield "odd", Odd(), (torch.randn(4, 6),), None, True


def client_models():
    import diffusers
    import segmentation_models_pytorch as smp
    import timm
    import torchvision.models as tv
    import transformers as hf

    image = (torch.randn(4, 3, 96, 96),)
    big = (torch.randn(2, 3, 224, 224),)
    yield "torchvision_resnet18", tv.resnet18(), image, None, True
    yield "torchvision_resnet50", tv.resnet50(), image, None, True
    yield "torchvision_vit_b_16", tv.vit_b_16(), big, None, True
    yield ("torchvision_deeplabv3", tv.segmentation.deeplabv3_resnet50(weights_backbone=None), image, "out",
           True)
    yield "timm_convnext", timm.create_model("convnext_atto"), image, None, True
    yield "timm_efficientnet", timm.create_model("efficientnet_b0", drop_rate=0.0), image, None, True
    yield "timm_vit", timm.create_model("vit_tiny_patch16_224"), big, None, True
    ids = torch.randint(0, 100, (2, 16))
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    yield ("transformers_gpt2", hf.GPT2LMHeadModel(hf.GPT2Config(
        n_layer=2, n_head=2, n_embd=32, vocab_size=100, n_positions=32, use_cache=False, **no_dropout)),
           (ids,), "logits", True)
    yield ("transformers_bert", hf.BertForSequenceClassification(hf.BertConfig(
        num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, vocab_size=100,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)), (ids,), "logits", True)
    small = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 32,
             "intermediate_size": 64, "vocab_size": 100, "use_cache": False}
    yield "transformers_llama", hf.LlamaForCausalLM(hf.LlamaConfig(**small)), (ids,), "logits", True
    yield ("transformers_qwen3", hf.Qwen3ForCausalLM(hf.Qwen3Config(head_dim=16, **small)), (ids,), "logits",
           True)
    yield ("transformers_vit", hf.ViTForImageClassification(hf.ViTConfig(
        num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64, image_size=32,
        patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
           (torch.randn(2, 3, 32, 32),), "logits", True)
    yield "smp_unet", smp.Unet("resnet18", encoder_weights=None, classes=3), image, None, True
    yield ("diffusers_unet", diffusers.UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")),
           (torch.randn(2, 3, 16, 16), torch.tensor([3, 5])), "sample", True)


def leaf(outputs, name):
    if name:
        return outputs[name]
    return outputs[0] if isinstance(outputs, tuple) else outputs


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, (nn.Dropout, nn.Dropout2d)):
            module.p = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0


def export(model, inputs):
    batch = torch.export.Dim("batch", min=2, max=63)
    shapes = tuple({0: batch} for _ in inputs)
    return torch.export.export(model, inputs, dynamic_shapes=shapes, strict=False)


def save(program, path):
    """Without the places of lines in Python files, which name folders of this machine."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else []:
            node.meta.pop("stack_trace", None)
    torch.export.save(program, path)


def shake(model):
    """Of zeros and ones gradients say little."""
    without_dropout(model)
    for parameter in model.parameters():
        if parameter.dim() < 2:
            parameter.data += 0.1 * torch.randn_like(parameter)


def add_case(file, folder, number, case):
    name, model, inputs, prediction, in_training = case
    shake(model)
    program = export(model.train(in_training), inputs)
    save(program, folder / f"{name}.pt2")
    write_numbers(file.create_group(f"case_{number}"), name, model, inputs, prediction)


def write_numbers(group, name, model, inputs, prediction):
    """What goes in, and what comes out in evaluation and in training."""
    group.attrs["title"] = name
    group.attrs["prediction"] = prediction or "None"
    for i, one in enumerate(inputs):
        group[f"in/{i}"] = one.to(torch.uint8) if one.dtype == torch.bool else one
    group.attrs["truth"] = [float(one.dtype == torch.bool) for one in inputs]
    with torch.no_grad():
        given = leaf(model.eval()(*inputs), prediction)
    group["out/evaluation"] = given
    probe = torch.randn_like(given) / given.numel()
    group["in/probe"] = probe
    for path, gradient in trained(model.eval(), inputs, prediction, probe)[1].items():
        group[f"out/evaluation_gradients/{path}"] = gradient
    model.train()
    group["out/training"], gradients = trained(model, inputs, prediction, probe)
    for path, gradient in gradients.items():
        group[f"out/gradients/{path}"] = gradient


def trained(model, inputs, prediction, probe):
    model.zero_grad()
    given = leaf(model(*inputs), prediction)
    (given * probe).sum().backward()
    gradients = {path: one.grad.clone() for path, one in model.named_parameters() if one.grad is not None}
    return given.detach(), gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", action="store_true")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--only", nargs="+")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = args.to / "exported"
    folder.mkdir(exist_ok=True, parents=True)
    with h5py.File(args.to / "exported.h5", "w") as file:
        for number, case in enumerate(client_models() if args.clients else own_models()):
            if args.only and case[0] not in args.only:
                continue
            print(case[0], flush=True)
            add_case(file, folder, number, case)
    for name, program in [] if args.clients or args.only else programs_without_numbers():
        save(program, folder / f"{name}.pt2")


if __name__ == "__main__":
    main()
