"""What the simulator answers to operations: canonical results, for all dialects alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from interlingua.simulator.operations.files import POLLS, Answer, SimulatedBatches, SimulatedFiles
from interlingua.simulator.operations.modalities import (
    embed,
    make_image,
    moderate,
    rerank,
    speak,
    transcribe,
)
from interlingua.simulator.operations.videos import SimulatedVideos, VideoScript
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.operations import OperationInput

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "edit_image": make_image,
    "embed": embed,
    "generate_image": make_image,
    "moderate": moderate,
    "rerank": rerank,
    "transcribe": transcribe,
    "speak": speak,
}
"""The operations that need no state."""


class SimulatedOperations:
    """Performs operations, and holds the state of files, videos and batches."""

    def __init__(
        self,
        check_model: Callable[[str], None],
        answer: Answer,
        *,
        videos: Iterable[VideoScript] = (),
        batch_polls: int = POLLS,
    ) -> None:
        self._check_model = check_model
        self.files: SimulatedFiles = SimulatedFiles()
        self.videos: SimulatedVideos = SimulatedVideos(self.files, videos)
        self.batches: SimulatedBatches = SimulatedBatches(self.files, answer, batch_polls)

    def perform(self, name: str, value: object) -> object:
        """The result of an operation; an unknown model is refused, as for an answer."""
        if isinstance(value, OperationInput) and value.model:
            self._check_model(value.model)
        owners = (self.batches, self.files, self.videos)
        holders = (holder for holder in owners if hasattr(holder, name))
        function = _FUNCTIONS.get(name) or getattr(next(holders, None), name, None)
        if function is None:
            raise UnsupportedError(f"The simulator does not perform {name!r}.")
        return function(value)
