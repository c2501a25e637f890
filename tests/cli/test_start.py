"""What the program sets for its own process, so that a short command is fast."""

import gc
import subprocess
import sys

from interlingua.cli import main
from interlingua.simulator import text, tool_call, tool_loop
from support.cli import MODEL, Program, simulated

LOADED = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_count()[1:], gc.get_freeze_count()))
from interlingua.cli import main
sys.argv[1:] = ["models", "-p", "openai", "--json"]
main()
"""


def test_no_garbage_is_collected_in_a_short_command():
    """The collector does not run while modules are loaded, and frees nothing at the end."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60
    )

    counts, _, frozen = done.stdout.splitlines()[-1].rpartition(" ")
    assert counts == "(0, 0)"
    assert int(frozen) > 10_000


def test_a_program_that_calls_main_keeps_its_settings(capsys):
    """With arguments of its own, `main` is a function like any other."""
    before = gc.get_threshold(), gc.get_freeze_count()

    assert main(["--version"]) == 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
    assert capsys.readouterr().out.startswith("interlingua ")


def test_objects_of_a_tool_are_freed(tmp_path):
    """Code of the user ends as in any program: its objects can finish what they hold."""
    (tmp_path / "my_tools.py").write_text(
        "import os\n\n"
        "class Notes:\n"
        "    file = os.open('notes.txt', os.O_CREAT | os.O_RDWR)\n\n"
        "    def __del__(self, write=os.write):\n"
        "        write(self.file, b'freed')\n\n"
        "notes = Notes()\n\n"
        "def note(text: str) -> str:\n"
        '    """Take a note."""\n'
        "    return 'noted'\n"
    )
    answer = tool_loop(tool_call("note", text="Buy milk."), text("Done."))
    with simulated(answer) as server:
        program = Program(tmp_path, server.url)
        done = program.run("ask", "-n", "-m", MODEL, "-y", "-T", "my_tools.py", "Note it.")

    assert done.stdout == "Done.\n"
    assert (tmp_path / "notes.txt").read_text() == "freed"


def test_a_command_closes_its_files(program):
    """The next one has no log to read: what was written is in the file and its copy."""
    for words in (("ask", "-m", MODEL, "one"), ("ask", "-c", "two")):
        assert program.run(*words).returncode == 0

        names = sorted(path.name for path in (program.home / "sessions").iterdir())
        assert names == ["sessions.db", "sessions.db-copy"]
