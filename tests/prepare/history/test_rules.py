"""The laws of repair: over made-up histories, broken ones, and every recorded one."""

import random
import re
from collections import Counter
from itertools import dropwhile, pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.laws import read_cases
from interlingua.conformance.strategies import conversations
from interlingua.history import repair
from interlingua.prepare.history.edit import Edits, RepairPolicy, scan_of
from interlingua.prepare.history.rules import RULES, HistoryRepair, apply_rules
from interlingua.prepare.history.scan import UNCHANGED, triggers_of
from interlingua.prepare.history.target import rules_for
from interlingua.prepare.options import options_for
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.facts import HistoryRules
from interlingua.spec.json_form import to_json
from interlingua.spec.messages import Message
from interlingua.spec.warning_table import WARNINGS
from interlingua.spec.warnings import WarningList
from support import corpus
from support.exceptions import REPAIRED
from support.facts import FACTS, HISTORY
from support.patterns import seconds

PNG = b"\x89PNG\r\n\x1a\n"

# Histories that went wrong in every way we can think of.

ids = st.sampled_from(["a", "b", "c", "call_1", "", "x|y", "é", "a" * 70, "\ud800"])
texts = st.sampled_from(["hi", "so", "", " ", "\n", "half \ud83d", "whole \ud83d\ude00", "ß"])
owners = st.sampled_from(["openai_responses", "openai_chat", "anthropic_messages", "elsewhere"])
media = st.sampled_from(
    [
        Image(data=PNG, media_type="image/png"),
        Document(data=b"%PDF-1.7", media_type="application/pdf"),
        Image(url="https://example.com/a.png", extra={"openai_chat": {"in_place": True}}),
    ]
)


def marks(owner):
    """What a provider may have left on a part."""
    inner = {"id": "fc_1", "status": "completed", "item": {"id": "msg_1", "phase": "x"}}
    return {owner: {**inner, "thoughtSignature": "c2ln"}}


extras = st.just({}) | (owners | st.just("gemini_generate")).map(marks)
calls = st.builds(
    ToolCall,
    id=ids,
    name=st.sampled_from(["look", "look up!", "", "x" * 200]),
    arguments=st.sampled_from([{}, {"city": "Köln"}, {"half": "\ud800"}]),
    raw_arguments=st.sampled_from([None, "{}", '{"city": "Bo', "[1]"]),
    extra=extras,
)
results = st.builds(
    ToolResult,
    tool_call_id=ids,
    content=texts
    | st.just({"ok": ["\udc00"]})
    | st.lists(texts.map(lambda text: Text(text=text)) | media, max_size=2).map(tuple),
    is_error=st.booleans(),
    extra=extras,
)
thoughts = st.builds(
    Thinking,
    text=texts,
    signature=st.none() | st.just("sig"),
    redacted=st.booleans(),
    data=st.none() | st.just("data"),
    extra=extras,
)
parts = st.one_of(
    st.builds(Text, text=texts, extra=extras),
    calls,
    calls,
    results,
    results,
    thoughts,
    media,
    st.builds(Refusal, text=texts),
    owners.map(lambda owner: Opaque(dialect=owner, data={"type": "odd"})),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "user", "assistant", "assistant", "tool"]),
    content=st.lists(parts, max_size=4).map(tuple),
    metadata=st.sampled_from(
        [{}, {}, {"finish_reason": "cancelled"}, {"model": "m-1-20250101"}, {"model": "n"}]
    ),
)
wrecks = st.lists(messages, max_size=7).map(tuple)
sound = conversations()


@st.composite
def damaged(draw):
    """A sound conversation, in which messages were lost, doubled, swapped or interrupted."""
    history = list(draw(sound))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(history) - 1))
        match draw(st.sampled_from(["lose", "double", "swap", "interrupt", "cut", "split"])):
            case "lose" if len(history) > 1:
                del history[at]
            case "double":
                history.insert(at, history[at])
            case "swap":
                history[at], history[-1] = history[-1], history[at]
            case "interrupt":
                history.insert(at, draw(messages))
            case "cut":
                content = history[at].content[1:]
                history[at] = msgspec.structs.replace(history[at], content=content)
            case "split":
                whole = history[at]
                history[at : at + 1] = [
                    msgspec.structs.replace(whole, content=(part,)) for part in whole.content
                ] or [whole]
    return tuple(history)


