"""Giving up, from anywhere: a controller, and the signal it gives."""

from __future__ import annotations

import threading
from collections.abc import Callable

from interlingua.spec.errors import AbortError


class AbortSignal:
    """Tells whether the work was given up. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []
        self._reason: str | None = None

    @property
    def aborted(self) -> bool:
        """Whether it was."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why, in the words of whoever gave up."""
        return self._reason

    def raise_if_aborted(self) -> None:
        """`AbortError` if it was."""
        if self._reason is not None:
            raise AbortError(self._reason)

    def add_callback(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` when it is, at once if it was; the function returned takes it back."""
        with self._lock:
            waits = self._reason is None
            if waits:
                self._callbacks.append(callback)
        if not waits:
            callback()

        def remove() -> None:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

        return remove

    def _fire(self, reason: str) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        errors: list[BaseException] = []
        for callback in callbacks:
            try:
                callback()
            except BaseException as error:  # noqa: BLE001 -- the others have to be told first
                errors.append(error)
        if len(errors) > 1:
            raise BaseExceptionGroup("callbacks of an abort signal failed", errors)
        if errors:
            raise errors[0]


class AbortController:
    """
    Holds the other end of a signal.

        controller = AbortController()
        task = generate(..., abort_signal=controller.signal)
        controller.abort()  # from any thread; asked twice it does nothing more
    """

    def __init__(self) -> None:
        self.signal: AbortSignal = AbortSignal()

    def abort(self, reason: str = "the caller gave up") -> None:
        """Give up: everyone is told, and then what a callback raised is raised here."""
        self.signal._fire(reason)  # noqa: SLF001 -- the two are one
