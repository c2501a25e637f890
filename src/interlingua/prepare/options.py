"""Provider options: fields of one dialect, merged into the encoded body last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import attrgetter, is_not
from typing import TYPE_CHECKING, Any

from interlingua.spec.contracts import FormPart
from interlingua.spec.facts import Facts
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import WarningList, make_warning, target_name
from interlingua.wire.fields import merge

if TYPE_CHECKING:
    from interlingua.spec.operations import OperationInput

TOOLS = "tools"
AUTO_CACHE = "auto_cache"
"""A reserved option, never sent: False leaves prompt caching to the caller."""


def options_for(request: Request, dialect: str) -> dict[str, Any]:
    """The options meant for this dialect, by its own name or by the provider's."""
    merged: dict[str, Any] = {}
    if not request.provider_options:  # the usual request
        return merged
    for name in (dialect, request.provider):
        options = request.provider_options.get(name) if name else None
        if isinstance(options, Mapping):
            merged = merge_options(merged, options)
    return merged


def merge_options(body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """
    `merge`, but tools are added to the tools of the body; equal tools are sent once.

    They are at the top, or one object deeper, as in `toolConfig`.
    """
    # A caller gives tools of the provider as options beside tools of the request; to replace the
    # one by the other would lose them silently.
    merged = merge(body, options)
    for key, value in options.items():
        present = body.get(key)
        if key == TOOLS:
            merged[TOOLS] = _joined_tools(present, value, merged[TOOLS])
        elif isinstance(present, Mapping) and isinstance(value, Mapping) and TOOLS in value:
            inner = merged[key]
            inner[TOOLS] = _joined_tools(present.get(TOOLS), value[TOOLS], inner[TOOLS])
    return merged


def _joined_tools(present: object, more: object, merged: object) -> object:
    if not isinstance(present, (list, tuple)) or not isinstance(more, (list, tuple)):
        return merged
    return [*present, *(tool for tool in more if tool not in present)]


def declares_tools(options: Mapping[str, object]) -> bool:
    """Whether there are tools among the options, or in an object of them as in `toolConfig`."""
    if options.get(TOOLS):
        return True
    return any(isinstance(each, Mapping) and each.get(TOOLS) for each in options.values())


def body_with_options(body: dict[str, Any], value: OperationInput, dialect: str) -> dict[str, Any]:
    """The body of an operation with the provider options of its value over it."""
    options = value.provider_options.get(dialect)
    return merge_options(body, options) if options else body


def form_with_options(
    form: tuple[FormPart, ...], value: OperationInput, dialect: str
) -> tuple[FormPart, ...]:
    """The form of an operation with the provider options of its value over it."""
    options = value.provider_options.get(dialect)
    if not options:
        return form
    fields = tuple(part for name, item in options.items() for part in form_fields(name, item))
    replaced = {part.name for part in fields} | set(options)
    return (*fields, *(part for part in form if part.name not in replaced))


def form_fields(name: str, value: object) -> Iterator[FormPart]:
    """The fields of a form for a JSON value: `name[key]` for objects, `name[]` for arrays."""
    # The brackets are how OpenAI's SDK writes nested values into a form
    # (`_serialize_multipartform`).
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from form_fields(f"{name}[{key}]", item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from form_fields(f"{name}[]", item)
    elif value is not None:
        is_flag = isinstance(value, bool)
        yield FormPart(name=name, content=str(value).lower() if is_flag else str(value))


def check_options(options: Mapping[str, object], facts: Facts, warnings: WarningList) -> None:
    """Add a note for each option that the dialect is not known to have."""
    # A note, not an error: vendors add fields faster than this list.
    known = facts.options
    for name in () if known is None else options.keys() - known - {AUTO_CACHE}:
        path, hint = f"provider_options.{facts.name}.{name}", suggest(name, known or ())
        warnings.add("option_unknown", path, name=name, owner=facts.name, hint=hint)


def suggest(name: str, known: Iterable[str]) -> str:
    """A question about the nearest of the known names, in brackets; empty if none is near."""
    from difflib import get_close_matches  # needed only for unknown names

    near = get_close_matches(str(name), known, n=1, cutoff=0.75)
    return f" (did you mean {near[0]!r}?)" if near else ""


def foreign_options(
    request: Request, dialect: str, names: Callable[[], Iterable[str]]
) -> list[Warning]:
    """A warning for each other dialect, of these names, whose options this request carries."""
    if not request.provider_options:
        return []
    target = target_name(request, dialect)
    warnings = []
    for name in names():
        options = request.provider_options.get(name)
        if not options or name == dialect:
            continue
        if isinstance(options, Mapping):
            keys = sorted(str(key) for key in options if key != AUTO_CACHE)
        else:
            keys = [repr(options)]
        if keys:
            path, listed = f"provider_options.{name}", ", ".join(keys)
            warnings.append(
                make_warning("options_dropped", path, owner=name, target=target, names=listed)
            )
    return warnings


class Settings:
    """
    Some fields of requests, read all at once, because most requests set few of them.

        for name, value in Settings("seed", "user").values_in(request): …
    """

    __slots__ = ("_names", "_read", "_unset")

    def __init__(self, first: str, second: str, *others: str) -> None:
        self._names = (first, second, *others)
        self._read = attrgetter(*self._names)
        self._unset = (None,) * len(self._names)

    def values_in(self, request: Request) -> Sequence[tuple[str, Any]]:
        """The names and values of the fields that are set, in the order of the constructor."""
        values = self._read(request)
        if values == self._unset:
            return ()
        pairs = zip(self._names, values, strict=True)
        return [*compress(pairs, map(is_not, values, self._unset))]

    def names_in(self, request: Request) -> tuple[str, ...]:
        """The names of the fields that are set."""
        values = self._read(request)
        if values == self._unset:
            return ()
        return tuple(compress(self._names, map(is_not, values, self._unset)))
