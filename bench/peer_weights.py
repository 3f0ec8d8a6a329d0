"""Measures how fast safetensors and PyTorch read weights into a model of 124 million parameters, GPT-2: the
least of five times, on one thread. Then build/bench/weights_bench reads the same file.

usage: peer_weights.py [BUILD]   (torch, transformers, safetensors)
"""
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from safetensors.torch import load_file

torch.set_num_threads(1)
build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
with tempfile.TemporaryDirectory() as folder:
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    model.save_pretrained(folder)
    file = pathlib.Path(folder) / "model.safetensors"
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        model.load_state_dict(load_file(file), strict=False)  # the tied output is not in the file
        times.append(time.perf_counter() - begin)
    print(f"{file.stat().st_size / 1e6:.0f} MB\nload_file and load_state_dict: {min(times):.3f} s")
    subprocess.run([build / "bench" / "weights_bench", file], check=True)
