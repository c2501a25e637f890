"""What a caller may give as an image or audio."""

from __future__ import annotations

from os import PathLike
from typing import TypeAlias, TypeVar

from interlingua.spec.check import describe
from interlingua.spec.content import Audio, Image
from interlingua.spec.errors import ConfigurationError

ImageSource: TypeAlias = Image | bytes | PathLike[str]
"""An `Image` part, the bytes of a file, or a `Path`."""
AudioSource: TypeAlias = Audio | bytes | PathLike[str]
"""An `Audio` part, the bytes of a file, or a `Path`."""
Part = TypeVar("Part", Image, Audio)


def media_part(source: object, kind: type[Part], name: str) -> Part:
    """The part of this kind; `name` is that of the argument, for the error."""
    if isinstance(source, kind):
        return source
    if isinstance(source, bytes):
        return kind(data=source)
    if isinstance(source, PathLike):
        return kind(path=source)
    raise ConfigurationError(
        f"{name} must be an {kind.__name__} part, bytes or a Path, not {describe(source)}. "
        "For the name of a file, use pathlib.Path(name)."
    )
