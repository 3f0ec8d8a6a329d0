"""Makes tokenizers/*.json: small tokenizers of six models' kinds and of single parts, and what `tokenizers`
gives for hard texts.

Run: python make_tokenizers.py [--to FOLDER]   (tokenizers 0.22.2, sentencepiece 0.2.3, protobuf; writes the
folder tokenizers beside this file). The kinds are configured as the files of GPT-2, Llama 2, Llama 3, Qwen 2,
BERT and T5 are, and trained on examples/data/king_james.txt and some lines in other languages. Training
WordPiece and Unigram gives other tokens each time, so one run makes all files.
"""
import argparse
import io
import json
import pathlib
import tempfile
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

HERE = pathlib.Path(__file__).resolve().parent
BIBLE = HERE.parents[1] / "examples/data/king_james.txt"
LANGUAGES = """Alle Menschen sind frei und gleich an Würde und Rechten geboren. Größe, Straße, Übung.
Tous les êtres humains naissent libres et égaux en dignité et en droits. Ça, où, naïve, cœur.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.
Все люди рождаются свободными и равными в своём достоинстве и правах.
人人生而自由，在尊严和权利上一律平等。すべての人間は、生まれながらにして自由である。
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. כל בני אדם נולדו בני חורין
def main(argc, argv):\n    return {"key": [1, 2, 3.14159]}  # 100,000 times\n\n\nprint('it\\'s')\n"""
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SHORTENED = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SHORTENED}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SHORTENED}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SIZE = 900
TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    "a",
    "Hello, world!",
    " leading",
    "trailing ",
    "In the beginning God created the heaven",
    "it's I'm you're we've they'll he'd",
    "IT'S I'M YOU'RE WE'VE THEY'LL HE'D it'ſ",
    "'s'st''ll",
    "x  y   z    ",
    "a\n\nb\n \n c\r\n\r\nd",
    "\t\ttabs\t and \u00a0 nbsp \u3000 wide",
    "1 12 123 1234 12345 3.14159 1,000,000",
    "ⅷ½²٣४五",
    "don\u2019t \u201cquote\u201d \u2026 \u2014",
    "Größe Straße ÜBUNG ẞ",
    "naïve cœur Ça où",
    "e\u0301 a\u0308\u0323 o\u0323\u0308 \u1e9b\u0323",
    "\u0301 starts with a mark",
    "ﬁ ﬂ ﬃ Ⅷ ① ㎏ ｆｕｌｌ ﾊﾟ ﾊ",
    "İstanbul ı ŞİŞ ΑΣ ΌΣΟΣ σς",
    "все люди рождаются",
    "人人生而自由 すべての人間は、生まれ",
    "모든 인간은 \u1112\u1161\u11ab",
    "सभी मनुष्यों को क्षि",
    "يولد جميع الناس \u0640 كُلُّ",
    "כל בני אדם בְּרֵאשִׁית",
    "😀 😃😄 👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷🇯 ❤️ ©\u200d®",
    "zero\u200bwidth\u200djoiner\ufeffbom \u200e\u202e",
    "nul\u0000in\u0001side\u007f\u0085\u009f",
    "\ue000 \U000f0000 \U0010ffff",
    "\U00030000 \u0378 unassigned \u1c8a \U0001e6c0",
    "snake_case CamelCase kebab-case a_b",
    "x=1;y==2!=3<=>4 ### --- ***",
    "http://example.com/a?b=c&d=%20#e",
    "def f(x):\n    return x + 1\n\n\n    # end\n",
    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    "                                                                  66 blanks",
    105 * "a",
    33 * "the" + " end",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "▁ ▁a b▁c ▁▁ _ ▁",
    "<0x41><0x0A> <0xE4>",
    "<|endoftext|>a<|endoftext|> b <|endoftext|>",
    "<s>a</s> <unk> <s> </s>b",
    "[CLS] a [SEP][MASK] b [mask]",
    "<|begin_of_text|>hi<|eot_id|> there <|reserved|>",
    "<|im_start|>user\nhi<|im_end|>\n<tool_call> x </tool_call>",
    "fill <extra_id_0> in <extra_id_1>.</s>",
    "word<word>word <word> <strip>  x  <strip>\ty",
    "TOKEN token Token tOkEn",
    "And God said, Let there be light: and there was light. \u3002\uff01\uff1f",
    "«»‹›¿¡§¶†‡•‰′″‽⁂",
    "a\u2028b\u2029c\u000bd\u000ce\u001cf\u180eg",
    "\u1680ogham\u2000en\u2009thin\u202fnarrow\u205fmath",
    "x\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309y",
    "q\u0307\u0323 \u0670\u031f\u061a\u032d \u0344 \u212b \u2126 \ufa1e \u0958\u0301",
]


