"""Models in plain PyTorch, with the names of tutti's parameters: a function of the section [model]."""
import math

import torch
from torch import nn
from torch.nn import functional as F

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
               "silu": F.silu, "tanh": torch.tanh}
ACTIVATION_LAYERS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "silu": nn.SiLU}


class Select(nn.Module):
    def __init__(self, dim, index):
        super().__init__()
        self.dim, self.index = dim, index

    def forward(self, x):
        return x.select(self.dim, self.index)


class LSTM(nn.LSTM):
    def forward(self, x):
        in_16_bits = torch.is_autocast_enabled("cpu")  # oneDNN has no such LSTM on some processors
        with torch.backends.mkldnn.flags(enabled=not in_16_bits):
            return super().forward(x)[0]


class GRU(nn.GRU):
    def forward(self, x):
        return super().forward(x)[0]


class Residual(nn.Module):
    def __init__(self, *main, shortcut=None):
        super().__init__()
        self.main = main[0] if len(main) == 1 else nn.Sequential(*main)
        if shortcut is not None:
            self.shortcut = shortcut

    def forward(self, x):
        return self.main(x) + (self.shortcut(x) if hasattr(self, "shortcut") else x)


def sequential(section, images):
    names = {**vars(nn), "Select": Select, "LSTM": LSTM, "GRU": GRU, "Residual": Residual}
    return nn.Sequential(*(eval(text, names) for text in section["layers"]))


class Mlp(nn.Sequential):
    def forward(self, x):
        return super().forward(x.flatten(1))


def mlp(section, images):
    widths = [math.prod(images), *section["hidden"], 10]
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), ACTIVATION_LAYERS[section["activation"]]()]
    return Mlp(*layers[:-1])


class BasicBlock(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = nn.Identity()
        if before != after or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                            nn.BatchNorm2d(after))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x))


class ResNetCifar(nn.Module):
    def __init__(self, depth, width, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks = (depth - 2) // 6
        for stage, stride in enumerate((1, 2, 2)):
            after, before = width << stage, width << max(stage - 1, 0)
            chain = [BasicBlock(after if i else before, after, 1 if i else stride) for i in range(blocks)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*chain))
        self.fc = nn.Linear(4 * width, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


def resnet_cifar(section, images):
    return ResNetCifar(section["depth"], section["width"], images[0])


class VitBlock(nn.Module):
    def __init__(self, section):
        super().__init__()
        width, inner = section["hidden_dim"], section["mlp_dim"]
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, section["num_heads"], batch_first=True)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Identity(), nn.Linear(inner, width))

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.self_attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class Vit(nn.Module):
    def __init__(self, section, images):
        super().__init__()
        width, patch = section["hidden_dim"], section["patch_size"]
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = nn.Conv2d(images[0], width, patch, patch)
        self.encoder = nn.Module()
        self.encoder.pos_embedding = nn.Parameter(torch.zeros(1, (images[1] // patch) ** 2 + 1, width))
        self.encoder.layers = nn.Sequential()
        for i in range(section["num_layers"]):
            self.encoder.layers.add_module(f"encoder_layer_{i}", VitBlock(section))
        self.encoder.ln = nn.LayerNorm(width, eps=1e-6)
        self.heads = nn.Module()
        self.heads.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.to(x.dtype).expand(len(x), -1, -1), x], 1)
        x = self.encoder.ln(self.encoder.layers(x + self.encoder.pos_embedding))
        return self.heads.head(x[:, 0])


def vit(section, images):
    return Vit(section, images)


class Conv1D(nn.Module):
    """transformers' linear layer with transposed weights."""

    def __init__(self, before, after):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(before, after))
        self.bias = nn.Parameter(torch.zeros(after))

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class CausalAttention(nn.Module):
    """`slopes`: ALiBi's, for each head; None without ALiBi."""

    slopes = None

    def attend(self, q, k, v):
        length, bias = q.shape[2], None
        if self.slopes is not None:
            at = torch.arange(length)
            bias = self.slopes[:, None, None] * (at[None, :] - at[:, None]).float()
            bias = bias.masked_fill(at[None, :] > at[:, None], -math.inf)[None].to(q.dtype)
        out = F.scaled_dot_product_attention(q, k, v, bias, is_causal=bias is None,
                                             enable_gqa=k.shape[1] != q.shape[1])
        return out.transpose(1, 2).flatten(2)


