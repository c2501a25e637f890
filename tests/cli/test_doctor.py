"""`interlingua doctor` says what is there, and what a target would refuse."""

import json
import socket

from interlingua import Message, ToolCall, to_json
from support.cli import KEY, MODEL

HISTORY = [
    Message.user("Weather?"),
    Message(role="assistant", content=(ToolCall(id="a:b", name="weather", arguments={}),)),
    Message.tool_result("a:b", "It rains."),
]


def test_the_environment(program):
    """Versions, folders, and which keys are set; the keys themselves are not shown."""
    done = program.run("doctor", "--json")
    rows = {row["check"]: row for row in json.loads(done.stdout)}

    assert done.returncode == 0, done.stderr
    assert rows["python"]["state"] == rows["httptools"]["state"] == "ok"
    assert rows["provider: openai"]["detail"].startswith("OPENAI_API_KEY, http://127.0.0.1")
    assert KEY not in done.stdout + done.stderr


def test_no_key(bare):
    """It says how to store one."""
    assert "keys set" in bare.run("doctor").stdout


def test_reachability(program):
    """Each configured provider is asked; one that does not answer is a failure."""
    done = program.run("doctor", "--online", "--json")
    rows = {row["check"]: row for row in json.loads(done.stdout)}
    failed = program.run("doctor", "--online", OPENAI_BASE_URL="http://127.0.0.1:1/v1")

    assert rows["reach: openai"]["state"] == rows["reach: anthropic"]["state"] == "ok"
    assert done.returncode == 0
    assert failed.returncode == 1
    assert "reach: openai\tfailed" in failed.stdout
    assert KEY not in failed.stdout + failed.stderr


def test_a_history_of_another_api(bare):
    """Messages are read in every form that functions take."""
    used = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]
    done = bare.run("doctor", "-", "--to", "openai_chat", stdin=json.dumps(messages))

    assert (done.returncode, "accepts" in done.stdout) == (0, True)


def test_a_history(bare, tmp_path):
    """What a target would refuse is a diff; what it accepts is said to be accepted."""
    file = tmp_path / "history.json"
    file.write_bytes(to_json(HISTORY))
    changed = bare.run("doctor", str(file), "--to", "anthropic_messages")
    document = json.loads(
        bare.run("doctor", str(file), "--to", "anthropic_messages", "--json").stdout
    )
    accepted = bare.run("doctor", str(file), "--to", "openai_chat")

    assert changed.returncode == 1
    assert any(line.startswith("-") and "a:b" in line for line in changed.stdout.splitlines())
    assert "call_id_mapped" in changed.stderr
    assert document["accepted"] is False
    assert document["changes"][0]["code"] == "call_id_mapped"
    assert (accepted.returncode, "accepts" in accepted.stdout) == (0, True)


def test_a_history_for_a_model(bare, tmp_path):
    """What the model cannot take would be refused; a model needs no key for this."""
    file = tmp_path / "history.json"
    file.write_text(
        json.dumps(
            [
                {"role": "user", "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                ]},
            ]
        )
    )  # fmt: skip
    refused = bare.run("doctor", str(file), "--to", "deepseek:deepseek-chat")
    accepted = bare.run("doctor", str(file), "--to", "anthropic:claude-haiku-4-5")

    assert refused.returncode == 1
    assert refused.stderr.startswith("warning: would be refused: messages[0].content[1]: ")
    assert any(line.startswith("-") and "a.png" in line for line in refused.stdout.splitlines())
    assert (accepted.returncode, accepted.stderr) == (0, "")
    assert "anthropic:claude-haiku-4-5 accepts this history as it is." in accepted.stdout


def test_a_saved_conversation(program):
    """What `/save` of `chat` wrote can be examined."""
    program.run("chat", "-n", "-m", MODEL, stdin="Hi\n/save talk.json\n")
    done = program.run("doctor", "talk.json", "--to", "gemini:gemini-2.5-flash")

    assert done.returncode == 0, done.stderr
    assert "accepts" in done.stdout


def test_a_provider_that_hangs(program):
    """It is a failure after the time that `--timeout` says."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        done = program.run("doctor", "--online", "--timeout", "0.2", OPENAI_BASE_URL=url)

    assert done.returncode == 1
    assert "reach: openai\tfailed\tno reply in 0.2 s" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_history_in_a_dialect(bare):
    """A request of a dialect is read too."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi."}]})
    done = bare.run("doctor", "-", "--from", "openai_chat", "--to", "gemini_generate", stdin=body)

    assert done.returncode == 0, done.stderr


def test_bad_histories_are_one_line(bare):
    """A missing target, a broken file, an unknown dialect."""
    for arguments, content in (
        (["-"], "[]"),
        (["-", "--to", "openai_chat"], "{"),
        (["-", "--to", "openai_chat"], '[{"role": 5}]'),
        (["-", "--to", "nothing"], "[]"),
    ):
        done = bare.run("doctor", *arguments, stdin=content)
        assert done.returncode not in (0, 70), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