histories = wrecks | damaged()
named = st.sampled_from(sorted(HISTORY)).map(HISTORY.__getitem__)
policies = st.builds(
    RepairPolicy,
    unanswered=st.sampled_from(["error", "drop"]),
    foreign_thinking=st.sampled_from(["drop", "text"]),
    unsigned_calls=st.sampled_from(["sentinel", "text"]),
)


@st.composite
def targets(draw):
    """One of the four, or one that is as strict as a server may be."""
    target = draw(named)
    if draw(st.booleans()):
        return target
    flags = [
        field.name
        for field in msgspec.structs.fields(HistoryRules)
        if field.type is bool and field.name not in ("stored", "joins_roles", "paired_calls")
    ]
    flipped = draw(st.sets(st.sampled_from(flags)))
    strict = {name: not getattr(HistoryRules(dialect=""), name) for name in flipped}
    return msgspec.structs.replace(
        target,
        model=draw(st.sampled_from(["", "m-1", "n"])),
        thinking=draw(st.sampled_from(["any", "native", "none"])),
        call_id=draw(st.sampled_from([None, target.call_id, r"[A-Za-z0-9]{9}"])),
        unique_call_ids=draw(st.sampled_from(["no", "turn", "history"])),
        results=draw(st.sampled_from(["anywhere", "next"])),
        signature_field="thoughtSignature",
        unchecked_signature="unchecked",
        **strict,
    )


# What a target may complain of, written without the code under test.


def complaints(history, target):
    found = [complaint for about in ABOUT_HISTORY for complaint in about(history, target)]
    for message in history:
        found += [complaint for about in ABOUT_MESSAGE for complaint in about(message, target)]
    return found


def about_neighbours(history, target):
    said = dropwhile(lambda message: message.role in ("system", "developer"), history)
    for before, message in pairwise(said):
        if target.merge_roles and wire_role(before, target) == wire_role(message, target):
            yield "consecutive roles"
    for before, message in pairwise(history):
        both = [*before.content, *message.content]
        is_apart = before.role == message.role == "tool" and before.content and message.content
        if target.gather_results and is_apart and all(isinstance(p, ToolResult) for p in both):
            own = all(target.dialect in part.extra for part in both)
            yield from () if own else ["results in two messages"]


def wire_role(message, target):
    as_user = {"tool": "user"} if target.results_as_user else {}
    return {"developer": "system", **as_user}.get(message.role, message.role)


def about_system(history, target):
    within = dropwhile(lambda message: message.role in ("system", "developer"), history)
    if not target.inline_system and any(m.role in ("system", "developer") for m in within):
        yield "system within"


def about_content(message, target):
    if message.role not in ("system", "developer"):
        if not (message.content or target.empty_messages):
            yield "empty message"
        own = message.role == "assistant"  # the target accepts blanks that it wrote itself
        blank = (
            part
            for part in flat(message)
            if isinstance(part, Text | Refusal)
            and not part.text.strip()
            and not (own and target.dialect in part.extra)
        )
        if any(blank) and not target.empty_text:
            yield "blank text"
    kinds = [type(part) for part in message.content]
    if not target.lone_documents and Document in kinds and Text not in kinds:
        yield "document without text"
    in_order = [kind is not ToolResult for kind in kinds]
    if target.results_first and message.role != "assistant" and in_order != sorted(in_order):
        yield "results not first"


def about_surrogates(message, target):
    bare = {ToolCall: {"id": "", "name": ""}, ToolResult: {"tool_call_id": ""}}
    words = [
        msgspec.structs.replace(part, **bare.get(type(part), {}))
        for part in flat(message)
        if not isinstance(part, Thinking)
    ]
    try:
        msgspec.json.encode(words)
    except UnicodeEncodeError:
        yield from () if target.lone_surrogates else ["lone surrogate"]


