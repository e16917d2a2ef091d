"""What broken servers override, held against the product: what is gone there, or called otherwise, breaks no promise.

``python -m tests.support.overrides`` says what is wrong, a line each. It breaks each server in a process of its own.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from tests.broken import HERE, PROGRAMS, Broken, table

OURS = ("adversary", "compliance", "developer", "fairwall", "sim", "grpc")

Place: TypeAlias = tuple[str, Any, dict[Any, Any]]
"""Where it is, a module, a class or a table, and its members before a server is broken."""


def members(place: Any) -> Mapping[Any, Any]:
    return place if isinstance(place, dict) else vars(place)


def above(place: Any) -> Iterator[Mapping[Any, Any]]:
    """What has members that a place may override with its own; a table may have more than it had."""
    return iter([place]) if isinstance(place, dict) else map(vars, getattr(place, "__mro__", [place])[1:])


def is_ours(thing: Any) -> bool:
    return inspect.isclass(thing) and thing.__module__.split(".")[0] in OURS


def places() -> list[Place]:
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] in OURS]
    found: dict[int, tuple[str, Any]] = {id(module): (module.__name__, module) for module in modules}
    for module in modules:
        for name, each in vars(module).items():
            if is_ours(each) or isinstance(each, dict):
                found.setdefault(id(each), (f"{module.__name__}.{name}", each))
    return [(where, place, dict(members(place))) for where, place in found.values()]


def faults(row: Broken, before: list[Place]) -> Iterator[str]:
    sys.argv = ["broken", "--policy", "policy.toml"]
    getattr(import_module(row.module), row.function)()
    overrides = [
        (f"{where}.{name}", [old, *above(place)], name, new)
        for where, place, old in before
        for name, new in members(place).items()
        if old.get(name) is not new
    ]
    bases = [place for _, place, _ in before if inspect.isclass(place)]
    for each in {each for base in bases for each in type.__subclasses__(base) if each.__module__ == row.module}:
        held = [vars(base) for base in each.__mro__ if is_ours(base)]
        overrides += [(f"{each.__name__}.{name}", held, name, new) for name, new in vars(each).items()]
    if not overrides:
        yield "overrides nothing"
    for where, holders, name, new in overrides:
        known = [held[name] for held in holders if name in held]
        yield from unlike(where, known[0], new) if known else [f"{where} is nothing of the product's"]


def unlike(where: str, old: Any, new: Any) -> Iterator[str]:
    if is_dataclass(old) and not inspect.isclass(old):
        for field in fields(old):
            yield from unlike(f"{where}.{field.name}", getattr(old, field.name), getattr(new, field.name))
        return
    for inner in ("fget", "__func__"):  # of a property, and of a static method
        old, new = getattr(old, inner, old), getattr(new, inner, new)
    if callable(old) and old is not new and not fits(inspect.signature(old), inspect.signature(new)):
        yield f"{where} is {inspect.signature(old)}, and here {inspect.signature(new)}"


def fits(old: Signature, new: Signature) -> bool:
    """Whether however the one may be called the other may be, and calls the same by the same names."""
    by_name = {each.name: each for each in old.parameters.values() if each.kind is Parameter.KEYWORD_ONLY}
    by_place = [each for each in old.parameters.values() if each.kind < Parameter.VAR_POSITIONAL]
    needed = [each for each in by_place if each.default is Parameter.empty]
    left_out = {each.name: each for each in by_place[len(needed) :] if each.kind is Parameter.POSITIONAL_OR_KEYWORD}
    must = {name: each for name, each in by_name.items() if each.default is Parameter.empty}
    try:
        for given, named in ((by_place, by_name), (needed, by_name | left_out), (needed, must)):
            new.bind(*given, **named)
    except TypeError:
        return False
    pairs = zip(by_place, new.parameters.values(), strict=False)
    shown = [(a.name, b.name) for a, b in pairs if a.name != "self" and b.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return all(b in (a, "_", "__") for a, b in shown)


def main() -> None:
    leave, rows = os._exit, table()
    for program in PROGRAMS.values():
        import_module(program)
    for path in HERE.glob("[!_]*.py"):  # with what they import: what is loaded later is not looked at
        import_module(f"tests.broken.{path.stem}")
    before = places()
    for name, row in rows.items():
        if os.fork() == 0:
            try:
                found = list(faults(row, before))
            except BaseException as error:
                found = [repr(error)]
            sys.stdout.writelines(f"{name}: {each}\n" for each in found)
            sys.stdout.flush()
            leave(0)
        assert os.wait()[1] == 0, name


if __name__ == "__main__":
    main()
