"""What the program sets for its own process, so that a short command is fast."""

import subprocess
import sys

from interlingua.simulator import text, tool_call, tool_loop
from support.cli import MODEL, Program, simulated

SETTINGS = """
import atexit, gc
usual, runs, own = gc.get_threshold(), [], gc.get_freeze_count()  # some versions begin with some
atexit.register(lambda: print(gc.get_threshold() == usual, len(runs), gc.get_freeze_count() - own))
from interlingua.cli import main
gc.callbacks.append(lambda phase, about: runs.append(phase))
main({arguments})
"""


def settings(arguments, *words):
    """Whether the garbage collector is set as usual, how often it ran, and what is frozen."""
    command = [sys.executable, "-c", SETTINGS.format(arguments=arguments), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    is_usual, runs, frozen = done.stdout.splitlines()[-1].split()
    return is_usual == "True", int(runs), int(frozen)


def test_no_garbage_is_collected_in_a_short_command():
    """The collector does not run while modules are loaded, and frees nothing at the end."""
    is_usual, runs, frozen = settings("None", "models", "-p", "openai", "--json")

    assert (is_usual, runs) == (False, 0)
    assert frozen > 10_000


def test_a_program_that_calls_main_keeps_its_settings():
    """With arguments of its own, `main` is a function like any other."""
    is_usual, runs, frozen = settings("['models', '-p', 'openai', '--json']")

    assert (is_usual, frozen) == (True, 0)
    assert runs > 0


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
        command = program.command("ask", "-n", "-m", MODEL, "-y", "-T", "my_tools.py", "Note it.")
        subprocess.run(command, check=True, timeout=60, env=program.env, cwd=tmp_path)

    assert (tmp_path / "notes.txt").read_text() == "freed"


LOST = """
import os, signal, time
from interlingua.cli import commands, main

class Holder:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)  # is interrupted, and the interpreter may not raise that

def invoke(context):
    del context.holder
    time.sleep(60)

commands.program.invoke = invoke
make_context = commands.program.make_context
def with_holder(*arguments, **options):
    context = make_context(*arguments, **options)
    context.holder = Holder()
    return context
commands.program.make_context = with_holder
raise SystemExit(main())
"""


def test_no_ctrl_c_is_lost():
    """One that comes while an object is freed, as in each import, ends the program all the same."""
    command = [sys.executable, "-c", LOST, "models"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)

    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_a_command_closes_its_files(program):
    """The next one has no log to read: what was written is in the file and its copy."""
    for words in (("ask", "-m", MODEL, "one"), ("ask", "-c", "two")):
        assert program.run(*words).returncode == 0

        names = sorted(path.name for path in (program.home / "sessions").iterdir())
        assert names == ["sessions.db", "sessions.db-copy"]
