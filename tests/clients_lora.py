"""LoRA against PEFT: an adapter that PEFT made gives PEFT's outputs in tutti, is trained by tutti, and PEFT
loads what tutti exports: the adapter alone, and the weights with it merged in.

tests/clients.sh runs this, with the clients' pinned versions.
"""
import sys
import unittest

import h5py
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file

from client_case import SOURCE, TOLERANCE, ClientCase

sys.path.insert(0, str(SOURCE / "tests/golden"))
import make_exported  # noqa: E402

transformers.utils.logging.disable_progress_bar()
RECIPE = """
seed = 3
[model]
kind = "hf"
path = "base"
{model}
[data.train]
kind = "hdf5"
path = "data.h5"
group = "train"
batch_size = 8
[data.eval]
kind = "hdf5"
path = "data.h5"
group = "train"
[optimizer]
kind = "adamw"
lr = 0.01
[train]
max_duration = "5ba"
[[algorithms]]
kind = "lora"
{lora}
"""
VOCABULARY = 40
GPT2 = dict(vocab_size=VOCABULARY, n_positions=16, n_embd=32, n_layer=2, n_head=4)
LLAMA = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             initializer_range=0.3, eos_token_id=None)
BERT = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=16, num_labels=3)


class Lora(ClientCase, unittest.TestCase):
    def predicted(self, *words):
        self.tutti("predict", "recipe.toml", "--out", "out.h5", *words)
        with h5py.File(self.folder / "out.h5") as file:
            return torch.from_numpy(file["output"][:])

    def base(self):
        return self.kind.from_pretrained(self.folder / "base").eval()

    def write(self, model, lora, causal, model_keys=""):
        """The base model's folder, data and a recipe; returns tokens."""
        self.kind = type(model)
        model.save_pretrained(self.folder / "base")
        tokens = torch.randint(0, VOCABULARY, (8, 12))
        target = tokens.roll(-1, 1) if causal else torch.randint(0, 3, (8,))
        with h5py.File(self.folder / "data.h5", "w") as file:
            file["train/input"], file["train/target"] = tokens.numpy(), target.numpy()
            if not causal:
                file["train/target"].attrs["num_classes"] = 3
        (self.folder / "recipe.toml").write_text(RECIPE.format(model=model_keys, lora=lora))
        return tokens

    def train_and_come_back(self, tokens, before=None):
        """PEFT has the outputs of a run from the adapter that tutti writes, and merges it alike."""
        self.tutti("train", "recipe.toml", "--run-dir", "run", "--local-ranks", "2")
        after = self.predicted("--checkpoint", "run")
        if after.dim() == 3 and after.shape[1] == VOCABULARY:  # of a program
            after = after.transpose(1, 2)
        if before is not None:
            self.assertGreater((after - before).abs().max(), 100 * TOLERANCE * before.abs().max())
        self.tutti("export", "run", "--to-peft", "trained")
        self.tutti("export", "run", "--to", "merged.safetensors")
        back = PeftModel.from_pretrained(self.base(), self.folder / "trained").eval()
        with torch.no_grad():
            self.assert_close(back(tokens).logits, after)
        values = load_file(self.folder / "merged.safetensors")
        state = back.merge_and_unload().state_dict()
        for name, tensor in values.items():
            self.assert_close(tensor, state[name])
        missing, more = self.base().load_state_dict(values, strict=False)
        self.assertEqual((more, [name for name in missing if name != "lm_head.weight"]), ([], []))
        return after

    def go_round(self, model, options, lora, model_keys=""):
        """An adapter of PEFT's, in tutti and back."""
        lora += '\nadapter = "adapter"'
        tokens = self.write(model, lora, options["task_type"] == "CAUSAL_LM", model_keys)
        adapted = get_peft_model(model.eval(), LoraConfig(**options)).eval()
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.data.normal_(std=0.1)
        adapted.save_pretrained(self.folder / "adapter")
        with torch.no_grad():
            before = adapted(tokens).logits
        self.assert_close(self.predicted(), before)
        after = self.train_and_come_back(tokens, before)
        theirs, ours = (load_file(self.folder / name / "adapter_model.safetensors")
                        for name in ("adapter", "trained"))
        self.assertEqual({name: tensor.shape for name, tensor in ours.items()},
                         {name: tensor.shape for name, tensor in theirs.items()})
        return tokens, after

    def test_gpt2(self):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        options = dict(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"])
        self.go_round(model, options, 'r = 4\nalpha = 8\ntargets = ["c_attn", "c_proj"]')

    def test_llama(self):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
        tokens, after = self.go_round(model, dict(task_type="CAUSAL_LM", r=4, lora_alpha=8, use_rslora=True),
                                      "r = 4\nlora_alpha = 8\nuse_rslora = true")
        self.tutti("export", "run", "--to-hf", "hub")
        hub = transformers.AutoModelForCausalLM.from_pretrained(self.folder / "hub").eval()
        with torch.no_grad():
            self.assert_close(hub(tokens).logits, after)

    def test_all_linear_layers_of_a_llama(self):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
        self.go_round(model, dict(task_type="CAUSAL_LM", r=2, lora_alpha=3, target_modules="all-linear"),
                      'r = 2\nalpha = 3\ntargets = ["all-linear"]')

    def test_bert_with_its_head(self):
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))
        self.go_round(model, dict(task_type="SEQ_CLS", r=4, lora_alpha=8, modules_to_save=["classifier"]),
                      'r = 4\nalpha = 8\nmodules_to_save = ["classifier"]', 'head = "classification"')

    def test_a_bert_whose_pooler_is_trained_beside_adapters_of_layers_with_the_same_name(self):
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT))
        lora = """r = 4
alpha = 8
targets = ["query", "dense"]
modules_to_save = ["pooler", "classifier"]"""
        self.train_and_come_back(self.write(model, lora, False, 'head = "classification"'))

    def test_an_exported_llama(self):
        """A program of torch.export has adapters in the layers of its own names."""
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(use_cache=False, **LLAMA))
        tokens = self.write(model, "r = 4\nalpha = 8", True)
        torch.export.save(make_exported.export(model.train(), (tokens,)), self.folder / "model.pt2")
        recipe = (self.folder / "recipe.toml").read_text()
        program = 'kind = "exported"\npath = "model.pt2"\nprediction = "logits"'
        (self.folder / "recipe.toml").write_text(recipe.replace('kind = "hf"\npath = "base"', program))
        self.train_and_come_back(tokens)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
