"""The table of warnings, the list that collects them, and the loss policy."""

import ast
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.content import Image, Text, ToolResult
from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice
from interlingua.spec.response import Warning
from interlingua.spec.warning_table import MEDIA_DROPPED, SETTING_DROPPED, SETTING_IMPLIED, WARNINGS
from interlingua.spec.warnings import (
    WarningList,
    check_losses,
    current_turn_first,
    is_loss,
    kind_of,
    make_warning,
    raising_losses,
    target_name,
)
from support.sources import SOURCE, parsed

TABLES = [SOURCE / "spec" / f"warning_{name}.py" for name in ("table", "notes")]
ADDERS = {"add", "add_here", "change", "make_warning"}

codes = st.sampled_from(sorted(WARNINGS)) | st.from_regex(r"[a-z]+(_[a-z]+)*", fullmatch=True)
paths = st.sampled_from([None, "seed", "tools", "messages[0].content[0]", "messages[2].content[1]"])
warnings = st.builds(
    lambda code, path: Warning(code=code, message=f"about {code}", path=path), codes, paths
)
IMAGE = Image(url="https://example.com/a.png")
HISTORY = (
    Message.user(["look", IMAGE]),
    Message.assistant("nice"),
    Message.user(["and this", IMAGE]),
)


# The table.


