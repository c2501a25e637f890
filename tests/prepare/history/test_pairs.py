"""Which result answers which call."""

from interlingua.prepare.history.edit import Edits
from interlingua.prepare.history.results import Pairs, end_of_results, holds_only_results, pairs_of
from interlingua.spec.content import Opaque, Text, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message

TARGET = HistoryRules(dialect="openai_responses")
JOINED = HistoryRules(dialect="openai_responses", joins_roles=True)


def calls(*names):
    return Message.assistant([ToolCall(id=name, name="look") for name in names])


def answers(*names):
    return Message(role="tool", content=tuple(ToolResult(tool_call_id=name) for name in names))


def test_a_result_answers_by_id():
    """Whatever the order."""
    pairs = Pairs((calls("a", "b"), answers("b", "a")), TARGET)

    assert pairs.result_of == {(0, 1): (1, 0), (0, 0): (1, 1)}
    assert pairs.orphans == []


def test_a_reused_id_answers_in_its_own_turn():
    """The nearest turn's first call that waits takes the result (field bug 9)."""
    pairs = Pairs((calls("a"), Message.user("?"), calls("a", "a"), answers("a", "a", "a")), TARGET)

    assert pairs.result_of == {(2, 0): (3, 0), (2, 1): (3, 1), (0, 0): (3, 2)}


def test_what_answers_nothing_is_an_orphan():
    """Before the call, once too often, or for no call at all."""
    pairs = Pairs((answers("a"), calls("a"), answers("a", "a", "b")), TARGET)

    assert pairs.result_of == {(1, 0): (2, 0)}
    assert pairs.orphans == [(0, 0), (2, 1), (2, 2)]


def test_only_the_model_calls():
    """A call in another's message takes no result."""
    message = Message.user([ToolCall(id="a", name="look")])
    pairs = Pairs((message, answers("a")), TARGET)

    assert (pairs.misplaced, pairs.orphans, pairs.calls) == ([(0, 0)], [(1, 0)], {})


def test_opaque_blocks_may_be_either_side():
    """Of the target's own dialect only."""
    search = Opaque(dialect="openai_responses", data={"type": "x_call", "call_id": "s"})
    done = Opaque(dialect="openai_responses", data={"type": "x_output", "call_id": "a"})
    odd = Opaque(dialect="openai_responses", data="s")
    history = (
        Message.assistant([search, odd, ToolCall(id="a", name="look")]),
        answers("s"),
        Message(role="tool", content=(done,)),
    )

    assert Pairs(history, TARGET).result_of == {(0, 0): (1, 0), (0, 2): (2, 0)}
    assert Pairs(history, HistoryRules(dialect="gemini_generate")).orphans == [(1, 0)]


def test_opaque_results_name_the_use_they_answer():
    """As Anthropic's do, which may stand in the model's own message."""
    use = Opaque(dialect="anthropic_messages", data={"type": "server_tool_use", "id": "srv"})
    result = Opaque(dialect="anthropic_messages", data={"type": "r", "tool_use_id": "srv"})

    pairs = Pairs((Message.assistant([use, result]),), HistoryRules(dialect="anthropic_messages"))

    assert pairs.result_of == {(0, 0): (0, 1)}


def test_a_turn_is_a_message_or_a_run_of_them():
    """As the server sees it."""
    history = (calls("a"), calls("b"), answers("b", "a"))

    assert Pairs(history, TARGET).results_by_turn() == {0: [(2, 1)], 1: [(2, 0)]}
    assert Pairs(history, JOINED).results_by_turn() == {1: [(2, 1), (2, 0)]}


def test_results_end_where_something_else_begins():
    """The first message that is more than results of the turn."""
    history = (calls("a", "b"), answers("a"), answers("b"), Message.user("so"))
    mixed = Message(role="user", content=(ToolResult(tool_call_id="b"), Text(text="so")))

    assert end_of_results(history, 0, [(1, 0), (2, 0)]) == 3
    assert end_of_results(history, 0, [(1, 0)]) == 2
    assert end_of_results((*history[:2], mixed), 0, [(1, 0), (2, 0)]) == 2


def test_holds_only_results():
    """An empty message and one of the model do not."""
    assert holds_only_results(answers("a"))
    assert not holds_only_results(Message(role="tool"))
    assert not holds_only_results(Message(role="assistant", content=answers("a").content))


def test_pairs_are_found_once():
    """As long as the history is the very same."""
    history = (calls("a"), answers("a"))
    edits = Edits(history)
    found = pairs_of(history, TARGET, edits)

    assert pairs_of(history, TARGET, edits) is found
    assert pairs_of((*history, Message.user("x")), TARGET, edits) is not found
