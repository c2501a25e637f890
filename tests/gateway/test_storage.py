"""How much a gateway stores for one key: files, jobs and responses, in every store."""

import io

import anthropic
import openai
import pytest

from interlingua.gateway.config import gateway_from_file
from interlingua.gateway.keys import Key, hash_key
from interlingua.serving import Caller, KeptResponses, Storage
from interlingua.serving.storage import Room
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError, QuotaExceededError
from interlingua.stores import MemoryStore
from support.gateways import gateway
from support.simulated import adapters
from support.stores import KINDS, Blocking, Clock
from support.wire_requests import ask

DATA = bytes(100)
OTHER = Key(hash_key("il_other"), Caller("other", storage=Storage(files=1)))


def file_of_openai(front, data=DATA):
    return front.openai().files.create(file=("a.txt", data), purpose="user_data").id


def file_of_anthropic(front, data=DATA):
    return front.anthropic().beta.files.upload(file=("a.txt", io.BytesIO(data), "text/plain")).id


def file_of_gemini(front, data=DATA):
    client = front.gemini()  # it is closed when nobody has it
    return client.files.upload(file=io.BytesIO(data), config={"mime_type": "text/plain"}).name


WAYS = {"openai": file_of_openai, "anthropic": file_of_anthropic, "gemini": file_of_gemini}
every_way = pytest.mark.parametrize("way", WAYS)


def delete(front, way, file_id):
    if way == "openai":
        front.openai().files.delete(file_id)
    elif way == "anthropic":
        front.anthropic().beta.files.delete(file_id)
    else:
        client = front.gemini()
        client.files.delete(name=file_id)


@pytest.fixture(scope="module")
def upstream():
    simulator = Simulator(lambda _: text("Hello."))
    with serve_in_thread(simulator) as server:
        yield server.url, simulator


def limited(upstream, **most):
    """A gateway with little room."""
    return gateway(adapters(upstream[0]), storage=Storage(**most), others=(OTHER,))


@every_way
def test_files_are_limited(upstream, way):
    """The client's own error, which says what to do; a deleted file makes room for another."""
    upload = WAYS[way]
    with limited(upstream, files=2) as front:
        first, _ = upload(front), upload(front)
        with pytest.raises(Exception, match=r"may have 2 files here.*Delete some") as caught:
            upload(front)
        delete(front, way, first)
        upload(front)
        with pytest.raises(Exception, match="may have 2 files here"):
            upload(front)

    assert caught.type.__module__.partition(".")[0] in ("openai", "anthropic", "google")


@every_way
def test_their_bytes_are_limited(upstream, way):
    """All of them together."""
    upload = WAYS[way]
    with limited(upstream, file_bytes=250) as front:
        first, _ = upload(front), upload(front)
        with pytest.raises(Exception, match=r"may have 250 bytes together.*Delete some"):
            upload(front)
        delete(front, way, first)
        upload(front, bytes(150))


def test_a_key_has_its_own_storage(upstream):
    """And none of what others have stored counts."""
    with limited(upstream, files=2) as front:
        file_of_openai(front)
        file_of_openai(front)
        other = front._replace(key="il_other")
        file_of_openai(other)
        with pytest.raises(openai.APIStatusError, match="may have 1 files here"):
            file_of_openai(other)


def start(front):
    """Start an upload in pieces, as Google's client does; its path."""
    headers = {"x-goog-upload-command": "start", "x-goog-upload-protocol": "resumable"}
    made = ask(front, "/upload/v1beta/files", {"file": {}}, **headers)
    address = made.headers.get("x-goog-upload-url", "")
    return made, address.removeprefix(front.url)


def send(front, path, offset, data, command):
    headers = {"x-goog-upload-command": command, "x-goog-upload-offset": str(offset)}
    return ask(front, path, data, key="", **headers)


def test_uploads_that_do_not_end_are_limited(upstream):
    """Their number and their pieces, also without a key; what has ended counts once."""
    with limited(upstream, files=2, file_bytes=100) as front:
        begun = [start(front) for _ in range(3)]
        assert [made.status for made, _ in begun[:2]] == [200, 200]
        assert begun[2][0].status >= 400
        assert "may have 2 files here" in begun[2][0].text
        path = begun[0][1]
        text_of_38 = "x" * 36  # and two quotes
        assert send(front, path, 0, text_of_38, "upload").status == 200
        assert send(front, path, 38, text_of_38, "upload").status == 200
        refused = send(front, path, 76, text_of_38, "upload")
        assert refused.status >= 400
        assert "may have 100 bytes together" in refused.text
        assert send(front, path, 76, "x" * 20, "upload, finalize").status == 200
        with pytest.raises(openai.APIStatusError, match="may have 2 files here"):
            file_of_openai(front, b"")  # a file, and an upload that has not ended


