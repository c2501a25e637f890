"""
Files that the simulator keeps in memory, and batches, which read and write such files.

A batch is answered by the script of the simulator, a share each time that a client polls it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import Audio, Document, Image
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError, NotFoundError, SDKError
from interlingua.spec.messages import Message
from interlingua.spec.modalities.batch import (
    ENDED,
    Batch,
    BatchCounts,
    BatchFault,
    BatchQuery,
    BatchReply,
    BatchState,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    ListFilesInput,
    StoredFile,
    UploadChunk,
    UploadInput,
    UploadProgress,
)
from interlingua.wire.batches import cancelled, is_expired

POLLS = 2
"""How often a batch is asked for until it has ended."""
_DAY = 86_400.0
Answer: TypeAlias = Callable[[str, WireCall], BatchReply]
"""Answers one request of a batch, from its id and its call."""
PROCESSED = ("video/", "audio/")
"""Media of these types is processed when it is first asked for after its upload."""


class SimulatedFiles:
    """The files, newest first, as the vendors list them."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._files: dict[str, tuple[StoredFile, bytes]] = {}
        self._uploads: dict[str, tuple[UploadInput, bytearray]] = {}
        self._numbers: Iterator[int] = count(1)

    def upload_file(self, value: UploadInput) -> StoredFile:
        """The file, which exists from now on."""
        return self._store(value, is_generated=False)

    def add_generated(self, value: UploadInput) -> StoredFile:
        """A file that the provider itself has made, such as the results of a batch."""
        return self._store(value, is_generated=True)

    def check_messages(self, messages: Iterable[Message], address: str | None) -> None:
        """
        `NotFoundError` if a part refers to a file that does not exist.

        With `address`, the beginning of the addresses of files, parts refer to them by these.
        """
        self._drop_expired()
        for message in messages:
            for part in message.content:
                if not isinstance(part, (Image, Audio, Document)):
                    continue
                file_id = part.file_id
                if address is not None and part.url is not None and part.url.startswith(address):
                    file_id = part.url.removeprefix(address)
                if file_id is not None and file_id not in self._files:
                    raise _not_found(file_id)

    def _store(self, value: UploadInput, *, is_generated: bool) -> StoredFile:
        data = value.content if isinstance(value.content, bytes) else b""
        now = float(int(self._clock()))
        is_processed = (value.media_type or "").startswith(PROCESSED)
        file = StoredFile(
            id=f"file-{next(self._numbers):012d}",
            file_name=value.file_name,
            media_type=value.media_type,
            size=len(data),
            purpose=value.purpose,
            state="processing" if is_processed else "ready",
            created_at=now,
            expires_at=None if value.expires_after is None else now + value.expires_after,
            downloadable=is_generated,
        )
        self._files[file.id] = (file, data)
        return file

    def upload_chunk(self, value: UploadChunk) -> StoredFile | UploadProgress:
        """The state of an upload after this piece; the file after the last piece."""
        if value.upload_id is None:
            upload_id = f"upload-{next(self._numbers):012d}"
            self._uploads[upload_id] = (value.file, bytearray())
            return UploadProgress(upload_id=upload_id)
        announced, received = self._uploads.get(value.upload_id, (None, bytearray()))
        if announced is None:
            raise NotFoundError(f"No such upload: {value.upload_id}.", status_code=404)
        if value.offset != len(received):
            message = f"The upload has {len(received)} bytes, and the offset is {value.offset}."
            raise InvalidRequestError(message, status_code=400)
        received += value.content
        if not value.is_last:
            return UploadProgress(upload_id=value.upload_id, received=len(received))
        del self._uploads[value.upload_id]
        return self.upload_file(replace(announced, content=bytes(received)))

    def retrieve_file(self, value: FileInput) -> StoredFile:
        """The file; a file that is being processed is ready at the next request."""
        file, data = self._find(value)
        self._files[file.id] = (replace(file, state="ready"), data)
        return file

    def list_files(self, _value: ListFilesInput) -> list[StoredFile]:
        """All files."""
        self._drop_expired()
        return [file for file, _ in reversed(self._files.values())]

    def delete_file(self, value: FileInput) -> DeletedFile:
        """The id of the file, which no longer exists."""
        file, _ = self._find(value)
        del self._files[file.id]
        return DeletedFile(file_id=file.id)

    def download_file(self, value: FileInput) -> bytes:
        """The bytes of a file."""
        file, data = self._find(value)
        if file.state == "failed":
            raise InvalidRequestError(f"File {file.id} has failed.", status_code=400)
        if value.only_generated and not file.downloadable:
            message = f"File {file.id} was uploaded: only generated files can be downloaded."
            raise InvalidRequestError(message, status_code=400)
        return data

    def _find(self, value: FileInput) -> tuple[StoredFile, bytes]:
        self._drop_expired()
        entry = self._files.get(value.file_id)
        if entry is None:
            raise _not_found(value.file_id)
        return entry

    def _drop_expired(self) -> None:
        now = self._clock()
        for file, _ in list(self._files.values()):
            if file.expires_at is not None and file.expires_at <= now:
                del self._files[file.id]


