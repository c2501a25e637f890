"""`interlingua video`: jobs that take minutes, and can be taken up again."""

import json
import re
import signal
import stat
import sys

import pytest

from interlingua.simulator import Simulator, VideoScript, serve_in_thread
from support.cli import KEY, Program, wait_for

CREATE = ("video", "create", "-m", "gemini:veo-3.1-generate-001")
FAST = ("--poll", "0.01")
OTHER = ("--base-url", "{url}/v1", "--key-env", "OPENAI_API_KEY")
JOB = "gemini:models/veo-3.1-generate-001/operations/video_000000000001"
posix = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")


@pytest.fixture
def peer(tmp_path):
    """The program with Gemini, a simulator, and its address."""
    app = Simulator(key=KEY)
    with serve_in_thread(app) as server:
        yield with_gemini(tmp_path, server.url), app, server.url


def with_gemini(home, url):
    """The program, with a key for Gemini too."""
    program = Program(home, url)
    program.env |= {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": url}
    return program


def created(app):
    """The body of the request that made the job."""
    return next(each.call.body for each in app.script.received if each.method == "POST")


def test_create(peer, tmp_path):
    """The video is written to the file, and all options are sent."""
    program, app, _ = peer
    (tmp_path / "first.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    options = ("--seconds", "8", "--size", "720p", "--aspect-ratio", "9:16")
    image = ("--image", "first.png")
    done = program.run(*CREATE, *options, *image, *FAST, "-o", "sea.mp4", "A", "calm sea", "--json")
    row = json.loads(done.stdout)
    body = created(app)

    assert done.returncode == 0, done.stderr
    assert done.stderr == f"The job is {JOB}.\n"
    assert (row["state"], row["files"], row["cost"]) == ("completed", ["sea.mp4"], 3.2)
    assert (tmp_path / "sea.mp4").stat().st_size > 0
    assert body["instances"][0]["prompt"] == "A calm sea"
    assert "image" in body["instances"][0]
    expected = {"durationSeconds": 8, "resolution": "720p", "aspectRatio": "9:16"}
    assert expected.items() <= body["parameters"].items()


def test_several(peer, tmp_path):
    """The second file has a number in its name."""
    program, _, _ = peer
    done = program.run(*CREATE, "-n", "2", *FAST, "-o", "sea.mp4", "A calm sea")

    assert done.stdout.splitlines() == ["sea.mp4", "sea-2.mp4"]
    assert (tmp_path / "sea-2.mp4").stat().st_size > 0


def test_take_it_up_again(peer, tmp_path):
    """`--no-wait` prints the job; `get` prints its state, or waits and downloads, with its cost."""
    program, _, _ = peer
    row = json.loads(program.run(*CREATE, "--seconds", "8", "--no-wait", "Sea", "--json").stdout)
    state = program.run("video", "get", row["job"])
    done = program.run("video", "get", row["job"], "-o", "sea.mp4", *FAST, "--json")

    assert (row["job"], row["state"]) == (JOB, "queued")
    assert state.stdout.splitlines()[1].startswith(f"{JOB}\tin_progress\t")
    assert json.loads(done.stdout)["cost"] == 3.2  # Gemini does not repeat the length
    assert (tmp_path / "sea.mp4").stat().st_size > 0
    (kept,) = (tmp_path / "videos").iterdir()
    if sys.platform != "win32":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_list_cancel_delete_remix(peer, tmp_path):
    """What a server with OpenAI's API can do besides."""
    program, _, url = peer
    base = [each.format(url=url) for each in OTHER]
    model = ("-m", "openai_compatible:any")
    made = program.run("video", "create", *model, "Sea", "-o", "a.mp4", *FAST, *base, "--json")
    job = json.loads(made.stdout)["job"]
    picture = program.run("video", "get", job, "-o", "a.png", "--variant", "thumbnail", *base)
    night = json.loads(program.run("video", "remix", job, "At night", *base, "--json").stdout)
    stopped = json.loads(program.run("video", "cancel", night["job"], *base, "--json").stdout)
    deleted = program.run("video", "delete", job, *base)
    rows = program.run("video", "list", "openai_compatible", "-n", "5", *base, "--json").stdout

    assert picture.returncode == 0, picture.stderr
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "a.mp4").read_bytes()
    assert stopped["state"] == "cancelled"
    assert deleted.stdout == f"Deleted {job}.\n"
    assert [row["job"] for row in json.loads(rows)] == [night["job"]]
    again = program.run("video", "delete", night["job"], *base, "--json")
    assert json.loads(again.stdout) == {"job": night["job"], "deleted": True}
    empty = program.run("video", "list", "openai_compatible", *base)
    assert (empty.stdout, empty.stderr) == ("", "There are no jobs.\n")


@posix
@pytest.mark.parametrize("how", ["ctrl-c", "timeout"])
def test_waiting_ends_and_the_job_goes_on(tmp_path, how):
    """The line names the command that goes on, which works."""
    app = Simulator(key=KEY, videos=[VideoScript(polls=10_000)])
    with serve_in_thread(app) as server:
        program = with_gemini(tmp_path, server.url)
        limit = ("--timeout", "0.5") if how == "timeout" else ()
        arguments = (*CREATE, "-o", "a sea.mp4", "--poll", "0.1", *limit, "Sea")
        with program.start(*arguments) as process:
            if how == "ctrl-c":
                wait_for(lambda: len(app.script.received) >= 3, process)
                process.send_signal(signal.SIGINT)
            code, errors = process.wait(), process.stderr.read()
        command = f"interlingua video get {JOB} -o 'a sea.mp4'"
        state = program.run("video", "get", JOB)

    lines = errors.splitlines()
    assert lines[0] == f"The job is {JOB}."
    if how == "ctrl-c":
        assert (code, lines[1:]) == (130, [f"interrupted; the job goes on: {command}"])
    else:
        assert (code, lines[1]) == (6, f"The job goes on: {command}")
        assert re.match(r"error: .*[Tt]imed out", lines[2])
    assert "in_progress" in state.stdout
    assert not (tmp_path / "a sea.mp4").exists()


def test_a_job_that_fails(tmp_path):
    """The reason is the error, and no file is left."""
    script = VideoScript(polls=1, error=("internal", "The model has failed."))
    with serve_in_thread(Simulator(key=KEY, videos=[script])) as server:
        program = with_gemini(tmp_path, server.url)
        done = program.run(*CREATE, *FAST, "-o", "sea.mp4", "Sea")
        state = program.run("video", "get", JOB)

    assert done.returncode == 7, done.stderr
    assert "The model has failed." in done.stderr.splitlines()[-1]
    assert not (tmp_path / "sea.mp4").exists()
    assert "The model has failed." in state.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ((*CREATE, "Sea"), 2, "Give -o FILE, or --no-wait"),
        ((*CREATE, "Sea", "-o", "x.mp4", "--no-wait"), 2, "Give -o FILE, or --no-wait"),
        ((*CREATE, "Sea", "-o", "no/such/x.mp4"), 2, "there is no folder no/such"),
        ((*CREATE, "Sea", "-o", "x.mp4", "--image", "nowhere.png"), 2, "nowhere.png"),
        ((*CREATE, "Sea", "-o", "x.mp4", "--seconds", "5"), 2, "Allowed: 4, 6, 8."),
        (("video", "create", "-m", "nobody:x", "-o", "x.mp4", "Sea"), 2, "nobody"),
        (("video", "create", "-m", "openai:sora-2", "-o", "x.mp4", "Sea"), 2, "sora-2"),
        (("video", "get", "nothing"), 2, "nothing"),
        (("video", "get", "gemini:operations/nothing"), 2, "is not the id of a video job"),
        (("video", "get", "gemini:models/veo-3.1-generate-001/operations/x"), 4, ""),
        (("video", "get", "openai_compatible:x", "--key-env", "NOT_SET"), 2, "NOT_SET is not set"),
    ],
)
def test_bad_input_is_one_line(peer, tmp_path, arguments, code, complaint):
    """The line says what is wrong; no file is left."""
    done = peer[0].run(*arguments)

    assert done.returncode == code, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert complaint in done.stderr
    assert not list(tmp_path.glob("x.*"))
