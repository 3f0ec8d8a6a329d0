"""Types the commands of docs/your_data.md, on small files, as first_hour_test.py does with its page."""
import json
import os
import shutil
import struct
import zlib

import first_hour_test
import tutti_run
from tutti_run import SOURCE

GOLDEN = SOURCE / "tests/golden"


def gray_png(width, height, value):
    """A PNG file of gray values."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes(value(x, y) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class YourData(first_hour_test.Page):
    PAGE = "your_data.md"
    AT_LEAST = 20  # commands

    def setUp(self):
        super().setUp()
        pictures = sorted((GOLDEN / "images").glob("*_19x37.*"))[:8]
        for i, picture in enumerate(pictures):
            folder = self.folder / "photos" / ("cat" if i % 2 else "dog")
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, folder / picture.name)
        rows = [f"photos/{folder.name}/{picture.name},{len(picture.name)},0.5\n" for folder in sorted(
            (self.folder / "photos").iterdir()) for picture in sorted(folder.iterdir())]
        (self.folder / "cells.csv").write_text("file,count,area\n" + "".join(rows))
        (self.folder / "new-cells.csv").write_text("file\n" + "".join(row.split(",")[0] + "\n" for row in rows))
        for part in ("images", "masks"):
            (self.folder / "streets" / part).mkdir(parents=True)
        for i, picture in enumerate(pictures):
            shutil.copy(picture, self.folder / "streets/images" / f"{i}{picture.suffix}")
            (self.folder / f"streets/masks/{i}.png").write_bytes(gray_png(37, 19, lambda x, y: x // 8 % 3))
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
