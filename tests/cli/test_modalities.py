"""Embeddings, images and speech on the command line, against a simulator."""

import base64
import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.simulator import Simulator, latency, serve_in_thread
from support.cli import KEY, Program, wait_for

EMBED = ("embed", "-m", "openai:text-embedding-3-small")
IMAGE = ("image", "-m", "openai:gpt-image-1")
SPEAK = ("speak", "-m", "openai:gpt-4o-mini-tts", "-v", "alloy")
HEAR = ("transcribe", "-m", "openai:whisper-1")
PNG = b"\x89PNG"
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such devices")


@pytest.fixture
def served(tmp_path):
    """The program, and the simulator that it uses."""
    app = Simulator(key=KEY)
    with serve_in_thread(app) as server:
        yield Program(tmp_path, server.url), app


def sent(app):
    """The fields of the last request, of its JSON or its form."""
    call = app.script.received[-1].call
    if call.body is not None:
        return call.path, call.body
    return call.path, {part.name: part.content for part in call.form}


def test_embed(program):
    """A vector for each text, from the arguments or from stdin; `--json` has the usage."""
    lines = program.run(*EMBED, stdin="one\n\ntwo\n").stdout.splitlines()
    document = json.loads(program.run(*EMBED, "one", "two", "-d", "8", "--json").stdout)

    assert len(lines) == 2
    assert all(json.loads(line) for line in lines)
    assert [len(vector) for vector in document["embeddings"]] == [8, 8]
    assert document["usage"]["input_tokens"] > 0
    assert program.run(*EMBED).returncode == 2


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ("base64", base64.b64decode),
        ("hex", bytes.fromhex),
    ],
)
def test_forms_of_vectors(program, form, read):
    """Four bytes a number, the lowest first; a blob has the same bytes."""
    plain = json.loads(program.run(*EMBED, "-d", "8", "sea").stdout)
    line = program.run(*EMBED, "-d", "8", "-f", form, "sea").stdout
    expected = struct.pack("<8f", *plain)

    assert read(line.strip()) == expected
    command = [*program.command(*EMBED, "-d", "8", "-f", "blob", "sea")]
    done = subprocess.run(command, env=program.env, capture_output=True, check=True)
    assert done.stdout == expected


