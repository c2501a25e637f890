"""
An event loop whose time passes only while nothing can be done.

A second of sleep takes no real time, and a slow machine changes no order: use it for what runs in
this process alone. Threads and sockets are not waited for while a timer is running.
"""

import asyncio
import selectors


class _Selector(selectors.DefaultSelector):
    now = 1_000.0

    def select(self, timeout=None):
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self):
        return self._virtual.now

    def hold_up(self, seconds):
        """Let time pass while nothing else runs, as a slow function would."""
        self._virtual.now += seconds


def run(work):
    """Run a coroutine to its end, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


def now():
    """The time of the running event loop; a clock for stores."""
    return asyncio.get_running_loop().time()
