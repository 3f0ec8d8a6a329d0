"""Makes text_tables/: a table of texts in three forms, and the samples that transformers makes of it.

Run: python make_text_tables.py [--to FOLDER]   (transformers 5.0.0, pyarrow; writes the folder text_tables
beside this file). Tokenizers are those of tokenizers/, and one with RoBERTa's special tokens.
"""
import argparse
import csv
import json
import pathlib

import pyarrow
import pyarrow.parquet
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent
BIBLE = HERE.parents[1] / "examples/data/king_james.txt"
LENGTHS = [7, 16, 41]


def rows():
    verses = [line.strip() for line in BIBLE.read_text().splitlines() if len(line.split()) > 3]
    made = []
    for i in range(24):
        words, others = verses[7 * i].split(), verses[11 * i + 3].split()
        made.append({"text": " ".join(words[:1 + 5 * i % 14]),
                     "other": " ".join(others[:1 + 3 * i % 11]),
                     "mood": ["sad", "glad", "so-so"][i % 3]})
    made[3]["text"] = 'He said, "naïve, 人人" [MASK]\nand  more\t'
    made[4]["other"] = ""
    made[5]["text"] = "[SEP]"
    return made


def roberta():
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizers/gpt2.json"))
    tokenizer.post_processor = processors.RobertaProcessing(
        sep=(tokenizer.id_to_token(2), 2), cls=(tokenizer.id_to_token(1), 1))
    return tokenizer


def samples(tokenizer, table):
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=tokenizer.id_to_token(0))
    texts, others = [row["text"] for row in table], [row["other"] for row in table]

    def made(length, *columns):
        encoded = fast(*columns, truncation=True, max_length=length, padding="max_length",
                       return_token_type_ids=len(columns) > 1)
        return {name: numbers for name, numbers in encoded.items()}

    return [{"sequence_length": length, "single": made(length, texts), "pair": made(length, texts, others)}
            for length in LENGTHS]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=pathlib.Path, default=HERE / "text_tables")
    to = parser.parse_args().to
    to.mkdir(exist_ok=True)
    table = rows()
    with open(to / "texts.jsonl", "w") as file:
        for row in table:
            file.write(json.dumps(row) + "\n")
    with open(to / "texts.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(table)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), to / "texts.parquet")
    roberta().save(str(to / "roberta.json"), pretty=False)
    answers = {"bert": samples(Tokenizer.from_file(str(HERE / "tokenizers/bert.json")), table),
               "roberta": samples(roberta(), table)}
    (to / "answers.json").write_text(json.dumps(answers, separators=(",", ":")))


if __name__ == "__main__":
    main()
