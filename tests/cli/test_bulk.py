"""`interlingua bulk`: a table in, the same table with answers out."""

import csv
import json
import signal
import sys
import time

import pytest

from interlingua.simulator import Simulator, error, latency, serve_in_thread, text
from support.cli import KEY, Program, wait_for

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
    assert "no bulk job" in program.run("bulk", "status", "none.jsonl").stderr
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
