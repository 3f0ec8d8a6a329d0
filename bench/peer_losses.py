"""PyTorch's losses of gpt_tiny, for comparison with tutti's on the same weights and batches: writes initial
weights (weights.safetensors, by GPT-2's names) and tokens (tokens.bin) into a folder, trains, and prints the
losses as a JSON list."""

import argparse
import ctypes
import json
import re
from pathlib import Path

import torch

from peer_workloads import WORKLOADS

WORKLOAD = WORKLOADS["gpt_tiny"]
NAMES = {r"tokens\.": "wte.", r"positions\.": "wpe.", r"norm\.": "ln_f.", r"blocks\.(\d+)\.": r"h.\1."}
NAMES_IN_BLOCK = {"norm1": "ln_1", "norm2": "ln_2", "attention.qkv": "attn.c_attn",
                  "attention.out": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
TRANSPOSED = re.compile(r"\.(c_attn|c_proj|c_fc)\.weight$")  # [inputs, outputs] in GPT-2


def gpt2_name(name):
    for pattern, new in NAMES.items():
        name = re.sub(f"^{pattern}", new, name)
    for part, new in NAMES_IN_BLOCK.items():
        name = re.sub(rf"^(h\.\d+)\.{re.escape(part)}\.", rf"\1.{new}.", name)
    return f"transformer.{name}"


def write_weights(model, path):
    """As safetensors: the header's length, a JSON header, the bytes of the tensors."""
    header, content = {}, b""
    for name, parameter in model.named_parameters():
        name = gpt2_name(name)
        tensor = parameter.detach()
        tensor = (tensor.t() if TRANSPOSED.search(name) else tensor).contiguous()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(content), len(content) + tensor.nbytes]}
        content += ctypes.string_at(tensor.data_ptr(), tensor.nbytes)  # NumPy may be missing
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content)


def draw_tokens(samples, path):
    """Inputs and targets [samples, length]; the next token is the target. The file has one token more."""
    length = WORKLOAD.shape[0]
    tokens = torch.randint(0, 64, (samples * length + 1,))  # a quarter of all: something to learn
    path.write_bytes(b"".join(token.to_bytes(2, "little") for token in tokens.tolist()))
    return tokens[:-1].view(samples, length), tokens[1:].view(samples, length)


def initial_model():
    model = WORKLOAD.model()
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.02)
    return model


def train(model, inputs, targets, args):
    model.to(args.device)
    optimizer = WORKLOAD.optimizer(model.parameters())
    kind, with_16_bits = torch.device(args.device).type, args.precision == "amp_bf16"
    for batch in zip(inputs.split(args.batch), targets.split(args.batch)):
        batch_inputs, batch_targets = (one.to(args.device) for one in batch)
        with torch.autocast(kind, torch.bfloat16, enabled=with_16_bits):
            loss = WORKLOAD.loss(model(batch_inputs), batch_targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=WORKLOAD.batch)
    parser.add_argument("--device", required=True)
    parser.add_argument("--precision", choices=["fp32", "amp_bf16"], default="fp32")
    args = parser.parse_args()
    torch.manual_seed(17)
    model = initial_model()
    write_weights(model, args.folder / "weights.safetensors")
    inputs, targets = draw_tokens(args.steps * args.batch, args.folder / "tokens.bin")
    print(json.dumps(list(train(model, inputs, targets, args))))


if __name__ == "__main__":
    main()
