"""Cancels a coroutine at each place where it waits, in a known order."""

import asyncio


class Steps:
    """
    Runs a coroutine in the task that awaits this, and cancels that task where it waits.

    `at` is the number of the wait; None never cancels. With `late`, what is waited for has ended
    when the task is cancelled, but the coroutine has not seen it yet. With `twice`, the task is
    cancelled once more where it waits next.
    """

    def __init__(self, work, at=None, *, late=False, twice=False):
        self._work = work
        self._places = () if at is None else (at, at + 1) if twice else (at,)
        self._late = late
        self.count = 0
        """How often the coroutine has waited."""

    def __await__(self):
        task = asyncio.current_task()
        work = self._work.__await__()
        value, error = None, None
        while True:
            try:
                waited_for = work.send(value) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            if self.count in self._places:
                self._cancel(task, waited_for)
            self.count += 1
            try:
                value, error = (yield waited_for), None
            except BaseException as raised:  # noqa: BLE001 -- the coroutine gets it
                value, error = None, raised

    def _cancel(self, task, waited_for):
        if self._late and waited_for is not None:
            # Before the task adds its own callback, so that it is cancelled first.
            waited_for.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()


async def cancelled_at(make, at, **moment):
    """Run a new coroutine, cancelled at this wait; whether it got there."""
    steps = Steps(make(), at, **moment)

    async def run():
        await steps

    task = asyncio.create_task(run())
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()  # raises any other error
    return steps.count > at