def lines():
    return BIBLE.read_text().splitlines(keepends=True)[:3000] + 30 * LANGUAGES.splitlines(keepends=True)


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(lines(), trainer)
    return tokenizer


def special(*contents, **flags):
    return [AddedToken(content, special=True, **{"normalized": False, **flags}) for content in contents]


def byte_level_bpe(pre_tokenizer, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    return trained(
        tokenizer,
        trainers.BpeTrainer(vocab_size=SIZE,
                            show_progress=False,
                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def gpt2():
    tokenizer = byte_level_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special("<|endoftext|>", normalized=True))
    return tokenizer


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ])


def llama3():
    tokenizer = byte_level_bpe(split(LLAMA3), ignore_merges=True)
    tokenizer.add_special_tokens(special("<|begin_of_text|>", "<|end_of_text|>", "<|reserved|>",
                                         "<|eot_id|>"))
    begin = ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                      special_tokens=[begin],
                                      pair="<|begin_of_text|>:0 $A:0 <|begin_of_text|>:1 $B:1")
    ])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def qwen2():
    tokenizer = byte_level_bpe(split(QWEN2), normalizers.NFC())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer.add_tokens(
        [AddedToken(content, normalized=False) for content in ("<tool_call>", "</tool_call>")])
    return tokenizer


