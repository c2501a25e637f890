"""
Every operation of every dialect, performed against the simulator.

The requests are what clients send, the replies what providers send: the accepted inputs of both
sides. An operation without an entry in `_VALUES` is an error, so that a new one is not forgotten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from interlingua import dialects
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.batches import BatchRequests
from interlingua.providers.rows import providers
from interlingua.simulator import Simulator
from interlingua.spec.content import Audio, Image
from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.modalities.batch import BatchInput, BatchQuery
from interlingua.spec.modalities.embeddings import EmbedInput
from interlingua.spec.modalities.files import FileInput, ListFilesInput, UploadInput
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.modalities.judgements import ModerateInput, RerankInput
from interlingua.spec.modalities.speech import SpeakInput, TranscribeInput
from interlingua.spec.modalities.video import CreateVideoInput, VideoQuery
from interlingua.spec.operations import Operation, OperationInput
from interlingua.spec.request import Request
from interlingua.transport import AsgiTransport, CannedReply
from interlingua.transport.bodies import with_whole_body
from interlingua.transport.canned import open_reply
from interlingua.wire.wav import wrap_samples

ADDRESS = "http://simulator.invalid"
GENERATED = "file-000000000001"
NOTHING = (b"\0\0", b"")
"""A replacement that changes nothing: no reply has these bytes."""
_BASES = {"vertex": "/v1/projects/p/locations/l/publishers/google"}
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002"
    "000001e221bc330000000049454e44ae426082"
)
_WAV = wrap_samples(bytes(8), 8000)


class Exchange(NamedTuple):
    """One HTTP request of a client and the reply of the simulator."""

    request: HttpRequest
    reply: CannedReply


class Performed(NamedTuple):
    """An operation that was performed: its value, its exchanges, and its result."""

    dialect: str
    key: str
    """Its name and its variant, such as `embed.mistral`."""
    value: Callable[[], Any]
    """Makes the value of the operation: that of a batch can be used once."""
    exchanges: list[Exchange]
    before: list[Exchange]
    """What was sent to the same simulator before."""
    result: Any


class Recorder:
    """A transport to the simulator that keeps what it sends and gets."""

    def __init__(self, app: Simulator) -> None:
        self._transport = AsgiTransport(app)
        self.exchanges: list[Exchange] = []
        self.renames: tuple[bytes, bytes] = NOTHING
        """A word of replies, and what stands in its place."""

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        whole = await with_whole_body(request)
        async with self._transport.send(whole) as reply:
            canned = CannedReply(
                status=reply.status,
                headers=dict(reply.headers),
                body=(await reply.read()).replace(*self.renames),
            )
        self.exchanges.append(Exchange(whole, canned))
        async with open_reply(canned) as opened:
            yield opened

    async def close(self) -> None:
        await self._transport.close()


class State:
    """What the operations of a dialect have made so far, for the values of the next ones."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}

    def file_id(self, *, generated: bool = False) -> str:
        if generated:  # what was uploaded cannot be downloaded everywhere
            return GENERATED
        return self.results["upload_file"].id

    def batch(self) -> BatchQuery:
        batch = self.results.get("retrieve_batch") or self.results["submit_batch"]
        output = batch.outputs[0] if batch.outputs else ""
        return BatchQuery(id=batch.id, batch=batch, output=output)

    def video(self) -> VideoQuery:
        job = self.results.get("retrieve_video") or self.results["create_video"]
        return VideoQuery(id=job.id, job=job, model=job.model)


def _batch(_state: State | None = None) -> BatchInput:
    async def items() -> AsyncIterator[tuple[str, Request]]:
        for number in range(2):
            yield f"r{number}", Request(model="simulated-model", messages="Hello?", max_tokens=9)

    return BatchInput(model="simulated-model", requests=BatchRequests(items()))


def _image() -> Image:
    return Image(data=_PNG, media_type="image/png")


def _audio() -> Audio:
    return Audio(data=_WAV, media_type="audio/wav")


