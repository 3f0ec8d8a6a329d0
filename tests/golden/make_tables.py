"""Writes tables/: one table of seven rows, in files of pandas, of Python's csv module and of pyarrow.

Run: python make_tables.py   (pandas, pyarrow)
"""
import csv
import pathlib

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent / "tables"
HERE.mkdir(exist_ok=True)
TEXTS = ["Zürich", "São Paulo, SP", 'the "Big"\nApple', " x "]
TABLE = pd.DataFrame({
    "age": [20 + 3 * i for i in range(7)],
    "income": [i * 1000 / 3 for i in range(7)],
    "city": [TEXTS[i % 4] for i in range(7)],
    "member": [i % 2 == 0 for i in range(7)],
    "tiny": [-1e-30 * i for i in range(7)],
    "price": [i * i - 2.5 for i in range(7)],
    "kind": ["bac"[i % 3] for i in range(7)],
})
HOLES = TABLE.assign(income=TABLE["income"].where(TABLE.index != 3))  # no income in row 3

TABLE.to_csv(HERE / "pandas.csv", index=False)
TABLE.to_csv(HERE / "with_index.csv")
TABLE.to_csv(HERE / "tabs.tsv", index=False, sep="\t")
TABLE.to_csv(HERE / "semicolons.csv", index=False, sep=";", float_format="%.17e")
TABLE.to_csv(HERE / "no_header.csv", index=False, header=False)
HOLES.to_csv(HERE / "holes.csv", index=False)
HOLES.to_csv(HERE / "holes_na.csv", index=False, na_rep="NA")
# As Excel: CRLF, a byte order mark.
with open(HERE / "quoted.csv", "w", newline="", encoding="utf-8-sig") as file:
    writer = csv.writer(file, dialect="excel", quoting=csv.QUOTE_ALL)
    writer.writerow(TABLE.columns)
    writer.writerows(TABLE.itertuples(index=False))
TABLE.to_parquet(HERE / "pandas.parquet", engine="pyarrow")
HOLES.astype({"city": "category", "kind": "category", "age": "uint8"}).to_parquet(
    HERE / "holes.parquet", engine="pyarrow", index=False, compression="gzip", row_group_size=2)
pq.write_table(pa.Table.from_pandas(TABLE.astype({"age": "float32"}), preserve_index=False),
               HERE / "zstd.parquet", compression="zstd", version="1.0", use_dictionary=False,
               data_page_size=64)
# Columns that are not read beside some that are.
pq.write_table(pa.table({"age": [20, 30, 40], "bought": pd.date_range("2026-01-01", periods=3),
                         "sizes": [[1, 2], [3], []],
                         "half": pa.array([0.25, -3, 65504], pa.float16()), "price": [0.5, 1.5, 2.5]}),
               HERE / "dates.parquet")
# What pandas writes of a frame whose index is no range: a column, and its name in the metadata.
SHUFFLED = TABLE[["age", "price"]].iloc[[3, 1, 0, 6, 2, 5, 4]]
SHUFFLED.to_parquet(HERE / "index.parquet", engine="pyarrow")
SHUFFLED.rename_axis("number").to_parquet(HERE / "named_index.parquet", engine="pyarrow")
# Types beside numbers and strings.
pq.write_table(pa.table({"cost": pa.array([1, 2, 3], pa.decimal128(5, 2)), "nothing": pa.nulls(3),
                         "age": [20, 30, 40], "kind": pa.array(["p", "q", "p"], pa.string_view())}),
               HERE / "types.parquet")
