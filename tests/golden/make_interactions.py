"""Computes interactions_text.h5: whole Composer runs of text algorithms together, on GPT-2 and BERT.

Run: python make_interactions.py   (needs mosaicml 0.32.1 and transformers 4.40.2; writes beside this file)

A case has the weights that the training begins with, after surgery; a recipe without the paths of weights and
data; and each step's loss. Targets of GPT-2 are one token ahead in the data.
"""

import logging
import pathlib
import re
import warnings

import h5py
import numpy as np
import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from composer import Callback, Trainer, algorithms as A, optim as O  # noqa: E402
from composer.models import HuggingFaceModel  # noqa: E402
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel  # noqa: E402

torch.set_num_threads(1)
TOKENS, LENGTH, SAMPLES, TRAINED, BATCH = 40, 16, 60, 48, 12
HIDDEN, LAYERS, HEADS, INNER = 24, 2, 4, 36
PARTS = {"train": slice(0, TRAINED), "eval": slice(TRAINED, SAMPLES)}
USUAL = dict(  # of what a case has under "more"
    max_duration="4ep",
    eval_interval="1ep",
    scheduler=(O.LinearWithWarmupScheduler, dict(t_warmup="3ba")),
)

WARMUP = dict(duration=0.5, min_seq_length=4, max_seq_length=16, step_size=4)
CASES = [  # title, model, algorithms, more
    ("plain GPT-2", "gpt", [], {}),
    (
        "Alibi + SeqLengthWarmup",
        "gpt",
        [
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=0.5)),
            (A.SeqLengthWarmup, WARMUP),
        ],
        {},
    ),
    (
        "SeqLengthWarmup + Alibi",
        "gpt",
        [
            (A.SeqLengthWarmup, dict(WARMUP, max_seq_length=8, step_size=2)),
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=0.5)),
        ],
        {},
    ),
    (
        "SeqLengthWarmup reshape + EMA + GradientClipping",
        "gpt",
        [
            (A.SeqLengthWarmup, dict(WARMUP, duration=0.6, truncate=False)),
            (A.EMA, dict(half_life="4ba")),
            (A.GradientClipping, dict(clipping_type="norm", clipping_threshold=0.3)),
        ],
        {},
    ),
    (
        "Alibi + SAM",
        "gpt",
        [
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=0.25)),
            (A.SAM, dict(rho=0.1)),
        ],
        {},
    ),
    (
        "max_duration 2000tok, warm-up 500tok",
        "gpt",
        [(A.EMA, dict(half_life="3ba"))],
        dict(
            max_duration="2000tok",
            scheduler=(O.LinearWithWarmupScheduler, dict(t_warmup="500tok")),
            eval_interval="900tok",
        ),
    ),
    (
        "max_duration 2500tok, SWA, eval 0.4dur",
        "gpt",
        [(A.SWA, dict(swa_start="0.3dur", swa_end="0.8dur", update_interval="2ba"))],
        dict(
            max_duration="2500tok",
            scheduler=(O.CosineAnnealingScheduler, dict(t_max="1700tok", alpha_f=0.1)),
            eval_interval="0.4dur",
        ),
    ),
    (
        "BERT: GatedLinearUnits + Alibi + EMA",
        "bert",
        [
            (A.GatedLinearUnits, {}),
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=0.5)),
            (A.EMA, dict(half_life="4ba")),
        ],
        dict(grad_accum=2),
    ),
    (
        "BERT: SeqLengthWarmup + GatedLinearUnits + GradientClipping adaptive",
        "bert",
        [
            (A.SeqLengthWarmup, WARMUP),
            (A.GatedLinearUnits, {}),
            (A.GradientClipping, dict(clipping_type="adaptive", clipping_threshold=0.05)),
        ],
        {},
    ),
    (
        "BERT: Alibi + EMA",
        "bert",
        [
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=0.5)),
            (A.EMA, dict(half_life="4ba")),
        ],
        dict(grad_accum=2),
    ),
    (
        "BERT: GatedLinearUnits + Alibi",
        "bert",
        [
            (A.GatedLinearUnits, {}),
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=1.0)),
        ],
        {},
    ),
    (
        "Alibi + LayerFreezing + microbatches",
        "gpt",
        [
            (A.Alibi, dict(max_sequence_length=32, train_sequence_length_scaling=0.5)),
            (A.LayerFreezing, dict(freeze_start=0.1, freeze_level=0.9)),
        ],
        dict(microbatch=8),
    ),
]


