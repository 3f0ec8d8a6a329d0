#!/usr/bin/env python3
"""Writes data/tokenizers/unicode/unicode.txt: what the `tokenizers` package knows of each code point.

Run: tokenizer_unicode.py   (tokenizers 0.22.2; with the clients' Python, which tests/clients.sh makes)

The package's own parts (Oniguruma, Rust's regex, Rust's library, unicode_categories,
unicode-normalization-alignments) have tables of different versions of Unicode. So each property is asked of
the part of the package that uses it. A line of the file is a property, and its code points in base 36: runs,
each as its distance from the end of the last and its length less one, which is left out if 0; in `lower`,
`canonical` and `compatible` a code point (as its distance from the last) and what becomes of it.
"""
import pathlib
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "data/tokenizers/unicode/unicode.txt"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number):
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text


def runs(points):
    words, end, i = [], 0, 0
    while i < len(points):
        j = i
        while j + 1 < len(points) and points[j + 1] == points[j] + 1:
            j += 1
        words.append(base36(points[i] - end) + ("," + base36(j - i) if j > i else ""))
        end, i = points[j] + 1, j + 1
    return " ".join(words)


def mapping(pairs):
    words, last = [], 0
    for point, images in pairs:
        words.append(base36(point - last) + "=" + ",".join(base36(ord(c)) for c in images))
        last = point
    return " ".join(words)


def where(test):
    return [c for c in POINTS if test(chr(c))]


def matched(pattern):
    """Code points that a pattern of Oniguruma matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    return where(lambda c: not split.pre_tokenize_str(c))


def removed(normalizer):
    return where(lambda c: normalizer.normalize_str(c) == "")


def changed(normalizer):
    return [(c, image) for c in POINTS if (image := normalizer.normalize_str(chr(c))) != chr(c)]


def is_word(split):
    return lambda c: len(split.pre_tokenize_str("a" + c)) == 1 and split.pre_tokenize_str(c) != []


def is_punctuation(split):
    return lambda c: len(split.pre_tokenize_str("a" + c + "a")) == 3


def grapheme_breaks():
    """Points by what they join in a grapheme (UAX 29), without Hangul and flags, which follow from ranges."""
    split = pre_tokenizers.Split(Regex(r"\X"), "isolated")
    joined = lambda text: len(split.pre_tokenize_str(text)) == 1
    after = where(lambda c: c != "\n" and joined("a" + c))
    extends = [c for c in after if joined("\u00a9" + chr(c) + "\u200d\u00a9") and c != 0x200D]
    return {"extend": extends, "spacing": sorted(set(after) - set(extends) - {0x200D}),
            "prepend": where(lambda c: joined(c + "a")),
            "alone": where(lambda c: not joined(c + "\u0301"))}


def combining_classes(decompose, decomposed):
    """Points by class. Marks of different classes change places if the first has the higher class."""
    swaps = lambda first, second: first != second and decompose(first + second) == second + first
    reference = {1: "\u0334"}
    for c in range(0x300, 0x20000):
        if unicodedata.combining(chr(c)) and c not in decomposed and swaps(chr(c), reference[1]):
            reference.setdefault(unicodedata.combining(chr(c)), chr(c))
    numbers = sorted(reference)
    classes = {}
    for c in POINTS:
        mark = chr(c)
        if c in decomposed or not (swaps(reference[numbers[-1]], mark) or swaps(mark, reference[numbers[0]])):
            continue
        lower = [n for n in numbers if swaps(mark, reference[n])]
        number = min(n for n in numbers if not lower or n > lower[-1])
        classes.setdefault(number, []).append(c)
    return classes


def main():
    decompose = normalizers.NFD().normalize_str
    canonical = [(c, d) for c, d in changed(normalizers.NFD()) if not 0xAC00 <= c < 0xD7A4]
    compatible = [(c, d) for c, d in changed(normalizers.NFKD())
                  if not 0xAC00 <= c < 0xD7A4 and decompose(chr(c)) != d]
    compose = normalizers.NFC().normalize_str
    excluded = [c for c, d in canonical if compose(d) != chr(c)]
    lines = {
        "letter": runs(matched(r"\p{L}")),
        "number": runs(matched(r"\p{N}")),
        "space": runs(matched(r"\s")),
        "white_space": runs(where(lambda c: not pre_tokenizers.WhitespaceSplit().pre_tokenize_str(c))),
        "word": runs(where(is_word(pre_tokenizers.Whitespace()))),
        "numeric": runs(where(is_punctuation(pre_tokenizers.Digits(individual_digits=True)))),
        "punctuation": runs(where(is_punctuation(pre_tokenizers.Punctuation()))),
        "control": runs(removed(normalizers.BertNormalizer(True, False, False, False))),
        "nonspacing": runs(removed(normalizers.BertNormalizer(False, False, True, False))),
        "combining": runs(removed(normalizers.StripAccents())),
        "lower": mapping(changed(normalizers.Lowercase())),
        "canonical": mapping(canonical),
        "compatible": mapping(compatible),
        "excluded": runs(excluded),
        "pictographic": runs(matched(r"\p{Extended_Pictographic}")),
    }
    for name, points in grapheme_breaks().items():
        lines[f"break.{name}"] = runs(points)
    for number, points in sorted(combining_classes(decompose, {c for c, _ in canonical}).items()):
        lines[f"class.{number}"] = runs(points)
    OUTPUT.write_text("".join(f"{name} {line}\n" for name, line in lines.items()))


main()