def test_embed_a_file_and_an_image(tmp_path):
    """A file is one text, with its lines; an image goes to models that embed images."""
    (tmp_path / "two.txt").write_text("one\ntwo\n")
    (tmp_path / "sea.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    app = Simulator(key=KEY)
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        keys = {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": server.url}
        done = program.run(*EMBED, "-i", "two.txt", "-i", "-", stdin="three\nfour")
        image = program.run("embed", "-m", "gemini:gemini-embedding-2", "-a", "sea.png", **keys)
        refused = program.run(*EMBED, "-a", "sea.png")
        missing = program.run(*EMBED, "-i", "none.txt")

    assert len(done.stdout.splitlines()) == 2
    assert image.returncode == 0, image.stderr
    assert len(image.stdout.splitlines()) == 1
    for each in (refused, missing):
        assert each.returncode != 0
        assert len(each.stderr.splitlines()) == 1


def test_embed_task(tmp_path):
    """The task is sent to a provider that has it; another one says so."""
    app = Simulator(key=KEY)
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        keys = {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": server.url}
        model = ("-m", "gemini:gemini-embedding-001")
        done = program.run("embed", *model, "--task", "query", "x", **keys)
        wrong = program.run("embed", *model, "--task", "nothing", "x", **keys)
        other = program.run(*EMBED, "--task", "query", "x")

    assert done.returncode == 0, done.stderr
    assert "RETRIEVAL_QUERY" in str(app.script.received[0].call.body)
    assert wrong.returncode == 2
    assert "task" in wrong.stderr
    assert other.stderr.startswith("warning: ")


def test_image(served, tmp_path):
    """Each image is a file; the second has a number in its name, and all options are sent."""
    program, app = served
    options = ["-n", "2", "--size", "1024x1024", "--quality", "low", "--background", "opaque"]
    arguments = [*options, "--format", "png", "-o", str(tmp_path / "fox.png")]
    done = program.run(*IMAGE, *arguments, "A", "fox", "--json")
    path, body = sent(app)

    assert done.returncode == 0, done.stderr
    assert [row["width"] > 0 for row in json.loads(done.stdout)["images"]] == [True, True]
    for name in ("fox.png", "fox-2.png"):
        assert (tmp_path / name).read_bytes().startswith(PNG)
    assert path.endswith("/images/generations")
    expected = {"prompt": "A fox", "n": 2, "size": "1024x1024", "quality": "low"}
    expected |= {"background": "opaque", "output_format": "png"}
    assert expected.items() <= body.items()


def test_image_ratio(served, tmp_path):
    """A ratio becomes the size that the model has."""
    program, app = served
    done = program.run(*IMAGE, "--aspect-ratio", "3:2", "-o", str(tmp_path / "a.png"), "A fox")

    assert done.stdout == f"{tmp_path / 'a.png'}\n"
    assert sent(app)[1]["size"] == "1536x1024"


def test_change_an_image(served, tmp_path):
    """`-a` is the image to change, and `--mask` says where."""
    program, app = served
    fox, night = tmp_path / "fox.png", tmp_path / "night.png"
    program.run(*IMAGE, "-o", str(fox), "A fox")
    mask = ("--mask", str(fox))
    done = program.run(*IMAGE, "-a", str(fox), *mask, "-o", str(night), "At night")
    path, form = sent(app)

    assert done.returncode == 0, done.stderr
    assert night.read_bytes().startswith(PNG)
    assert path.endswith("/images/edits")
    assert {"mask", "prompt", "model"} <= form.keys()
    assert program.run(*IMAGE, *mask, "-o", str(night), "x").returncode == 2


def test_speak_and_transcribe(served, tmp_path):
    """What was spoken is a file, and that file has a text; all options are sent."""
    program, app = served
    file = tmp_path / "hello.wav"
    options = ("--instructions", "Whisper.", "--speed", "1.5", "-o", str(file))
    spoken = program.run(*SPEAK, *options, "Hello", "there", "--json")
    body = sent(app)[1]
    heard = program.run(*HEAR, str(file), "--language", "en", "--prompt", "Ada", "--json")
    form = sent(app)[1]

    assert spoken.returncode == 0, spoken.stderr
    assert json.loads(spoken.stdout)["bytes"] == file.stat().st_size > 0
    expected = {"input": "Hello there", "voice": "alloy", "instructions": "Whisper.", "speed": 1.5}
    assert {**expected, "response_format": "wav"}.items() <= body.items()
    assert heard.returncode == 0, heard.stderr
    assert json.loads(heard.stdout)["text"]
    assert (form["language"], form["prompt"]) == ("en", "Ada")


def test_speak_stdin_and_format(served, tmp_path):
    """The text may be piped in, and `--format` comes before the ending of the file."""
    program, app = served
    done = program.run(*SPEAK, "--format", "mp3", "-o", str(tmp_path / "x.wav"), stdin="Hi.\n")

    assert done.stdout == f"{tmp_path / 'x.wav'}\n"
    assert (sent(app)[1]["input"], sent(app)[1]["response_format"]) == ("Hi.", "mp3")
    assert program.run(*SPEAK, "-o", str(tmp_path / "x.wav")).returncode == 2


def test_transcribe_forms(served, tmp_path):
    """Subtitles have times, `--translate` asks for English, and `--speakers` says who speaks."""
    program, app = served
    file = tmp_path / "hello.mp3"
    file.write_bytes(b"ID3\x04\x00" + b"x" * 200)
    srt = program.run(*HEAR, "--subtitles", "srt", str(file))
    vtt = program.run(*HEAR, "--subtitles", "vtt", str(file))
    program.run(*HEAR, "--translate", str(file))
    path = sent(app)[0]
    diarize = ("-m", "openai:gpt-4o-transcribe-diarize", "--speakers")
    speakers = program.run("transcribe", *diarize, str(file))

    assert "00:00:00,000 --> " in srt.stdout
    assert vtt.stdout.startswith("WEBVTT")
    assert path.endswith("/audio/translations")
    assert speakers.stdout == "A: This audio\nB: has 205 bytes.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("embed", "-m", "nobody:x", "a"), 2, "nobody"),
        ((*IMAGE[:2], "nobody:x", "-o", "a.png", "a"), 2, "nobody"),
        (("speak", "-m", "nobody:x", "-o", "a.mp3", "a"), 2, "nobody"),
        ((*HEAR[:2], "nobody:x", "sound.mp3"), 2, "nobody"),
        ((*SPEAK, "-o", "no/such/a.mp3", "a"), 2, "there is no folder no/such"),
        ((*IMAGE, "-o", "no/such/a.png", "a"), 2, "there is no folder no/such"),
        ((*IMAGE, "-o", "x.png", "-a", "nowhere.png", "a"), 2, "nowhere.png"),
        ((*HEAR, "nowhere.mp3"), 2, "nowhere.mp3"),
        ((*IMAGE, "-o", ".", "a"), 2, "is a directory"),
        ((*IMAGE, "-o", "x.png", "--size", "huge", "a"), 2, "size"),
        ((*EMBED, "-d", "0", "a"), 2, "-d"),
        ((*SPEAK, "--speed", "fast", "-o", "x.mp3", "a"), 2, "fast"),
    ],
)
def test_bad_input_is_one_line(program, tmp_path, arguments, code, complaint):
    """The line says what is wrong; nothing was sent and no file is left."""
    (tmp_path / "sound.mp3").write_bytes(b"ID3")
    done = program.run(*arguments)

    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert complaint in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    "arguments", [(*EMBED, "a"), (*IMAGE, "-o", "x.png", "a"), (*SPEAK, "-o", "x.mp3", "a")]
)
def test_no_key_is_one_line(bare, arguments):
    """It names the variable to set."""
    done = bare.run(*arguments)

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "OPENAI_API_KEY" in done.stderr


