"""`-f`: texts before the prompt, from files, web pages, names and stdin."""

import http.server
import io
import json
import threading
from types import SimpleNamespace

import pytest

from interlingua import Audio, Document, Image
from interlingua.cli.prompts import fetch_text, read_attachment, read_fragment
from interlingua.errors import ConfigurationError
from interlingua.simulator import Script, text
from support.cli import MODEL, Program, simulated

ASK = ("ask", "--no-log", "-m", "openai:gpt-5.2")


@pytest.fixture
def page():
    """A web server with one page of each kind; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("location", "/text")
                self.end_headers()
                return
            bodies = {"/text": "\ufeffSea → Meer\n".encode(), "/bytes": b"\x89PNG\r\n\x1a\n\xff"}
            body = bodies.get(self.path, b"x" * 10_000_001 if self.path == "/huge" else b"")
            self.send_response(200 if body else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def fetch(url):
    """Fetch from any address; the command fetches only from public ones."""
    return fetch_text(url, allowed=lambda _: True)


@pytest.mark.parametrize("path", ["/text", "/moved"])
def test_a_page_is_fetched(page, path):
    """Its text comes without a byte order mark and the last line end, also after a redirect."""
    assert fetch(f"{page}{path}") == "Sea → Meer"


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("/nothing", "HTTP 404"),
        ("/bytes", "is image/png; attach it with -a"),
        ("/huge", "larger than 10000000 bytes"),
    ],
)
def test_pages_that_are_no_fragments(page, path, complaint):
    """The error says why."""
    with pytest.raises(Exception, match=complaint):
        fetch(f"{page}{path}")


def test_only_public_addresses(page, program):
    """A page of this machine is not fetched: the URL may come from a stranger."""
    with pytest.raises(ConfigurationError, match="not a public address"):
        read_fragment(f"{page}/text")
    done = program.run(*ASK, "-f", f"{page}/text", "x")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "not a public address" in done.stderr


def test_fragments_come_before_the_prompt(program, tmp_path):
    """In their order: a file, a name in the folder, and stdin."""
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "fragments").mkdir()
    (tmp_path / "fragments" / "style.txt").write_text("two")
    fragments = ("-f", "a.txt", "-f", "style", "-f", "-")
    done = program.run(*ASK, *fragments, "four", stdin="three\n")

    assert done.stdout.endswith("You said: one\n\ntwo\n\nthree\n\nfour\n")


def test_fragments_of_a_chat(program, tmp_path):
    """They come before the first prompt only; stdin has the prompts."""
    (tmp_path / "a.txt").write_text("one")
    chat = ("chat", "-n", "-m", "openai:gpt-5.2", "-f")
    done = program.run(*chat, "a.txt", stdin="two\nthree\n")
    wrong = program.run(*chat, "-", stdin="two\n")

    assert "You said: one\n\ntwo\n" in done.stdout
    assert done.stdout.rstrip("\n").endswith("You said: three")
    assert wrong.returncode == 2
    assert "stdin has the prompts" in wrong.stderr


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_a_fragment_that_is_not_there(program, tmp_path, command):
    """One line, before anything is sent."""
    (tmp_path / "x.png").write_bytes(b"\xff\xfe")
    for name in ("nowhere.txt", "x.png"):
        done = program.run(command, "-n", "-m", "openai:gpt-5.2", "-f", name, stdin="x")
        assert done.returncode in (1, 2)
        assert len(done.stderr.splitlines()) == 1
        assert name in done.stderr


# Names and the log.


def test_a_fragment_is_kept_once(program, tmp_path):
    """By the hash of its content, whatever its name; the prompt of the log is without it."""
    (tmp_path / "a.txt").write_text("Fjords are deep.\n")
    program.run("fragments", "set", "fjords", "a.txt")
    for name in ("a.txt", "fjords"):
        assert program.run("ask", "-m", "openai:gpt-5.2", "-f", name, "Why?").returncode == 0
    rows = json.loads(program.run("fragments", "list", "--json").stdout)
    stored = [row for row in rows if not row["name"]]
    call = json.loads(program.run("log", "show", "1", "--json").stdout)

    assert [row["name"] for row in rows] == ["fjords", ""]
    assert [row["calls"] for row in stored] == [2]
    assert call["prompt"] == "Why?"
    assert [part["source"] for part in call["fragments"]] == ["a.txt"]
    assert "You said: Fjords are deep.\n\nWhy?" in call["answer"]
    assert len(json.loads(program.run("log", "search", "DEEP", "--json").stdout)) == 2
    key = stored[0]["hash"]
    for name in ("fjords", key, key[:12]):
        assert program.run("fragments", "show", name).stdout == "Fjords are deep.\n"
    (tmp_path / "a.txt").unlink()
    program.run("fragments", "remove", "fjords")
    again = program.run("ask", "-n", "-m", "openai:gpt-5.2", "-f", key[:12], "Why?")
    assert "Fjords are deep." in again.stdout


def test_a_fragment_of_a_chat_is_kept_with_its_first_prompt(program, tmp_path):
    """Later prompts are not kept with it again."""
    (tmp_path / "a.txt").write_text("Fjords.\n")
    program.run("chat", "-m", "openai:gpt-5.2", "-f", "a.txt", stdin="One?\nTwo?\n")
    calls = [json.loads(program.run("log", "show", n, "--json").stdout) for n in ("1", "2")]

    assert [call["prompt"] for call in calls] == ["One?", "Two?"]
    assert [len(call["fragments"]) for call in calls] == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("set", "a/b", "x.txt"), "only letters"),
        (("set", "a", "none.txt"), "none.txt: No such file"),
        (("show", "none"), "no fragment 'none'"),
        (("show", "deadbeefdead"), "no fragment 'deadbeefdead'"),
        (("remove", "none"), "no fragment 'none'"),
        (("remove", "../keys"), "no fragment '../keys'"),
    ],
)
def test_wrong_uses(bare, arguments, complaint):
    """One line that says what to do."""
    done = bare.run("fragments", *arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_texts_before_the_system_prompt(tmp_path):
    """`--sf` of `ask`, of `chat` and of a template, in this order before `-s`."""
    (tmp_path / "style.txt").write_text("In style.\n")
    (tmp_path / "more.txt").write_text("And more.\n")
    script = Script(lambda _: text("Done."))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        more = ("-n", "-m", MODEL, "-s", "Short.", "--sf", "more.txt")
        program.run("ask", "--sf", "style.txt", "--save", "styled")
        for command in ("ask", "chat"):
            done = program.run(command, *more, "-t", "styled", stdin="Hi\n")
            assert done.returncode == 0, done.stderr
        missing = program.run("ask", "-m", MODEL, "--sf", "none.txt", "Hi")

    systems = [request.messages[0].text for request in script.requests]
    assert systems == ["In style.\n\nAnd more.\n\nShort."] * 2
    assert missing.stderr == "error: --sf: none.txt: No such file or directory\n"


@pytest.mark.parametrize(
    ("arguments", "kind", "media_type"),
    [
        (("--at", "picture", "image/webp"), Image, "image/webp"),
        (("--at", "-", "audio/wav"), Audio, "audio/wav"),
        (("--at", "picture", "application/pdf"), Document, "application/pdf"),
    ],
)
def test_attachments_with_a_type(run_here, monkeypatch, tmp_path, arguments, kind, media_type):
    """The type that is given counts, not the name or the content."""
    (tmp_path / "picture").write_bytes(b"\x89PNG\r\n\x1a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"RIFF"), isatty=lambda: 0))
    part = read_attachment(*arguments[1:])

    assert (type(part), part.media_type) == (kind, media_type)
    code, _, err = run_here("ask", "-m", MODEL, "--at", "picture", "jpeg", "Hi")
    assert (code, "'jpeg' is no type such as image/jpeg" in err) == (2, True)