_EMBEDDING = "simulated-embedding"
_TIMES = ("segment",)
_VALUES: dict[str, Callable[[State], Any]] = {
    # In this order: an operation may need the result of one before it.
    "list_models": lambda _: None,
    "retrieve_model": lambda _: OperationInput(model="simulated-model"),
    "count_tokens": lambda _: Request(model="simulated-model", messages="Hello?"),
    "embed": lambda _: EmbedInput(model=_EMBEDDING, inputs=("a", "b"), dimensions=8),
    "moderate": lambda _: ModerateInput(model="m", inputs=("a",)),
    "rerank": lambda _: RerankInput(model="m", query="a", documents=("a", "b"), top_n=2),
    "transcribe": lambda _: TranscribeInput(model="m", audio=_audio(), timestamps=_TIMES),
    "stream_transcription": lambda _: TranscribeInput(model="m", audio=_audio()),
    "speak": lambda _: SpeakInput(model="m", text="Hello.", voice="alloy", format="wav"),
    "stream_speech": lambda _: SpeakInput(model="m", text="Hello.", voice="alloy", format="pcm"),
    "generate_image": lambda _: ImageInput(model="m", prompt="a cat", count=1, user="u"),
    "edit_image": lambda _: ImageInput(model="m", prompt="a hat", images=(_image(),)),
    "stream_image": lambda _: ImageInput(model="m", prompt="a cat", partial_images=1),
    "upload_file": lambda _: UploadInput(
        content=b"text", file_name="a.txt", media_type="text/plain", purpose="user_data"
    ),
    "list_files": lambda _: ListFilesInput(limit=3),
    "retrieve_file": lambda state: FileInput(file_id=state.file_id()),
    "download_file": lambda state: FileInput(file_id=state.file_id(generated=True)),
    "delete_file": lambda state: FileInput(file_id=state.file_id()),
    "submit_batch": _batch,
    "list_batches": lambda _: BatchQuery(limit=3),
    "retrieve_batch": lambda state: state.batch(),
    "batch_results": lambda state: state.batch(),
    "cancel_batch": lambda state: state.batch(),
    "delete_batch": lambda state: state.batch(),
    "create_video": lambda _: CreateVideoInput(model="m", prompt="a cat", seconds=4),
    "list_videos": lambda _: VideoQuery(model="m", limit=3),
    "retrieve_video": lambda state: state.video(),
    "download_video": lambda state: state.video(),
    "remix_video": lambda state: CreateVideoInput(source_id=state.video().id, prompt="a hat"),
    "cancel_video": lambda state: state.video(),
    "delete_video": lambda state: state.video(),
}
_MORE_VALUES: dict[tuple[str, str], Any] = {
    ("openai_chat", "embed.voyage"): EmbedInput(
        model="voyage-multimodal-3.5", inputs=((_image(),),)
    ),
    ("gemini_generate", "embed"): EmbedInput(model=_EMBEDDING, inputs=("a",)),
    ("gemini_generate", "generate_image"): ImageInput(model="imagen-4.0-generate-001", prompt="a"),
}
"""Values for which an operation uses another endpoint."""
_LOOKS = {"retrieve_video": 3}
"""How often a job is looked at until it has ended."""
_RENAMES = {"stream_transcription.mistral": (b"transcript.text.done", b"transcription.done")}
"""Where the simulator has only OpenAI's names of events."""


def make_adapter(dialect: str, variant: str, transport: Any) -> HttpAdapter:
    """An adapter of the first row that speaks the dialect."""
    row = next(row for row in providers().values() if row.dialect == dialect)
    return HttpAdapter(row, "key", base_url=ADDRESS + _BASES.get(variant, ""), transport=transport)


def make_simulator() -> Simulator:
    """A simulator with one file that it made, whose batches end at the first look."""
    app = Simulator(batch_polls=1)
    value = UploadInput(content=b"made", file_name="made.bin", media_type="text/plain")
    made = app._operations.files.add_generated(value)  # noqa: SLF001 -- no call makes one
    assert made.id == GENERATED  # noqa: S101
    return app


async def perform(adapter: HttpAdapter, operation: Operation, value: Any) -> Any:
    """The result of an operation; of a streamed one, all items."""
    result = await adapter.perform(operation, value)
    return [item async for item in result] if isinstance(result, AsyncIterator) else result


async def record(dialect: str) -> list[Performed]:
    """Perform every operation of a dialect, each variant with a simulator of its own."""
    operations = getattr(dialects.get(dialect), "OPERATIONS", {})
    unknown = {key.partition(".")[0] for key in operations} - set(_VALUES)
    if unknown:
        raise KeyError(f"{', '.join(sorted(unknown))}: add a value to `_VALUES`.")
    variants = dict.fromkeys(key.partition(".")[2] for key in operations)
    return [each for name in variants for each in await _record(dialect, operations, name)]


def _is_stateful(key: str) -> bool:
    return any(word in key for word in ("file", "batch", "video"))


async def _record(
    dialect: str, operations: Mapping[str, Operation], variant: str
) -> list[Performed]:
    state, recorder = State(), Recorder(make_simulator())
    adapter = make_adapter(dialect, variant, recorder)
    performed: list[Performed] = []
    for key, make in _steps(dialect, operations, variant):
        start, recorder.renames = len(recorder.exchanges), _RENAMES.get(key, NOTHING)
        value, name = make(state), operations[key].name
        result = state.results[name] = await perform(adapter, operations[key], value)
        again = _batch if name == "submit_batch" else partial(_same, value)
        before = [each for one in performed if _is_stateful(one.key) for each in one.exchanges]
        exchanges = recorder.exchanges[start:]
        performed.append(Performed(dialect, key, again, exchanges, before, result))
    await adapter.close()
    return performed


def _steps(
    dialect: str, operations: Mapping[str, Operation], variant: str
) -> Iterable[tuple[str, Callable[[State], Any]]]:
    """The operations of a variant in their order, each with what makes its value."""
    for name, make in _VALUES.items():
        key = f"{name}.{variant}".rstrip(".")
        if key in operations:
            yield from [(key, make)] * _LOOKS.get(name, 1)
        if (dialect, key) in _MORE_VALUES:
            yield key, partial(_same, _MORE_VALUES[dialect, key])


def _same(value: Any, _state: State | None = None) -> Any:
    return value


def all_exchanges(performed: Iterable[Performed]) -> Iterable[tuple[list[Exchange], Exchange]]:
    """Each exchange, with what must be sent to a new simulator before it."""
    for each in performed:
        for number, exchange in enumerate(each.exchanges):
            before = [*each.before, *each.exchanges[:number]] if _is_stateful(each.key) else []
            yield before, exchange
