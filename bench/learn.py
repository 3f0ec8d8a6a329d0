#!/usr/bin/env python3
"""Where trainings of the zoo's models end, and those of its clients by the same recipe in PyTorch: a vision
transformer on digits (torchvision's; accuracy and loss of the test set) and a Llama on a text
(transformers'; loss of the text's end). Seeds give both other weights and orders, so the spreads over seeds
are compared: the means must be less than two standard deviations of the client's apart.

Needs a Python with torch, torchvision, transformers and h5py (--python).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from compare import default_python
from ends import ROOT, are_apart, last_value, print_ends, train
from gpu import run
from measure import Failed

PEER = """
import fnmatch, json, math, sys, h5py, numpy, torch, torch.nn as nn, torch.nn.functional as F
task, data, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
torch.manual_seed(seed)

def digits():
    import torchvision
    model = torchvision.models.VisionTransformer(image_size=8, patch_size=2, num_layers=4, num_heads=4,
        hidden_dim=64, mlp_dim=128, dropout=0.1, num_classes=10)
    model.conv_proj = nn.Conv2d(1, 64, 2, 2)  # of one channel, begun as torchvision's
    nn.init.trunc_normal_(model.conv_proj.weight, std=math.sqrt(1 / 4))
    nn.init.zeros_(model.conv_proj.bias)
    with h5py.File(f"{data}/digits.h5") as file:
        parts = [[torch.from_numpy(file[f"{part}/{name}"][:]) for name in ("input", "target")]
                 for part in ("train", "test")]
    return model, model, parts

def text():
    import transformers
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=256, hidden_size=128,
        intermediate_size=344, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None,
        use_cache=False))
    tokens = torch.from_numpy(numpy.fromfile(f"{data}/king_james.txt", numpy.uint8)).long()
    def windows(part):
        count = (len(part) - 1) // 128
        return [part[begin:begin + 128 * count].view(count, 128) for begin in (0, 1)]
    middle = int(0.9 * len(tokens))
    return (model, lambda x: model(input_ids=x).logits.transpose(1, 2),
            [windows(tokens[:middle]), windows(tokens[middle:])])

RECIPES = {"digits": (96, 0.002, 0.01, ["*.bias", "*ln*", "class_token", "encoder.pos_embedding"], 30, 0.0),
           "text": (16, 0.002, 0.1, ["*norm*"], 50, 0.1)}
batch, lr, decay, no_decay, warmup, last = RECIPES[task]
model, forward, (train, test) = globals()[task]()
groups = [[], []]
for name, parameter in model.named_parameters():
    groups[any(fnmatch.fnmatch(name, one) for one in no_decay)].append(parameter)
optimizer = torch.optim.AdamW([dict(params=groups[0], weight_decay=decay),
                               dict(params=groups[1], weight_decay=0.0)], lr=lr)

def factor(step):
    if step < warmup:
        return step / warmup
    return last + (1 - last) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

step = 0
while step < steps:
    for rows in torch.randperm(len(train[0])).split(batch):
        if step == steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = lr * factor(step)
        optimizer.zero_grad()
        F.cross_entropy(forward(train[0][rows]), train[1][rows]).backward()
        optimizer.step()
        step += 1

model.eval()
with torch.no_grad():
    scores = torch.cat([forward(part) for part in test[0].split(64)])
    print(json.dumps({"loss": F.cross_entropy(scores, test[1]).item(),
                      "accuracy": (scores.argmax(1) == test[1]).float().mean().item()}))
"""
# The recipe, its steps here, and what is compared: the peer's name and tutti's.
TASKS = {"digits": ("digits_vit", 300, {"accuracy": "MulticlassAccuracy", "loss": "loss"}),
         "text": ("text_llama", 120, {"loss": "loss"})}


def ends_of_tutti(args, task, seed, folder):
    recipe, steps, metrics = TASKS[task]
    train(args.tutti, recipe, folder, [f"seed={seed}", f'train.max_duration="{steps}ba"',
                                       f'train.eval_interval="{steps}ba"', "journal.level=off"])
    return {name: last_value(folder, f"metrics/eval/{own}") for name, own in metrics.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tutti", type=Path, default=ROOT / "build/tutti")
    parser.add_argument("--python", default=default_python(), help="one that has the clients")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    outside = []
    for task in args.tasks:
        found = {"tutti": [], "client": []}
        for seed in range(1, args.seeds + 1):
            peer = run([args.python, "-c", PEER, task, ROOT / "examples/data", seed, TASKS[task][1]])
            found["client"].append(json.loads(peer.splitlines()[-1]))
            with tempfile.TemporaryDirectory() as scratch:
                found["tutti"].append(ends_of_tutti(args, task, seed, Path(scratch) / "run"))
        for metric in TASKS[task][2]:
            ends = {name: [one[metric] for one in runs] for name, runs in found.items()}
            print_ends(f"{task}, {metric}", ends)
            if are_apart(ends["tutti"], ends["client"]):
                outside.append(f"{task}, {metric}")
    sys.exit(f"outside of the client's spread: {'; '.join(outside)}" if outside else 0)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"learn.py: {failed}")
