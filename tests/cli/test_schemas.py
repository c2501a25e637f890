"""`schemas`, and what of the log belongs to them; `log status` and `log backup`."""

import json
import sqlite3
import stat

from interlingua.simulator import text
from support.cli import MODEL, Program, simulated

DOG = ("ask", "-m", MODEL, "--schema", "name, age int")


def test_a_schema_is_kept_once_and_used_again(program):
    """By its id or the beginning of it; the log finds the answers with it."""
    for arguments in (DOG, DOG, ("ask", "-m", MODEL, "--schema-multi", "name")):
        assert program.run(*arguments, "Invent one").returncode == 0
    program.run("ask", "-m", MODEL, "Without")
    several, dog = json.loads(program.run("schemas", "list", "--json").stdout)

    assert (dog["calls"], dog["fields"]) == (2, "name, age int")
    assert (several["calls"], several["fields"]) == (1, "several of: name")
    start = dog["hash"][:8]
    assert program.run("schemas", "list").stdout.splitlines()[2].startswith(start)
    assert json.loads(program.run("schemas", "show", start).stdout) == dog["schema"]
    again = program.run("ask", "-m", MODEL, "--schema", start, "Invent one")
    assert json.loads(again.stdout) == {"name": "simulated", "age": 1}
    data = program.run("log", "list", "--schema", start, "--data").stdout.splitlines()
    assert [*map(json.loads, data)] == [{"name": "simulated", "age": 1}] * 3
    whole = json.loads(program.run("log", "list", "--data", "--json").stdout)
    assert len(whole) == 4
    assert len(json.loads(program.run("log", "list", "--schema", start, "--json").stdout)) == 3


def test_a_schema_of_a_template(program):
    """`t:NAME` is the schema that `--save` has kept."""
    program.run(*DOG, "--save", "dog")
    done = program.run("ask", "-n", "-m", MODEL, "--schema", "t:dog", "Invent one")

    assert json.loads(done.stdout)["age"] == 1
    shown = json.loads(program.run("schemas", "show", "t:dog").stdout)
    expanded = json.loads(program.run("schemas", "expand", "name, age int").stdout)
    assert shown == expanded
    multi = json.loads(program.run("schemas", "expand", "--multi", "name, age int").stdout)
    assert multi["properties"]["items"]["items"] == expanded


def test_what_is_not_there(program):
    """One line each, and nothing is sent."""
    program.run("ask", "-m", MODEL, "-s", "Short.", "--save", "plain")
    for arguments, found in (
        (("ask", "-m", MODEL, "--schema", "0123456789", "Hi"), "no schema has the id 0123456789"),
        (("ask", "-m", MODEL, "--schema", "t:plain", "Hi"), "the template plain has no schema"),
        (("ask", "-m", MODEL, "--schema", "t:none", "Hi"), "there is no template none"),
        (("schemas", "show", "x"), "no schema has the id x"),
        (("log", "list", "--schema", "name, age"), "`interlingua schemas list` has the ids"),
    ):
        done = program.run(*arguments)
        assert done.returncode == 2, arguments
        assert found in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert program.run("log", "list", "--data").returncode == 1


def test_an_answer_that_is_no_object_is_no_data(tmp_path):
    """A call that failed is in the log, but not among the data."""
    with simulated(text("no object")) as server:
        program = Program(tmp_path, server.url)
        assert program.run(*DOG, "Invent one").returncode == 8

        assert program.run("log", "list", "--data").returncode == 1
        assert json.loads(program.run("schemas", "list", "--json").stdout)[0]["calls"] == 1


def test_status_and_backup(program):
    """How many calls are there and why; the copy is whole, private, and replaces nothing."""
    nothing = json.loads(program.run("log", "status", "--json").stdout)
    missing = program.run("log", "backup", "copy.db")
    program.run("ask", "-m", MODEL, "One")
    program.run("ask", "-c", "Two")
    program.run("ask", "-m", MODEL, "Three")
    status = json.loads(program.run("log", "status", "--json").stdout)
    off = program.run("log", "status", INTERLINGUA_NO_LOG="1").stdout
    first, second = (program.run("log", "backup", "copy.db") for _ in range(2))

    assert (nothing["calls"], nothing["bytes"], nothing["on"]) == (0, 0, True)
    assert (missing.returncode, "There is no log yet." in missing.stderr) == (2, True)
    assert (status["calls"], status["conversations"]) == (3, 2)
    assert off.startswith("The log is off (INTERLINGUA_NO_LOG is set).\n")
    assert "3 calls in 2 conversations, since 20" in off
    assert (first.returncode, second.returncode) == (0, 2)
    assert "copy.db is there already" in second.stderr
    copy = program.home / "copy.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    connection = sqlite3.connect(copy)
    try:
        rows = connection.execute("SELECT prompt FROM calls ORDER BY id").fetchall()
    finally:
        connection.close()
    assert rows == [("One",), ("Two",), ("Three",)]
