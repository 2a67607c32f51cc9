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
    """must: completes the sentence "… is not allowed; it must be …". allows: whether a value is of
    this kind, but for its entries. typed: checks these, and gives the value that the code takes.
    of: the dataclass whose fields
    are the entries."""

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
        if not self.allows(value):
            problem = f"{shown(value)} is not allowed; it must be {self.must}"
            raise UserError(f"{where or 'the config'}: {problem}")
        return self.typed(value, where)


FLAG = Kind("true or false", {"type": "boolean"}, lambda value: isinstance(value, bool))


def number(must: str, least: float = 0, most: float = 10**30) -> Kind:
    schema = {"type": "number", "minimum": least, "maximum": most}
    return Kind(must, schema, lambda value: type(value) in (int, float) and least <= value <= most)


def whole(least: int, most: int = 10**9, must: str = "", word: str = "") -> Kind:
    """An int: 2.0 is no depth in the name of a file. word: allowed, too."""
    schema: dict = {"type": "integer", "minimum": least, "maximum": most}
    return Kind(
        must or f"a whole number from {least} on{', or ' * bool(word)}{word}, at most 10⁹",
        {"anyOf": [schema, {"const": word}]} if word else schema,
        lambda value: least <= value <= most if type(value) is int else value == word != "",
    )


def text(must: str, pattern: str = r"[\s\S]*") -> Kind:
    """pattern: of the whole text."""
    schema = {"type": "string", "pattern": rf"^(?:{pattern})$(?!\n)"}
    fits = re.compile(pattern).fullmatch
    return Kind(must, schema, lambda value: isinstance(value, str) and bool(fits(value)))


def choice(*words: str) -> Kind:
    must = f"{', '.join(words[:-1])} or {words[-1]}"
    return Kind(must, {"enum": list(words)}, lambda value: isinstance(value, str) and value in words)


def known(must: str, words: Iterable[str]) -> Kind:
    """One of many words, of which the closest is suggested."""

    def typed(value: str, where: str) -> str:
        require_known(value, words, f"{where}: {shown(value)} is not allowed.")
        return value

    return Kind(must, {"enum": list(words)}, lambda value: isinstance(value, str), typed)


def list_of(item: Kind, must: str, least: int = 1, most: int = 10**6, same: bool = False) -> Kind:
    """same: whether entries may be equal."""
    size = {"minItems": least, "maxItems": most, "uniqueItems": not same}

    def allows(value: Any) -> bool:
        return (isinstance(value, list) and least <= len(value) <= most) and (
            same or not any(entry in value[:i] for i, entry in enumerate(value))
        )

    def typed(value: list, where: str) -> list:
        return [item.check(entry, f"{where}[{i}]") for i, entry in enumerate(value)]

    return Kind(must, {"type": "array", **size, "items": item.schema}, allows, typed)


def mapping(name: Kind, item: Kind, must: str, least: int = 0) -> Kind:
    """From names to values of one kind."""
    entries = {"propertyNames": name.schema, "additionalProperties": item.schema}

    def typed(value: dict, where: str) -> dict:
        names = [name.check(key, where) for key in value]
        return {key: item.check(value[key], f"{where}.{shown_key(key)}") for key in names}

    schema = {"type": "object", "minProperties": least, **entries}
    return Kind(must, schema, lambda v: isinstance(v, dict) and len(v) >= least, typed)


def record(of: Any, partial: bool = False, one_of: tuple[str, ...] = ()) -> Kind:
    """The fields of a dataclass. partial: any of them, others are None; if not, all that have no
    default. one_of: of these at least one."""
    fields = {field.name: field for field in dataclasses.fields(of)}
    kinds = {name: field.metadata["kind"] for name, field in fields.items()}
    required = [n for n in fields if not partial and fields[n].default is dataclasses.MISSING]

    def typed(value: dict, where: str) -> Any:
        dot, owner = where and f"{where}.", f"{where.rpartition('.')[2]} has " * partial
        for key in value:
            require_known(key, kinds, f"{dot}{shown_key(key)}: {owner}no such setting.")
        for key in required:
            if key not in value:
                raise UserError(f"{dot}{key}: is missing. Add it")
        given = {key: kinds[key].check(value[key], f"{dot}{key}") for key in kinds if key in value}
        return of(**(dict.fromkeys(kinds) if partial else {}) | given)

    words = {
        name: f"{field.metadata['meaning']}: {kinds[name].must}" for name, field in fields.items()
    }
    entries = {name: {"description": words[name], **kinds[name].schema} for name in kinds}
    schema = {"type": "object", "properties": entries, "additionalProperties": False}
    schema |= {"required": required} | (
        {"anyOf": [{"required": [n]} for n in one_of]} if one_of else {}
    )
    must = f"settings: {', '.join(kinds)}"

    def allows(value: Any) -> bool:
        return isinstance(value, dict) and (not one_of or any(key in value for key in one_of))

    return Kind(must, schema, allows, typed, of)


def shown(value: object) -> str:
    """A value in one line, cut after 200 characters."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def shown_key(key: object) -> str:
    """The name of a setting in one line."""
    return key if isinstance(key, str) and key and key.isprintable() else shown(key)


def require_known(word: Any, words: Iterable[str], problem: str, hint: str = "") -> None:
    """Raises UserError, with the closest of the words."""
    if word not in words:
        close = difflib.get_close_matches(str(word), sorted(words), n=1)
        suggestion = (
            f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(sorted(words))}."
        )
        raise UserError(problem + suggestion + hint)
