"""What a noisy server may make this process log and print in a minute."""

import logging

from interlingua.api.tools.mcp.noise import Allowance, LimitedRecords, limited_stderr


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


def test_an_allowance_is_for_a_minute():
    """What is left of it, then nothing, then all of it again."""
    clock = Clock()
    allowance = Allowance(10, clock)

    assert [allowance.take(6), allowance.take(6), allowance.take(6)] == [6, 4, 0]
    assert allowance.is_spent
    clock.now += 59
    assert allowance.take() == 0
    clock.now += 1
    assert allowance.take(3) == 3
    assert not allowance.is_spent


def record(line, text="%s", *args):
    return logging.LogRecord("mcp.x", logging.ERROR, "x.py", line, text, args, None)


def test_records_are_limited_by_their_kind():
    """The last one of a kind says that there are more; another kind is not concerned."""
    clock = Clock()
    limited = LimitedRecords(clock)
    passed = [each for each in (record(1, "n %d", n) for n in range(50)) if limited.filter(each)]

    assert [each.getMessage() for each in passed[:2]] == ["n 0", "n 1"]
    assert len(passed) == 20
    assert passed[-1].getMessage() == "n 19 (more records like this follow; not logged)"
    assert limited.filter(record(2, "other"))
    clock.now += 60
    assert limited.filter(record(1, "again"))


def test_little_on_stderr_is_written_as_it_is():
    """Nothing is added."""
    written = []
    write = limited_stderr("git", written.append)
    for _ in range(100):
        write(b"a line\n")

    assert b"".join(written) == b"a line\n" * 100
