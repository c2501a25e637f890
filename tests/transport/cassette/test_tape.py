"""The cassette file."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec import errors
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError, StreamError
from interlingua.transport.cassette import (
    append_exchange,
    decode_data,
    decode_error,
    encode_data,
    encode_error,
    load_exchanges,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.binary() | st.text().map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()))
def test_data_round_trip(data):
    """The stored form is JSON and gives the same bytes."""
    held = json.loads(json.dumps(encode_data(data)))

    assert decode_data(held) == data


def test_the_most_readable_form():
    """JSON as JSON, text as text, the rest as base64."""
    assert encode_data(b'{"a":[1,2]}') == {"json": {"a": [1, 2]}}
    assert encode_data(b'{ "a": 1 }') == {"text": '{ "a": 1 }'}
    assert encode_data("data: é\n\n".encode()) == {"text": "data: é\n\n"}
    assert encode_data(b"\xff") == {"base64": "/w=="}


def test_file_is_valid_after_each_exchange(tmp_path):
    """An exchange is appended without reading the others, and the file is always valid JSON."""
    path = tmp_path / "deep" / "tape.json"
    exchanges = [
        {"request": {"method": "POST", "url": "/", "text": f"é{number}"}} for number in range(3)
    ]

    for number, exchange in enumerate(exchanges):
        append_exchange(path, exchange, is_first=number == 0)
        assert load_exchanges(path) == exchanges[: number + 1]
    append_exchange(path, exchanges[2], is_first=True)
    assert load_exchanges(path) == exchanges[2:]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit to set")
def test_a_full_disk_keeps_what_is_recorded(tmp_path):
    """An exchange that does not fit is an error, and those before it can still be read."""
    path = tmp_path / "tape.json"
    exchange = {"request": {"method": "POST", "url": "/", "text": "é"}}
    append_exchange(path, exchange, is_first=True)
    whole = path.read_bytes()
    code = (
        "import json, resource, sys; from pathlib import Path\n"
        "from interlingua.errors import ConfigurationError\n"
        "from interlingua.transport.cassette import append_exchange\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(whole) + 20},) * 2)\n"
        "try:\n"
        f"    append_exchange(Path({str(path)!r}), {exchange!r}, is_first=False)\n"
        "except ConfigurationError as error:\n"
        "    print(error.message)\n"
    )
    command = [sys.executable, "-B", "-c", code]  # it would leave half of a file of bytecode
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("Cannot write the cassette")
    assert path.read_bytes() == whole


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "no", '{"format": "other"}'])
def test_not_a_cassette(tmp_path, text):
    """A missing or foreign file is an error that names the file."""
    path = tmp_path / "tape.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConfigurationError, match=r"tape\.json"):
        load_exchanges(path)


REQUEST = '{"method": "POST", "url": "/"}'


@pytest.mark.parametrize(
    ("rest", "what"),
    [
        ("", "exchanges"),
        (', "exchanges": 1', r"\$\.exchanges"),
        (', "exchanges": [{}]', r"request.*exchanges"),
        (', "exchanges": [{"request": {}}]', r"method.*request"),
        (', "exchanges": [{"request": {"method": "POST"}}]', r"url.*request"),
        (f', "exchanges": [{{"request": {REQUEST}, "reply": {{}}}}]', "status"),
        (f', "exchanges": [{{"request": {REQUEST}, "error": 1}}]', "error"),
        (
            ', "exchanges": [{"request": {"method": "P", "url": "/", "base64": "a"}}]',
            "is invalid: ",
        ),
    ],
)
def test_invalid_cassette(tmp_path, rest, what):
    """The error names the file and what is wrong in it."""
    path = tmp_path / "tape.json"
    path.write_text(f'{{"format": "interlingua cassette 1"{rest}}}')

    with pytest.raises(ConfigurationError, match=rf"tape\.json.*{what}"):
        load_exchanges(path)


def test_path_is_a_folder(tmp_path):
    """A folder can neither be read nor written."""
    with pytest.raises(ConfigurationError, match="Cannot read the cassette"):
        load_exchanges(tmp_path)
    with pytest.raises(ConfigurationError, match="Cannot write the cassette"):
        append_exchange(tmp_path, {}, is_first=True)


@pytest.mark.parametrize("retryable", [True, False])
@pytest.mark.parametrize(
    "kind", [errors.NetworkError, errors.StreamError, errors.DecodeError, errors.SDKError]
)
def test_errors_round_trip(kind, retryable):
    """Class, message and `retryable` are restored."""
    error = decode_error(encode_error(kind("what", retryable=retryable)))

    assert (type(error), error.message, error.retryable) == (kind, "what", retryable)


def test_timeouts_round_trip():
    """The phase of a timeout is restored."""
    error = decode_error(encode_error(RequestTimeoutError("slow", phase="connect")))

    assert isinstance(error, RequestTimeoutError)
    assert error.phase == "connect"


@pytest.mark.parametrize("kind", ["Gone", "ErrorClass", "Any", None])
def test_unknown_errors(kind):
    """An unknown class becomes a StreamError."""
    error: SDKError = decode_error({"type": kind, "message": "x"})

    assert type(error) is StreamError