def test_batches_are_limited(upstream):
    """Before a provider is asked; a deleted one makes room."""
    asked = {
        "custom_id": "a",
        "params": {
            "model": "anthropic:claude-haiku-4-5",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi"}],
        },
    }
    with limited(upstream, jobs=1) as front:
        batches = front.anthropic().messages.batches
        made = batches.create(requests=[asked])
        before = len(upstream[1].script.received)
        with pytest.raises(anthropic.APIStatusError, match="may have 1 batches and videos here"):
            batches.create(requests=[asked])
        assert len(upstream[1].script.received) == before
        batches.delete(made.id)
        batches.create(requests=[asked])


@pytest.mark.parametrize("most", [{"responses": 2}, {"response_bytes": 1_000}])
def test_kept_responses_are_limited(upstream, most):
    """Before a model is asked; a request that leaves nothing is answered."""
    url, simulator = upstream
    kept = KeptResponses(MemoryStore(), seconds=60)
    with gateway(adapters(url), storage=Storage(**most), kept=kept) as front:
        client = front.openai()
        asked = {"model": "openai:gpt-5.2", "input": "Hi"}
        first = client.responses.create(**asked)
        second = client.responses.create(**asked, previous_response_id=first.id)
        before = len(simulator.script.received)
        for refused in (
            lambda: client.responses.create(**asked),
            lambda: client.responses.create(**asked, stream=True),
            client.conversations.create,
        ):
            with pytest.raises(openai.BadRequestError, match="wait until older ones") as caught:
                refused()
            assert caught.value.code == "insufficient_quota"
        assert len(simulator.script.received) == before
        again = client.responses.create(**asked, previous_response_id=second.id, store=False)
        assert again.output_text == "Hello."


@pytest.mark.parametrize("kind", KINDS)
def test_every_store_counts(kind, tmp_path):
    """What is taken counts until it is given back, or until its time is over."""
    clock = Clock()
    blocking = Blocking(KINDS[kind](clock, tmp_path), clock)
    run = blocking._runner.run
    room = Room(blocking.store, "a/b é", Storage(files=3, file_bytes=10, responses=2))
    try:
        first = run(room.take(60, files=1, file_bytes=4))
        run(room.take(30, files=1, file_bytes=6))
        with pytest.raises(QuotaExceededError, match="10 bytes together"):
            run(room.take(60, files=1, file_bytes=1))
        run(room.give_back(first))
        run(room.give_back(first))
        run(room.take(60, files=1, file_bytes=4))
        run(room.take(60, files=1, file_bytes=0))
        with pytest.raises(QuotaExceededError, match="3 files here"):
            run(room.take(60, files=1, file_bytes=0))
        blocking.pass_ttl(31)
        run(room.take(60, files=1, file_bytes=6))
        for _ in range(2):
            run(room.check("responses", period=600))
            run(room.count(600, period=600, responses=1))
        with pytest.raises(QuotaExceededError, match="2 kept responses"):
            run(room.check("responses", period=600))
        blocking.pass_ttl(620)
        run(room.check("responses", period=600))
    finally:
        blocking.stop()


FILE = """
adapters: {{openai: {{api_key: k}}}}
gateway:
  storage: {{files: 5{more}}}
  keys:
    ann: {{hash: "{hash}", storage: {{file_bytes: 7}}}}
    bob: {{hash: "{hash}"}}
"""


def test_the_file_says_how_much(tmp_path):
    """For all keys, and for one."""
    path = tmp_path / "interlingua.yaml"
    path.write_text(FILE.format(more="", hash=hash_key("il_x")), "utf-8")
    ann, bob = gateway_from_file(path).keys

    assert ann.caller.storage == Storage(files=5, file_bytes=7)
    assert bob.caller.storage == Storage(files=5)


@pytest.mark.parametrize("more", [", files_bytes: 3", ", jobs: 0", ", jobs: many"])
def test_a_wrong_storage_is_told(tmp_path, more):
    """With the line."""
    path = tmp_path / "interlingua.yaml"
    path.write_text(FILE.format(more=more, hash=hash_key("il_x")), "utf-8")
    with pytest.raises(ConfigurationError, match=r"yaml.*4"):
        gateway_from_file(path)