def test_a_wrong_key_is_one_line(program):
    """The exit code is that of authentication."""
    done = program.run(*EMBED, "a", OPENAI_API_KEY="wrong-key-of-a-test")

    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert "wrong-key-of-a-test" not in done.stderr


@posix
def test_a_full_disk_loses_nothing(program, tmp_path):
    """What was paid for is written elsewhere, and the line says where; stdout fails with 1."""
    (tmp_path / "tmp").mkdir()
    done = program.run(*SPEAK, "-o", "/dev/full", "Hi.", TMPDIR=str(tmp_path / "tmp"))
    (saved,) = (tmp_path / "tmp").iterdir()
    full = Path("/dev/full")
    with full.open("w") as file, program.start(*EMBED, "a", stdout=file) as process:
        code, errors = process.wait(), process.stderr.read()

    assert done.returncode == 1
    assert done.stderr == (
        f"error: /dev/full: No space left on device; it was written to {saved} instead\n"
    )
    assert saved.stat().st_size > 0
    assert (code, errors) == (1, "error: No space left on device\n")


@posix
def test_a_closed_pipe_is_silent(program):
    """Nobody reads the vectors: no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    with program.start(*EMBED, "a", stdout=writer) as process:
        os.close(writer)
        code, errors = process.wait(), process.stderr.read()

    assert (code, errors) == (141, "")


@posix
@pytest.mark.parametrize("arguments", [(*EMBED, "a"), (*IMAGE, "-o", "x.png", "a")])
def test_ctrl_c_is_one_line(tmp_path, arguments):
    """A call that is interrupted ends at once with 130, and leaves no file."""
    app = Simulator(latency(first=60), key=KEY)
    with serve_in_thread(app) as server, Program(tmp_path, server.url).start(*arguments) as process:
        wait_for(lambda: app.script.received, process)
        process.send_signal(signal.SIGINT)
        code, errors = process.wait(), process.stderr.read()

    assert (code, errors) == (130, "interrupted\n")
    assert not list(tmp_path.glob("x.*"))
