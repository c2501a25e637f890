"""Thin commands over the modalities."""

import json

import pytest


def test_embed(program):
    """A vector for each text, from the arguments or from stdin; `--json` has the usage."""
    model = ("-m", "openai:text-embedding-3-small")
    lines = program.run("embed", *model, stdin="one\n\ntwo\n").stdout.splitlines()
    done = program.run("embed", *model, "one", "two", "-d", "8", "--json")
    document = json.loads(done.stdout)

    assert len(lines) == 2
    assert all(json.loads(line) for line in lines)
    assert [len(vector) for vector in document["embeddings"]] == [8, 8]
    assert document["usage"]["input_tokens"] > 0
    assert program.run("embed", *model).returncode == 2


def test_image(program, tmp_path):
    """Each image is a file; the second has a number in its name."""
    arguments = ["-m", "openai:gpt-image-1", "-n", "2", "-o", str(tmp_path / "fox.png")]
    done = program.run("image", *arguments, "A fox", "--json")

    assert done.returncode == 0, done.stderr
    assert [row["width"] > 0 for row in json.loads(done.stdout)["images"]] == [True, True]
    for name in ("fox.png", "fox-2.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_speak_and_transcribe(program, tmp_path):
    """What was spoken is a file, and that file has a text."""
    file = tmp_path / "hello.mp3"
    arguments = ["-m", "openai:gpt-4o-mini-tts", "-v", "alloy", "-o", str(file)]
    spoken = program.run("speak", *arguments, "Hello", "--json")
    heard = program.run("transcribe", str(file), "-m", "openai:gpt-4o-transcribe", "--json")

    assert spoken.returncode == 0, spoken.stderr
    assert json.loads(spoken.stdout)["bytes"] == file.stat().st_size > 0
    assert heard.returncode == 0, heard.stderr
    assert json.loads(heard.stdout)["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("embed", "-m", "nobody:x", "a"),
        ("image", "-m", "nobody:x", "-o", "a.png", "a"),
        ("speak", "-m", "nobody:x", "-o", "a.mp3", "a"),
        ("speak", "-m", "openai:gpt-4o-mini-tts", "-v", "alloy", "-o", "no/such/a.mp3", "a"),
        ("transcribe", "nowhere.mp3", "-m", "openai:gpt-4o-transcribe"),
    ],
)
def test_errors_are_one_line(program, arguments):
    """Never a traceback."""
    done = program.run(*arguments)

    assert done.returncode not in (0, 70), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
