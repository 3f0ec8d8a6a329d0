"""Round trips of weights: a client's model is saved by the client, read by tutti by name, gives the same
outputs, is trained for no step, exported, and loaded by the client without a missing key.

tests/clients.sh runs this, with the clients' pinned versions.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import segmentation_models_pytorch as smp
import torch
import torchvision
import transformers
from safetensors.torch import load_file, save_file

from client_case import SOURCE, TUTTI, ClientCase, shaken

sys.path.insert(0, str(SOURCE / "tests/golden"))
import make_exported  # noqa: E402

transformers.utils.logging.disable_progress_bar()
RECIPE = """
seed = 3
[model]
{model}
[data.train]
kind = "hdf5"
path = "data.h5"
group = "train"
batch_size = 4
[data.eval]
kind = "hdf5"
path = "data.h5"
group = "train"
batch_size = 4
[optimizer]
kind = "sgd"
lr = 0.0
[train]
max_duration = "1ba"
"""
GPT2 = dict(vocab_size=40, n_positions=16, n_embd=32, n_layer=2, n_head=4)
LLAMA = dict(vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3, eos_token_id=None)
LLAMAS = {"Llama_2": {}, "Llama_3": dict(rope_parameters=dict(
    rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=16)), "Mistral": dict(sliding_window=5),
    "Qwen2": dict(tie_word_embeddings=True, use_sliding_window=True, sliding_window=4, max_window_layers=1),
    "Qwen3": dict(head_dim=16)}
MASKS = dict(encoder_depth=3, decoder_channels=(32, 16, 8), in_channels=1)
UNETS = {"resnet34": dict(classes=4), "resnet18": MASKS, "resnet50": MASKS}
BERT = dict(vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=16)


def llama(name):
    """The model of LLAMAS of this name."""
    family = name.split("_")[0]
    config = getattr(transformers, f"{family}Config")(**LLAMA, **LLAMAS[name])
    return shaken(getattr(transformers, f"{family}ForCausalLM")(config))


class RoundTrip(ClientCase, unittest.TestCase):
    def write_data(self, arrays):
        with h5py.File(self.folder / "data.h5", "w") as file:
            for name, array in arrays.items():
                file[f"train/{name}"] = array.numpy()
            if "target" in arrays and arrays["target"].dim() == 1:
                file["train/target"].attrs["num_classes"] = 1000

    def predicts(self, model, arrays, wanted):
        """tutti's outputs are the client's; a run of it is left in run/."""
        self.write_data(arrays)
        (self.folder / "recipe.toml").write_text(RECIPE.format(model=model))
        self.tutti("predict", "recipe.toml", "--out", "out.h5")
        with h5py.File(self.folder / "out.h5") as file:
            self.assert_close(torch.from_numpy(file["output"][:]), wanted)

    def train(self, run="run"):
        self.tutti("train", "recipe.toml", "--run-dir", run, "--local-ranks", "2")

    def test_torchvisions_resnet18(self):
        model = shaken(torchvision.models.resnet18())
        images = torch.randn(4, 3, 64, 64)
        with torch.no_grad():
            wanted = model(images)
        arrays = {"input": images, "target": torch.zeros(4, dtype=torch.long)}
        torch.save(model.state_dict(), self.folder / "resnet.pth")
        save_file(model.state_dict(), self.folder / "resnet.safetensors")
        with h5py.File(self.folder / "resnet.h5", "w") as file:
            for name, tensor in model.state_dict().items():
                file[name] = tensor.numpy()
        for name in ["resnet.h5", "resnet.safetensors", "resnet.pth"]:
            sizes = f'kind = "resnet"\ndepth = 18\nnum_classes = 1000\nweights = "{name}"'
            self.predicts(sizes, arrays, wanted)
        self.train()
        self.tutti("export", "run", "--to", "back.safetensors")
        back = torchvision.models.resnet18()
        back.load_state_dict(load_file(self.folder / "back.safetensors"), strict=True)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter, back.get_parameter(name)), name)

    def test_torchvisions_vit(self):
        sizes = dict(patch_size=8, num_layers=2, num_heads=4, hidden_dim=16, mlp_dim=24)
        client = lambda: torchvision.models.VisionTransformer(image_size=32, num_classes=1000, **sizes)
        model = shaken(client())
        images = torch.randn(4, 3, 32, 32)
        with torch.no_grad():
            wanted = model(images)
        torch.save(model.state_dict(), self.folder / "vit.pth")
        keys = "".join(f"\n{name} = {value}" for name, value in sizes.items())
        arrays = {"input": images, "target": torch.zeros(4, dtype=torch.long)}
        self.predicts(f'kind = "vit"\nnum_classes = 1000\nweights = "vit.pth"{keys}', arrays, wanted)
        self.train()
        self.tutti("export", "run", "--to", "back.safetensors")
        client().load_state_dict(load_file(self.folder / "back.safetensors"), strict=True)

    def test_segmentation_models_pytorchs_unets(self):
        for encoder, options in UNETS.items():
            with self.subTest(encoder):
                self.goes_through_a_unet(f"run_{encoder}", dict(encoder_name=encoder, **options))

    def goes_through_a_unet(self, run, options):
        client = lambda: smp.Unet(encoder_weights=None, **options)
        model = shaken(client())
        images = torch.randn(4, options.get("in_channels", 3), 64, 32)
        with torch.no_grad():
            wanted = model(images)
        arrays = {"input": images, "target": torch.randint(0, options.get("classes", 2), (4, 64, 32))}
        keys = {"classes": 1, **options}
        section = 'kind = "Unet"\nloss = "focal"\n' + "".join(
            f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
        torch.save(model.state_dict(), self.folder / "unet.pt")
        save_file(model.state_dict(), self.folder / "unet.safetensors")
        for name in "unet.safetensors", "unet.pt":
            self.predicts(f'{section}weights = "{name}"', arrays, wanted)
        self.train(run)
        self.tutti("export", run, "--to", "back.safetensors")
        back = client()
        back.load_state_dict(load_file(self.folder / "back.safetensors"), strict=True)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter, back.get_parameter(name)), name)

    def test_torchvisions_resnet34_goes_into_a_unet(self):
        resnet, model = shaken(torchvision.models.resnet34()), smp.Unet(encoder_weights=None, classes=2)
        torch.save(resnet.state_dict(), self.folder / "resnet34.pth")
        self.write_data({"input": torch.randn(4, 3, 32, 32), "target": torch.randint(0, 2, (4, 32, 32))})
        keys = """kind = "unet"
