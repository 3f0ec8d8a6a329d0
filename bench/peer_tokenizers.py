"""Answers bench/tokenizer.py as tokenizer_bench does, with the `tokenizers` package, on one thread."""

import json
import sys
import time

from tokenizers import Tokenizer


def documents(path, size):
    """Of lines, each of `size` bytes or more."""
    texts, bytes_of_last = [[]], 0
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            if bytes_of_last >= size:
                texts.append([])
                bytes_of_last = 0
            texts[-1].append(line if line.endswith("\n") else line + "\n")
            bytes_of_last += len(texts[-1][-1].encode())
    return ["".join(lines) for lines in texts]


def main():
    tokenizers = {}
    for line in sys.stdin:
        request = json.loads(line)
        path = request["tokenizer"]
        tokenizer = tokenizers.setdefault(path, tokenizers.get(path) or Tokenizer.from_file(path))
        texts = documents(request["file"], request["bytes"])
        begin = time.process_time_ns()
        for _ in range(request["repeats"]):
            encoded = tokenizer.encode_batch_fast(texts)
        took = time.process_time_ns() - begin
        count = total = 0
        for one in encoded:
            for i in one.ids:
                count += 1
                total += count * i
        print(json.dumps({"ns": took, "ids": count, "sum": total % 2**64}), flush=True)


main()
