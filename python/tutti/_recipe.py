"""Recipes as nested dicts: read from and written as TOML, with absolute paths."""
from __future__ import annotations

import functools
import json
import math
import os
import pathlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from tutti import _program

Table = dict[str, Any]

_PATH = re.compile(r": a path\b[^:]*$")           # ends the description of a path in the schema
_OR_NAME = re.compile(r"\bname [^:;]*\bcache|keys of \[model\]$")  # of a path that may be a model's name
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read(recipe: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Table, pathlib.Path]:
    """The recipe's table, and the folder of its relative paths: a file's own, of a dict the current folder.

    Raises RecipeError in the program's words if the file cannot be read.
    """
    if isinstance(recipe, Mapping):
        return _plain(recipe), pathlib.Path.cwd()
    path = pathlib.Path(recipe).absolute()
    try:
        return tomllib.loads(path.read_text("utf-8")), path.parent
    except (OSError, ValueError):
        _program.ask("check", str(recipe), "--steps", "0")
        raise


def with_absolute_paths(table: Table, folder: pathlib.Path) -> Table:
    """The recipe with relative paths as paths below `folder`; the schema of recipes says which are paths."""
    placed: Table = _placed(table, _schema(), folder)
    if "stages" in placed:
        placed["stages"] = [_placed(stage, _schema(), folder) for stage in placed["stages"]]
    return placed


def set_kind(section: Table, place: tuple[str, ...], kind: str) -> None:
    """Gives the section at `place` another kind, without the keys that only its own kind had."""
    schema = functools.reduce(lambda node, name: node["properties"][name], place, _schema())
    kinds: dict[str, list[str]] = {
        name: next((branch["propertyNames"]["enum"] for branch in _branches(schema, name)), [])
        for name in (section.get("kind", kind), kind)}
    own, known = kinds[section.get("kind", kind)], kinds[kind]
    for key in [key for key in section if key in own and key not in known]:
        del section[key]
    section["kind"] = kind


def value_text(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {value_text(member)}" for name, member in value.items()) + "}"
    raise TypeError(f"a recipe has no values of the type {type(value).__name__}: {value!r}")


def text(table: Table, name: str = "") -> str:
    """The table as TOML, with a header for each table in it."""
    lines, tables = "", ""
    for key, value in table.items():
        path = f"{name}.{_key(key)}".lstrip(".")
        if isinstance(value, dict):
            tables += f"\n[{path}]\n" + text(value, path)
        elif isinstance(value, list) and value and all(isinstance(member, dict) for member in value):
            tables += "".join(f"\n[[{path}]]\n" + text(member, path) for member in value)
        else:
            lines += f"{_key(key)} = {value_text(value)}\n"
    return lines + tables


def plain(value: Any) -> Any:
    """A value of Python or numpy as TOML has it: paths are texts, tuples lists, and None is left out."""
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value) not in (bool, int, float, str) and hasattr(value, "tolist"):
        return value.tolist()
    return value


def _plain(table: Mapping[str, Any]) -> Table:
    return {str(key): plain(value) for key, value in table.items() if value is not None}


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else value_text(name)


@functools.cache
def _schema() -> Table:
    schema: Table = json.loads(_program.ask("explain", "--schema"))
    return schema


def _branches(schema: Table, kind: Any) -> list[Table]:
    """What the schema of a section says of a kind."""
    branches = [branch for branch in schema.get("allOf", []) if "if" in branch]
    return [branch["then"] for branch in branches
            if kind in branch["if"].get("properties", {}).get("kind", {}).get("enum", [])]


def _alternatives(schema: Table) -> list[Table]:
    """The schemas of which a value may have any."""
    if "$ref" in schema:
        return _alternatives(_schema()["definitions"][schema["$ref"].rpartition("/")[2]])
    return [schema] + [other for one in schema.get("anyOf", []) for other in _alternatives(one)]


def _placed(value: Any, schema: Table, folder: pathlib.Path) -> Any:
    alternatives = _alternatives(schema)
    if isinstance(value, str):
        return _placed_text(value, alternatives, folder)
    if isinstance(value, list):
        items: Table = next((one["items"] for one in alternatives if "items" in one), {})
        return [_placed(member, items, folder) for member in value]
    if not isinstance(value, dict):
        return value
    members: Table = {}
    for one in alternatives:
        for source in [one, *_branches(one, value.get("kind"))]:
            members |= source.get("properties", {})
    return {key: _placed(member, members.get(key, {}), folder) for key, member in value.items()}


def _placed_text(value: str, alternatives: list[Table], folder: pathlib.Path) -> str:
    descriptions = [one.get("description", "") for one in alternatives]
    is_path = any(_PATH.search(description) for description in descriptions)
    is_word = value.startswith(("$", "{")) or any(value in one.get("enum", []) for one in alternatives)
    if not is_path or is_word or "://" in value:
        return value
    value = os.path.expanduser(value)
    may_be_name = any(_OR_NAME.search(description) for description in descriptions)
    return value if may_be_name and not (folder / value).exists() else os.path.normpath(folder / value)
