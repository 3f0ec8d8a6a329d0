"""Writes tests/golden/lora: tiny models of transformers, LoRA adapters of PEFT's with random B for them, the
outputs with the adapter, and the weights into which PEFT merges it. Versions are those of tests/clients.sh.

    make_lora.py [--to FOLDER]
"""
import argparse
import pathlib

import h5py
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

GPT2 = dict(vocab_size=12, n_positions=8, n_embd=8, n_layer=2, n_head=2)
LLAMA = dict(vocab_size=12, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=8, initializer_range=0.3, eos_token_id=None)
ADAPTERS = {"gpt2": dict(r=3, lora_alpha=5, use_rslora=True, target_modules=["c_attn", "c_proj"]),
            "llama": dict(r=4, lora_alpha=6)}  # with PEFT's own targets


def model_of(name):
    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def shake(adapted):
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=0.3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent / "lora")
    to = parser.parse_args().to
    for name, options in ADAPTERS.items():
        torch.manual_seed(1)
        folder = to / name
        model = model_of(name).eval()
        model.save_pretrained(folder / "base")
        adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **options)).eval()
        shake(adapted)
        adapted.save_pretrained(folder / "adapter")
        tokens = torch.randint(0, 12, (4, 7))
        with h5py.File(folder / "tokens.h5", "w") as file:
            file["train/input"], file["train/target"] = tokens.numpy(), tokens.roll(-1, 1).numpy()
        with torch.no_grad():
            output = adapted(tokens).logits
        merged = adapted.merge_and_unload().state_dict()
        changed = {key: merged[key] for key in merged if key.rsplit(".", 1)[0].endswith(
            tuple(options.get("target_modules", ["q_proj", "v_proj"]))) and key.endswith("weight")}
        save_file({"output": output, **{f"merged/{key}": value for key, value in changed.items()}},
                  folder / "expected.safetensors")
        for extra in ["base/generation_config.json", "adapter/README.md"]:
            (folder / extra).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
