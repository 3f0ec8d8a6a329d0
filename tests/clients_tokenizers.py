"""Tokenizers: ids and decoded texts of tutti's are those of the `tokenizers` package, for random texts of all
planes of Unicode and a long English one, with the tokenizers of tests/golden/make_tokenizers.py.

tests/clients.sh runs this, with the clients' pinned versions. TEXTS and SEED may be set in the environment.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from tokenizers import Tokenizer

SOURCE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SOURCE / "tests/golden"))
import make_tokenizers  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TUTTI_BUILD_DIR", SOURCE / "build")).resolve()
PROGRAM = BUILD / "bench/tokenizer_bench"
COUNT, SEED = int(os.environ.get("TEXTS", 1000)), int(os.environ.get("SEED", 1))
WORDS = [
    "the", "God", " and", "it's", "I'M", "'ll", "1234", "...", "?!", "\n\n", "\r\n", "\t", "   ", "é",
    "e\u0301", "人", "▁", "ß", "İ", "ﬁ", "\u200d", "👩‍👧", "❤️", "🇩🇪", "<s>",
    "</s>", "<unk>", "[CLS]", "[MASK]", "<|endoftext|>", "<|eot_id|>", "<|im_start|>", "<tool_call>",
    "<extra_id_0>", "<0x41>", "word", "<strip>", "TOKEN", "\u0958", "한", "\u1112\u1161\u11ab",
    "a\u0323\u0307", "ᾳ", "ſ", "K", "Å", "½", "٣", "ำ", "क्ष", "\u0600", "¨", "ﾊﾟ",
    "\u00ad",
]
RANGES = [(0, 0x80), (0, 0x80), (0x80, 0x250), (0x250, 0x800), (0x800, 0x3000), (0x300, 0x370),
          (0x2000, 0x2070), (0x3000, 0xD800), (0xE000, 0x10000), (0x10000, 0x20000),
          (0x1F000, 0x1FB00), (0x20000, 0x110000)]


def random_text(draw):
    parts = []
    for _ in range(draw.choice([1, 3, 10, 40])):
        if draw.random() < 0.4:
            parts.append(draw.choice(WORDS))
        else:
            low, high = draw.choice(RANGES)
            parts += [chr(draw.randrange(low, high)) for _ in range(draw.choice([1, 2, 6]))]
        if draw.random() < 0.1:
            parts.append(draw.choice([" ", "\n", "a", " a", "\u0301"]) * draw.randrange(70))
    return "".join(parts)


class Tokenizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        draw = random.Random(SEED)
        cls.texts = [random_text(draw) for _ in range(COUNT)]
        cls.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.scratch = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.process.communicate()
        cls.scratch.cleanup()

    def ask(self, path, texts):
        print(json.dumps({"tokenizer": str(path), "texts": texts}), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def compare(self, path, texts, decodes=True):
        peer = Tokenizer.from_file(str(path))
        own = self.ask(path, texts)
        self.assertNotIn("error", own)
        wrong = []
        for text, ids, decoded, streamed in zip(texts, own["ids"], own["decoded"], own["streamed"]):
            wanted = peer.encode(text).ids
            if ids != wanted:
                wrong.append(f"{text!r}: {ids} is not {wanted}")
            elif decodes and wanted and decoded != peer.decode(wanted, skip_special_tokens=False):
                wrong.append(f"{text!r}: decoded {decoded!r}")
            elif decodes and "\ufffd" not in decoded and streamed != decoded:
                wrong.append(f"{text!r}: streamed {streamed!r} is not {decoded!r}")
        self.assertEqual(len(wrong), 0, f"{len(wrong)} of {len(texts)}:\n" + "\n".join(wrong[:8]))

    def bible(self):
        lines = make_tokenizers.BIBLE.read_text().splitlines(keepends=True)
        return lines + ["".join(lines[i:i + 40]) for i in range(0, len(lines), 40)]

    def test_kinds_of_the_tree_agree(self):
        for kind in make_tokenizers.KINDS:
            with self.subTest(kind):
                path = SOURCE / f"tests/golden/tokenizers/{kind}.json"
                self.compare(path, self.texts)
                self.compare(path, self.bible())

    def test_single_parts_agree(self):
        for name, tokenizer in make_tokenizers.parts().items():
            with self.subTest(name):
                path = pathlib.Path(self.scratch.name) / f"{name}.json"
                tokenizer.save(str(path))
                # Debian's Oniguruma is older than the package's, so its letters are fewer.
                texts = self.texts if name != "pre_tokenizer_o200k" else self.bible()
                self.compare(path, texts[:COUNT // 4], decodes=False)

    def test_table_of_sentencepiece_agrees(self):
        path = pathlib.Path(self.scratch.name) / "nmt_nfkc.json"
        make_tokenizers.t5(make_tokenizers.charsmap()).save(str(path))
        self.compare(path, self.texts)


if __name__ == "__main__":
    unittest.main()
