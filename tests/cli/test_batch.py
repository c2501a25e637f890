"""`interlingua batch`: a file of requests in, a file of results out."""

import json
import signal
import sys

import pytest

from interlingua import Request, to_json
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.cli import KEY, Program, wait_for

MODEL = ("-m", "openai:gpt-5.2")
FAST = ("--poll", "0.01")
BATCH = "openai:batch_000000000001"
posix = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")


def write(folder, *items):
    """A file with these items, one on each line."""
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    return "in.jsonl"


def answer(request):
    """Fails for one prompt, and repeats the others."""
    prompt = request.messages[-1].text
    return error(400, "not this one") if "bad" in prompt else text(f"{prompt}!")


@pytest.fixture
def peer(tmp_path):
    """The program and its simulator."""
    app = Simulator(answer, key=KEY)
    with serve_in_thread(app) as server:
        yield Program(tmp_path, server.url), app


def requests(app):
    """The requests of the batch by their last message."""
    return {
        each.request.messages[-1].text: each.request for each in app.script.received if each.request
    }


def questions(app):
    """How often the batch was asked for."""
    return sum(each.method == "GET" for each in app.script.received)


def test_submit_and_wait(peer, tmp_path):
    """Prompts, objects and canonical requests in; results with their ids out."""
    program, app = peer
    whole = json.loads(to_json(Request(model="openai:gpt-5.2", messages="three", request_id="c")))
    file = write(tmp_path, "one", {"id": "b", "prompt": "two", "max_tokens": 20}, whole)
    done = program.run("batch", "submit", file, *MODEL, "--wait", *FAST, "-o", "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]

    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("out.jsonl\n", f"The batch is {BATCH}.\n")
    assert {row["id"]: row["text"] for row in rows} == {
        "request-0": "one!", "b": "two!", "c": "three!",
    }  # fmt: skip
    assert all(row["cost"] > 0 and row["error"] is None for row in rows)
    assert requests(app)["two"].max_tokens == 20


def test_options_of_all(peer):
    """`-s` and `--option` are for every prompt; a line may come from stdin."""
    program, app = peer
    options = ("-s", "In German.", "--option", "max_tokens", "30")
    done = program.run("batch", "submit", "-", *MODEL, *options, "--json", stdin='"one"\n')
    row = json.loads(done.stdout)
    program.run("batch", "status", row["batch"], "--wait", *FAST)
    sent = requests(app)["one"]

    assert (row["batch"], row["state"], row["total"]) == (BATCH, "queued", 1)
    assert (sent.messages[0].text, sent.max_tokens) == ("In German.", 30)


def test_step_by_step(peer, tmp_path):
    """Submit, list, status, results with those that failed, cancel, delete."""
    program, _ = peer
    file = write(tmp_path, {"id": "a", "prompt": "good"}, {"id": "b", "prompt": "bad"})
    submitted = program.run("batch", "submit", file, *MODEL)
    early = program.run("batch", "results", BATCH)
    state = program.run("batch", "status", BATCH, "--wait", *FAST, "--json")
    listed = json.loads(program.run("batch", "list", "openai", "-n", "5", "--json").stdout)
    results = program.run("batch", "results", BATCH)
    array = program.run("batch", "results", BATCH, "--full", "--json", "--requests", file)
    deleted = program.run("batch", "delete", BATCH)

    assert submitted.stdout.splitlines()[1].startswith(f"{BATCH}\tqueued\t2\t")
    assert early.returncode == 2
    assert "has not ended" in early.stderr
    assert json.loads(state.stdout)["state"] == "completed"
    assert [row["batch"] for row in listed] == [BATCH]
    rows = {row["id"]: row for row in map(json.loads, results.stdout.splitlines())}
    assert results.returncode == 1
    assert results.stderr == "1 of 2 requests have failed.\n"
    assert rows["a"]["text"] == "good!"
    assert "not this one" in rows["b"]["error"]
    full = {row["id"]: row for row in json.loads(array.stdout)}
    assert full["a"]["response"]["message"]["content"][0]["text"] == "good!"
    assert deleted.stdout == f"Deleted {BATCH}.\n"


def test_cancel(peer, tmp_path):
    """A batch that was cancelled says so; a request that was not answered has an error."""
    program, _ = peer
    program.run("batch", "submit", write(tmp_path, "one"), *MODEL)
    cancelled = program.run("batch", "cancel", BATCH, "--json")
    ended = program.run("batch", "status", BATCH, "--wait", *FAST, "--json")
    results = program.run("batch", "results", BATCH, "--requests", "in.jsonl", "-o", "out.jsonl")

    assert json.loads(cancelled.stdout)["state"] in ("cancelling", "cancelled")
    assert json.loads(ended.stdout)["state"] == "cancelled"
    assert (results.returncode, results.stdout) == (1, "out.jsonl\n")
    assert json.loads((tmp_path / "out.jsonl").read_text())["error"]
    empty = program.run("batch", "list", "anthropic")
    assert (empty.stdout, empty.stderr) == ("", "There are no batches.\n")
    gone = program.run("batch", "delete", BATCH, "--json")
    assert json.loads(gone.stdout) == {"batch": BATCH, "deleted": True}


@posix
@pytest.mark.parametrize("how", ["ctrl-c", "timeout"])
def test_waiting_ends_and_the_batch_goes_on(tmp_path, how):
    """The line names the command that gets the results."""
    app = Simulator(answer, key=KEY, batch_polls=500)  # one request at each question
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        limit = ("--timeout", "0.5") if how == "timeout" else ()
        file = write(tmp_path, *map(str, range(500)))
        with program.start(
            "batch", "submit", file, *MODEL, "--wait", "--poll", "0.1", *limit
        ) as process:
            if how == "ctrl-c":
                wait_for(lambda: questions(app) >= 2, process)
                process.send_signal(signal.SIGINT)
            code, errors = process.wait(), process.stderr.read()

    lines = errors.splitlines()
    command = f"interlingua batch results {BATCH}"
    assert lines[0] == f"The batch is {BATCH}."
    if how == "ctrl-c":
        assert (code, lines[1:]) == (130, [f"interrupted; the batch goes on: {command}"])
    else:
        assert (code, lines[1]) == (6, f"The batch goes on: {command}")
        assert lines[2].startswith("error: ")


@pytest.mark.parametrize(
    ("lines", "arguments", "complaint"),
    [
        ('"one"\nbroken\n', MODEL, "in.jsonl, line 2: "),
        ("[" * 100_000, MODEL, "in.jsonl, line 1: "),
        ("[1]\n", MODEL, "in.jsonl, line 1 is neither a text nor an object"),
        ('{"interlingua": 1, "messages": 5}\n', MODEL, "in.jsonl, line 1: "),
        ('{"prompt": "x", "temprature": 1}\n', MODEL, "Unknown option 'temprature'"),
        ("", MODEL, "The batch has no requests."),
        ('"one"\n', (), "model"),
        ('"one"\n', ("-m", "nobody:x"), "nobody"),
        ('"one"\n', (*MODEL, "-o", "out.jsonl"), "-o needs --wait"),
        ('"one"\n', (*MODEL, "--wait", "-o", "no/such/out.jsonl"), "there is no folder no/such"),
        ('{"id": "a", "prompt": "1"}\n{"id": "a", "prompt": "2"}\n', MODEL, "'a'"),
    ],
)
def test_bad_input_is_one_line(peer, tmp_path, lines, arguments, complaint):
    """The line names the place; nothing is submitted."""
    program, app = peer
    (tmp_path / "in.jsonl").write_text(lines)
    done = program.run("batch", "submit", "in.jsonl", *arguments)

    assert done.returncode in (1, 2), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert complaint in done.stderr
    assert not [each for each in app.script.received if each.call.path.endswith("/batches")]


def test_files_and_names_that_are_not_there(peer, bare, tmp_path):
    """Each is one line with its exit code."""
    program, _ = peer
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\n")
    write(tmp_path, "one")
    for done, code in (
        (program.run("batch", "submit", "nowhere.jsonl", *MODEL), 2),
        (program.run("batch", "submit", "bytes.jsonl", *MODEL), 1),
        (program.run("batch", "status", "openai:nothing"), 4),
        (program.run("batch", "results", "nothing"), 2),
        (program.run("batch", "list", "nobody"), 2),
        (bare.run("batch", "submit", "in.jsonl", *MODEL), 2),
    ):
        assert done.returncode == code, done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


@posix
def test_a_full_disk(peer, tmp_path):
    """The results can be fetched again: the line says what failed, without a traceback."""
    program, _ = peer
    file = write(tmp_path, "one")
    done = program.run("batch", "submit", file, *MODEL, "--wait", *FAST, "-o", "/dev/full")
    again = program.run("batch", "results", BATCH)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: No space left on device"
    assert json.loads(again.stdout)["text"] == "one!"
