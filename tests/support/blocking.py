"""The blocking client against the simulator, in this process and in programs of their own."""

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interlingua import sync
from interlingua.simulator import latency, text
from support.patience import PATIENCE
from support.simulated import MODELS, simulated

WORDS = text("word " * 40)
NEVER = text("never") + latency(first=60)

PROGRAM = """
import asyncio, gc, os, signal, sys, threading, time
from interlingua import OpenAIAdapter, Request, sync, tool

client = sync.Client({"it": OpenAIAdapter("key", base_url=sys.argv[1])}, default_provider="it")
ask = Request(model="gpt-5.2", messages="Hello")
"""
"""What the programs begin with."""


@contextlib.contextmanager
def blocking(*answers, **settings):
    """A simulator that answers so, and a client."""
    with simulated(*answers, **settings) as peer, sync.Client.wrap(peer.client) as client:
        yield peer, client


@contextlib.contextmanager
def interrupted():
    """A signal that raises comes while the main thread waits: soon after what is yielded is called.

    Any thread may call it. It raises what Ctrl-C raises: an `Exception` may come before the main
    thread waits, in code of others that catches it and tries again.
    """

    def leave(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, leave)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def named(provider):
    return f"{provider}:{MODELS[provider]}"


def until(condition):
    """Wait until it is so."""
    for _ in range(int(PATIENCE / 0.005)):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it never came to be so")


def left(peer):
    """Whether the server has seen the client go away in the middle of its last answer."""
    received = peer.app.script.received
    return bool(received) and received[-1].disconnected is not None


def start(code, url):
    """A program with every warning an error."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM + code, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )


def says(code, url):
    """What a program says, on both its outputs, and how it ended."""
    with start(code, url) as program:
        try:
            out, err = program.communicate(timeout=60)
        finally:
            program.kill()
    return out, err, program.returncode