def about_parts(message, target):
    for part in message.content:
        match part:
            case ToolCall(name=name) if not re.fullmatch(target.call_name or ".*", name):
                yield "tool name"
            case ToolCall(is_valid=False) if target.valid_arguments:
                yield "arguments"
            case Opaque(dialect=dialect) if dialect != target.dialect:
                yield from () if target.foreign_blocks else ["foreign block"]
            case ToolResult() if not target.result_media:
                media = (p for p in part.parts or () if isinstance(p, Image | Document))
                if not all(target.dialect in item.extra for item in media):
                    yield "media in a result"


def about_thoughts(message, target):
    own = [part for part in message.content if isinstance(part, Thinking)]
    if own and (target.thinking == "none" or (target.thinking, message.role) == ("native", "user")):
        yield "thinking"
    for part in own:
        if target.thinking == "native" and part.extra and target.dialect not in part.extra:
            yield "foreign thinking"
        if target.signed_thinking and part.signature is None and not part.redacted:
            yield "unsigned thinking"
    is_all = message.role == "assistant" and len(own) == len(message.content)
    if own and is_all and not target.thinking_only:
        yield "thinking only"
    models = {target.model, str(message.metadata.get("model")).removesuffix("-20250101")}
    if own and message.role == "assistant" and target.thinking_per_model and models == {"m-1", "n"}:
        yield "stale thinking"


def about_signatures(message, target):
    if target.signed_calls and message.role == "assistant":
        for first in message.tool_calls[:1]:
            if not first.extra.get(target.dialect, {}).get("thoughtSignature"):
                yield "unsigned call"


def about_ends(history, target):
    for i, message in enumerate(history):
        following = history[i + 1].role if i + 1 < len(history) else None
        last = message.content[-1:] if message.role == "assistant" != following else ()
        if any(isinstance(part, Thinking) for part in last) and not target.trailing_thinking:
            yield "trailing thinking"


def about_ids(history, target):
    used = set()
    for i, message in enumerate(history):
        if target.unique_call_ids == "turn" and not continues(history, i, target):
            used = set()
        for call in message.tool_calls:
            if message.role != "assistant":
                yield "a call not of the model"
            if target.unique_call_ids != "no" and (call.id in used or not call.id):
                yield f"id {call.id!r} again"
            if target.call_id and not re.fullmatch(target.call_id, call.id):
                yield f"id {call.id!r}"
            used.add(call.id)


def continues(history, i, target):
    """Whether a message goes on with the turn of the one before."""
    return target.joins_roles and i > 0 and history[i - 1].role == history[i].role == "assistant"


def about_pairs(history, target):
    waiting = Counter()
    for i, message in enumerate(history):
        begins = message.role == "assistant" and not continues(history, i, target)
        if target.results == "next" and begins and +waiting:
            yield f"not answered at once: {+waiting}"
        for part in message.content:
            if isinstance(part, ToolCall):
                waiting[part.id] += 1
            elif isinstance(part, ToolResult):
                waiting[part.tool_call_id] -= 1
                if waiting[part.tool_call_id] < 0:
                    yield "orphan"
    if +waiting:
        yield f"not answered: {+waiting}"


def about_places(history, target):
    is_near = False  # nothing but results since the last message of the model
    for message in history if target.results == "next" else ():
        results = [isinstance(part, ToolResult) for part in message.content]
        if message.role == "assistant":
            is_near = True
        if message.role not in ("user", "tool") and any(results):
            yield "a result in a message of another role"
        if message.role == "assistant":
            continue
        if any(results) and not is_near:
            yield "something between a turn and its result"
        is_near = is_near and all(results)


ABOUT_HISTORY = (
    about_neighbours,
    about_system,
    about_ends,
    about_ids,
    about_pairs,
    about_places,
)
ABOUT_MESSAGE = (
    about_content,
    about_surrogates,
    about_parts,
    about_thoughts,
    about_signatures,
)


def flat(message):
    for part in message.content:
        yield part
        if isinstance(part, ToolResult):
            yield from part.parts or ()


# The laws.


def test_no_rule_is_about_plain_texts():
    """So a history with nothing else needs none of them, and they are not loaded for it."""
    assert all(UNCHANGED.isdisjoint(about) for _, about in RULES)


