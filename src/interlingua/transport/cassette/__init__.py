"""Cassettes: HTTP exchanges recorded to a file and replayed from it."""

from interlingua.transport.cassette.record import RecordingTransport
from interlingua.transport.cassette.replay import ReplayTransport

__all__ = ["RecordingTransport", "ReplayTransport"]
