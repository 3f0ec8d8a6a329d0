#!/usr/bin/env python3
"""Compares tutti's tokenizers with the `tokenizers` package, on one thread: the same texts and ids.

Requests alternate, so that both see the same machine. Each pair gives a ratio of processor times,
tokenizers / tutti; prints MiB/s, and the median, lowest and highest ratio. Stops if the ids differ. Run on an
idle machine. The tokenizers are trained here, as tests/golden/make_tokenizers.py has it, but with larger
vocabularies.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGET = 10
MIXED = """Größe, Straße, œuvre; ελεύθεροι και ίσοι στην αξιοπρέπεια;
свободными и равными в своём достоинстве;
人人生而自由，在尊严和权利上一律平等。すべての人間は自由である。모든 인간은 자유로우며 그 존엄과 권리에 있어 동등하다.
सभी मनुष्यों को गौरव और अधिकारों; يولد جميع الناس أحرارًا; כל בני אדם;
😀👩‍👧 price: 1,234.56 € (approx.), O(n²) x = [1, 2, 3]
"""


def default_python():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    return cache / "tutti/clients-2.11.0/bin/python"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=pathlib.Path, default=HERE.parent / "build/bench/tokenizer_bench")
    parser.add_argument("--python", type=pathlib.Path, default=default_python(),
                        help="one that has tokenizers and sentencepiece")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", default=["gpt2", "llama3", "qwen2", "llama2", "t5", "bert"])
    parser.add_argument("--bytes", type=int, default=4096, help="of a document, at least")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--files", type=pathlib.Path, help="a folder KIND.json to use instead of training")
    return parser.parse_args()


class Contestant:
    """A process that answers requests."""

    def __init__(self, *command):
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)

    def ask(self, **request):
        print(json.dumps(request, default=str), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def train(python, folder, kinds, size):
    golden = str(HERE.parent / "tests/golden")
    script = (f"import sys; sys.path.insert(0, {golden!r}); import make_tokenizers as m\nm.SIZE = {size}\n"
              f"for kind in {kinds}: m.KINDS[kind]().save({str(folder)!r} + f'/{{kind}}.json')")
    subprocess.run([python, "-c", script], check=True)


def write_texts(folder):
    """English, and lines of it between lines in other languages and signs."""
    english = (HERE.parent / "examples/data/king_james.txt").read_text()
    lines = english.splitlines(keepends=True)
    (folder / "english.txt").write_text(english)
    (folder / "mixed.txt").write_text("".join(line + MIXED for line in lines[:len(lines) // 6]))


def compare(ours, peer, args, request):
    mib = request["file"].stat().st_size / 2**20
    ours.ask(**request, repeats=1)
    peer.ask(**request, repeats=1)
    own_repeats, rows = 20, []
    for pair in range(args.pairs):
        order = [(ours, own_repeats), (peer, 2)] if pair % 2 == 0 else [(peer, 2), (ours, own_repeats)]
        answers = {who: (who.ask(**request, repeats=repeats), repeats) for who, repeats in order}
        (own, _), (other, _) = answers[ours], answers[peer]
        if (own["ids"], own["sum"]) != (other["ids"], other["sum"]):
            sys.exit(f"{request}: the ids differ")
        both = (answers[ours], answers[peer])
        rows.append([mib * repeats / (answer["ns"] / 1e9) for answer, repeats in both])
    return rows


def report(name, rows):
    own, peer = (statistics.median(column) for column in zip(*rows))
    ratios = [row[0] / row[1] for row in rows]
    ratio = statistics.median(ratios)
    print(f"{name:16} {own:9.1f} {peer:10.2f}   {ratio:5.1f} ({min(ratios):.1f} - {max(ratios):.1f})"
          f" {'below the aim' if ratio < TARGET else ''}".rstrip(), flush=True)


def main():
    args = arguments()
    for needed, advice in ((args.bench, "make build"), (args.python, "tests/clients.sh makes it")):
        if not needed.exists():
            sys.exit(f"{needed} is not there: {advice}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        if not args.files:
            train(args.python, folder, args.kinds, args.vocabulary)
        write_texts(folder)
        ours, peer = Contestant(args.bench), Contestant(args.python, HERE / "peer_tokenizers.py")
        print(f"{args.pairs} pairs; aim: {TARGET} times the speed of tokenizers\n"
              f"{'kind, text':16} {'tutti':>9} {'tokenizers':>10}   ratio       (MiB/s)")
        for kind in args.kinds:
            for text in ("english", "mixed"):
                request = dict(tokenizer=(args.files or folder) / f"{kind}.json", file=folder / f"{text}.txt",
                               bytes=args.bytes)
                report(f"{kind}, {text}", compare(ours, peer, args, request))


if __name__ == "__main__":
    main()
