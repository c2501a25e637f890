"""Every program in `examples/` does what it says, without keys."""

import ast
import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import uvicorn
from nbclient import NotebookClient
from werkzeug.serving import make_server

from interlingua import Client, HttpAdapter
from interlingua.simulator import (
    Simulator,
    error,
    error_event,
    latency,
    serve_in_thread,
    stall,
    text,
)
from support import preloaded
from support.patience import PATIENCE
from support.servers import free_port
from support.type_checks import type_check
from test_docs import FENCE, fits

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
    "PYTHONPATH": str(ROOT / "src"),
}


def start(name, *arguments, variables=(), **options):
    """Start a program."""
    command = [EXAMPLES / f"{name}.py", *arguments]
    return preloaded.start(command, env=ENVIRONMENT | dict(variables), cwd=ROOT, **options)


def run(name, *arguments, answers="", **variables):
    """What a program prints on stdout and on stderr."""
    with start(name, *arguments, variables=variables, stdin=subprocess.PIPE) as process:
        out, err = process.communicate(answers)
    assert process.returncode == 0, err
    return out, err


@contextlib.contextmanager
def running(name, *arguments):
    """The address of a program that serves."""
    for _ in range(3):  # another program may take the port before this one does
        port = free_port()
        with serving(name, *(each.format(port) for each in arguments)) as process:
            wait_for(lambda port=port, process=process: is_open(port) or process.poll() is not None)
            if process.poll() is None:
                yield f"http://127.0.0.1:{port}"
                return
    pytest.fail(f"{name} ends with {process.returncode}")


@contextlib.contextmanager
def serving(name, *arguments):
    """A program that runs until it is terminated."""
    nothing = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    with start(name, *arguments, **nothing) as process:
        try:
            yield process
        finally:
            process.terminate()


def is_open(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
        return True
    return False


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.02)


def fetch(url, data=None):
    with urllib.request.urlopen(url, data, timeout=PATIENCE) as reply:  # noqa: S310 -- loopback
        return reply.read().decode()


def load(name):
    """The module of a program, without running it."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    namespace = {"__name__": name}
    exec(compile(source, f"{name}.py", "exec"), namespace)  # noqa: S102 -- our own
    return namespace


# Programs.


def test_the_coding_agent_asks():
    """It reads freely, and writes and runs only what is approved."""
    printed, _ = run("coding_agent", answers="y\ny\n")
    assert printed.count("Allow it?") == 2
    assert "return a + b" in printed
    assert printed.endswith("The tests pass now.\n")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_coding_agent_obeys(tmp_path, answer):
    """The file is changed if that was allowed, and not otherwise."""
    (tmp_path / "calc.py").write_text("old", encoding="utf-8")
    run("coding_agent", "--folder", tmp_path, answers=f"{answer}\nn\n")

    assert ((tmp_path / "calc.py").read_text(encoding="utf-8") == "old") is (answer == "n")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x"])
def test_the_coding_agent_stays_in_its_folder(tmp_path, path):
    """A path of the model leads to no other place."""
    inside = load("coding_agent")["inside"]

    assert inside(tmp_path, "a/b.py") == tmp_path.resolve() / "a" / "b.py"
    with pytest.raises(ValueError, match="outside"):
        inside(tmp_path, path)


def test_extraction():
    """Each invoice is a row, and the letter without one is named."""
    printed, problems = run("extract_table")

    assert printed.splitlines() == [
        "number,customer,day,amount,currency",
        "17,Nordlys AS,2026-03-03,1200.5,EUR",
        "18,Hansen & Sons,2026-03-05,80.0,USD",
    ]
    assert "no row for 'The weather was fine" in problems


def test_fallback_with_budget():
    """The second provider answers, and the first request that has no room is not sent."""
    printed, _ = run("fallback_with_budget", "--dollars", "0.02")

    assert re.findall(r"^(\d): Oslo. \(openai, \$0.0049\)$", printed, re.MULTILINE) == ["1", "2"]
    assert printed.count("anthropic:claude-haiku-4-5 server_error") == 2
    assert "stopped: " in printed
    assert "of the budget of $0.02" in printed


def test_comparison():
    """One row for each model, with its time, tokens and cost."""
    printed, _ = run("compare_models")

    assert len(printed.splitlines()) == 3
    for model in ("openai:gpt-5.2", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash"):
        assert re.search(
            rf"^{model} +\d+\.\d\d s +\d+ tokens +\$0\.0\d+  \w", printed, re.MULTILINE
        )


def test_comparison_with_the_model_on_this_machine(gguf):
    """A real answer, and an error in the row of a model that cannot be asked."""
    models = ("-m", "local:smollm2", "-m", "openai:gpt-5.2")
    printed, _ = run("compare_models", *models, INTERLINGUA_GGUF=str(gguf))

    assert re.search(
        r"^local:smollm2 +\d+\.\d\d s +\d+ tokens +\$0\.00000  \w", printed, re.MULTILINE
    )
    assert re.search(
        r"^openai:gpt-5.2 +ConfigurationError: .*OPENAI_API_KEY", printed, re.MULTILINE
    )


def test_voice(tmp_path):
    """What was heard is answered, and the answer is a sound file."""
    answer = tmp_path / "answer.wav"
    printed, _ = run("voice_round_trip", "--output", answer)

    heard, answered, spoke = printed.splitlines()
    assert heard.removeprefix("heard: ") in answered
    assert spoke.startswith("spoke: ")
    assert answer.read_bytes().startswith(b"RIFF")


def test_labels():
    """Labels are counted, equal rows are paid for once, and the row without one is named."""
    printed, _ = run("label_csv")

    assert printed.splitlines() == [
        "    2 praise",
        "    1 complaint",
        "    1 question",
        "reviews.csv:4 has no label: openai:gpt-5.2: HTTP 400: It is not polite.",
        printed.splitlines()[-1],
    ]
    assert re.fullmatch(r"4 of 5 rows, \$0\.\d+", printed.splitlines()[-1])


def test_labels_of_a_file_by_the_model_on_this_machine(tmp_path, gguf):
    """A file of the reader's, on a real model."""
    (tmp_path / "in.csv").write_text("review\nSplendid!\nAwful.\n", encoding="utf-8")
    places = ("--model", "local:smollm2", tmp_path / "in.csv", tmp_path / "out.csv")
    printed, _ = run("label_csv", *places, INTERLINGUA_GGUF=str(gguf))

    assert printed.endswith("2 of 2 rows, $0.0000\n")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").count(",done,") == 2


