"""The blocking functions that ask models, and those that `blocking` cannot make."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Final, TypeVar

from interlingua.api.run import clients
from interlingua.api.run import generate as run
from interlingua.client import retry_policy
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.spec.errors import SDKError
from interlingua.sync.blocking import blocking, documented_by
from interlingua.sync.client import Client
from interlingua.sync.loop_thread import background

T = TypeVar("T")

generate: Final = blocking(run.generate, __name__)


@documented_by(retry_policy.retry)
def retry(call: Callable[[], T], policy: RetryPolicy = DEFAULT_POLICY) -> T:
    retry_policy.check_callable(call)
    for attempt in count():
        try:
            return call()
        except SDKError as error:
            delay = policy.delay(error, attempt)
            if delay is None:
                raise
            background.run(policy.notify(error, attempt, delay))
        time.sleep(delay)
    raise AssertionError("unreachable")


def get_default_client() -> Client:
    """
    Return the client of functions without `client=`, as a blocking client.

    It is the one that was set, or else one made from the environment on first use. The async
    functions use the same one.
    """
    return Client.wrap(clients.get_default_client())
