"""Writes tests/golden/tasks: a tiny GPT-2 of transformers', questions with choices and their scores by
lm-eval with the tokenizer tokenizers/llama3.json; and pairs of texts with sacrebleu's BLEU and chrF.
Versions: lm-eval 0.4.13, sacrebleu 2.6.0, transformers 5.24.0.

    make_tasks.py [--to FOLDER]
"""
import argparse
import json
import pathlib
import random
import tempfile

import lm_eval
import sacrebleu
import torch
import transformers
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

HERE = pathlib.Path(__file__).parent
GPT2 = dict(vocab_size=904, n_positions=40, n_embd=8, n_layer=2, n_head=2, initializer_range=0.3)
WORDS = ("the and of a light day water heaven earth said called good evening morning first 3.5 1,000 it's "
         "(so) well-known naïve 日本語 мир ½ 😀 end. why? U.S. 10-20 \"quoted\" x&y").split(" ")
TASK = """
task: made_up
dataset_path: json
dataset_kwargs:
  data_files:
    test: %s
test_split: test
output_type: multiple_choice
doc_to_text: question
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
  - metric: acc_norm
  - metric: acc_bytes
"""


def phrase(draw, least, most):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(least, most)))


def questions(draw):
    rows = []
    for i in range(50):
        text = phrase(draw, 1, 40 if i % 7 == 0 else 12) + " " * (i % 5 == 0) + "\n\t" * (i % 11 == 0)
        choices = [phrase(draw, 1, 5) for _ in range(draw.randint(2, 5))]
        rows.append({"question": "" if i == 17 else text, "choices": choices,
                     "answer": draw.randrange(len(choices))})
    return rows


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def judge(model, tokenizer, path):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "made_up.yaml").write_text(TASK % path.resolve())
        judged = lm_eval.simple_evaluate(
            HFLM(pretrained=model, tokenizer=tokenizer, batch_size=7, device="cpu"), tasks=["made_up"],
            task_manager=TaskManager(include_path=folder), log_samples=True, bootstrap_iters=0)
    samples = sorted(judged["samples"]["made_up"], key=lambda sample: sample["doc_id"])
    result = judged["results"]["made_up"]
    return {"log_likelihoods": [[float(answer[0][0]) for answer in sample["resps"]] for sample in samples],
            **{name: result[name + ",none"] for name in ("acc", "acc_norm", "acc_bytes")}}


def changed(draw, text):
    words = text.split(" ")
    for _ in range(draw.randint(0, 3)):
        words[draw.randrange(len(words))] = draw.choice(WORDS)
    return " ".join(words)


def pairs(draw):
    rows = [{"answer": "", "references": ["a b c d"]}, {"answer": "a b c d", "references": [""]},
            {"answer": "x", "references": ["x"]}, {"answer": "&quot;a&amp;b&lt;", "references": ["\"a&b<"]}]
    for i in range(30):
        reference = phrase(draw, 1, 14)
        more = [phrase(draw, 1, 14) for _ in range(i % 3)]
        rows.append({"answer": changed(draw, reference), "references": [reference, *more]})
    return rows


def scores(rows):
    answers = [row["answer"] for row in rows]
    most = max(len(row["references"]) for row in rows)
    references = [[(row["references"] + [None] * most)[i] for row in rows] for i in range(most)]
    return {"BLEU": sacrebleu.metrics.BLEU().corpus_score(answers, references).score,
            "CHRF": sacrebleu.metrics.CHRF().corpus_score(answers, references).score}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=pathlib.Path, default=HERE / "tasks")
    to = parser.parse_args().to
    draw = random.Random(3)
    torch.manual_seed(2)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)).eval()
    model.save_pretrained(to)
    (to / "generation_config.json").unlink(missing_ok=True)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(HERE / "tokenizers/llama3.json"), bos_token="<|begin_of_text|>",
        eos_token="<|end_of_text|>")
    write_lines(to / "questions.jsonl", questions(draw))
    expected = judge(model, tokenizer, to / "questions.jsonl")
    (to / "choices.json").write_text(json.dumps(expected) + "\n")
    rows = pairs(draw)
    every = [{**row, **scores([row])} for row in rows]
    write_lines(to / "scores.jsonl", every + [scores(rows)])


if __name__ == "__main__":
    main()
