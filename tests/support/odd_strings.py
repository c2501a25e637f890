"""Strings of a subclass of `str`, as template engines and enumerations make them."""

import msgspec

from interlingua.spec.content import FilePath


class Odd(str):
    """Like `markupsafe.Markup` and `class Name(str, Enum)`, it gives other texts than its own."""

    __slots__ = ()

    def __str__(self):
        return "Odd.OTHER"

    def __format__(self, form):
        return "Odd.OTHER"

    def __add__(self, other):
        return Odd(f"{super().__str__()}&lt;escaped&gt;")

    def __radd__(self, other):
        return Odd(f"&lt;escaped&gt;{super().__str__()}")

    def strip(self):
        return Odd("stripped")


def odd(value):
    """The value with an `Odd` for every string in it; keys stay."""
    if type(value) is str:
        return Odd(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: odd(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, dict):
        return {key: odd(item) for key, item in value.items()}
    return type(value)(map(odd, value)) if isinstance(value, (list, tuple)) else value


def classes_of_strings(value):
    """The classes of all strings in a value."""
    if isinstance(value, str):
        return set() if type(value) is FilePath else {type(value)}
    if isinstance(value, msgspec.Struct):
        return classes_of_strings([getattr(value, name) for name in value.__struct_fields__])
    if isinstance(value, dict):
        return classes_of_strings([*value, *value.values()])
    if isinstance(value, (list, tuple)):
        return set().union(*map(classes_of_strings, value))
    return set()