def _first_argument(node):
    """The first argument of a call that adds a warning, else None."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return node.args[0] if name in ADDERS else None


def _is_collector(node):
    """Whether a method is called on something that collects warnings, and not on a set."""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id == "make_warning"
    owner = function.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name.strip("_") in ("warnings", "trail", "self")


def test_every_code_that_is_added_is_in_the_table():
    """A literal code must be a row, and no code is put together from pieces."""
    added = set()
    for path, tree in parsed(rf"\b(?:{'|'.join(ADDERS)})\("):
        for node in ast.walk(tree):
            first = _first_argument(node)
            if first is None or not _is_collector(node):
                continue
            assert not isinstance(first, ast.JoinedStr), f"{path}:{node.lineno}"
            if isinstance(first, ast.Constant):
                added.add(first.value)

    assert added
    assert added <= WARNINGS.keys()


def test_every_row_is_emitted_somewhere():
    """A code that no source file names is a row that nothing emits."""
    used = {*MEDIA_DROPPED.values(), *SETTING_DROPPED.values(), *SETTING_IMPLIED.values()}
    for path, tree in parsed("|".join(WARNINGS)):
        if path not in TABLES:
            used |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    used.add("result_media_as_text")  # `WarningList.media_dropped` adds it

    assert WARNINGS.keys() <= used


def test_only_the_table_makes_warnings():
    """Nothing else calls the class, so every sentence comes from the table."""
    makers = [
        str(path.relative_to(SOURCE))
        for path, tree in parsed(r"\bWarning\(")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Warning"
    ]

    assert makers == ["spec/warnings.py"]


@pytest.mark.parametrize("code", sorted(WARNINGS))
def test_sentences(code):
    """A row is a sentence: it begins and ends as one, and its fields have names."""
    sentence = WARNINGS[code].sentence
    fields = {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}

    assert sentence[0].isupper() or sentence[0] == "{"
    assert sentence.endswith(".")
    assert "" not in fields


def test_a_warning_has_the_sentence_of_its_row():
    """The fields of the sentence are given by keyword."""
    made = make_warning("seed_dropped", "seed", target="groq:x", setting="seed", when="")

    assert made == Warning(
        code="seed_dropped",
        message="groq:x does not support `seed`; the setting was dropped.",
        path="seed",
    )


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (Request(provider="openai", model="gpt-5.2"), "openai:gpt-5.2"),
        (Request(model="gpt-5.2"), "gpt-5.2"),
        (Request(provider="openai"), "openai"),
        (Request(), "openai_chat"),
    ],
)
def test_target_name(request_, name):
    """Warnings name the provider and the model as far as they are known."""
    assert target_name(request_, "openai_chat") == name


# The list.


def test_warnings_are_collected_in_order():
    """Each with a code, a sentence and a place."""
    collected = WarningList("groq:x")

    collected.setting_dropped("top_k")
    collected.setting_dropped("logprobs", " while the model thinks", "provider_options.groq")
    collected.setting_implied("temperature")
    collected.add("schema_narrowed", rules="strict mode", losses="pattern")

    assert [(warning.code, warning.path) for warning in collected.warnings] == [
        ("top_k_dropped", "top_k"),
        ("logprobs_dropped", "provider_options.groq"),
        ("temperature_implied", "temperature"),
        ("schema_narrowed", None),
    ]
    assert "`logprobs` while the model thinks" in collected.warnings[1].message


def test_the_cursor_gives_the_path():
    """A message, a part, or a part of a result."""
    collected = WarningList()
    collected.message = 3

    collected.add("developer_as_system", collected.message_path())
    collected.part = 1
    collected.media_dropped("image", "images")
    collected.inner = 0
    collected.media_dropped("image", "images")

    assert [(warning.code, warning.path) for warning in collected.warnings] == [
        ("developer_as_system", "messages[3]"),
        ("image_dropped", "messages[3].content[1]"),
        ("result_media_as_text", "messages[3].content[1].content[0]"),
    ]


def test_paths_are_those_of_the_request_as_it_came():
    """After a repair, a path is mapped back; what was not there has none."""
    collected = WarningList()
    collected.add("empty_message_dropped", "a")
    collected.origin = {"a": "b", "made": None}.get

    collected.add("empty_message_dropped", "a")
    collected.add("empty_message_dropped", "made")
    collected.add("empty_message_dropped")

    assert [warning.path for warning in collected.warnings] == ["a", "b", None, None]


# The loss policy.


@given(st.lists(warnings))
def test_strict_raises_if_and_only_if_something_is_lost(given_warnings):
    """Notes pass; any loss raises, and every loss is listed."""
    request = Request(messages=HISTORY)
    lost = [warning for warning in given_warnings if is_loss(warning)]

    assert raising_losses(given_warnings, request, "strict") == lost
    if not lost:
        check_losses(given_warnings, request, "strict")
        return
    with pytest.raises(UnsupportedError) as caught:
        check_losses(given_warnings, request, "strict")
    assert all(f"{each.message} [{each.code}]" in str(caught.value) for each in lost)


@given(st.lists(warnings))
def test_the_policies_are_ordered(given_warnings):
    """What raises under `content` raises under `strict`; under `warn` nothing does."""
    request = Request(messages=HISTORY, tool_choice=ToolChoice(mode="required"))
    by_content = raising_losses(given_warnings, request, "content")
    by_strict = raising_losses(given_warnings, request, "strict")

    assert [each for each in by_strict if each in by_content] == by_content
    assert all(kind_of(warning) == "content" for warning in by_content)
    assert raising_losses(given_warnings, request, "warn") == []


@pytest.mark.parametrize(
    ("path", "raises"),
    [
        ("messages[0].content[1]", False),
        ("messages[2].content[1]", True),
        ("messages[2]", False),
    ],
)
def test_media_of_the_current_turn(path, raises):
    """Media of the last user messages raise; older media are dropped with a warning."""
    lost = [Warning(code="image_dropped", message="no", path=path)]

    assert bool(raising_losses(lost, Request(messages=HISTORY))) is raises


@pytest.mark.parametrize(
    "following",
    [
        (),
        (Message.system("be brief"),),
        (Message.assistant("It shows"),),
        (Message.assistant("a call"), Message.tool_result("c", "done")),
    ],
)
def test_the_current_turn_is_that_of_the_last_user_messages(following):
    """Whatever follows them: a prefilled answer, or the tool calls of the same run."""
    request = Request(messages=(*HISTORY, *following))
    lost = [Warning(code="image_dropped", message="no", path="messages[2].content[1]")]

    assert raising_losses(lost, request) == lost


def test_several_user_messages_are_one_turn():
    """All messages of the user since the model spoke count."""
    request = Request(messages=(*HISTORY, Message.user("quick")))
    lost = [Warning(code="image_dropped", message="no", path="messages[2].content[1]")]

    assert raising_losses(lost, request) == lost


def test_media_of_a_tool_never_raise_by_default():
    """A run must not fail after its side effects."""
    result = ToolResult(tool_call_id="c", content=(Text(text="see"), IMAGE))
    request = Request(messages=[Message(role="user", content=(result,))])
    lost = [Warning(code="image_dropped", message="no", path="messages[0].content[0].content[1]")]

    assert raising_losses(lost, request) == []
    assert raising_losses(lost, request, "strict") == lost


@pytest.mark.parametrize("code", ["tools_dropped", "builtin_tool_dropped"])
def test_lost_tools_raise(code):
    """A request that asks for tools is not sent without them."""
    with pytest.raises(UnsupportedError, match="on_loss='warn'"):
        check_losses([Warning(code=code, message="no", path="tools")], Request())


@pytest.mark.parametrize(
    ("mode", "raises"), [("required", True), ("named", True), ("auto", False), ("none", False)]
)
def test_only_a_forced_choice_raises(mode, raises):
    """A choice that cannot be forced raises its own error."""
    request = Request(tool_choice=ToolChoice(mode=mode))
    lost = [Warning(code="tool_choice_relaxed", message="no", path="tool_choice")]

    assert bool(raising_losses(lost, request)) is raises
    if raises:
        with pytest.raises(UnsupportedToolChoiceError):
            check_losses(lost, request)


def test_an_error_about_a_choice_lists_other_losses_too():
    """The class of the error tells of the choice, its text of everything."""
    lost = [
        Warning(code="temperature_dropped", message="not taken"),
        Warning(code="tool_choice_relaxed", message="not accepted"),
    ]

    with pytest.raises(UnsupportedToolChoiceError, match="temperature_dropped"):
        check_losses(lost, Request(), "strict")


def test_a_code_that_is_not_in_the_table_is_a_loss():
    """A dialect of somebody else may have codes of its own: only `strict` raises for them."""
    unknown = Warning(code="never_heard_of", message="")

    assert is_loss(unknown)
    assert raising_losses([unknown], Request()) == []


def test_warnings_of_the_current_turn_come_first():
    """Those about earlier messages follow, each group in its order."""
    request = Request(messages=HISTORY)
    old = Warning(code="image_dropped", message="no", path="messages[0].content[1]")
    setting = Warning(code="seed_dropped", message="no", path="seed")
    new = Warning(code="image_dropped", message="no", path="messages[2].content[1]")

    assert current_turn_first([old, setting, new], request) == (setting, new, old)
