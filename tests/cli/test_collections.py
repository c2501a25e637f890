"""`embed-many`, `similar` and `collections`, against a simulator."""

import json
import stat

import pytest

from interlingua.simulator import Simulator, serve_in_thread
from support.cli import KEY, Terminal

MODEL = ("-m", "openai:text-embedding-3-small", "-d", "16")
ROWS = [("a", "A red bicycle"), ("b", "Bread is baked daily"), ("c", "海は青い")]


@pytest.fixture
def run(run_here):
    """Runs a command; its `app` is the simulator that answers."""
    app = Simulator(key=KEY)
    with serve_in_thread(app) as server:

        def call(*arguments, **options):
            return run_here(*arguments, url=server.url, **options)

        call.app = app
        yield call


def write(folder, form):
    """A file or folder with the rows."""
    separator = {"csv": ",", "tsv": "\t"}.get(form)
    path = folder / f"rows.{form}"
    if form == "folder":
        path.mkdir()
        for name, text in ROWS:
            (path / f"{name}.md").write_text(text, encoding="utf-8")
        return path
    objects = [{"id": name, "text": text} for name, text in ROWS]
    lines = {"jsonl": "\n".join(map(json.dumps, objects)), "json": json.dumps(objects)}
    table = "\n".join(f"{name}{separator}{text}" for name, text in [("id", "text"), *ROWS])
    path.write_text(lines.get(form, table), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "folder"])
def test_every_form_of_input(run, tmp_path, form):
    """The same entries; the second run embeds nothing."""
    path = write(tmp_path, form)
    first, _, note = run("embed-many", "notes", str(path), *MODEL, "--store")
    before = len(run.app.script.received)
    again, _, unchanged = run("embed-many", "notes", str(path))
    code, out, _ = run("similar", "notes", "-c", "Bread is baked daily", "-n", "1", "--json")

    assert (first, again, code) == (0, 0, 0)
    assert note.startswith("notes: 3 embedded, 0 unchanged · ")
    assert unchanged.startswith("notes: 0 embedded, 3 unchanged · 0 tokens · $0.00")
    assert len(run.app.script.received) == before + 1  # the query
    (match,) = json.loads(out)
    assert match["id"].startswith("b")
    assert match["text"] == "Bread is baked daily"
    assert match["score"] == pytest.approx(1)


def test_files_by_pattern(run, tmp_path):
    """Each file is an entry, whose id is its path in the folder; one that is no text is named."""
    (tmp_path / "code" / "inner").mkdir(parents=True)
    (tmp_path / "code" / "one.py").write_text("print(1)")
    (tmp_path / "code" / "inner" / "two.py").write_text("print(2)")
    (tmp_path / "code" / "bytes.py").write_bytes(b"\xff\xfe")
    (tmp_path / "code" / "empty.py").touch()
    code, _, note = run("embed-many", "c", "--files", "code", "**/*.py", *MODEL, "--prefix", "x/")
    _, out, _ = run("similar", "c", "x/one.py", "--json")

    assert code == 1
    assert "bytes.py is not text in UTF-8" in note
    assert "empty.py has no text" in note
    assert [match["id"] for match in json.loads(out)] == ["x/inner/two.py"]


def test_stdin(run):
    """JSON lines, or what `--format` says."""
    lines = "one\ntwo\n"
    assert run("embed-many", "a", "-", "--format", "lines", *MODEL, stdin=lines)[0] == 0
    table = "name\tabout\nx\tsea\ny\tsky\n"
    assert run("embed-many", "b", "-", "--format", "tsv", *MODEL, stdin=table)[0] == 0
    assert run("embed-many", "c", "-", *MODEL, stdin='{"id": 7, "title": "Sea"}\n')[0] == 0
    listed = json.loads(run("collections", "--json")[1])
    assert [(each["name"], each["entries"]) for each in listed] == [("a", 2), ("b", 2), ("c", 1)]
    assert run("similar", "b", stdin="sea")[1].splitlines()[1] == "1\tx"


def test_columns(run, tmp_path):
    """The id and the text can be in any columns."""
    (tmp_path / "t.csv").write_text("no,title,name\n1,Sea,k\n")
    run("embed-many", "t", "t.csv", *MODEL, "--id", "name", "--column", "title", "--store")

    assert json.loads(run("similar", "t", "-c", "x", "--json")[1])[0] | {"score": 0} == {
        "id": "k", "text": "Sea", "score": 0,
    }  # fmt: skip


