"""Every recording, read with the profile of the row of its host."""

from functools import partial
from urllib.parse import urlsplit

import pytest

from interlingua import dialects
from interlingua.conformance.laws import check, cut_frames, fold, round_trip, stream_round_trip
from interlingua.dialects.openai_chat.facts import quirks_of
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import providers
from interlingua.spec.errors import ProviderError, StreamError
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedTransport
from support import corpus, hosts
from support.exceptions import EXCEPTIONS

pytestmark = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")

HOSTS = hosts.hosts() if corpus.is_here() else ()
CHAT_HOSTS = [host for dialect, host in HOSTS if dialect == "openai_chat"]
LAWS = {"3 round trip": round_trip, "3 round trip of streams": stream_round_trip}


class AtHost:
    """A dialect that reads answers with the profile of a host."""

    def __init__(self, dialect, profile):
        self._dialect = dialects.get(dialect)
        self.decode_response = partial(self._dialect.decode_response, profile=profile)
        self.stream_decoder = partial(self._dialect.stream_decoder, profile=profile)

    def __getattr__(self, name):
        return getattr(self._dialect, name)


@pytest.mark.parametrize(("dialect", "host"), HOSTS)
def test_a_host_has_a_row_that_speaks_its_dialect(dialect, host):
    """Every recorded host can be named."""
    row = providers()[hosts.row_of(dialect, host)]
    assert dialect in (row.dialect, *row.other_dialects)


ELSEWHERE = {
    ("openai_chat", "litellm-proxy"): "the proxy has the path with and without the version",
    ("gemini_generate", "local"): "a proxy with a path of its own",
}
"""Hosts that were recorded at another path than that of their row, with the reason."""


@pytest.mark.parametrize(("dialect", "host"), HOSTS)
def test_a_row_has_the_path_that_was_recorded(dialect, host):
    """Requests go to a path at which the host has answered."""
    row = providers()[hosts.row_of(dialect, host)]
    if row.is_embedded or (dialect, host) in ELSEWHERE:
        return
    record = next(each for each in hosts.records_of(dialect, host) if is_answered(each))
    path = record["path"].partition("?")[0].replace("/v1beta1/projects", "/v1/projects")
    model = path.rpartition("/models/")[2].partition(":")[0] if "/models/" in path else "m"
    adapter = HttpAdapter(
        row,
        "k",
        dialect=dialect,
        base_url=None if row.base_url else "https://host.example",
        places=dict.fromkeys(row.url_env, "REDACTED") | {"location": location(path)},
        transport=CannedTransport([]),
    )
    stream = ":stream" in path
    sent = adapter.dry_run(Request(model=model, messages="Hi"), stream=stream)
    paths = {each["path"].partition("?")[0] for each in hosts.records_of(dialect, host)}
    assert urlsplit(sent.url).path in {*paths, path}


def is_answered(record):
    """Whether it is an answer of a model, not of an operation."""
    is_answer = record["status"] < 400 and record["request_body"] is not None
    method = record["path"].partition("?")[0].rpartition(":")[2]
    return is_answer and method not in ("predict", "countTokens", "embedContent")


def location(path):
    return path.partition("/locations/")[2].partition("/")[0] or "global"


@pytest.mark.parametrize(
    "file", ["openai-embeddings", "images", "videos", "batches", "models", "files"]
)
def test_the_hosts_of_operations_have_rows(file):
    """And so do those of the other files."""
    names = {record["host_provider"] for record in corpus.read(file)}
    assert {name: hosts.row_of("", name) for name in names if not hosts.row_of("", name)} == {}


@pytest.mark.parametrize(("dialect", "host"), HOSTS)
def test_recordings_of_a_host_round_trip(dialect, host):
    """Decoded with the profile of the host's row and encoded again, they mean the same."""
    broken = {}
    for record in hosts.records_of(dialect, host):
        spoken = AtHost(dialect, hosts.profile_of(dialect, record))
        report = check(spoken, (corpus.to_case(record),), LAWS)
        for violation in report.violations:
            if (violation.law, violation.case) not in EXCEPTIONS:
                broken[violation.case] = violation.details[:2]
    assert broken == {}


def read(record, profile):
    """The canonical answer of a record."""
    chat = dialects.get("openai_chat")
    if not record["response_text"]:
        return chat.decode_response(record["response_body"], profile=profile)
    decoder = chat.stream_decoder(profile=profile)
    frames = cut_frames([record["response_text"].encode("utf-8", "surrogatepass")])
    events = [event for frame in frames for event in decoder.feed(frame)]
    return fold(events + decoder.finish())


def without_tags(said, quirks):
    """What an answer has, where the host puts thinking into the text between tags."""
    start, end = "<think>", "</think>"
    text = said.text.lstrip()
    is_unopened = start not in text and f"{end}\n" in text  # the prompt had the opening tag
    if not quirks.think_tags or said.reasoning or not (text.startswith(start) or is_unopened):
        return said
    thought, _, rest = text.removeprefix(start).partition(end)
    return said._replace(reasoning=thought.strip(), text=rest.lstrip())