class Model(HuggingFaceModel):
    def __init__(self, model):
        super().__init__(model, tokenizer=None, use_logits=True, allow_embedding_resizing=True)

    def forward(self, batch):
        return self.model(**{k: v for k, v in batch.items() if k != "labels"})

    def loss(self, out, batch, *_):
        return F.cross_entropy(out["logits"].view(-1, TOKENS), batch["labels"].reshape(-1))

    def eval_forward(self, batch, outputs=None):
        return self.forward(batch)["logits"]


def model_of(kind):
    if kind == "gpt":
        config = GPT2Config(
            n_layer=LAYERS,
            n_embd=HIDDEN,
            n_head=HEADS,
            n_positions=LENGTH,
            vocab_size=TOKENS,
            resid_pdrop=0,
            attn_pdrop=0,
            embd_pdrop=0,
        )
        return GPT2LMHeadModel._from_config(config, attn_implementation="eager")
    return BertForMaskedLM(
        BertConfig(
            num_hidden_layers=LAYERS,
            hidden_size=HIDDEN,
            num_attention_heads=HEADS,
            intermediate_size=INNER,
            vocab_size=TOKENS,
            max_position_embeddings=LENGTH,
            hidden_dropout_prob=0,
            attention_probs_dropout_prob=0,
        )
    )


NAMES = {"input_ids": "input", "labels": "target"}  # of a batch of tutti's GPT-2
MODEL_TEXT = {
    "gpt": f"kind = 'gpt'\nn_layer = {LAYERS}\nn_embd = {HIDDEN}\nn_head = {HEADS}\nn_positions = {LENGTH}\n"
    f"vocab_size = {TOKENS}\ndropout = 0.0\n",
    "bert": f"kind = 'bert_mlm'\nnum_hidden_layers = {LAYERS}\nhidden_size = {HIDDEN}\n"
    f"num_attention_heads = {HEADS}\nintermediate_size = {INNER}\nvocab_size = {TOKENS}\n"
    f"max_position_embeddings = {LENGTH}\nhidden_dropout_prob = 0.0\n"
    f"attention_probs_dropout_prob = 0.0\n",
}


def token_rows(random):
    rows = random.integers(0, TOKENS, (SAMPLES, LENGTH + 1))
    for row in rows:  # something to learn
        for j in range(1, LENGTH + 1):
            if random.random() < 0.7:
                row[j] = (row[j - 1] * 3 + 1) % TOKENS
    return rows


def arrays_of(kind, rows, random):
    tokens = rows[:, :-1]
    if kind == "gpt":
        return {"input_ids": tokens, "labels": rows[:, 1:]}
    labels = np.where(random.random((SAMPLES, LENGTH)) < 0.3, tokens, -100)
    return {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "labels": labels}


class Recorder(Callback):
    def __init__(self):
        self.loss, self.evaluated = [], []

    def batch_end(self, state, logger):
        self.loss.append(state.total_loss_dict["loss/train/total"])

    def eval_end(self, state, logger):
        self.evaluated.append(int(state.timestamp.batch))


def kind_of(name):
    return re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", name).lower()


def value_text(value):
    return str(value).lower() if isinstance(value, bool) else repr(value)


def table(head, kind, keys):
    return f"{head}\nkind = '{kind}'\n" + "".join(f"{k} = {value_text(v)}\n" for k, v in keys.items())