def _not_found(file_id: str) -> NotFoundError:
    return NotFoundError(f"No such File object: {file_id}.", status_code=404)


class SimulatedBatches:
    """The batches, newest first, as the vendors list them."""

    def __init__(
        self,
        files: SimulatedFiles,
        answer: Answer,
        polls: int = POLLS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._answer = answer
        self._polls = polls
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._numbers: Iterator[int] = count(1)

    def submit_batch(self, value: BatchSubmission) -> ServedBatch:
        """The batch, which is queued; it fails if its requests cannot be read."""
        job = _Job(f"{value.id_prefix}{next(self._numbers):012d}", value, float(int(self._clock())))
        if value.file_id is None:
            job.take(value.calls)
            if job.faults:
                raise InvalidRequestError(job.faults[0].message, status_code=400)
        else:
            data = self._files.download_file(FileInput(file_id=value.file_id))
            try:
                job.take(value.read(data) if value.read else ())
            except SDKError as error:
                job.faults = (BatchFault(message=error.message, code="invalid_json_line"),)
        self._jobs[job.id] = job
        return job.served()

    def retrieve_batch(self, value: BatchQuery) -> ServedBatch:
        """The batch, after a share of its requests was answered."""
        job = self._find(value)
        if job.faults and job.state not in ENDED:
            self._end(job, "failed")
        elif job.state == "cancelling":
            job.replies += [BatchReply(id=each, error=cancelled()) for each, _ in job.pending]
            job.pending = []
            self._end(job, "cancelled")
        elif job.state not in ENDED:
            job.state = "in_progress"
            share = -(-job.total // self._polls)
            now, job.pending = job.pending[:share], job.pending[share:]
            job.replies += [self._answer(item_id, call) for item_id, call in now]
            if not job.pending:
                self._end(job, "expired" if any(map(is_expired, job.replies)) else "completed")
        return job.served()

    def list_batches(self, value: BatchQuery) -> list[ServedBatch]:
        """The batches of one dialect."""
        jobs = reversed(self._jobs.values())
        return [job.served() for job in jobs if job.value.owner == value.owner]

    def cancel_batch(self, value: BatchQuery) -> ServedBatch:
        """The batch; at the next request for it, its unanswered requests are cancelled."""
        job = self._find(value)
        if job.state not in ENDED:
            job.state = "cancelling"
        return job.served()

    def batch_results(self, value: BatchQuery) -> ServedBatch:
        """The batch with its results, which must have ended."""
        job = self._find(value)
        if job.state not in ENDED:
            raise NotFoundError(f"The batch {job.id} has no results yet.", status_code=404)
        return job.served()

    def delete_batch(self, value: BatchQuery) -> ServedBatch:
        """The batch, which no longer exists; it must have ended."""
        job = self._find(value)
        if job.state not in ENDED:
            raise InvalidRequestError(f"The batch {job.id} has not ended.", status_code=400)
        return self._jobs.pop(job.id).served()

    def _find(self, value: BatchQuery) -> _Job:
        job = self._jobs.get(value.id)
        if job is None:
            raise NotFoundError(f"No such batch: {value.id}.", status_code=404)
        return job

    def _end(self, job: _Job, state: BatchState) -> None:
        job.state, job.ended_at = state, float(int(self._clock()))
        if not job.value.keeps_order:
            job.replies.reverse()
        write = job.value.write
        if write is None or not job.replies:
            return
        good = job.replies
        if job.value.splits_errors:
            bad = [reply for reply in good if not _is_answer(reply)]
            good = [reply for reply in good if _is_answer(reply)]
            job.error_file = self._store(write(bad), "error") if bad else None
        job.output_file = self._store(write(good), "output") if good else None

    def _store(self, data: bytes, kind: str) -> str:
        name, media_type = f"batch_{kind}.jsonl", "application/jsonl"
        file = UploadInput(
            content=data, file_name=name, media_type=media_type, purpose="batch_output"
        )
        return self._files.add_generated(file).id


class _Job:
    """One batch."""

    def __init__(self, job_id: str, value: BatchSubmission, now: float) -> None:
        self.id = job_id
        self.value = value
        self.state: BatchState = "queued"
        self.created_at = now
        self.ended_at: float | None = None
        self.total = 0
        self.pending: list[tuple[str, WireCall]] = []
        self.replies: list[BatchReply] = []
        self.faults: tuple[BatchFault, ...] = ()
        self.output_file: str | None = None
        self.error_file: str | None = None

    def take(self, calls: tuple[tuple[str, WireCall], ...]) -> None:
        """Take the requests; a vendor that refuses them says so in the faults of the batch."""
        self.pending, self.total = list(calls), len(calls)
        refusal = _refusal(self.value, calls)
        if refusal is not None:
            self.faults = (BatchFault(code=refusal[0], message=refusal[1]),)

    def served(self) -> ServedBatch:
        """The batch as it is now."""
        ended = {"succeeded": 0, "failed": 0, "cancelled": 0, "expired": 0}
        for reply in self.replies:
            ended[_outcome(reply)] += 1
        batch = Batch(
            id=self.id,
            model=self.value.model,
            state=self.state,
            counts=BatchCounts(total=self.total, **ended),
            endpoint=self.value.endpoint,
            created_at=self.created_at,
            expires_at=self.created_at + _DAY,
            ended_at=self.ended_at,
            input_file=self.value.file_id,
            faults=self.faults if self.state == "failed" else (),
            extra=self.value.extra,
        )
        return ServedBatch(
            batch=batch,
            replies=tuple(self.replies),
            output_file=self.output_file,
            error_file=self.error_file,
        )


def _refusal(
    value: BatchSubmission, calls: tuple[tuple[str, WireCall], ...]
) -> tuple[str, str] | None:
    """The code and the words with which the vendors refuse a whole batch; None if they do not."""
    if not calls:
        return "empty_file", "The batch has no requests."
    if value.max_items is not None and len(calls) > value.max_items:
        return "too_many_requests", f"The batch has more than {value.max_items:,} requests."
    if len({item_id for item_id, _ in calls}) < len(calls):
        return "duplicate_custom_id", "The ids of the requests must be different."
    if value.endpoint and any(call.path != value.endpoint for _, call in calls):
        return "invalid_url", f"The url of each request must be {value.endpoint}."
    models = {call.body.get("model") for _, call in calls if isinstance(call.body, dict)}
    if value.single_model and len(models) > 1:
        return "mismatched_model", "All requests of the batch must have the same model."
    return None


def _is_answer(reply: BatchReply) -> bool:
    return reply.error is None and reply.status < 300


def _outcome(reply: BatchReply) -> str:
    if reply.error is not None:
        return "expired" if is_expired(reply) else "cancelled"
    return "succeeded" if reply.status < 300 else "failed"