def test_plain_and_vector(run, tmp_path):
    """A vector that `embed` prints can be compared; `--plain` has the texts as they are."""
    write(tmp_path, "csv")
    run("embed-many", "notes", "rows.csv", *MODEL, "--store")
    vector = run("embed", *MODEL, "A red bicycle")[1].strip()
    out = run("similar", "notes", "--vector", vector, "-n", "1", "--plain")[1]

    assert out == "a (1.000)\n\nA red bicycle\n\n"


def test_a_long_text_on_a_terminal(program):
    """The table has its beginning, `--plain` all of it."""
    (program.home / "t.csv").write_text(f"id,text\na,{'word ' * 200}\n")
    program.run("embed-many", "t", "t.csv", *MODEL, "--store")
    shown = []
    for words in ((), ("--plain",)):
        terminal = Terminal(program, "similar", "t", "-c", "word", *words)
        assert terminal.close() == 0
        shown.append(terminal.text)

    assert shown[0].count("word") == 40
    assert shown[0].endswith("…")
    assert shown[1].count("word") > 190


def test_delete(run, tmp_path):
    """Only after yes, which a pipe cannot say; the file is private."""
    write(tmp_path, "csv")
    run("embed-many", "notes", "rows.csv", *MODEL)
    refused, _, why = run("collections", "delete", "notes")
    listed = run("collections", "list")[1]
    deleted, _, note = run("collections", "delete", "notes", "--yes")
    path = tmp_path / "home" / "collections.db"

    assert (refused, deleted) == (2, 0)
    assert "--yes" in why
    assert listed.splitlines()[1].startswith("notes\t3\t16\topenai:text-embedding-3-small\t")
    assert note == "Deleted notes with 3 entries.\n"
    assert run("collections")[2].startswith("There is no collection;")
    assert run("collections", "path")[1] == f"{path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


BAD = [
    ("embed-many notes none.csv", "no file none.csv"),
    ("embed-many notes empty.csv", "empty.csv is empty"),
    ("embed-many notes empty.jsonl", "empty.jsonl: there is no text"),
    ("embed-many notes", "Name a file"),
    ("embed-many notes rows.csv --files . *.md", "one of them"),
    ("embed-many notes --files none *.md", "no folder none"),
    ("embed-many notes --files . *.none", "there is no text"),
    ("embed-many notes rows.csv -m openai:text-embedding-3-large", "-m: The collection 'notes'"),
    ("embed-many notes rows.csv -d 8", "-d: The collection 'notes' has vectors of 16"),
    ("embed-many new rows.csv", "-m: There is no collection 'new' yet"),
    ("embed-many notes rows.csv --id none", "no column 'none'"),
    ("embed-many notes broken.json", "broken.json is not JSON"),
    ("embed-many notes object.json", "object.json is not a JSON array"),
    ("embed-many notes rows.csv --database rows.csv", "rows.csv"),
    ("similar none -c x", "no collection 'none'. There are notes."),
    ("similar notes zz", "no entry 'zz'"),
    ("similar notes", "is empty"),
    ("similar notes a -c x", "Name one of"),
    ("similar notes -i none.txt", "none.txt"),
    ("similar notes --vector [1,2]", "--vector: The vector has 2 numbers"),
    ("similar notes --vector [NaN]", "--vector"),
    ("similar notes --vector x", "--vector"),
    ("similar notes a --database none.db", "--database: there is no none.db"),
    ("collections delete none -y", "no collection 'none'"),
]


@pytest.mark.parametrize(("line", "complaint"), BAD, ids=[line for line, _ in BAD])
def test_bad_input(run, tmp_path, line, complaint):
    """One line that says what is wrong; nothing is sent."""
    write(tmp_path, "csv")
    for name, content in {
        "empty.csv": "", "empty.jsonl": "", "broken.json": "[", "object.json": "{}",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(content)
    run("embed-many", "notes", "rows.csv", *MODEL)
    before = len(run.app.script.received)
    code, out, err = run(*line.split(" "))

    assert (code, out) in ((1, ""), (2, ""))
    assert complaint in err
    assert len(err.splitlines()) == 1
    assert len(run.app.script.received) == before
