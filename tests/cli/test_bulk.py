"""`interlingua bulk`: a table in, the same table with answers out."""

import asyncio
import csv
import json
import re
import signal
import sys
import threading
import time

import pytest
from msgspec.structs import replace

from interlingua import bulk
from interlingua.cli.bulk import _Display
from interlingua.cli.output import Output
from interlingua.simulator import Simulator, error, latency, serve_in_thread, text
from support.cli import KEY, Program, Terminal, plain, wait_for
from support.patience import PATIENCE

BASE = ("-p", "Genre of {title}?", "-m", "openai:gpt-5.2", "--option", "max_tokens", "20")
posix = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")


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


def write(folder, *titles):
    lines = "".join(f"{number},{title}\n" for number, title in enumerate(titles))
    (folder / "in.csv").write_text(f"id,title\n{lines}")
    return "in.csv"


def test_a_table_through_a_model(peer):
    """The output has a row for each of the input; a failed one is exit code 1, and is shown."""
    program, app = peer
    rows = write(program.home, "Emma", "bad", "Dune")
    found = program.run("bulk", "run", rows, *BASE, "-o", "out.csv", "--id", "id")

    assert found.returncode == 1, found.stderr
    assert "2 of 3 rows done, 1 failed" in found.stderr
    with (program.home / "out.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["answer"] for row in written] == ["Genre of Emma?!", "", "Genre of Dune?!"]
    page = (program.home / "out.csv.bulk" / "report.html").read_text(encoding="utf-8")
    assert "not this one" in page
    assert len(app.script.received) == 3

    status = program.run("bulk", "status", "out.csv", "--json")
    assert json.loads(status.stdout)["done"] == 2
    shown = program.run("bulk", "show", "out.csv", "--failed")
    assert "not this one" in shown.stdout
    assert "Dune" not in shown.stdout
    assert "gpt-5.2\t2\t" in program.run("bulk", "cost", "out.csv").stdout
    (cost,) = json.loads(program.run("bulk", "cost", "out.csv", "--json").stdout)
    assert 0 < cost["cost"] < 0.1
    left = program.run("bulk", "run", rows, *BASE, "-o", "out2.csv", "--only-failed")
    assert (left.returncode, "without --only-failed" in left.stderr) == (0, True)
    assert program.run("bulk", "export", "out.csv", "again.jsonl").returncode == 0
    lines = (program.home / "again.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["done", "failed", "done"]


def test_a_few_rows_are_tried_and_shown(peer):
    """`--limit --show` prints the first rows; the whole job pays only for the others."""
    program, app = peer
    rows = write(program.home, *(f"Book {number}" for number in range(30)))
    found = program.run("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--limit", "2", "--show")

    assert "Genre of Book 1?!" in found.stdout
    assert len(app.script.received) == 2
    assert program.run("bulk", "run", rows, *BASE, "-o", "out.jsonl").returncode == 0
    assert len(app.script.received) == 30


def test_an_estimate_sends_nothing(peer):
    """`--estimate` prints tokens and a range of costs; a job above `--ask-above` is asked about."""
    program, app = peer
    rows = write(program.home, *(f"Book {number}" for number in range(30)))
    found = program.run(
        "bulk", "run", rows, *BASE, "-o", "out.jsonl", "--estimate", "--rpm", "60", "--json"
    )

    estimate = json.loads(found.stdout)
    assert (estimate["rows"], estimate["seconds"]) == (30, 30)
    assert 0 < estimate["least"] < estimate["most"] < 0.1
    refused = program.run("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--ask-above", "0.001")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert not app.script.received


def test_a_spent_budget(peer):
    """The exit code is 3, the reason is printed, and no row has failed."""
    program, _ = peer
    rows = write(program.home, *(f"Book {number}" for number in range(50)))
    found = program.run("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--max-usd", "0.002")

    assert found.returncode == 3
    assert "0 failed" in found.stderr
    assert "budget" in found.stderr.lower()


def test_mistakes(peer):
    """A missing column or file is an error of the user; nothing is sent."""
    program, app = peer
    rows = write(program.home, "Emma")
    wrong = ("-p", "Genre of {name}?", *BASE[2:])
    found = program.run("bulk", "run", rows, *wrong, "-o", "out.jsonl")
    assert found.returncode == 2
    assert "no column 'name'" in found.stderr
    assert "no file" in program.run("bulk", "run", "gone.csv", *BASE, "-o", "out.jsonl").stderr
    found = program.run("bulk", "run", rows, *BASE, "-o", "o.csv", "--option", "max_tokns", "3")
    assert "--option: there is no option 'max_tokns'" in found.stderr
    assert "no bulk job" in program.run("bulk", "status", "none.jsonl").stderr
    program.run("bulk", "run", rows, "-p", "{title}", "-m", "nobody", "-o", "early.jsonl")
    assert "has not begun" in program.run("bulk", "status", "early.jsonl").stderr
    assert not app.script.received


def test_objects_from_stdin(tmp_path):
    """A schema in a file, rows from stdin, and independent samples."""
    schema = {"type": "object", "properties": {"genre": {"type": "string"}}, "required": ["genre"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    with serve_in_thread(Simulator(lambda _: text('{"genre": "novel"}'), key=KEY)) as server:
        program = Program(tmp_path, server.url)
        found = program.run(
            *("bulk", "run", "-", *BASE, "-o", "out.jsonl", "--schema", "schema.json"),
            *("--samples", "2"),
            stdin='{"title": "Emma"}\n',
        )
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["object"] for row in rows] == [{"genre": "novel"}] * 2


@posix
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c(tmp_path, times):
    """Once: calls under way are answered, and recorded. Twice: it ends at once. Both can go on."""
    app = Simulator(lambda r: answer(r) + latency(first=0.3), key=KEY, keep=None)
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        rows = write(tmp_path, *(f"Book {number}" for number in range(40)))
        job = ("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--concurrency", "4")
        with program.start(*job) as process:
            wait_for(lambda: len(app.script.received) >= 4, process)
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)  # two signals at once would be one
            process.communicate()
        sent = len(app.script.received)
        assert process.returncode in ((3,) if times == 1 else (3, 130))
        assert sent < 40
        assert program.run(*job).returncode == 0
        twice = len(app.script.received) - 40
        assert twice == 0 if times == 1 else twice <= 4


def test_the_rows_of_the_limit_are_shown(peer):
    """All of them, in their order, with the failed ones."""
    program, _ = peer
    rows = write(program.home, *(f"Book {n}" if n != 8 else "bad" for n in range(30)))
    found = program.run("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--limit", "12", "--show")

    shown = [line for line in found.stdout.splitlines() if line.startswith("  ")]
    assert len(shown) == 12
    assert shown[3] == "  Genre of Book 3?!"
    assert "not this one" in shown[8]
    assert "bulk show out.jsonl --failed" in found.stderr
    assert "report.html" in found.stderr


@posix
def test_ctrl_c_at_the_question(peer):
    """It ends the command at once, and nothing was sent."""
    program, app = peer
    rows = write(program.home, "Emma")
    job = ("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--ask-above", "0")
    terminal = Terminal(program, *job, NO_COLOR="1")
    terminal.expect("Go on? [y/N]")
    terminal.interrupt("interrupted")
    assert terminal.close() == 130
    assert not app.script.received


@posix
def test_the_bar(tmp_path):
    """On a terminal of 80 columns all figures of a job are shown, and no line is cut."""
    busy = threading.Event()

    def reply(request):
        if "Book 9" in request.messages[-1].text:
            busy.wait(PATIENCE)
        return answer(request)

    with serve_in_thread(Simulator(reply, key=KEY, keep=None)) as server:
        program = Program(tmp_path, server.url)
        rows = write(tmp_path, *("bad" if n == 3 else f"Book {n}" for n in range(10)))
        job = ("bulk", "run", rows, *BASE, "-o", "out.jsonl", "--rpm", "5000", "--concurrency", "1")
        terminal = Terminal(program, *job, NO_COLOR="1")
        terminal.expect_match(r"Rows .* 9/10 0:00:0")
        words = [r"rows/\w+, \$0\.\d+ spent", r"of about \$0\.\d+,", "left,", "1 under way,"]
        words += ["at most 5000 requests/min,", "failed: 1 invalid_request"]
        terminal.expect_match(" .*".join(words).replace(" ", r"\s+").replace(".*", r"[\s\S]*?"))
        busy.set()
        terminal.expect("9 of 10 rows done, 1 failed")
        assert terminal.close() == 1
    assert max(map(len, re.split(r"[\r\n]+", plain(terminal.printed)))) <= 80


def test_a_line_each_minute(capsys, monkeypatch):
    """Without a terminal a job that takes long says again and again how far it is."""
    facts = {"rows": 4000, "done": 990, "failed": 10, "cost": 1.5, "expected": 6.0, "rate": 0.5}
    state = bulk.Progress(**facts, left=6000, active=8, places=4, errors={"server_error": 10})
    states = [replace(state, rows=0), state]  # nothing is said before the rows were read

    class Job:
        def progress(self):
            if not states:
                raise asyncio.CancelledError
            return states.pop(0)

    monkeypatch.setattr("interlingua.cli.bulk._LINE_SECONDS", 0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_Display(Output(), {"concurrency": 8}).watch(Job()))

    assert capsys.readouterr().err == (
        "1,000 of 4,000 rows; 30.0 rows/min, $1.50 spent of about $6.00, 1 h 40 min left, "
        "8 under way, slowed by the provider's limits to 4 at once, failed: 10 server_error\n"
    )
