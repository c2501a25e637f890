"""Loads and makes things at their first use, so that a program pays only for what it uses."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


def names_of(
    package: str, homes: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> Callable[[str], Any]:
    """
    Return the `__getattr__` of a package.

    `homes` has its names by the module that defines them, which is relative to the package if it
    begins with a dot. `modules` are submodules that are names of the package themselves. Type
    checkers do not see any of these: the package also imports them under `TYPE_CHECKING`.
    """
    home = {name: module for module, names in homes.items() for name in names}
    known = frozenset(modules)

    def load(name: str) -> Any:
        if name in known:
            return import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"Module {package!r} has no attribute {name!r}.")
        value = getattr(import_module(home[name], package), name)
        setattr(sys.modules[package], name, value)  # so that the next use is an ordinary one
        return value

    return load


class attribute(Generic[Value]):  # noqa: N801 -- a decorator, as `property` is
    """
    An attribute that a method makes when it is first read.

    Later reads are those of an ordinary attribute. `functools.cached_property` has a lock in
    Python 3.11: a process that is forked while another thread holds it would wait for ever.
    """

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type) -> Value: ...

    def __get__(self, owner: object, kind: type) -> Self | Value:
        if owner is None:  # it is read from the class
            return self
        value = vars(owner)[self._name] = self._make(owner)
        return value


def forget(owner: object, *names: str) -> None:
    """Make these attributes anew when they are read next."""
    for name in names:
        vars(owner).pop(name, None)


class Remade:
    """
    The base of objects that pickle as the call that made them, with its arguments.

    What they have become since, such as connections and counts, stays in this process.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Remember the arguments."""
        made = super().__new__(cls)
        made._made_with = (arguments, options)
        return made

    _made_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __reduce__(self) -> tuple[Any, ...]:
        return remake, (type(self), *self._made_with)

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin


def remake(kind: type, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Make an object again, with the arguments that it was made with."""
    return kind(*arguments, **options)