def differences(record):
    """Where the canonical answer of a record is not what the record has."""
    profile = hosts.profile_of("openai_chat", record)
    said = hosts.said(record)
    if said is None:
        return {}
    try:
        answer = read(record, profile)
    except ProviderError as error:
        is_error = '"error"' in (record["response_text"] or str(record["response_body"]))
        return {} if is_error else {"error": error}
    said = without_tags(said, quirks_of(profile))
    made = [(call.name, call.arguments) for call in answer.tool_calls]
    calls = [(name, arguments) for name, arguments in said.calls if arguments is not None]
    pairs = {
        "text": (answer.text.strip(), said.text.strip()),
        "reasoning": ((answer.reasoning or "").strip(), said.reasoning.strip()),
        "calls": ([each for each in made if each[1] or each in calls], calls),
        "finish": (answer.finish_reason.raw or None, said.finish or None),
    }
    if said.usage is not None:
        usage = said.usage
        details = usage.get("completion_tokens_details") or {}
        reasoning = details.get("reasoning_tokens") or 0
        written = usage.get("completion_tokens") or 0
        # xAI counts reasoning beside the output.
        possible = {written, written + reasoning} if reasoning else {written}
        # Mistral counts audio beside the prompt; only the total has both.
        audio = (usage.get("prompt_tokens_details") or {}).get("audio_tokens") or 0
        asked = {usage["prompt_tokens"], usage["prompt_tokens"] + audio}
        pairs["input"] = (answer.usage.input_tokens in asked, True)
        pairs["output"] = (answer.usage.output_tokens in possible, True)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("host", CHAT_HOSTS)
def test_what_a_recording_has_is_what_the_answer_has(host):
    """Text, calls, reasoning, usage and finish reason, of whole answers and of streams."""
    broken = {
        record["id"]: found
        for record in hosts.records_of("openai_chat", host)
        if (found := differences(record))
    }
    assert broken == {}


@pytest.mark.parametrize("host", CHAT_HOSTS)
def test_recorded_errors_of_a_host(host):
    """Each becomes an error with the message of the body, whatever its shape."""
    chat = dialects.get("openai_chat")
    for record in hosts.records_of("openai_chat", host):
        if record["status"] < 400:
            continue
        case = corpus.to_case(record)
        body = corpus.body_bytes(record)
        error = chat.decode_error(case.status, case.headers, body)
        assert error.status_code == record["status"]
        assert error.message != f"HTTP {record['status']}: no message"


def test_streams_without_their_last_line():
    """Where a host sends no `[DONE]`, a stream is whole with its finish reason and usage."""
    records = [
        record
        for record in corpus.records("openai_chat")
        if "no `[DONE]`" in hosts.quirks_of(record)
        and "error in a stream" not in hosts.quirks_of(record)
    ]
    assert {record["host_provider"] for record in records} == {"huggingface", "perplexity"}
    for record in records:
        answer = read(record, hosts.profile_of("openai_chat", record))
        assert answer.text or answer.tool_calls
        text = record["response_text"].rstrip()
        cut = {**record, "response_text": text[: text.rindex("data:")]}
        with pytest.raises(StreamError):
            read(cut, hosts.profile_of("openai_chat", record))


DOCUMENTED = {
    "groq": "its SDK has both names, and calls the older one deprecated",
    "xai": "its documentation calls the older name deprecated",
    "github-copilot": "OpenAI's models there accept what they accept at OpenAI",
}
"""Hosts whose field for the output limit is not the recorded one, with the reason."""


@pytest.mark.parametrize("host", CHAT_HOSTS)
def test_the_names_of_parameters_were_accepted(host):
    """The field for the output limit, and that for the seed, are fields that the host has taken."""
    bodies = [
        (record["request_body"], hosts.profile_of("openai_chat", record))
        for record in hosts.records_of("openai_chat", host)
        if record["status"] < 400 and isinstance(record["request_body"], dict)
    ]
    taken = {name for body, _ in bodies for name in body}
    for names, field in (
        ({"max_tokens", "max_completion_tokens"}, "max_tokens_field"),
        ({"seed", "random_seed"}, "seed_field"),
    ):
        used = {getattr(quirks_of(profile), field) for _, profile in bodies}
        if taken & names and host not in DOCUMENTED:
            assert used <= taken


@pytest.mark.parametrize("host", CHAT_HOSTS)
def test_usage_of_streams_is_asked_for_where_it_must_be(host):
    """A row that does not ask has a host that reports it in every stream without being asked."""
    for record in hosts.records_of("openai_chat", host):
        body = record["request_body"]
        is_stream = record["response_text"] and isinstance(body, dict)
        if is_stream and not quirks_of(hosts.profile_of("openai_chat", record)).stream_usage:
            assert not body.get("stream_options")
            assert hosts.said(record).usage is not None


def test_the_recordings_show_these_quirks():
    """The table in the docs is made of them."""
    counts, totals = hosts.quirk_table()
    assert sum(totals.values()) == len(corpus.records("openai_chat"))
    assert counts["`reasoning_details`"]["openrouter"] > 0
    assert counts["`reasoning_content`"]["deepseek"] > 0
    assert counts["content as a list"].keys() == {"mistral"}
    assert counts["usage in `x_groq`"].keys() == {"groq"}
    assert counts["reasoning tokens beside the output's"].keys() == {"xai"}
    assert counts["comments in streams"].keys() == {"openrouter"}
