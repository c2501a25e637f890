"""`interlingua local` has the model on this machine."""

import json
import signal
import sys
import urllib.request

import pytest


def test_pull_and_list(gguf, bare):
    """What is here is not downloaded again."""
    pulled = bare.run("local", "pull", "--json")
    rows = json.loads(bare.run("local", "list", "--json").stdout)

    assert json.loads(pulled.stdout)["path"] == str(gguf)
    assert (rows[0]["state"], rows[0]["path"]) == ("here", str(gguf))


def test_a_file_that_is_gone_is_not_listed(run_here, tmp_path, monkeypatch):
    """Another process removes it between the list of the folder and the look at its size."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "interlingua"
    folder.mkdir()
    (folder / "here.gguf").write_bytes(b"GGUF")
    (folder / "gone.gguf").symlink_to(folder / "nowhere")

    code, listed, _ = run_here("local", "list", "--json")

    assert code == 0
    assert [row["name"] for row in json.loads(listed)[1:]] == ["here"]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
def test_run(gguf, bare):
    """The server answers at the address that is printed, and ends with Ctrl-C."""
    with bare.start("local", "run", str(gguf)) as process:
        try:
            line = process.stdout.readline()
            url = line.partition(" at ")[2].partition(" ")[0]
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"{url}/health", timeout=60) as reply:
                status = reply.status
        finally:
            process.send_signal(signal.SIGINT)
        code = process.wait()

    assert (status, code) == (200, 0)


def test_a_file_that_is_no_model_is_one_line(bare, tmp_path):
    """The exit code is that of wrong usage."""
    (tmp_path / "x.gguf").write_text("x")
    done = bare.run("local", "run", str(tmp_path / "x.gguf"))

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(bare, shell):
    """The script asks the program, which answers with its commands."""
    done = bare.run("completion", shell)
    words = {"COMP_WORDS": "interlingua che", "COMP_CWORD": "1"}
    answer = bare.run(_INTERLINGUA_COMPLETE="bash_complete", **words)

    assert "_INTERLINGUA_COMPLETE" in done.stdout
    assert "check" in answer.stdout
    assert json.loads(bare.run("completion", shell, "--json").stdout)["shell"] == shell
