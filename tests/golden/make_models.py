"""Computes models.h5: losses and gradients of small models in PyTorch, torchvision and transformers, by
parameter name; and resnet_names.txt: names and shapes of torchvision's ResNets.

Run: python make_models.py   (torch, torchvision, transformers, numpy, h5py; writes beside this file)
"""
import pathlib

import h5py
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
import torchvision.models.resnet as resnets
import transformers

torch.manual_seed(0)
torch.set_num_threads(1)


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.downsample = None
        if i != o or stride != 1:
            projection = nn.Conv2d(i, o, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(o))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + shortcut)


class ResNetCifar(nn.Module):
    def __init__(self, depth, width, channels, classes):
        super().__init__()
        n = (depth - 2) // 6
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        rest = lambda o: (BasicBlock(o, o, 1) for _ in range(n - 1))
        stage = lambda i, o, s: nn.Sequential(BasicBlock(i, o, s), *rest(o))
        self.layer1 = stage(width, width, 1)
        self.layer2 = stage(width, 2 * width, 2)
        self.layer3 = stage(2 * width, 4 * width, 2)
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class Conv1D(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(i, o))
        self.bias = nn.Parameter(0.1 * torch.randn(o))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, Conv1D(d, 3 * d), Conv1D(d, d)

    def forward(self, x):
        n, t, d = x.shape
        heads = lambda p: p.view(n, t, self.heads, d // self.heads).transpose(1, 2)
        q, k, v = map(heads, self.c_attn(x).split(d, 2))
        scores = q @ k.transpose(2, 3) / (d // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(t, t).tril() == 0, float("-inf"))
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d))


class Mlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(d, 4 * d), Conv1D(4 * d, d)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(d), Attention(d, heads)
        self.ln_2, self.mlp = nn.LayerNorm(d), Mlp(d)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, vocab, positions, d, layers, heads):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(vocab, d), wpe=nn.Embedding(positions, d),
            h=nn.ModuleList(Block(d, heads) for _ in range(layers)), ln_f=nn.LayerNorm(d)))

    def forward(self, x):
        t = self.transformer
        h = t.wte(x) + t.wpe(torch.arange(x.shape[1]))
        for block in t.h:
            h = block(h)
        return t.ln_f(h) @ t.wte.weight.t()


def small_resnet(block, blocks, width, classes):
    """torchvision's ResNet with fewer channels than the 64 that its constructor begins with."""
    net = resnets.ResNet(block, blocks, num_classes=classes)
    net.conv1, net.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
    net.inplanes = width
    for i, count in enumerate(blocks):
        stage = net._make_layer(block, width << i, count, stride=1 if i == 0 else 2)
        setattr(net, f"layer{i + 1}", stage)
    net.fc = nn.Linear(8 * width * block.expansion, classes)
    # Weak branches: beside strong ones, gradients of a net so deep and narrow lose 5 of 7 digits.
    for module in net.modules():
        if isinstance(module, block):
            last = module.bn3 if block is resnets.Bottleneck else module.bn2
            nn.init.constant_(last.weight, 0.2)
    return net


class Logits(nn.Module):
    """One of transformers' models as a function of its arrays to scores; without names of its own."""

    def __init__(self, model, **arrays):
        super().__init__()
        self._modules = model._modules
        self.call = lambda x: model.forward(input_ids=x, **arrays).logits

    def forward(self, x):
        return self.call(x)


def write(file, title, model, x, y, arrays=(), tied=(), noise=0.2, atol=1e-5, **parameters):
    # Norms start as ones and zeros, which would hide a mix-up.
    for p in model.parameters():
        if p.dim() == 1:
            p.data.add_(noise * torch.randn_like(p))
    weights = {k: v.clone() for k, v in model.state_dict().items() if k not in tied}
    outputs = model(x)
    loss = F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), y.reshape(-1))
    loss.backward()
    group = file.create_group(f"case_{len(file)}")
    group.attrs.update(title=title, rtol=1e-4, atol=atol, **parameters)
    for k, v in weights.items():
        group[f"in/weights/{k}"] = v.numpy()
    group["in/input"], group["in/target"] = x.numpy(), y.numpy()
    for k, v in dict(arrays).items():
        group[f"in/{k}"] = v.numpy()
    group["out/outputs"], group["out/loss"] = outputs.detach().numpy(), loss.detach().numpy()
    for k, p in model.named_parameters():
        group[f"out/grads/{k}"] = p.grad.numpy()
    for k, b in model.named_buffers():
        if k in weights:
            group[f"out/buffers/{k}"] = b.numpy()
    model.eval()
    group["out/eval_outputs"] = model(x).detach().numpy()


