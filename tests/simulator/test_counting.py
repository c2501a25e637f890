"""Tokens, and which of them were seen before."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import (
    BuiltinTool,
    Image,
    Message,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
)
from interlingua.simulator.answer import PrefixCache, count_text, count_usage, prompt_text

prompts = st.text("ab", max_size=40)


@given(st.lists(prompts, max_size=5), prompts)
def test_what_is_read_is_the_longest_prefix_seen(before, prompt):
    """In whole tokens, over all that came before."""
    cache = PrefixCache()
    for each in before:
        cache.read(each)

    tokens = len(prompt) // 4
    seen = (n for n in range(tokens, 0, -1) if any(e[: 4 * n] == prompt[: 4 * n] for e in before))
    assert cache.read(prompt) == next(seen, 0)


@given(prompts)
def test_a_prompt_seen_again_is_all_read(prompt):
    """But for the token that is not whole."""
    cache = PrefixCache()

    assert cache.read(prompt) == 0
    assert cache.read(prompt) == len(prompt) // 4


@given(st.text())
def test_tokens_are_four_characters(text):
    """Rounded up."""
    assert count_text(text) == math.ceil(len(text) / 4)


def test_a_conversation_that_goes_on_reads_what_it_had():
    """What is new is not read, and another model reads nothing."""
    cache = PrefixCache()
    first = Request(model="m", messages="A question that is long enough to count.")
    more = (*first.messages, Message.assistant("Yes."), Message.user("And another?"))
    second = Request(model="m", messages=more)
    other = Request(model="n", messages=more)

    assert count_usage(first, (), cache).cache_read_tokens == 0
    usage = count_usage(second, (), cache)
    assert usage.cache_read_tokens == len(prompt_text(first)) // 4
    assert usage.input_tokens == count_text(prompt_text(second))
    assert count_usage(other, (), cache).cache_read_tokens == 0


def test_cache_marks_do_not_change_a_prompt():
    """They move from turn to turn; the prompt stays."""
    image = Image(url="https://example.com/a.png")
    marked = Image(url=image.url, extra={"anthropic_messages": {"cache_control": {}}})

    def prompt(part):
        return prompt_text(Request(model="m", messages=(Message.user((Text(text="x"), part)),)))

    assert prompt(marked) == prompt(image)


CLAUDE = "anthropic_messages"
MARK = {CLAUDE: {"cache_control": {"type": "ephemeral"}}}
LONG = "A long text that is the same in each turn. " * 10


def turns(count, *, marked):
    """A conversation of so many turns, marked at its end."""
    messages = [Message.system(LONG)]
    for number in range(count):
        messages += [Message.user(f"Question {number}"), Message.assistant("An answer.")]
    last = Text(text="And now?", extra=MARK if marked else {})
    return Request(model="m", messages=[*messages, Message.user([last])])


@pytest.mark.parametrize("marked", [True, False])
def test_only_marked_prefixes_are_written_and_read(marked):
    """Where the vendor needs marks, nothing else is written or read."""
    cache = PrefixCache()
    first, second = (
        count_usage(turns(count, marked=marked), (), cache, CLAUDE) for count in (1, 2)
    )

    whole = len(prompt_text(turns(1, marked=True)) + "\n") // 4
    assert (first.cache_read_tokens, first.cache_write_tokens) == (0, whole if marked else 0)
    # The mark moved on: the prefix that was written ends with a text that is not there any more.
    assert (second.cache_read_tokens or 0) == 0
    assert second.input_tokens == count_text(prompt_text(turns(2, marked=marked)))


def test_a_conversation_reads_what_its_last_turn_wrote():
    """The rest up to the mark is written; more than twenty blocks back nothing is found."""
    cache = PrefixCache()
    mark = {CLAUDE: {"cache_control": {"type": "ephemeral"}}}
    history = (Message.system(LONG), Message.user("First question?"))
    first = Request(model="m", messages=history, provider_options=mark)
    longer = (*history, Message.assistant("Yes."), Message.user("Why?"))
    second = Request(model="m", messages=longer, provider_options=mark)
    far = Request(
        model="m",
        messages=(*history, *(Message.user(f"{i}") for i in range(21))),
        provider_options=mark,
    )

    written = count_usage(first, (), cache, CLAUDE).cache_write_tokens
    usage = count_usage(second, (), cache, CLAUDE)
    assert usage.cache_read_tokens == written > 0
    assert 0 < usage.cache_write_tokens == (len(prompt_text(second)) + 1) // 4 - written
    assert count_usage(far, (), cache, CLAUDE).cache_read_tokens == 0


@pytest.mark.parametrize("place", ["tool", "builtin", "system"])
def test_a_mark_on_tools_or_system_text_caches_what_stands_before_it(place):
    """What stands before it is read again, whatever follows."""
    tool = ToolDefinition(name="f", description=LONG, extra=MARK if place == "tool" else {})
    builtin = BuiltinTool(
        dialect=CLAUDE, data={"type": "x", **(MARK[CLAUDE] if place == "builtin" else {})}
    )
    system = Message.system([Text(text=LONG, extra=MARK if place == "system" else {})])
    cache = PrefixCache()
    usages = [
        count_usage(
            Request(model="m", tools=(tool, builtin), messages=(system, Message.user(question))),
            (),
            cache,
            CLAUDE,
        )
        for question in ("One?", "Two?")
    ]

    assert usages[0].cache_write_tokens == usages[1].cache_read_tokens > 50
    assert usages[0].cache_read_tokens == usages[1].cache_write_tokens == 0


def test_tools_count():
    """They stand before the messages."""
    plain = Request(model="m", messages="x")
    tool = ToolDefinition(name="f", parameters={"type": "object"})
    offered = Request(model="m", messages="x", tools=(tool,))

    assert count_text(prompt_text(offered)) > count_text(prompt_text(plain))


def test_thinking_is_counted_apart_and_within():
    """`reasoning_tokens` is a part of `output_tokens`."""
    parts = (Thinking(text="12345678"), Text(text="1234"), ToolCall(id="", name="f", arguments={}))
    usage = count_usage(Request(model="m", messages="x"), parts, PrefixCache())

    assert usage.reasoning_tokens == 2
    assert usage.output_tokens == 2 + 1 + count_text("f({})")
