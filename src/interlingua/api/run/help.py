"""Adds the options of `generate` to the docstrings of the functions that take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from interlingua.api.run.option_docs import OPTIONS

Function = TypeVar("Function", bound=Callable[..., Any])


def list_options(function: Function) -> Function:
    """Decorate a function whose options are those of `generate`, so that `help` lists them."""
    text = function.__doc__ or ""
    is_indented = text.startswith("\n    ")  # newer Pythons remove the indent of the source
    options = OPTIONS.replace("\n", "\n    ") if is_indented else OPTIONS
    function.__doc__ = f"{text.rstrip()}\n{options}"
    return function
