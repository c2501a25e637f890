"""What a caller may give as an image."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypeAlias

from interlingua.spec.check import describe
from interlingua.spec.content import Image
from interlingua.spec.errors import ConfigurationError

ImageSource: TypeAlias = Image | bytes | PathLike[str]
"""An `Image` part, the bytes of a file, or a `Path`."""


def image_part(image: Any, name: str) -> Image:
    """The part; `name` is that of the argument, for the error."""
    if isinstance(image, Image):
        return image
    if isinstance(image, bytes):
        return Image(data=image)
    if isinstance(image, PathLike):
        return Image(path=image)
    raise ConfigurationError(
        f"{name} must be an Image part, bytes or a Path, not {describe(image)}. "
        "For the name of a file, use pathlib.Path(name)."
    )
