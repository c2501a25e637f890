"""The tools of MCP servers, run as `generate` runs them."""

import asyncio
import logging
import subprocess
import sys

import pytest
from mcp import StdioServerParameters

from interlingua.api.tools.check import prepare
from interlingua.api.tools.mcp import noise
from interlingua.api.tools.mcp.tools import mcp_tools
from interlingua.api.tools.tool import ToolAnnotations, check_tools
from interlingua.spec.content import Audio, Image, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import loads
from support.mcp_server import PNG, WAV
from support.patience import PATIENCE
from support.runs import run_tools

KEY = "key-very-secret"


async def run_calls(tools, *calls):
    """The results of calls, each a name and its arguments."""
    asked = [
        ToolCall(id=f"c{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(calls)
    ]
    return await run_tools(await prepare(asked, check_tools(tools)))


def run(server, *calls, **settings):
    """The tools of a server and the results of calls."""

    async def work():
        async with mcp_tools(server, **{"timeout": PATIENCE} | settings) as tools:
            return tools, await run_calls(tools, *calls)

    return asyncio.run(asyncio.wait_for(work(), PATIENCE))


def test_results(url):
    """Text, JSON, media and errors come as such, each under the id of its call."""
    _, results = run(
        url,
        ("plain", {"text": "a\nb"}),
        ("echo", {"text": "a\nb"}),
        ("add", {"a": 1, "b": 2}),
        ("person", {"name": "Ada"}),
        ("picture", {}),
        ("sound", {}),
        ("fail", {"reason": "no such thing"}),
    )

    assert [result.tool_call_id for result in results] == [f"c{n}" for n in range(7)]
    assert [result.content for result in results] == [
        "a\nb",
        "a\nb",
        3,
        {"name": "Ada", "age": None, "tags": ["a", "b"]},
        (Text(text="a pixel"), Image(data=PNG, media_type="image/png")),
        (Audio(data=WAV, media_type="audio/wav"),),
        "Error executing tool fail: no such thing",
    ]
    assert [result.is_error for result in results] == [False] * 6 + [True]


def test_resources(url):
    """Embedded resources and links are parts."""
    _, (result,) = run(url, ("files", {}))
    text, image, link = result.content

    assert text.text == "# Notes"
    assert image.data == PNG
    assert link.text == "[log](file:///all.log): text/plain, the log"


def test_odd_names(url):
    """A tool whose name no provider takes is called by another, and reached."""
    odd = ("files.read", "files/read", "1st", "größe", "n" * 100, "_hidden")
    tools, _ = run(url)
    by_description = {tool.description: tool.name for tool in tools}

    _, results = run(url, *((by_description[name], {}) for name in odd))

    assert [result.content for result in results] == list(odd)
    assert len({by_description[name] for name in odd}) == len(odd)


def test_arguments_called_like_what_is_injected(url):
    """What the model gives as `messages` goes to the server, not what the loop would inject."""
    arguments = {"messages": ["m"], "tool_call_id": "t", "self": "s"}
    _, (result,) = run(url, ("contexts", arguments))

    assert result.content == arguments


def test_arguments_that_do_not_fit(url):
    """They are refused by the schema of the server, before it is asked."""
    _, (result,) = run(url, ("add", {"a": "one", "b": 2}))

    assert result.is_error
    assert "do not match the schema" in result.content


def test_definitions(url):
    """A tool has the words, the schema and the hints of its server."""
    tools, _ = run(url)
    add, echo = tools[:2]

    assert (add.name, add.description) == ("add", "Add two numbers.")
    assert add.parameters["required"] == ["a", "b"]
    assert add.annotations == ToolAnnotations(read_only=True, open_world=False)
    assert echo.annotations == ToolAnnotations(destructive=True, idempotent=True)
    assert tools[2].annotations == ToolAnnotations()


def test_several_servers(url, plain, process):
    """Each server's name is before those of its tools; all are connected, and all are left."""
    tools, results = run(
        {"web": url, "here": plain()}, ("web_echo", {"text": "x"}), ("here_echo", {"x": 1})
    )

    assert {tool.name.partition("_")[0] for tool in tools} == {"web", "here"}
    assert [result.content for result in results] == ["x", '{"x": 1}']
    assert process() is None


def test_one_of_several_servers_fails(plain, process):
    """Then none is kept, and the error says which one it was."""
    missing = StdioServerParameters(command="no-such-program")

    with pytest.raises(ConfigurationError, match="no-such-program"):
        run({"good": plain(), "bad": missing})
    assert process() is None


def test_prefix_and_choice(plain):
    """A prefix goes before each name; `only` names tools as their server does."""
    tools, (result,) = run(plain(), ("my_echo", {"x": 1}), prefix="my", only=["leak", "echo"])

    assert [tool.name for tool in tools] == ["my_echo", "my_leak"]
    assert result.content == '{"x": 1}'
    with pytest.raises(ConfigurationError, match="nothing"):
        run(plain(), only=["echo", "nothing"])


def test_a_name_that_is_listed_twice(plain):
    """A server that lists a name twice has one tool of that name, the first."""
    tools, _ = run(plain())

    assert [tool.description for tool in tools] == [
        "Say it again.",
        "Breaks its promise",
        "No result",
        None,
        None,
        None,
    ]


def test_schemas_that_cannot_be_used(plain, caplog):
    """Their tools are left out, which is told; the others are there and work."""
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        tools, (result,) = run(plain("schemas"), ("echo", {"x": 1}))
    bad = ["dangling", "mistyped", "remote", "third_draft"]

    assert [tool.name for tool in tools] == ["echo"]
    assert result.content == '{"x": 1}'
    assert [(record.tool, record.reason) for record in caplog.records] == [
        (name, "tool_left_out") for name in bad
    ]
    assert [warning.code for warning in tools.warnings] == ["tool_left_out"] * 4
    assert all(name in told.message for name, told in zip(bad, tools.warnings, strict=True))
    with pytest.raises(ConfigurationError, match="third_draft"):
        run(plain("schemas"), only=["echo", "third_draft"])


def test_noise_between_the_answers(plain):
    """What a server prints by mistake, even bytes that are no text, ends nothing."""
    _, results = run(plain("noise"), ("echo", {"x": 1}), ("echo", {"x": 2}))

    assert [result.content for result in results] == ['{"x": 1}', '{"x": 2}']


def test_a_server_with_too_many_tools_provides_the_first_ones(plain, caplog):
    """It lists more for ever; a warning and a log line name the server and the limit."""
    tools, _ = run(plain("many"))
    few, _ = run({"a": plain("many"), "b": plain()}, max_tools=3)

    assert [tool.name for tool in tools] == [f"tool_{number}" for number in range(256)]
    assert [warning.code for warning in tools.warnings] == ["tools_limited"]
    assert "more than 256 tools" in tools.warnings[0].message
    assert "tools_limited" in caplog.text
    assert len(few) == 6  # of each server
    assert len(few.warnings) == 2


def test_a_tool_behind_the_limit_is_selected_by_name(plain):
    """Only what is selected counts; a tool that no page has is an error in the end."""
    tools, _ = run(plain("many"), only=["tool_1", "tool_700"], max_tools=2)

    assert [tool.name for tool in tools] == ["tool_1", "tool_700"]
    assert tools.warnings == ()
    with pytest.raises(ConfigurationError, match="No MCP server has the tools nothing"):
        run(plain("many"), only=["nothing"])


@pytest.mark.parametrize("limit", [0, -1, True, 2.5, "3"])
def test_a_limit_that_is_no_number_of_tools_is_refused(plain, limit):
    """Before anything is started."""
    with pytest.raises(ConfigurationError, match="max_tools"):
        run(plain(), max_tools=limit)


def test_a_loud_server_fills_neither_the_log_nor_the_terminal(plain, caplog, capfd, monkeypatch):
    """Its tool answers; the first lines are there, and a note says that there were more."""
    monkeypatch.setattr(noise._limited, "_kinds", {})
    with caplog.at_level(logging.DEBUG):
        _, (result,) = run(plain("loud"), ("echo", {"x": 1}))

    printed = capfd.readouterr().err
    records = [each for each in caplog.records if each.name.startswith("mcp.client.stdio")]
    assert result.content == '{"x": 1}'
    assert len(records) == 20
    assert records[-1].getMessage().endswith("not logged)")
    assert 200_000 < len(printed) < 300_000
    assert printed.count("writes too much to stderr") == 1


def test_a_file_for_the_log_gets_all_of_it(plain, tmp_path):
    """Whoever names one wants it."""
    with (tmp_path / "log").open("w") as log:
        run(plain("loud"), ("echo", {"x": 1}), errlog=log)

    assert (tmp_path / "log").stat().st_size == 2_000_000


def test_arguments_that_are_no_utf_8_harm_at_most_their_own_call(plain):
    """A lone surrogate harms at most its own call."""
    _, results = run(plain(), ("echo", {"x": "a\ud800b"}), ("echo", {"x": 2}))

    assert [loads(result.content) for result in results] == [{"x": "a\ufffdb"}, {"x": 2}]


@pytest.mark.usefixtures("quick_kill")
def test_a_tool_that_is_late(plain):
    """The model is told after the time of a call."""
    _, (result,) = run(plain(), ("hang", {}), timeout=0.2)

    assert result.is_error
    assert "did not answer within 0.2 s" in result.content


def test_a_server_that_dies(plain):
    """The model is told, of the call under way and of later ones."""

    async def work():
        async with mcp_tools(plain(), timeout=None) as tools:
            first = await run_calls(tools, ("die", {}))
            return [*first, *await run_calls(tools, ("echo", {}))]

    results = asyncio.run(asyncio.wait_for(work(), PATIENCE))

    assert [result.is_error for result in results] == [True, True]
    assert all("is closed" in result.content for result in results)


def test_no_secret_in_an_error(plain):
    """An error that quotes the key is told without it, be it text, parts or JSON."""
    calls = [("leak", {}), ("leak", {"x": "parts"}), ("leak", {"x": "json"})]
    tools, results = run(plain(API_KEY=KEY), *calls)
    said = "[redacted] is wrong"

    assert all(result.is_error for result in results)
    assert [result.content for result in results] == [
        said,
        (Text(text=said), Text(text=said)),
        {"why": [said, 1]},
    ]
    assert KEY not in repr(tools)


def test_the_environment_of_a_server(full):
    """A stdio server has the variables it is given; results, unlike errors, are not changed."""
    _, (result,) = run(full(TOKEN=KEY), ("variable", {"name": "TOKEN"}))

    assert result == ToolResult(tool_call_id="c0", name="variable", content=KEY)


@pytest.mark.usefixtures("quick_kill")
def test_cancelling_inside(plain, process):
    """Cancelling what runs inside the block ends the server."""

    async def hold(ready):
        async with mcp_tools(plain(), timeout=None) as tools:
            ready.set()
            await run_calls(tools, ("hang", {}))

    async def work():
        ready = asyncio.Event()
        task = asyncio.create_task(hold(ready))
        await ready.wait()
        await asyncio.sleep(0.05)  # the call is under way
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(asyncio.wait_for(work(), PATIENCE))
    assert process() is None


def test_importing_it_is_light():
    """The `mcp` package is imported on use."""
    heavy = "{'mcp', 'mcp_types', 'httpx2'}"
    code = f"import sys, interlingua.api.tools.mcp.tools; print({heavy} & {{*sys.modules}})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "set()"
