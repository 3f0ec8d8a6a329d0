"""The pages of docs/ that lead through a task: their commands are typed, as first_hour_test.py does with its
page, and the keys, kinds and messages that they name must be tutti's."""
import functools
import re
import shutil
import subprocess
import tomllib
import unittest

import first_hour_test
import tutti_run
from tutti_run import SOURCE, TUTTI

PAGES = ["from_composer.md", "large_model.md", "precision.md", "evaluation.md", "combining.md", "sweeps.md",
         "trouble.md"]
SECTIONS = ("data", "train", "model", "optimizer", "scheduler", "evaluators", "algorithms", "callbacks",
            "loggers", "checkpoint", "sharding", "precision", "device", "collectives", "compat", "deepspeed",
            "journal", "profiler", "plugins")
SOURCES = ("runtime", "recipe", "tensors", "io", "data", "collectives", "models", "training", "sharding",
           "algorithms", "job", "actors", "commands", "cli")
ARGUMENTS = 54  # of Composer's Trainer


def page(name):
    return (SOURCE / "docs" / name).read_text()


def spans(text):
    """What stands in backquotes outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


@functools.cache
def explained(name):
    return subprocess.run([TUTTI, "explain", name], capture_output=True, text=True).stdout


def is_key(name):
    """True if it is a key of a section: an answer about a topic has no section above it."""
    return explained(name).startswith(("[", "the top level"))


def is_kind(name):
    return f'kind = "{name}"' in explained(name)


def leaves(table, path=()):
    """The keys of a recipe as `explain` knows them, section.key, and their values."""
    for key, value in table.items():
        name = ".".join([*path, key])
        tables = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
        if not tables or is_key(name):
            yield name, value
        else:
            for one in tables:
                yield from leaves(one, (*path, key))


class Guides(unittest.TestCase):
    def test_keys_in_sentences_are_known(self):
        dotted = re.compile(rf"((?:{'|'.join(SECTIONS)})(?:\.[a-z_]+)+)(?: = .*)?$")
        for name in PAGES:
            keys = {found[1] for span in spans(page(name)) if (found := dotted.match(span))}
            keys = {key for key in keys if not key.endswith(".kind")}
            self.assertTrue(keys, name)
            for key in sorted(keys):
                self.assertTrue(is_key(key), f"{name}: {key}")

    def test_kinds_and_sections_in_sentences_are_known(self):
        named = re.compile(r"\[+([a-z_.]+)\]+(?: kind = \"(\w+)\")?$")
        for name in PAGES:
            for span in spans(page(name)):
                if found := named.match(span):
                    section, kind = found.groups()
                    known = is_key(section) or f"[{section}]" in explained(section)
                    self.assertTrue(known, f"{name}: {span}")
                    self.assertTrue(kind is None or is_kind(kind), f"{name}: {span}")

    def test_keys_of_shown_recipes_are_known(self):
        for name in PAGES:
            for block in tutti_run.all_shown_in(name, "toml"):
                for key, value in leaves(tomllib.loads(block)):
                    known = is_kind(value) if key.endswith(".kind") else is_key(key)
                    self.assertTrue(known, f"{name}: {key} = {value}")

    def test_pages_that_are_named_exist(self):
        for name in PAGES:
            for other in re.findall(r"\bdocs/\w+\.md|\bexamples/[\w/.]+", page(name)):
                self.assertTrue((SOURCE / other.rstrip(".")).exists(), f"{name}: {other}")

    def test_every_argument_of_the_trainer_has_its_row(self):
        part = page("from_composer.md").split("## The 54 arguments")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `(\w+)` \|", part, flags=re.M)
        self.assertEqual((len(rows), len(set(rows))), (ARGUMENTS, ARGUMENTS))
        surface = re.findall(r"^(\w+) \|", (SOURCE / "tests/composer_surface.txt").read_text(), flags=re.M)
        self.assertEqual(set(rows) - set(surface), set())

    def test_every_key_of_fsdp_has_its_row(self):
        part = page("from_composer.md").split("## FSDPConfig")[1].split("\n## ")[0]
        named = set(spans(part))
        for line in (SOURCE / "tests/composer_surface.txt").read_text().splitlines():
            if found := re.match(r"FSDP2?Config\.(\w+)", line):
                self.assertIn(found[1], named)

    def test_every_key_of_deepspeed_has_its_row(self):
        keys = set(re.findall(r"^(\w+) = ", explained("deepspeed"), flags=re.M))
        self.assertGreater(len(keys), 5)
        self.assertEqual(keys - set(spans(page("from_composer.md").split("## DeepSpeed")[1])), set())

    def test_every_kind_has_its_place(self):
        for name, noun in (("combining.md", "algorithms"), ("evaluation.md", "callbacks")):
            listed = subprocess.run([TUTTI, "list", noun], capture_output=True, text=True).stdout
            kinds = set(re.findall(r"^(\w+) ", listed, flags=re.M)) - {"plugin"}
            self.assertGreater(len(kinds), 15)
            self.assertEqual(kinds - set(spans(page(name))), set(), name)

    def test_messages_are_those_of_the_sources(self):
        """... stands for words left out, N and NAME for what differs."""
        files = [path for folder in SOURCES for path in (SOURCE / folder).rglob("*.cpp")]
        sources = "".join(path.read_text() for path in files)
        sources = re.sub(r'"\s*\n\s*"', "", sources).replace('\\"', '"')
        cells = re.findall(r"^\| (`[^|]+) \|", page("trouble.md"), flags=re.M)
        messages = [message for cell in cells for message in spans(cell)]
        self.assertGreater(len(messages), 40)
        for message in messages:
            for piece in re.split(r"\.\.\.|\b(?:N|NAME)\b", message):
                self.assertTrue(piece.strip(" :;,()") in sources, f"{message}: {piece}")


class Typed(first_hour_test.Page):
    """Each page in a folder of its own, with the digits and the recipes that the page shows by name."""
    AT_LEAST = 1

    def type(self, name):
        self.PAGE = name
        shutil.copy(SOURCE / "examples/data/digits.h5", self.folder)
        (self.folder / "examples").symlink_to(SOURCE / "examples")
        for block in tutti_run.all_shown_in(name, "toml"):
            if found := re.match(r"# (\w+\.toml)", block):
                (self.folder / found[1]).write_text(block)
        self.type_the_page()

    def test_commands_of_from_composer(self):
        self.type("from_composer.md")

    def test_commands_of_large_model(self):
        self.type("large_model.md")

    def test_commands_of_precision(self):
        self.type("precision.md")

    def test_commands_of_evaluation(self):
        self.type("evaluation.md")

    def test_commands_of_combining(self):
        self.type("combining.md")

    def test_commands_of_trouble(self):
        self.type("trouble.md")


if __name__ == "__main__":
    tutti_run.main()