def recipe_of(kind, algorithms, more):
    scheduler, keys = more["scheduler"]
    text = "seed = 1\n[compat]\ncomposer = true\n[model]\n" + MODEL_TEXT[kind]
    text += "weights = '{weights}'\nweights_strict = false\n"
    for group in PARTS:
        text += (
            f"[data.{group}]\nkind = 'hdf5'\npath = '{{data}}'\ngroup = '{group}'\nbatch_size = {BATCH}\n"
        )
    text += "[optimizer]\nkind = 'adamw'\nlr = 0.01\nweight_decay = 0.05\n"
    text += table("[scheduler]", kind_of(scheduler.__name__.removesuffix("Scheduler")), keys)
    text += f"[train]\nmax_duration = '{more['max_duration']}'\neval_interval = '{more['eval_interval']}'\n"
    if "microbatch" in more:
        text += f"device_train_microbatch_size = {more['microbatch']}\n"
    if "grad_accum" in more:  # Composer's microbatches have as many rows as a batch before Alibi
        text += f"grad_accum = {more['grad_accum']}\n"
    for algorithm, keys in algorithms:
        text += table("[[algorithms]]", kind_of(algorithm.__name__), keys)
    return text


def train(kind, arrays, algorithms, more):
    def loader(group):
        parts = {k: torch.tensor(v[PARTS[group]]) for k, v in arrays.items()}
        samples = [dict(zip(parts, values)) for values in zip(*parts.values())]
        return torch.utils.data.DataLoader(samples, batch_size=BATCH)

    from composer import DataSpec

    model, recorder = Model(model_of(kind)), Recorder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.05)
    scheduler, keys = more["scheduler"]
    trainer = Trainer(
        model=model,
        device="cpu",
        seed=1,
        progress_bar=False,
        auto_log_hparams=False,
        optimizers=optimizer,
        train_dataloader=DataSpec(
            loader("train"), get_num_tokens_in_batch=lambda b: b["input_ids"].numel()
        ),
        eval_dataloader=loader("eval"),
        max_duration=more["max_duration"],
        eval_interval=more["eval_interval"],
        schedulers=scheduler(**keys),
        algorithms=[a(**k) for a, k in algorithms],
        callbacks=[recorder],
        device_train_microbatch_size=more.get("microbatch"),
    )
    weights = {
        k.removeprefix("model."): v.clone()
        for k, v in trainer.state.model.state_dict().items()
        if k.startswith("model.")
        and "position_ids" not in k
        and not k.endswith("alibi")
        and not k.endswith((".attn.bias", ".attn.masked_bias", "lm_head.weight"))
    }
    trainer.fit()
    return weights, recorder


def main():
    random = np.random.default_rng(7)
    rows = token_rows(random)
    with h5py.File(
        pathlib.Path(__file__).parent / "interactions_text.h5", "w", libver=("v108", "v108")
    ) as file:
        for i, (title, kind, algorithms, more) in enumerate(CASES):
            torch.manual_seed(i)
            more = USUAL | more
            arrays = arrays_of(kind, rows, random)
            weights, recorder = train(kind, arrays, algorithms, more)
            case = file.create_group(f"case_{i}")
            case.attrs.update(
                title=title,
                composer_api="composer.Trainer.fit",
                rtol=0.0,
                atol=1e-5,
                recipe=recipe_of(kind, algorithms, more),
                classes=TOKENS,
            )
            for name, array in arrays.items():
                name = NAMES.get(name, name) if kind == "gpt" else name
                for group, part in PARTS.items():
                    case.create_dataset(f"in/{group}/{name}", data=array[part].astype(np.int16))
            for name, value in weights.items():
                case.create_dataset(f"in/weights/{name}", data=value.numpy())
            case["out/loss"] = np.array(recorder.loss)
            case["out/eval_batch"] = np.array(recorder.evaluated)
            print(i, title, recorder.loss[:3], recorder.evaluated)


if __name__ == "__main__":
    main()