def test_distillation():
    """Objects are in a Parquet file; one that does not fit the schema is a failed row."""
    printed, _ = run("distil_objects")

    first, *_, failed, last = printed.splitlines()
    assert first == "bees.txt (hard): What do bees do? See the text."
    assert "difficulty" in failed
    assert re.fullmatch(r"3 of 4 pairs, \$0\.\d+", last)


def test_batch():
    """A thousand requests with one failure, its progress and its cost."""
    printed, progress = run("batch_with_progress")

    assert printed.splitlines()[:3] == ["  500 True", "  499 False", "    1 InvalidRequestError"]
    assert re.fullmatch(r"cost: \$0\.\d+", printed.splitlines()[3])
    assert "--resume openai:batch_" in progress
    assert "in_progress: 500 of 1000 (1 failed)\ncompleted: 1000 of 1000 (1 failed)" in progress


# Web servers.


@pytest.mark.parametrize(
    ("name", "arguments"), [("flask_app", ("--port", "{}")), ("django_app", ("{}",))]
)
def test_blocking_web_programs(name, arguments):
    """A whole answer as JSON, and a stream."""
    with running(name, *arguments) as url:
        answer = json.loads(fetch(f"{url}/ask", b"prompt=Hello!"))
        assert answer["answer"].endswith("You said: Hello!")
        assert answer["tokens"] > 0
        assert fetch(f"{url}/stream?prompt=Hello!") == answer["answer"]


def test_the_fastapi_program():
    """The page, then the answer as events, in pieces."""
    with running("fastapi_stream", "--port", "{}") as url:
        assert "EventSource" in fetch(url)
        with urllib.request.urlopen(f"{url}/ask?prompt=Hi", timeout=PATIENCE) as reply:  # noqa: S310
            assert reply.headers["content-type"].startswith("text/event-stream")
            assert reply.readline() == b"event: message\n"
            assert json.loads(reply.readline().removeprefix(b"data: ")) == "Once "


@contextlib.contextmanager
def upstream(*turns):
    """A simulated provider on a socket, and a client of it."""
    app = Simulator(*turns)
    with serve_in_thread(app) as server:
        yield app.script, Client({"up": HttpAdapter("anthropic", "key", base_url=server.url)})


@contextlib.contextmanager
def fastapi_server(client):
    config = uvicorn.Config(load("fastapi_stream")["create_app"](client, "up:m"), port=0)
    config.log_level = "error"
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(PATIENCE)
    assert not thread.is_alive()