@given(histories, targets(), policies)
def test_the_target_has_nothing_to_complain_of(history, target, policy):
    """Whatever went in, what comes out is as the target wants it."""
    assert complaints(apply_rules(history, target, policy), target) == []


@given(histories, targets(), policies)
def test_repair_is_idempotent(history, target, policy):
    """To repair twice changes nothing more, and adds no warning."""
    once = apply_rules(history, target, policy)
    losses = WarningList()

    assert apply_rules(once, target, policy, losses) is once
    assert losses.warnings == []


@given(histories, targets(), policies)
def test_input_is_never_changed(history, target, policy):
    """The history that was given is what it was."""
    before = [to_json(message) for message in history]

    apply_rules(history, target, policy)

    assert [to_json(message) for message in history] == before


@given(histories, targets(), policies)
def test_every_change_is_told(history, target, policy):
    """There is a warning if and only if something changed; each points into the input."""
    losses = WarningList()
    repaired = apply_rules(history, target, policy, losses)

    assert (repaired is history) == (losses.warnings == [])
    for warning in losses.warnings:
        assert WARNINGS[warning.code].kind != "setting"
        if warning.path not in (None, "messages"):
            i, _, k = re.fullmatch(r"messages\[(\d+)\](\.content\[(\d+)\])?", warning.path).groups()
            assert int(k or -1) < len(history[int(i)].content)


@given(histories, targets(), policies)
def test_the_same_in_gives_the_same_out(history, target, policy):
    """Nothing depends on chance or on where objects live."""
    again = tuple(msgspec.convert(msgspec.to_builtins(m), Message) for m in history)

    assert apply_rules(history, target, policy) == apply_rules(again, target, policy)


@given(histories, named)
def test_what_is_legal_stays(history, target):
    """Texts, calls and results that have a place are kept."""
    repaired = apply_rules(history, target)

    def words(messages):
        return Counter(
            part.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            for message in messages
            for part in message.content
            if isinstance(part, Text) and part.text.strip()
        )

    assert words(history) <= words(repaired)
    if not any(message.metadata.get("finish_reason") for message in history):
        called = sum(len(message.tool_calls) for message in history if message.role == "assistant")
        assert sum(len(message.tool_calls) for message in repaired) == called


@given(conversations(), named)
def test_a_sound_history_stays_itself(history, target):
    """What every provider could have had is not touched, but for blank texts and some media."""
    parts = [part for m in history for part in m.content]
    unheard = any(isinstance(part, Audio) for part in parts) and "audio" in target.media
    # Converse has no images by URL, and wants a text beside a document.
    unseen = "url" not in target.media.get("image", ("url",)) and any(
        isinstance(part, (Image, Document)) for part in parts
    )
    blank = any(
        isinstance(part, Text) and not part.text.strip() for m in history for part in flat(m)
    )
    failed = any(isinstance(p, ToolResult) and p.is_error for m in history for p in m.content)
    if (blank and (failed or not target.empty_text)) or unheard or unseen:
        return

    assert apply_rules(history, target) is history


@given(histories)
def test_the_neutral_target_accepts_everything(history):
    """Every default means: no objection."""
    assert apply_rules(history, HistoryRules(dialect="any")) is history


@st.composite
def hardly_damaged(draw):
    """Sound turns of several calls, in which one part or message may be another."""
    history = [Message.user("go")]
    for turn in range(draw(st.integers(1, 3))):
        made = [call(f"c{turn}{i}") for i in range(draw(st.integers(1, 3)))]
        answers = [ToolResult(tool_call_id=one.id, content="ok") for one in made]
        cut = draw(st.integers(0, len(answers)))
        history += [
            Message(role="assistant", content=(Text(text="I look"), *made)),
            Message(role="tool", content=tuple(answers[:cut])),
            Message(role=draw(st.sampled_from(["tool", "user"])), content=tuple(answers[cut:])),
        ]
    history = [message for message in history if message.content]
    at = draw(st.integers(0, len(history) - 1))
    content = list(history[at].content)
    match draw(st.sampled_from(["nothing", "replace", "insert", "remove", "reverse", "message"])):
        case "replace":
            content[draw(st.integers(0, len(content) - 1))] = draw(parts)
        case "insert":
            content.insert(draw(st.integers(0, len(content))), draw(parts))
        case "remove":
            content.pop()
        case "reverse":
            content.reverse()
        case "message":
            history.insert(at, draw(messages))
            return tuple(history)
    history[at] = msgspec.structs.replace(history[at], content=tuple(content))
    return tuple(history)


