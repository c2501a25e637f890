"""
Timeouts of real sockets, in tests that must hold on a machine of any speed.

What runs in this process alone uses `virtual_time` instead.
"""

PATIENCE = 50.0
"""
Seconds a test waits for what must happen; it is no measure of speed.

Fewer than the minute for which tests put calls to sleep that are to be ended early.
"""


def with_some_timeout(check, first=0.2):
    """
    Call `check(seconds)` with longer and longer timeouts until it holds.

    For what must come before a timeout that the test then waits for: how long that takes is a
    matter of the machine, and what must follow does not depend on the length of the timeout.
    """
    seconds = first
    while True:
        try:
            return check(seconds)
        except Exception:
            if seconds > PATIENCE / 3:
                raise
        seconds *= 4