def write_berts(file):
    sizes = dict(vocab_size=17, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=12, max_position_embeddings=12, type_vocab_size=3,
                 hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=5)
    config = transformers.BertConfig(**sizes, initializer_range=0.3, attn_implementation="eager")
    x = torch.randint(1, 17, (3, 10))
    mask = (torch.arange(10) < torch.tensor([[10], [7], [4]])).long()
    arrays = dict(attention_mask=mask, token_type_ids=torch.randint(0, 3, (3, 10)))
    x, tied = x * mask, ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    labels = torch.where(torch.rand(3, 10) < 0.4, torch.randint(0, 17, (3, 10)), -100)
    masked = Logits(transformers.BertForMaskedLM(config), **arrays)
    write(file, "bert_mlm", masked, x, labels, arrays, tied)
    classifier = Logits(transformers.BertForSequenceClassification(config), **arrays)
    write(file, "bert_classification", classifier, x, torch.randint(0, 5, (3,)), arrays)


LLAMA = dict(vocab_size=17, hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=12, initializer_range=0.3)


def scaled(kind, theta=1000.0, factor=4.0, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, factor=factor, **more))


def write_llamas(file, x, y):
    """Their configurations are in the file as transformers writes them."""
    def case(title, name, **options):
        config = getattr(transformers, f"{name}Config")(**{**LLAMA, **options}, attn_implementation="eager",
                                                        use_cache=False)
        model = getattr(transformers, f"{name}ForCausalLM")(config)
        tied = ("lm_head.weight",) if config.tie_word_embeddings else ()
        write(file, title, Logits(model), x, y, tied=tied, config=config.to_json_string(use_diff=True))

    case("llama2", "Llama", num_hidden_layers=2, num_key_value_heads=2, rms_norm_eps=1e-5)
    case("llama3", "Llama", attention_bias=True, mlp_bias=True, head_dim=12, num_attention_heads=4,
         num_key_value_heads=2, **scaled("llama3", low_freq_factor=1.0, high_freq_factor=4.0,
                                         original_max_position_embeddings=40))
    case("llama_linear", "Llama", **scaled("linear"))
    case("llama_dynamic", "Llama", **{**scaled("dynamic"), "max_position_embeddings": 6})
    case("llama_yarn", "Llama", **scaled("yarn", original_max_position_embeddings=8, beta_fast=2.0,
                                         beta_slow=0.5))
    case("llama_yarn_with_mscale", "Llama", **scaled("yarn", original_max_position_embeddings=30, mscale=0.7,
                                                     mscale_all_dim=0.4, truncate=False))
    case("mistral", "Mistral", num_hidden_layers=2, sliding_window=4)
    case("qwen2", "Qwen2", tie_word_embeddings=True, num_hidden_layers=2, use_sliding_window=True,
         sliding_window=3, max_window_layers=1)
    case("qwen3", "Qwen3", head_dim=12, pad_token_id=3)


def write_vit(file):
    model = torchvision.models.VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=2,
                                                 hidden_dim=8, mlp_dim=12, num_classes=5)
    for zeros in model.class_token, model.heads.head.weight:
        nn.init.normal_(zeros, std=0.5)
    write(file, "vit", model, torch.randn(3, 3, 12, 12), torch.randint(0, 5, (3,)))


def write_resnet_names(path):
    lines = []
    for depth in 18, 34, 50, 101, 152:
        lines.append(f"resnet{depth}")
        for name, value in getattr(resnets, f"resnet{depth}")().state_dict().items():
            lines.append(f"  {name} {list(value.shape)}")
    path.write_text("\n".join(lines) + "\n")


here = pathlib.Path(__file__).parent
with h5py.File(here / "models.h5", "w") as f:
    mlp = nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 5))
    write(f, "mlp", mlp, torch.randn(6, 12), torch.randint(0, 5, (6,)))
    images, labels = torch.randn(4, 3, 9, 9), torch.randint(0, 5, (4,))
    write(f, "resnet_cifar", ResNetCifar(14, 4, 3, 5), images, labels, depth=14)
    tokens, target = torch.randint(0, 17, (3, 10)), torch.randint(0, 17, (3, 10))
    target[1, 6:] = -100
    write(f, "gpt", Gpt(17, 12, 16, 2, 4), tokens, target, n_layer=2)
    images, labels = torch.randn(4, 3, 41, 33), torch.randint(0, 5, (4,))
    write(f, "resnet18", small_resnet(resnets.BasicBlock, [2, 2, 2, 2], 2, 5), images, labels)
    deep = small_resnet(resnets.Bottleneck, [3, 4, 6, 3], 2, 5)
    write(f, "resnet50", deep, images, labels, noise=0.05, atol=5e-5)
    write_berts(f)
    write_llamas(f, tokens, target)
    write_vit(f)
write_resnet_names(here / "resnet_names.txt")