@given(histories | sound | hardly_damaged(), targets(), policies)
def test_a_rule_without_its_signs_has_nothing_to_do(history, target, policy):
    """What is not run would not have changed anything, at its stage of a repair."""
    edits = Edits(history, policy=policy)
    for rule, about in RULES:
        triggers = triggers_of(history, target, scan_of(history, edits))
        is_run = not about or not about.isdisjoint(triggers)
        repaired = rule(history, target, edits)

        assert is_run or repaired is history, rule.__name__
        history = repaired


def test_cost_is_linear():
    """Ten times the history takes about ten times as long, broken or not."""

    for target in HISTORY.values():
        short, long = (broken_rounds(count) for count in (40, 400))
        assert seconds(apply_rules, long, target) < 40 * seconds(apply_rules, short, target)


def broken_rounds(count):
    history = []
    for i in range(count):
        history += [
            Message.user(" "),
            Message(role="assistant", content=(Thinking(text="hm"), call(f"a|{i}"), call("b"))),
            Message.user("and"),
            Message.tool_result("b", "2"),
            Message.tool_result("b", "3"),
            Message.tool_result(f"a|{i}", "1"),
        ]
    return tuple(history)


def call(call_id, name="look", **fields):
    return ToolCall(id=call_id, name=name, **fields)


# The recorded histories.


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("dialect", sorted(HISTORY))
def test_an_accepted_history_stays_itself(dialect):
    """What its own provider accepted is left exactly as it is."""
    spoken = dialects.get(dialect)
    changed = set()
    names = set()
    for case in corpus.cases(dialect):
        if case.call is not None and case.status == 200:
            names.add(case.name)
            request = spoken.decode_request(case.call)
            if (
                apply_rules(request.messages, target_of(case, request, dialect))
                is not request.messages
            ):
                changed.add(case.name)

    assert changed == REPAIRED.keys() & names


def target_of(case, request, dialect):
    """What the model in hand wants."""
    profile = Profile(signed_calls="gemini-3" in case.call.path)
    return rules_for(FACTS[dialect], request, profile, options_for(request, dialect))


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("dialect", sorted(HISTORY))
def test_a_recorded_history_can_be_said_to_others(dialect):
    """A sample of every provider's histories, repaired for the others, is as they want it."""
    spoken = dialects.get(dialect)
    recorded = corpus.cases(dialect) or tuple(read_cases(corpus.FIXTURES / dialect))
    sample = random.Random(dialect).sample(recorded, min(200, len(recorded)))
    assert sample
    for case in sample:
        if case.call is None or case.status != 200:
            continue
        history = spoken.decode_request(case.call).messages
        for target in HISTORY.values():
            once = apply_rules(history, target)
            if target.dialect != dialect:
                assert complaints(once, target) == [], case.name
            assert apply_rules(once, target) is once, case.name


# The front.


def test_repair_tells_what_must_change():
    """It returns the repaired history and the list of changes, by dialect name."""
    history = [Message.user("hi"), Message.assistant(call("a|1")), Message.user("well?")]

    found = repair(history, "anthropic_messages")

    assert isinstance(found, HistoryRepair)
    assert [change.code for change in found.changes] == ["missing_result_added", "call_id_mapped"]
    assert {change.path for change in found.changes} == {"messages[1].content[0]"}
    assert [message.role for message in found.messages] == ["user", "assistant", "tool", "user"]


def test_repair_of_a_sound_history_changes_nothing():
    """No change, and the same messages."""
    history = (Message.user("hi"),)

    assert repair(history, HISTORY["gemini_generate"]) == HistoryRepair(messages=history)


def test_repair_knows_the_dialects():
    """An unknown one is an error that names the choices."""
    with pytest.raises(ConfigurationError, match="Use one of openai_responses"):
        repair([], "latin")
