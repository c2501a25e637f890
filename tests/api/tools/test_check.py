"""Calls made ready: what is wrong with them, who mends them, who has to allow them."""

import asyncio

import pytest

from interlingua.api.tools.check import decide, prepare
from interlingua.api.tools.tool import Tool, tool
from interlingua.api.types.reading import FunctionHints
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ConfigurationError, InvalidToolCallError, SDKError
from support.runs import run_tools

LIST = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "integer"}}},
    "required": ["items"],
}


def pay_tool(needs_approval):
    @tool(needs_approval=needs_approval)
    def pay(euros: int) -> str:
        """Pay."""
        return f"paid {euros}"

    return pay


def call(euros=1, id="a"):  # noqa: A002 -- the part's word
    return ToolCall(id=id, name="pay", arguments={"euros": euros})


def ready(*calls, needs_approval=False, repair=None):
    return asyncio.run(prepare(calls, {"pay": pay_tool(needs_approval)}, repair))


async def above_100(arguments):
    await asyncio.sleep(0)
    return arguments["euros"] > 100


@pytest.mark.parametrize("needs", [lambda a: a["euros"] > 100, above_100], ids=["sync", "async"])
def test_approval_by_arguments(needs):
    """A function decides, and may be async."""
    assert [item.waits for item in ready(call(5), call(500), needs_approval=needs)] == [False, True]


@pytest.mark.parametrize("needs", [True, lambda a: a["euros"] > 100], ids=["always", "function"])
def test_invalid_arguments_need_no_approval(needs):
    """The call is not run, so `needs_approval` is not asked."""
    bad = [ToolCall(id="a", name="pay"), ToolCall(id="b", name="pay", raw_arguments="{")]
    for item in ready(*bad, needs_approval=needs):
        assert not item.waits
        assert isinstance(item.error, InvalidToolCallError)


def test_a_failing_needs_approval_means_that_approval_is_needed(caplog):
    """The error is logged with its traceback."""
    (item,) = ready(call(), needs_approval=lambda a: a["dollars"] > 100)

    assert (item.waits, item.error) == (True, None)
    assert "needs_approval of the tool 'pay' failed" in caplog.text
    assert "KeyError: 'dollars'" in caplog.text


def test_needs_approval_cannot_change_the_arguments():
    """It gets a copy."""
    (item,) = ready(call(5), needs_approval=lambda a: a.update(euros=1_000_000))

    assert item.call.arguments == {"euros": 5}


def mend_to(euros):
    def mend(_, error):
        assert "euros" in error.message
        return ToolCall(id="other", name="other", arguments={"euros": euros}, raw_arguments="{")

    return mend


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_can_be_repaired(is_async):
    """The arguments change; id and name stay."""

    async def mend_async(call, error):
        return mend_to(4)(call, error)

    (item,) = ready(call("four"), repair=mend_async if is_async else mend_to(4))

    assert (item.call, item.error) == (call(4), None)


def test_approval_is_asked_for_the_repaired_arguments():
    """The original arguments needed none."""
    for euros, waits in ((5, False), (500, True)):
        (item,) = ready(call("all"), needs_approval=above_100, repair=mend_to(euros))
        assert (item.waits, item.call.arguments) == (waits, {"euros": euros})


@pytest.mark.parametrize(
    ("useless", "words"),
    [
        (lambda *_: 1 / 0, "ZeroDivisionError"),
        (lambda *_: {"euros": 4}, "returned a dict"),
        (lambda call, _: call, "returned invalid arguments"),
        (lambda *_: None, ""),
    ],
    ids=["fails", "junk", "the same", "none"],
)
def test_a_failed_repair_keeps_the_error(useless, words, caplog):
    """The model gets the problem of its call; the failed repair is logged."""
    (item,) = ready(call("four"), repair=useless)

    assert "euros: expected integer, got 'four'" in str(item.error)
    assert words in caplog.text
    assert bool(caplog.text) == bool(words)


def test_unknown_tools():
    """A passive tool counts as unknown, because it cannot be run."""
    for tools in ({}, {"pay": Tool(name="pay")}):
        (item,) = asyncio.run(prepare([call()], tools))
        assert "Unknown tool 'pay'. Available tools" in str(item.error)


def test_a_long_list_of_problems_is_shortened():
    """Five thousand problems are a few and a number."""
    made = Tool(name="pay", parameters=LIST, execute=lambda items: items)
    wrong = ToolCall(id="a", name="pay", arguments={"items": ["x"] * 5_000})
    (item,) = asyncio.run(prepare([wrong], {"pay": made}))
    broken = ToolCall(id="a", name="pay", raw_arguments="{" + "x" * 100_000)
    (long,) = asyncio.run(prepare([broken], {"pay": made}))

    assert "and 4990 more" in str(item.error)
    assert len(str(item.error)) < 2_000
    assert len(str(long.error)) < 3_000


def test_arguments_are_read_once():
    """What was checked is what the function is given."""
    reads = []

    @tool
    def pay(euros: int, tags: list[str]) -> str:
        """Pay."""
        tags.append("changed")
        return f"{euros} {tags}"

    read = FunctionHints.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionHints, "read", lambda *a: reads.append(1) or read(*a))
        made = ToolCall(id="a", name="pay", arguments={"euros": 1, "tags": ["x"]})
        ready = asyncio.run(prepare([made], {"pay": pay}))
        (result,) = asyncio.run(run_tools(ready))

    assert result.content == "1 ['x', 'changed']"
    assert made.arguments == {"euros": 1, "tags": ["x"]}
    assert len(reads) == 1


def test_a_type_whose_validation_raises():
    """The error belongs to this call, not to the run."""

    class Odd(Tool, frozen=True, kw_only=True, dict=True):
        def read(self, _):
            raise KeyError("odd")

    (item,) = asyncio.run(prepare([call()], {"pay": Odd(name="pay", execute=lambda **_: 1)}))

    assert isinstance(item.error, KeyError)


# Decisions.


def test_decisions():
    """Each is for one call; a rejection goes to the model."""
    waiting = ready(call(1, "a"), call(2, "b"), needs_approval=True)
    yes, no = decide(waiting, {"a": True, "b": False, "nobody": True})

    assert (yes.error, yes.waits, no.waits) == (None, False, False)
    assert type(no.error) is SDKError
    assert "did not approve" in str(no.error)
    with pytest.raises(ConfigurationError, match="No approval was given for a, b"):
        decide(waiting, {})
    (refused,) = decide(ready(call()), {"a": False})
    assert refused.error is not None


def test_two_calls_with_the_same_id():
    """An approval for them is ambiguous."""
    waiting = ready(call(1, "a"), call(1_000_000, "a"), needs_approval=True)
    with pytest.raises(ConfigurationError, match="Two tool calls have the id 'a'"):
        decide(waiting, {"a": True})
