"""Types the commands of docs/your_data.md, on small files, as first_hour_test.py does with its page."""
import json
import os
import shutil

import first_hour_test
import tutti_run
from tutti_run import SOURCE

GOLDEN = SOURCE / "tests/golden"


class YourData(first_hour_test.Page):
    PAGE = "your_data.md"
    AT_LEAST = 12  # commands

    def setUp(self):
        super().setUp()
        pictures = sorted((GOLDEN / "images").glob("*_19x37.*"))[:8]
        for i, picture in enumerate(pictures):
            folder = self.folder / "photos" / ("cat" if i % 2 else "dog")
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, folder / picture.name)
        lines = (SOURCE / "examples/data/king_james.txt").read_text().splitlines()[:120]
        verses = [json.dumps({"text": line}) + "\n" for line in lines if len(line) > 40]  # no headings
        (self.folder / "verses.jsonl").write_text("".join(verses))
        rows = [f'"{line}",{"god" if "God" in line else "other"}\n' for line in lines if '"' not in line and line]
        for name, part in {"train": rows[:90], "dev": rows[90:]}.items():
            (self.folder / f"verses-{name}.csv").write_text("".join(["text,label\n", *part]))
        shutil.copy(GOLDEN / "tokenizers/gpt2.json", self.folder / "tokenizer.json")
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "cache")

    def test_the_commands_of_the_page(self):
        self.type_the_page()
        self.assertEqual(len(os.listdir(self.folder / "cache/tutti/tokens")), 2, "tokens are made once")


if __name__ == "__main__":
    tutti_run.main()