weights = "resnet34.pth"
weights_rename = { "*" = "encoder.*" }
weights_ignore = ["fc.*", "decoder.*", "segmentation_head.*"]"""
        (self.folder / "recipe.toml").write_text(RECIPE.format(model=keys))
        self.train()
        self.tutti("export", "run", "--to", "back.safetensors")
        model.load_state_dict(load_file(self.folder / "back.safetensors"), strict=True)
        for name, parameter in resnet.named_parameters():
            if not name.startswith("fc."):
                self.assertTrue(torch.equal(parameter, model.encoder.get_parameter(name)), name)

    def test_resnet18_after_blurpool(self):
        """Layers are wrapped; the client gets its own names back, and the filters beside them."""
        model = shaken(torchvision.models.resnet18())
        save_file(model.state_dict(), self.folder / "resnet.safetensors")
        program = make_exported.export(model.train(), (torch.randn(2, 3, 64, 64),))
        torch.export.save(program, self.folder / "model.pt2")
        self.write_data({"input": torch.randn(4, 3, 64, 64), "target": torch.zeros(4, dtype=torch.long)})
        for run, model_section in {"zoo": """kind = "resnet"
depth = 18
num_classes = 1000
weights = "resnet.safetensors\"""", "exported": 'kind = "exported"\npath = "model.pt2"'}.items():
            self.train_with("blurpool", model_section, run=run)
            self.tutti("export", run, "--to", f"{run}.safetensors")
            back = torchvision.models.resnet18()
            missing, more = back.load_state_dict(load_file(self.folder / f"{run}.safetensors"), strict=False)
            self.assertEqual(missing, [])
            self.assertEqual(len(more), 7, more)
            self.assertTrue(all(name.endswith(("blur_filter", "filt2d")) for name in more), more)
            for name, parameter in model.named_parameters():
                self.assertTrue(torch.equal(parameter, back.get_parameter(name)), name)

    def test_an_exported_gpt2_has_its_tied_weights_back(self):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **GPT2))
        ids = torch.randint(0, 40, (4, 12))
        torch.export.save(make_exported.export(model.train(), (ids,)), self.folder / "model.pt2")
        self.write_data({"input": ids, "target": ids.roll(-1, 1)})
        section = 'kind = "exported"\npath = "model.pt2"\nprediction = "logits"'
        (self.folder / "recipe.toml").write_text(RECIPE.format(model=section))
        self.train()
        self.tutti("export", "run", "--to", "back.safetensors")
        back = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        back.load_state_dict(load_file(self.folder / "back.safetensors"), strict=True)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter, back.get_parameter(name)), name)

    def test_gpt2_after_alibi(self):
        """Positions are zeros then, and all else is what it was."""
        model = shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)))
        model.save_pretrained(self.folder / "hub")
        ids = torch.randint(0, 40, (4, 12))
        self.write_data({"input": ids, "target": ids.roll(-1, 1)})
        self.train_with("alibi", 'kind = "hf"\npath = "hub"', "max_sequence_length = 16")
        self.tutti("export", "run", "--to", "back.safetensors")
        back = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        missing, more = back.load_state_dict(load_file(self.folder / "back.safetensors"), strict=False)
        self.assertEqual((missing, more), (["lm_head.weight"], []))  # which is tied
        for name, parameter in model.named_parameters():
            wanted = torch.zeros_like(parameter) if "wpe" in name else parameter
            self.assertTrue(torch.equal(wanted, back.get_parameter(name)), name)

    def train_with(self, algorithm, model, options="", run="run"):
        recipe = RECIPE.format(model=model) + f'[[algorithms]]\nkind = "{algorithm}"\n{options}\n'
        (self.folder / "recipe.toml").write_text(recipe)
        self.train(run)

    def goes_through_a_folder(self, model, arrays, wanted, ids, saved):
        """`saved` saves the model into a folder in one of the client's ways."""
        saved(self.folder / "hub")
        self.predicts('kind = "hf"\npath = "hub"', arrays, wanted)
        self.train()
        self.tutti("export", "run", "--to-hf", "back")
        back, loading = type(model).from_pretrained(self.folder / "back", output_loading_info=True)
        for kind in ["missing_keys", "unexpected_keys", "mismatched_keys"]:
            self.assertFalse(loading[kind], loading)
        with torch.no_grad():
            self.assert_close(back.eval()(ids).logits, wanted)

    def saves(self, model):
        def pickled(folder):
            model.config.save_pretrained(folder)
            torch.save(model.state_dict(), folder / "pytorch_model.bin")
        return {"whole": model.save_pretrained,
                "sharded": lambda folder: model.save_pretrained(folder, max_shard_size="20KB"),
                "pickled": pickled}

    def check_all_ways(self, model, arrays, ids):
        with torch.no_grad():
            wanted = model(ids).logits
        for way, saved in self.saves(model).items():
            with self.subTest(way), tempfile.TemporaryDirectory() as folder:
                self.folder = pathlib.Path(folder)
                self.goes_through_a_folder(model, arrays, wanted, ids, saved)

    def test_transformers_gpt2(self):
        ids = torch.randint(0, 40, (4, 12))
        model = shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)))
        self.check_all_ways(model, {"input": ids, "target": ids.roll(-1, 1)}, ids)

    def test_transformers_llamas(self):
        """Llama 2 and 3, Mistral, Qwen 2 and 3, whole, in shards and pickled."""
        ids = torch.randint(0, 40, (4, 12))
        arrays = {"input": ids, "target": ids.roll(-1, 1)}
        for name in LLAMAS:
            with self.subTest(name):
                model = llama(name)
                self.check_all_ways(model, arrays, ids)

    def test_a_llama_writes_what_transformers_writes(self):
        for name in LLAMAS:
            with self.subTest(name):
                model = llama(name)
                model.save_pretrained(self.folder / f"hub_{name}")
                ids = torch.randint(0, 40, (4, 12))
                self.write_data({"input": ids, "target": ids.roll(-1, 1)})
                section = f'kind = "hf"\npath = "hub_{name}"'
                (self.folder / "recipe.toml").write_text(RECIPE.format(model=section))
                self.train(f"run_{name}")
                wanted = model.generate(torch.tensor([[3, 1, 4, 1, 5]]), max_new_tokens=20, do_sample=False,
                                        pad_token_id=0)[0].tolist()
                got = subprocess.run([str(TUTTI), "generate", f"run_{name}", "3 1 4 1 5", "--length", "20",
                                      "--temperature", "0"], cwd=self.folder, text=True, capture_output=True)
                self.assertEqual([int(word) for word in got.stdout.split()], wanted, got.stderr)

    def test_transformers_bert(self):
        ids = torch.randint(0, 40, (4, 12))
        model = shaken(transformers.BertForMaskedLM(transformers.BertConfig(**BERT)))
        self.check_all_ways(model, {"input_ids": ids, "labels": torch.randint(0, 40, (4, 12))}, ids)

    def test_transformers_bert_for_classification(self):
        ids = torch.randint(0, 40, (4, 12))
        config = transformers.BertConfig(num_labels=3, **BERT)
        model = shaken(transformers.BertForSequenceClassification(config))
        self.check_all_ways(model, {"input_ids": ids, "labels": torch.tensor([0, 1, 2, 0])}, ids)

    def test_transformers_bert_as_an_encoder_of_pairs(self):
        """Embeddings, and the loss of sentence-transformers' MultipleNegativesRankingLoss with scale 20."""
        model = shaken(transformers.BertModel(transformers.BertConfig(**BERT), add_pooling_layer=False))
        model.save_pretrained(self.folder / "encoder")
        texts = {name: torch.randint(1, 40, (4, length)) for name, length in (("", 12), ("positive_", 9))}
        masks = {name: (torch.arange(ids.shape[1]) < torch.tensor([[3], [9], [5], [7]])).long()
                 for name, ids in texts.items()}
        embedded = []
        for name, ids in texts.items():
            with torch.no_grad():
                states = model(ids, attention_mask=masks[name]).last_hidden_state
            counted = masks[name].unsqueeze(-1)
            embedded.append(torch.nn.functional.normalize((states * counted).sum(1) / counted.sum(1), dim=-1))
        arrays = {"input_ids": texts[""], "attention_mask": masks[""], "positive_ids": texts["positive_"],
                  "positive_attention_mask": masks["positive_"]}
        section = 'kind = "hf"\npath = "encoder"\nhead = "contrastive"\ndropout = 0.0'
        self.predicts(section, arrays, torch.stack(embedded, 1))
        self.train()
        loss = torch.nn.functional.cross_entropy(20 * embedded[0] @ embedded[1].T, torch.arange(4))
        logged = json.loads((self.folder / "run/metrics.jsonl").read_text().splitlines()[0])
        self.assertAlmostEqual(logged["loss"], loss.item(), delta=1e-4)
        self.tutti("export", "run", "--to-hf", "back")
        back = transformers.BertModel.from_pretrained(self.folder / "back", add_pooling_layer=False)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.equal(parameter, back.get_parameter(name)), name)


if __name__ == "__main__":
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, transformers "
          f"{transformers.__version__}", file=sys.stderr)
    unittest.main()
