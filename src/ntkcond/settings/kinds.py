"""Kinds of settings: what checks a value, and the same in JSON Schema. Standard library only."""

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ntkcond.run.errors import UserError


@dataclass(frozen=True)
class Kind:
    """must: completes "… is not allowed; it must be …". allows: whether a value is of this kind,
    but for its entries; typed: checks these, and gives the typed value. of: of a record."""

    must: str
    schema: dict[str, Any]
    allows: Callable[[Any], bool]
    typed: Callable[[Any, str], Any] = lambda value, where: value
    of: Any = None

    def __call__(self, meaning: str, default: Any = dataclasses.MISSING) -> Any:
        """A field of a dataclass: a setting of this kind, with a sentence on what it means."""
        return dataclasses.field(default=default, metadata={"kind": self, "meaning": meaning})

    def check(self, value: Any, where: str) -> Any:
        """The typed value. where: its place in the config. Raises UserError if not allowed."""
        if self.allows(value):
            return self.typed(value, where)
        problem = f"{shown(value)} is not allowed; it must be {self.must}"
        raise UserError(f"{where or 'the config'}: {problem}")


FLAG = Kind("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))


def number(must: str, least: float, most: float = 10**30, types: tuple = (int, float)) -> Kind:
    """A number from least to most."""
    schema = {"type": "number" if float in types else "integer", "minimum": least, "maximum": most}
    return Kind(must, schema, lambda value: type(value) in types and least <= value <= most)


def whole(least: int, most: int = 10**9, must: str = "") -> Kind:
    """An int: 2.0 is no depth in the name of a file."""
    return number(must or f"a whole number from {least} on, at most 10⁹", least, most, (int,))


def text(must: str, pattern: str = r"[\s\S]*") -> Kind:
    """pattern: of the whole text."""
    schema, fits = {"type": "string", "pattern": rf"^(?:{pattern})$(?!\n)"}, re.compile(pattern)
    return Kind(must, schema, lambda value: isinstance(value, str) and bool(fits.fullmatch(value)))


def choice(*words: str) -> Kind:
    """One of a few words."""
    must, schema = f"{', '.join(words[:-1])} or {words[-1]}", {"enum": list(words)}
    return Kind(must, schema, lambda value: isinstance(value, str) and value in words)


def known(must: str, words: Iterable[str]) -> Kind:
    """One of many words, of which the closest is suggested."""

    def typed(value: str, where: str) -> str:
        return require_known(value, words, f"{where}: {shown(value)} is not allowed.")

    return Kind(must, {"enum": list(words)}, lambda value: isinstance(value, str), typed)


def word(text: str, meant: Any = None) -> Kind:
    """A word, for a value if one is meant."""
    typed = (lambda value, where: value) if meant is None else (lambda value, where: meant)
    return Kind(text, {"const": text}, lambda value: value == text, typed)


def either(must: str, *kinds: Kind) -> Kind:
    """A value of the first of these kinds that allows it."""

    def typed(value: Any, where: str) -> Any:
        return next(kind for kind in kinds if kind.allows(value)).typed(value, where)

    schema = {"anyOf": [kind.schema for kind in kinds]}
    return Kind(must, schema, lambda value: any(kind.allows(value) for kind in kinds), typed)


def list_of(item: Kind, must: str, least: int = 1, most: int = 10**6, same: bool = False) -> Kind:
    """same: whether entries may be equal."""

    def allows(value: Any) -> bool:
        is_long = isinstance(value, list) and least <= len(value) <= most
        return is_long and (same or all(v not in value[:i] for i, v in enumerate(value)))

    def typed(value: list, where: str) -> list:
        return [item.check(v, f"{where}[{i}]") for i, v in enumerate(value)]

    size = {"minItems": least, "maxItems": most, "uniqueItems": not same}
    schema = {"type": "array", **size, "items": item.schema}
    return Kind(must, schema, allows, typed)


def mapping(name: Kind, item: Kind, must: str, least: int = 0) -> Kind:
    """From names to values of one kind."""

    def typed(value: dict, where: str) -> dict:
        names = [name.check(key, where) for key in value]
        return {key: item.check(value[key], f"{where}.{shown_key(key)}") for key in names}

    entries = {"propertyNames": name.schema, "additionalProperties": item.schema}
    schema = {"type": "object", "minProperties": least, **entries}
    return Kind(must, schema, lambda value: isinstance(value, dict) and len(value) >= least, typed)


def by_number(number: Kind, item: Kind) -> Kind:
    """From some numbers from 1 on to values of one kind."""
    entries = {"patternProperties": {"^[1-9][0-9]*$": item.schema}, "additionalProperties": False}
    schema = {"type": "object", "minProperties": 1, **entries}
    return dataclasses.replace(mapping(number, item, "", least=1), schema=schema)


def record(of: Any, partial: bool = False, one_of: tuple[str, ...] = ()) -> Kind:
    """The fields of a dataclass. partial: any of them, others are None; if not, all that have no
    default. one_of: of these at least one."""
    fields = dataclasses.fields(of)
    kinds = {field.name: field.metadata["kind"] for field in fields}
    optional = [field.name for field in fields if partial or field.default is None]
    required = [name for name in kinds if name not in optional]
    about = {
        f.name: {"description": f"{f.metadata['meaning']}: {kinds[f.name].must}"} for f in fields
    }
    entries = {name: about[name] | kinds[name].schema for name in kinds}
    schema = {"type": "object", "properties": entries, "additionalProperties": False}
    schema |= {"required": required, "anyOf": [{"required": [name]} for name in one_of] or [{}]}
    must = f"settings: {', '.join(kinds)}{f' ({choice(*one_of).must})' if one_of else ''}"

    def allows(value: Any) -> bool:
        return isinstance(value, dict) and (not one_of or any(name in value for name in one_of))

    def typed(value: dict, where: str) -> Any:
        dot, owner = where and f"{where}.", f"{where.rpartition('.')[2]} has " * partial
        for key in value:
            require_known(key, kinds, f"{dot}{shown_key(key)}: {owner}no such setting.")
        if missing := [key for key in required if key not in value]:
            raise UserError(f"{dot}{missing[0]}: is missing. Add it")
        values = {key: kinds[key].check(value[key], f"{dot}{key}") for key in kinds if key in value}
        return of(**{**dict.fromkeys(optional), **values})

    return Kind(must, schema, allows, typed, of)


def shown(value: object) -> str:
    """A value in one line, cut after 200 characters."""
    line = repr(value)
    return line if len(line) <= 200 else f"{line[:200]}…"


def shown_key(key: object) -> str:
    """The name of a setting in one line."""
    return key if isinstance(key, str) and key and key.isprintable() else shown(key)


def require_known(word: Any, words: Iterable[str], problem: str, hint: str = "") -> Any:
    """The word. Raises UserError with the closest one if it is none of them."""
    if word in words:
        return word
    close = difflib.get_close_matches(str(word), sorted(words), n=1)
    suggestion = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(words))}."
    raise UserError(f"{problem} {suggestion}{hint}")
