"""Errors of the upstream: how many requests an agent makes until it stops, and what it shows."""

from collections.abc import Callable
from dataclasses import dataclass

from tasks import ANSWER, Found, Ran, tail

from interlingua.errors import ContextLengthError, QuotaExceededError
from interlingua.simulator import Script, cut, error, fail, text

SECONDS = 40
"""After its first request an agent counts as going on for ever."""

_OPENED = 4
"""How often the upstream may be reached: three times, and once more after half a minute."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault, and what must hold of an agent that meets it."""

    name: str
    script: Callable
    words: tuple[str, ...] = ()
    """One of these must be shown."""
    most: int | None = None
    """How many requests the agent may make at most; None for any number."""
    reached: int | None = None
    """How many requests may reach the upstream at most; None for any number."""
    is_for_all: bool = False
    """Whether an agent meets it in each dialect that it speaks."""
    is_answered: bool = False
    """Whether the agent must show the answer in the end."""

    def judge(self, ran: Ran) -> Found:
        """The result, with the counts in its note."""
        shown = ran.ended.output
        reached = len(ran.simulator.script.received)
        is_over = ran.ended.code is not None
        count = f"{ran.asked} requests" if ran.asked != 1 else "1 request"
        count += f", {reached} upstream" if reached != ran.asked else ""
        count += "" if is_over else f", goes on after {SECONDS} s"
        problems = []
        if self.most is not None and (not is_over or ran.asked > self.most):
            problems.append("does not stop")
        if self.reached is not None and reached > self.reached:
            problems.append("the upstream is called too often")
        if self.is_answered and ANSWER not in shown:
            problems.append("no answer")
        if is_over and self.words and not any(word in shown.lower() for word in self.words):
            problems.append(f"shows {tail(shown)!r}")
        note = "; ".join([count, *problems])
        return Found(self.name, "fail" if problems else "pass", note)


_SPENT = "Your credit balance is too low: the budget of this month is spent."
_TOO_LONG = "prompt is too long: 250000 tokens > 200000 maximum"
_HALF = text(" ".join(f"word{number}" for number in range(400))) + cut(4000)

FAULTS = [
    Fault(
        name="budget spent",
        script=lambda: Script(fail(QuotaExceededError(_SPENT, status_code=402))),
        words=("credit balance", "budget", "quota", "billing"),
        most=2,  # some ask for a title too
        is_for_all=True,
    ),
    Fault(
        name="context overflow",
        script=lambda: Script(fail(ContextLengthError(_TOO_LONG, status_code=400))),
        words=("too long", "context", "token"),
        most=4,
    ),
    Fault(name="429 for ever", script=lambda: Script(error(429, retry_after=1))),
    Fault(name="500 for ever", script=lambda: Script(error(500)), reached=_OPENED),
    Fault(name="dead upstream", script=lambda: Script(cut()), reached=_OPENED),
    Fault(
        name="key of the gateway refused",
        script=lambda: Script(error(403, message="Forbidden.")),
        words=("gateway",),
    ),
    Fault(
        name="stream cut once",
        script=lambda: Script(_HALF, text(ANSWER)),
        is_answered=True,
        is_for_all=True,
    ),
]