def llama2():
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.Metaspace()
    trained(learnt, trainers.BpeTrainer(vocab_size=SIZE - 300, show_progress=False))
    model = json.loads(learnt.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + list(model["vocab"])
    tokenizer = Tokenizer(
        models.BPE({token: i
                    for i, token in enumerate(tokens)}, [tuple(merge) for merge in model["merges"]],
                   unk_token="<unk>",
                   fuse_unk=True,
                   byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A",
                                                             pair="<s> $A <s>:1 $B:1",
                                                             special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "),
         decoders.ByteFallback(),
         decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>"))
    return tokenizer


def bert():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trained(
        tokenizer,
        trainers.WordPieceTrainer(vocab_size=SIZE,
                                  show_progress=False,
                                  special_tokens=special("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]",
                                                             pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def charsmap(rules=None):
    """SentencePiece's table: of nmt_nfkc, or of rules, each two texts."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
    model = io.BytesIO()
    how = dict(normalization_rule_name="nmt_nfkc")
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        if rules:
            codes = lambda text: " ".join(f"{ord(c):X}" for c in text)
            file.write("".join(f"{codes(old)}\t{codes(new)}\n" for old, new in rules))
            file.flush()
            how = dict(normalization_rule_tsv=file.name)
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines()),
                                                 model_writer=model,
                                                 vocab_size=500,
                                                 minloglevel=2,
                                                 **how)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def few_rules():
    """Those of nmt_nfkc for some hundred characters, which a table in the tree has room for."""
    rules = {}
    for c in [
            *range(0xa0, 0x180), *range(0x2000, 0x2070), *range(0x2100, 0x2190), 0x2460,
            *range(0x3300, 0x33a0), *range(0xfb00, 0xfb07), *range(0xff01, 0xffa0), 0x3000, 0x0958, 0xfa1e,
            0x1e9b
    ]:
        image = unicodedata.normalize("NFKC", chr(c))
        if image != chr(c):
            rules[chr(c)] = image
        pair = unicodedata.normalize("NFD", chr(c))
        if len(pair) == 2 and unicodedata.normalize("NFC", pair) == chr(c):
            rules[pair] = chr(c)
    rules.update({c: " " for c in "\t\n\r\u00a0\u200b\u200e\u2028\u2029\u3000\ufeff"})
    rules.update({chr(c): "" for c in [*range(1, 9), 0xb, *range(0xe, 0x20), 0x7f, 0x8f, 0x9f]})
    rules.update({"ﾊﾟ": "パ", "ﾊ": "ハ", "ﾟ": "゜"})
    return list(rules.items())


def t5(table=None):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Precompiled(table or charsmap(few_rules()))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    trained(
        tokenizer,
        trainers.UnigramTrainer(vocab_size=SIZE,
                                show_progress=False,
                                unk_token="<unk>",
                                special_tokens=special("<pad>", "</s>", "<unk>")))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>",
                                                             pair="$A </s> $B </s>",
                                                             special_tokens=[("</s>", 1)])
    tokenizer.add_special_tokens(special("<extra_id_0>", "<extra_id_1>"))
    return tokenizer


KINDS = {kind.__name__: kind for kind in (gpt2, llama2, llama3, qwen2, bert, t5)}


def seeing_model(texts, pre_written):
    """A model that shows each character of a piece, and where the piece ends."""
    characters = sorted({
        c
        for text in texts
        for form in ("NFC", "NFD", "NFKC", "NFKD")
        for c in unicodedata.normalize(form, text + text.lower())
    } | set(pre_written))
    vocabulary = {"<unk>": 0}
    for c in characters:
        vocabulary[c] = len(vocabulary)
        vocabulary[c + "</w>"] = len(vocabulary)
    return models.BPE(vocabulary, [], unk_token="<unk>", end_of_word_suffix="</w>")


def parts():
    """Tokenizers that each have one part or two, by name."""
    n, p, d = normalizers, pre_tokenizers, decoders
    behaviors = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
    normal = {
        "nfc": n.NFC(), "nfd": n.NFD(), "nfkc": n.NFKC(), "nfkd": n.NFKD(), "lowercase": n.Lowercase(),
        "strip_accents": n.StripAccents(), "nfd_strip": n.Sequence([n.NFD(), n.StripAccents()]), "strip_left":
        n.Strip(True, False), "strip_right": n.Strip(False, True), "strip": n.Strip(), "prepend":
        n.Prepend("ab"), "replace": n.Replace("a", "bc"), "drop": n.Replace("the", ""), "replace_regex":
        n.Replace(Regex(r"\s+|(?<=a)b"), "_"), "nmt": n.Nmt(), "bytes": n.ByteLevel(), "bert_cased":
        n.BertNormalizer(lowercase=False), "bert_accents": n.BertNormalizer(strip_accents=False),
        "bert_dirty": n.BertNormalizer(False, False, True, True)
    }
    pre = {
        "byte_level": p.ByteLevel(add_prefix_space=True), "byte_level_plain": p.ByteLevel(False,
                                                                                          use_regex=False),
        "whitespace": p.Whitespace(), "whitespace_split": p.WhitespaceSplit(), "bert": p.BertPreTokenizer(),
        "digits": p.Digits(individual_digits=True), "digit_runs": p.Digits(), "delimiter":
        p.CharDelimiterSplit("e"), "metaspace_never": p.Metaspace(prepend_scheme="never"), "metaspace":
        p.Metaspace(replacement="_"), "metaspace_first": p.Metaspace(prepend_scheme="first"),
        "metaspace_whole": p.Metaspace(split=False), "first_of_words":
        p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="first")
                    ]), "gpt2_then_digits": p.Sequence([p.ByteLevel(False),
                                                        p.Digits(True)]),
        "o200k": p.Split(Regex(O200K), "isolated"), "llama3_removed": p.Split(Regex(LLAMA3),
                                                                              "removed",
                                                                              invert=True), "fixed":
        p.FixedLength(3), "empty_text": p.Split("",
                                                "isolated"), "hex": p.Split(Regex(r"\h{2,}+x?"), "isolated")
    }
    pre.update({f"text_{b}": p.Split("a", b) for b in behaviors})
    pre.update({f"regex_{b}": p.Split(Regex(r"[aeiou]|\s+"), b) for b in behaviors})
    pre.update({f"inverted_{b}": p.Split(Regex(r"[A-Za-z]+"), b, invert=True) for b in behaviors})
    pre.update({f"punctuation_{b}": p.Punctuation(b) for b in behaviors})
    model = seeing_model(TEXTS + ["_"], p.ByteLevel.alphabet())
    made = {}

    def make(name, **members):
        made[name] = Tokenizer(model)
        for member, value in members.items():
            setattr(made[name], member, value)
        return made[name]

    for name, one in normal.items():
        make("normalizer_" + name, normalizer=one)
    for name, one in pre.items():
        make("pre_tokenizer_" + name, pre_tokenizer=one)
    make("first_behind_strip", normalizer=n.Strip(), pre_tokenizer=p.Metaspace(prepend_scheme="first"))
    make("first_behind_replace",
         normalizer=n.Replace(Regex(r"^ +|^a"), "x"),
         pre_tokenizer=p.Metaspace(prepend_scheme="first"))
    for name, one in {
            "bpe": d.BPEDecoder(), "word_piece": d.WordPiece("e", True), "metaspace": d.Metaspace("a"),
            "metaspace_never": d.Metaspace("a", "never"), "fuse": d.Fuse(), "strip": d.Strip("a", 1, 0),
            "strip_end": d.Strip("a", 0, 1), "replace": d.Replace(Regex("[ae]"), "xy"), "bytes":
            d.ByteFallback(), "ctc": d.CTC("a", "e"), "byte_level": d.ByteLevel()
    }.items():
        make("decoder_" + name, decoder=one)
    make("bert_processing", post_processor=processors.BertProcessing(("a", 5), ("b", 6)))
    make("roberta_processing", post_processor=processors.RobertaProcessing(("a", 5), ("b", 6)))
    added = make("added", normalizer=n.Lowercase(), pre_tokenizer=p.Metaspace(prepend_scheme="first"))
    added.add_tokens([
        AddedToken("word", single_word=True),
        AddedToken("<strip>", lstrip=True, rstrip=True),
        AddedToken("<word>", single_word=True, normalized=False),
        AddedToken("TOKEN"),
        AddedToken("the"),
        AddedToken("thethe", normalized=False),
        AddedToken("Token", normalized=False),
        AddedToken(" x")
    ])
    added.add_special_tokens(special("<s>", "[MASK]", lstrip=True))
    return made


def answers(tokenizer, texts, decodes=True):
    """Ids with special tokens, ids and types of pairs, decoded texts without special tokens and with them."""
    ids = [tokenizer.encode(text).ids for text in texts]
    pairs = [tokenizer.encode(text, "the end") for text in texts[:12]]
    decoded = [
        tokenizer.decode(one, skip_special_tokens=skip) if one else "" for one in ids if decodes
        for skip in (True, False)
    ]
    return {
        "ids": ids, "pairs": [one.ids for one in pairs], "types": [one.type_ids for one in pairs], "decoded":
        decoded
    }


def with_text_merges(file):
    """As files of older versions have them."""
    file["model"]["merges"] = [" ".join(merge) for merge in file["model"]["merges"]]
    return file


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=pathlib.Path, default=HERE / "tokenizers")
    folder = parser.parse_args().to
    folder.mkdir(exist_ok=True)
    golden = {"texts": TEXTS, "kinds": {}}
    for name, kind in KINDS.items():
        tokenizer = kind()
        file = json.loads(tokenizer.to_str())
        write(folder / f"{name}.json", with_text_merges(file) if name == "gpt2" else file)
        golden["kinds"][name] = answers(tokenizer, TEXTS)
    write(folder / "answers.json", golden)
    made = parts()
    files = {name: json.loads(tokenizer.to_str()) for name, tokenizer in made.items()}
    model = next(iter(files.values()))["model"]
    for file in files.values():
        del file["model"]
    texts = [text for text in TEXTS if len(text) < 40]
    write(
        folder / "parts.json", {
            "model": model, "texts": texts, "parts": {
                name:
                {"file": files[name], **answers(made[name], texts, "decoder" in name or name == "added")}
                for name in made
            }
        })


if __name__ == "__main__":
    main()
