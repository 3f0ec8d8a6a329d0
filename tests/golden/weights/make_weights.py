"""Writes small files of weights as PyTorch, safetensors and transformers save them, and expected.safetensors:
for each model an input and the outputs that the client's own model gives.

Run: python make_weights.py   (torch 2.11.0, torchvision 0.26.0, transformers 5.0.0, safetensors 0.8.0;
writes beside this file)
"""
import pathlib

import numpy
import torch
import torch.nn as nn
import torchvision.models.resnet as resnets
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent

torch.manual_seed(0)
torch.set_num_threads(1)
expected = {}


def shaken(model):
    """Norms start as ones and zeros, which would hide a mix-up."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def expect(name, model, x):
    with torch.no_grad():
        y = model(x)
    expected[f"{name}.input"] = x.clone()
    expected[f"{name}.output"] = (y if isinstance(y, torch.Tensor) else y.logits).contiguous()


def narrow_resnet18(width, classes):
    net = resnets.resnet18(num_classes=classes)
    net.conv1, net.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
    net.inplanes = width
    for i in range(4):
        stage = net._make_layer(resnets.BasicBlock, width << i, 2, stride=1 if i == 0 else 2)
        setattr(net, f"layer{i + 1}", stage)
    net.fc = nn.Linear(8 * width, classes)
    return net


def resnet():
    net = narrow_resnet18(2, 5)
    for _ in range(3):
        net(torch.randn(4, 3, 33, 33))
    shaken(net)
    expect("resnet", net, torch.randn(2, 3, 33, 33))
    state = net.state_dict()
    torch.save(state, HERE / "resnet.pth")
    # Of DistributedDataParallel, channels last, beside the optimizer's state.
    last = {"module." + k: v.contiguous(memory_format=torch.channels_last) if v.dim() == 4 else v
            for k, v in state.items()}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    saved = {"epoch": 3, "best": numpy.float64(0.5), "state_dict": last, "optimizer": optimizer.state_dict()}
    torch.save(saved, HERE / "resnet_ddp.pt")
    # For other classes.
    head = {k.replace("fc.", "head."): v for k, v in state.items()}
    save_file({"net." + k: v for k, v in head.items()}, HERE / "resnet_renamed.safetensors")


def gpt2():
    config = transformers.GPT2Config(vocab_size=40, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    model = shaken(transformers.GPT2LMHeadModel(config))
    x = torch.randint(0, 40, (3, 12))
    expect("gpt2", model, x)
    model.save_pretrained(HERE / "gpt2")
    model.save_pretrained(HERE / "gpt2_sharded", max_shard_size="12KB")
    state = model.state_dict()
    # As older versions saved it: the tied output, and masks.
    for i in range(2):
        state[f"transformer.h.{i}.attn.bias"] = torch.ones(1, 1, 16, 16, dtype=torch.bool).tril()
        state[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(state, HERE / "gpt2_old.bin")
    # The trunk alone, in half precision, as "gpt2" of the hub has its names.
    half = {k.removeprefix("transformer."): v.half().contiguous()
            for k, v in model.transformer.state_dict().items()}
    save_file(half, HERE / "gpt2_half.safetensors", metadata={"format": "pt"})
    rounded = transformers.GPT2LMHeadModel(config)
    rounded.transformer.load_state_dict({k: v.float() for k, v in half.items()})
    expect("gpt2_half", rounded.eval(), x)
    # Compiled, with linear layers, as nanoGPT saves it.
    projections = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    linear = {"_orig_mod." + k: v.t().contiguous() if k.endswith(projections) else v
              for k, v in model.state_dict().items()}
    torch.save({"model": linear, "iter_num": 7}, HERE / "gpt2_linear.pt")


def bert():
    sizes = dict(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=24, max_position_embeddings=16)
    config = transformers.BertConfig(**sizes)
    model = shaken(transformers.BertForMaskedLM(config))
    x = torch.randint(0, 40, (3, 12))
    expect("bert", model, x)
    model.save_pretrained(HERE / "bert")
    # As TensorFlow's weights were converted: of pretraining, with gamma and beta.
    old = transformers.BertForPreTraining(config).state_dict() | model.state_dict()
    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
           for k, v in old.items()}
    old["bert.embeddings.position_ids"] = torch.arange(16).unsqueeze(0)
    torch.save(old, HERE / "bert_old.bin")
    classifier = shaken(
        transformers.BertForSequenceClassification(transformers.BertConfig(num_labels=3, **sizes)))
    expect("bert_classification", classifier, x)
    folder = HERE / "bert_classification"
    classifier.save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(classifier.state_dict(), folder / "pytorch_model.bin")


if __name__ == "__main__":
    resnet()
    gpt2()
    bert()
    save_file(expected, HERE / "expected.safetensors")
    for path in HERE.rglob("generation_config.json"):
        path.unlink()
