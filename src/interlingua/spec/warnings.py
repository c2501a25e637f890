"""
Warnings: how they are made and collected, and which of them raise.

A warning says that a request was changed so that its target accepts it. The codes are in
`warning_table`, which is loaded with the first warning: most requests have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.response import Warning

if TYPE_CHECKING:
    from interlingua.spec.request import OnLoss, Request
    from interlingua.spec.warning_table import WarningKind


def make_warning(code: str, path: str | None = None, **fields: object) -> Warning:
    """A warning with the sentence of its row."""
    from interlingua.spec.warning_table import WARNINGS

    message = WARNINGS[code].sentence.format(path=path, **fields)
    return Warning(code=code, message=message, path=path)


def target_name(request: Request, dialect: str) -> str:
    """What warnings call the target: provider and model, as far as they are known."""
    provider, model = request.provider, request.model
    if provider and model:
        return f"{provider}:{model}"
    return model or provider or dialect


class WarningList:
    """
    Collects warnings while a request is prepared and encoded.

    `message`, `part` and `inner` are a cursor: the loops over messages, parts and parts of
    results set them, and a path is written only when a warning is added.
    """

    __slots__ = ("inner", "message", "origin", "part", "target", "warnings")

    def __init__(self, target: str = "the target") -> None:
        self.target: str = target
        self.warnings: list[Warning] = []
        self.message: int = 0
        self.part: int | None = None
        self.inner: int | None = None
        self.origin: Callable[[str], str | None] | None = None
        """Maps a path in the request as it is sent to the path in the request as it came."""

    def add(self, code: str, path: str | None = None, **fields: object) -> None:
        """Add a warning about the place at `path`."""
        if self.origin is not None and path is not None:
            path = self.origin(path)
        self.warnings.append(make_warning(code, path, target=self.target, **fields))

    def add_here(self, code: str, **fields: object) -> None:
        """Add a warning about the part at the cursor."""
        path = self.message_path()
        if self.part is not None:
            path = f"{path}.content[{self.part}]"
            if self.inner is not None:
                path = f"{path}.content[{self.inner}]"
        self.add(code, path, **fields)

    def message_path(self) -> str:
        """The path of the message at the cursor."""
        return f"messages[{self.message}]"

    def setting_dropped(self, name: str, when: str = "", path: str | None = None) -> None:
        """Add a warning about a dropped setting; `when` is a clause such as ` while thinking`."""
        from interlingua.spec.warning_table import SETTING_DROPPED

        self.add(SETTING_DROPPED[name], path or name, setting=name, when=when)

    def setting_implied(self, name: str, path: str | None = None) -> None:
        """Add a note about a setting that was left out because the target does the same anyway."""
        from interlingua.spec.warning_table import SETTING_IMPLIED

        self.add(SETTING_IMPLIED[name], path or name, setting=name)

    def media_dropped(self, kind: str, media: str) -> None:
        """
        Add a warning about media at the cursor; `media` says what is not supported.

        Of a tool's result, media must be replaced by a text note.
        """
        from interlingua.spec.warning_table import MEDIA_DROPPED

        if self.inner is None:
            self.add_here(MEDIA_DROPPED[kind], part=kind, media=media)
        else:
            self.add_here("result_media_as_text", media=media)


# The loss policy.


_message_index = re.compile(r"messages\[(\d+)\]").match
_is_part = re.compile(r"messages\[\d+\]\.content\[\d+\]").fullmatch
_FORCED = ("required", "named")
_PROMPTS = ("system", "developer")


def kind_of(warning: Warning) -> WarningKind:
    """The kind of a warning; a code that is not in the table counts as a dropped setting."""
    from interlingua.spec.warning_table import WARNINGS

    row = WARNINGS.get(warning.code)
    return "setting" if row is None else row.kind


def is_loss(warning: Warning) -> bool:
    """Whether something was dropped or changed its meaning."""
    return kind_of(warning) != "note"


def raising_losses(
    warnings: Iterable[Warning], request: Request, on_loss: OnLoss = "content"
) -> list[Warning]:
    """The warnings for which this loss policy refuses the request."""
    if on_loss == "warn":
        return []
    if on_loss == "strict":
        return [warning for warning in warnings if is_loss(warning)]
    return [warning for warning in warnings if _is_asked_now(warning, request)]


LOSSES = "does not allow these losses: "
"""What stands before the losses in the message of an `UnsupportedError`."""


def check_losses(
    warnings: Iterable[Warning], request: Request, on_loss: OnLoss = "content"
) -> None:
    """Raise `UnsupportedError` if this loss policy refuses the request; it lists every loss."""
    losses = raising_losses(warnings, request, on_loss)
    if not losses:
        return
    sentences = " ".join(f"{warning.message} [{warning.code}]" for warning in losses)
    about_choice = any(warning.code.startswith("tool_choice") for warning in losses)
    error = UnsupportedToolChoiceError if about_choice else UnsupportedError
    raise error(
        f"The request was not sent, because on_loss={on_loss!r} {LOSSES}"
        f"{sentences} Use another model, or send it anyway with on_loss='warn'."
    )


def current_turn_first(warnings: Iterable[Warning], request: Request) -> tuple[Warning, ...]:
    """The warnings, those about earlier messages last."""
    found = tuple(warnings)
    if len(found) < 2:
        return found
    first = _current_turn(request)
    return tuple(sorted(found, key=lambda warning: _is_earlier(warning, first)))


def _is_asked_now(warning: Warning, request: Request) -> bool:
    """Whether the loss is of something that the current turn asks for."""
    if kind_of(warning) != "content":
        return False
    if warning.code.startswith("tool_choice"):
        return request.tool_choice is not None and request.tool_choice.mode in _FORCED
    path = warning.path or ""
    if not path.startswith("messages["):
        return True
    # Media that a tool returned is not the user's, and a run must not fail after its side effects.
    found = _is_part(path) and _message_index(path)
    if not found:
        return False
    index = int(found[1])
    role = request.messages[index].role
    if role in _PROMPTS:
        return True  # instructions apply to every turn
    return index >= _current_turn(request) and role == "user"


def _is_earlier(warning: Warning, first: int) -> bool:
    found = _message_index(warning.path or "")
    return found is not None and int(found[1]) < first


def _current_turn(request: Request) -> int:
    """The index of the first of the last user messages."""
    messages = request.messages
    first = len(messages)
    while first and messages[first - 1].role != "user":
        first -= 1
    while first and messages[first - 1].role not in ("assistant", "tool"):
        first -= 1
    return first