class GptAttention(CausalAttention):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for part in self.c_attn(x).chunk(3, 2))
        return self.c_proj(self.attend(q, k, v))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GptAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Module()
        self.mlp.c_fc = Conv1D(width, 4 * width)
        self.mlp.c_proj = Conv1D(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, section):
        super().__init__()
        width = section["n_embd"]
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(section["vocab_size"], width)
        self.transformer.wpe = nn.Embedding(section["n_positions"], width)
        self.transformer.h = nn.Sequential(*(GptBlock(width, section["n_head"])
                                             for _ in range(section["n_layer"])))
        self.transformer.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        parts = self.transformer
        x = parts.wte(tokens) + parts.wpe(torch.arange(tokens.shape[1]))
        return F.linear(parts.ln_f(parts.h(x)), parts.wte.weight)


def gpt(section, images):
    return Gpt(section)


def rotated(x, theta):
    """Rotary positions of [N, heads, T, features], as transformers has them."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half).float() / half)
    angles = torch.arange(x.shape[2]).float()[:, None] * frequencies
    cos, sin = (part.repeat(1, 2).to(x.dtype) for part in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class LlamaAttention(CausalAttention):
    def __init__(self, section, heads, groups, features, bias, has_norms):
        super().__init__()
        width, self.features, self.theta = section["hidden_size"], features, section["rope_theta"]
        self.q_proj = nn.Linear(width, heads * features, bias=bias)
        self.k_proj = nn.Linear(width, groups * features, bias=bias)
        self.v_proj = nn.Linear(width, groups * features, bias=bias)
        self.o_proj = nn.Linear(heads * features, width, bias=False)
        if has_norms:
            self.q_norm = nn.RMSNorm(features, eps=section["rms_norm_eps"])
            self.k_norm = nn.RMSNorm(features, eps=section["rms_norm_eps"])

    def forward(self, x):
        q, k, v = (projection(x).unflatten(2, (-1, self.features))
                   for projection in (self.q_proj, self.k_proj, self.v_proj))
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        if self.slopes is None:
            q, k = rotated(q, self.theta), rotated(k, self.theta)
        return self.o_proj(self.attend(q, k, v))


class LlamaBlock(nn.Module):
    def __init__(self, section, **attention):
        super().__init__()
        width, inner = section["hidden_size"], section["intermediate_size"]
        self.self_attn = LlamaAttention(section, **attention)
        self.mlp = nn.Module()
        self.mlp.gate_proj = nn.Linear(width, inner, bias=False)
        self.mlp.up_proj = nn.Linear(width, inner, bias=False)
        self.mlp.down_proj = nn.Linear(inner, width, bias=False)
        self.input_layernorm = nn.RMSNorm(width, eps=section["rms_norm_eps"])
        self.post_attention_layernorm = nn.RMSNorm(width, eps=section["rms_norm_eps"])
        self.activation = ACTIVATIONS[section["hidden_act"]]

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        y = self.post_attention_layernorm(x)
        return x + self.mlp.down_proj(self.activation(self.mlp.gate_proj(y)) * self.mlp.up_proj(y))


class Llama(nn.Module):
    def __init__(self, section):
        super().__init__()
        width, words, heads = section["hidden_size"], section["vocab_size"], section["num_attention_heads"]
        attention = dict(heads=heads, groups=section.get("num_key_value_heads", heads),
                         features=section.get("head_dim", width // heads),
                         bias=section["model_type"] == "qwen2", has_norms=section["model_type"] == "qwen3")
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(words, width)
        self.model.layers = nn.Sequential(*(LlamaBlock(section, **attention)
                                            for _ in range(section["num_hidden_layers"])))
        self.model.norm = nn.RMSNorm(width, eps=section["rms_norm_eps"])
        if not section["tie_word_embeddings"]:
            self.lm_head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.model.norm(self.model.layers(self.model.embed_tokens(tokens)))
        return self.lm_head(x) if hasattr(self, "lm_head") else F.linear(x, self.model.embed_tokens.weight)


def llama(section, images):
    return Llama(section)


def make(section, images, seed):
    """`images`: the shape of a sample. Weights are drawn by `seed`."""
    torch.manual_seed(seed)
    model = globals()[section["kind"]](section, images)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape)) if parameter.dim() < 2 or \
                parameter.abs().sum() == 0 else parameter.copy_(
                    torch.randn(parameter.shape) / math.sqrt(parameter[0].numel()))
    return model