@contextlib.contextmanager
def flask_server(client):
    app = load("flask_app")["create_app"](client, "up:m")
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join(PATIENCE)
    server.server_close()


STORY = text("Once upon a time there was a fox. " * 200) + latency(between=0.01)


@pytest.mark.parametrize(
    ("server", "path", "turn"),
    [
        (fastapi_server, "/ask?prompt=Hi", STORY),
        (fastapi_server, "/ask?prompt=Hi", text("Once upon a time. " * 9) + stall(at=900)),
        (flask_server, "/stream?prompt=Hi", STORY),
    ],
    ids=["fastapi", "fastapi while the model is silent", "flask"],
)
def test_the_model_stops_with_the_browser(server, path, turn):
    """When the browser disconnects in the middle, the connection to the provider is closed."""
    with upstream(turn) as (script, client), server(client) as port:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as browser:
            browser.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            received = b""
            while b"Once" not in received:
                received += browser.recv(4096)
        (exchange,) = script.received
        assert exchange.over.wait(PATIENCE)
        assert exchange.disconnected is not None


def test_a_failure_after_the_status():
    """The status was sent, so the page gets the error as an event."""
    late = text("Once upon a time. " * 5) + error_event(500)
    with upstream(error(401), late) as (_, client), fastapi_server(client) as port:
        early, late = (fetch(f"http://127.0.0.1:{port}/ask?prompt=Hi") for _ in range(2))

    assert early.startswith("event: failed\ndata: ")
    assert late.startswith('event: message\ndata: "Once "')
    assert late.strip().split("\n\n")[-1].startswith("event: failed\ndata: ")


def test_a_failure_of_a_blocking_view():
    """It is a status and one sentence, without a traceback."""
    with (
        upstream(error(400, "No.")) as (_, client),
        flask_server(client) as port,
        pytest.raises(urllib.error.HTTPError) as failed,
    ):
        fetch(f"http://127.0.0.1:{port}/ask", b"prompt=Hi")
    with failed.value as reply:
        assert reply.code == 502
        assert "No." in json.loads(reply.read())["error"]


# The notebook.


def outputs(notebook):
    """What each cell shows."""
    return [
        [each.get("text") or each["data"]["text/plain"] for each in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook(monkeypatch):
    """In a real kernel, with its running event loop, it shows what it has stored."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    stored = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    notebook = deepcopy(stored)
    NotebookClient(notebook, timeout=PATIENCE, coalesce_streams=True).execute()

    assert outputs(notebook) == outputs(stored)
    assert ["Old pond, a frog jumps in, water's sound."] in outputs(notebook)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_page_about_notebooks(monkeypatch):
    """Its blocks are cells of one notebook, and a text block after one is what the cell shows."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    page = (ROOT / "docs" / "howto" / "notebooks.md").read_text(encoding="utf-8")
    blocks = FENCE.findall(page)
    answers = ", ".join(re.findall("<!-- answers: (.*) -->", page))
    prepared = (
        "from interlingua import set_default_client\n"
        "from interlingua.simulator import scripted\n"
        f"set_default_client(scripted({answers}))"
    )
    blocks.insert(0, ("py", prepared))
    cells = [nbformat.v4.new_code_cell(body) for language, body in blocks if language == "py"]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=PATIENCE, coalesce_streams=True).execute()

    shown = ["\n".join(cell) for cell in outputs(notebook)]
    pairs = pairwise([*blocks, ("", "")])
    expected = [
        following if kind == "text" else ""
        for (language, _), (kind, following) in pairs
        if language == "py"
    ]
    assert len(cells) > 5
    for output, text_block in zip(shown, expected, strict=True):
        assert not text_block or fits(output, text_block), f"it shows\n{output}"


# All of them.


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_each_says_how_it_is_run(path):
    """Its docstring has the command, says that no key is needed, and names a real model."""
    about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))

    assert f"python examples/{path.name}" in about
    assert "no key" in about
    assert re.search(r"_API_KEY`", about)
    assert re.search(r"(--model|-m|MODEL=|--real)\b", about)


def test_the_examples_type_check():
    """A strict type checker has nothing to say of them."""
    assert type_check(PROGRAMS) == []


def test_the_list_is_whole():
    """The README names each of them once."""
    listed = re.findall(r"\]\(([\w.]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    files = [path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}]

    assert sorted(listed) == sorted(files)
