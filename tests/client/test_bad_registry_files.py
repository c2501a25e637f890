"""Registry files with every kind of mistake: a typed error that names the file."""

import pytest

from interlingua.client.client import Client
from interlingua.spec.errors import ConfigurationError

OPENAI = "adapters:\n  openai: {api_key: k}\n"


def adapter(settings):
    return f"adapters:\n  openai: {{api_key: k, {settings}}}\n"


def model(settings):
    return f"{OPENAI}models:\n  m: {{adapter: openai, {settings}}}\n"


def bomb():
    lines = ["&a [" + ", ".join("x" * 9) + "]"]
    lines += [
        f"&{name} [{', '.join([f'*{before}'] * 9)}]"
        for before, name in zip("abcdef", "bcdefg", strict=True)
    ]
    items = "".join(f"      l{index}: {line}\n" for index, line in enumerate(lines))
    return f"adapters:\n  openai:\n    api_key: k\n    options:\n{items}"


BAD = {
    # dates and numbers
    "a month 13": (model("tier: 2024-13-01"), r":4: '2024-13-01' is not a valid timestamp"),
    "a 30 February": (OPENAI + "default_model: 2024-02-30\n", ":3: .*timestamp.*in quotes"),
    "an hour 25": (OPENAI + "default_model: 2024-01-01T25:00:00Z\n", ":3: .*timestamp"),
    "an offset of 99 h": (OPENAI + "default_model: 2024-01-01T20:00:00+99:99\n", ":3:"),
    "a date": (OPENAI + "default_model: 2024-01-01\n", ":3: .*must be a string.*in quotes"),
    "a bad date as key": ("2024-13-01: x\n", ":1:"),
    "a tagged date": (adapter("base_url: !!timestamp abc"), ":2: 'abc' is not a valid timestamp"),
    "a long number": (adapter("max_retries: " + "9" * 5000), ":2: .* is not a valid int"),
    "a tagged integer": (adapter("max_retries: !!int abc"), ":2: 'abc' is not a valid int"),
    "a tagged float": (adapter("timeout_seconds: !!float abc"), ":2: 'abc' is not a valid float"),
    "a tagged bool": (adapter("strict: !!bool abc"), ":2: 'abc' is not a valid bool"),
    "an endless timeout": (
        adapter("timeout_seconds: .inf"),
        ":2: 'timeout_seconds' in adapters.openai must be a number",
    ),
    "a number in base 60": (adapter("max_retries: 1:99"), ":2: .*must be an integer"),
    # behaviours
    "a default without a name": (adapter("behaviour: {default_model: 'openai:'}"), "after the col"),
    "an empty name": (adapter("modelMap: {a: ''}"), ":2: .*model_map must not have empty names"),
    "no temperature": (adapter("behaviour: {temperature: .nan}"), ":2: .*number of 0 or more"),
    "the line of a field": (
        "adapters:\n  openai:\n    api_key: k\n    retry: {baseDelayMs: -5}\n",
        ":4: 'baseDelayMs' in .*must be a number of 0 or more",
    ),
    "the line of tools": (
        "adapters:\n  openai:\n    api_key: k\n    toolBehaviour: {maxTools: 0}\n",
        ":4: 'maxTools' in .*must be an integer of 1 or more",
    ),
    "one address twice": (
        "adapters:\n  openai:\n    base_url: http://a\n    apiBaseUrl: http://b\n",
        ":4: .*apiBaseUrl and base_url are the same",
    ),
    "two profiles of one model": (
        model("profile: {tools: true}") + "  openai:m: {profile: {tools: false}}\n",
        ":5: .*'m' is the same model, with another profile",
    ),
    # structure
    "a list": ("- a\n", ":1: A registry file must be a mapping"),
    "a text": ("abc\n", ":1: A registry file must be a mapping"),
    "two documents": (f"{OPENAI}---\n{OPENAI}", ":3: .*another document"),
    "a tab": ("adapters:\n\topenai: {}\n", ":2:"),
    "an open bracket": ("adapters: {openai: \n", ":2:"),
    "an open quote": ('adapters: "abc\n', ":2:"),
    "a list as key": ("? [a, b]\n: c\n", ":1: A key must be a string"),
    "a key twice": ("adapters: {}\nadapters: {}\n", ":2: Duplicate key"),
    "an unknown alias": ("adapters: *x\n", ":1: Found undefined alias"),
    "a value in itself": (adapter("options: &a {x: [*a]}"), ":2: The value refers to itself"),
    "a merge of itself": ("adapters:\n  openai: &x\n    <<: *x\n", "refers to itself"),
    "a merge of a number": ("adapters:\n  openai:\n    <<: 3\n", ":3: .*mapping"),
    "aliases that multiply": (bomb(), "more than 100000 values"),
    "deep lists": ("a: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
    "a tag of Python": ("adapters:\n  openai: !!python/object:os.system {}\n", ":2: .*tag"),
    "an unknown tag": ("adapters:\n  openai: !x {}\n", ":2: .*tag"),
    "a mapping as text": ("adapters: !!str {a: b}\n", ":1:"),
    # bytes
    "not UTF-8": (b"adapters: \xff\xfe\n", "Cannot read"),
    "UTF-16": ("adapters: {}\n".encode("utf-16"), "Cannot read"),
    "a NUL": (b"adapters: \x00\n", "not valid YAML"),
    "half a character": (adapter(r'base_url: "\ud800"'), r":2: .*not a valid str"),
    # values
    "a key with a line break": ('adapters:\n  openai: {api_key: "a\\nb"}\n', ":2: .*line break"),
    "a key with a NUL": ('adapters:\n  openai: {api_key: "a\\0b"}\n', ":2: .*no header can carry"),
    "a header with a line break": (adapter(r'extra_headers: {a: "b\nc"}'), ":2: .*line break"),
    "a header with a blank": (adapter('extra_headers: {"a b": c}'), ":2: .*not allowed"),
    "half an address": (adapter("base_url: 'http://[::1'"), ":2: .*base URL must look like"),
    "a port of 99999": (adapter("base_url: 'http://x:99999'"), ":2: .*base URL must look like"),
    "an empty wire name": (model("wire_name: ''"), ":4: .*name of the model is empty"),
    "a model without a name": (f"{OPENAI}models:\n  '': {{adapter: openai}}\n", ":4: .*is empty"),
    "aliases as text": (model("aliases: abc"), ":4: 'aliases' in models.m must be a list"),
    "an unknown profile field": (adapter("profile: {nope: 1}"), ":2: .*unknown key 'nope'"),
    "a date in a profile": (adapter("profile: {context_window: 2024-01-01}"), ":2: .*date"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_registry_file_is_an_error_that_says_where(kind, tmp_path):
    """The error is ours, and says where."""
    text, message = BAD[kind]
    path = tmp_path / "models.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError, match=message) as caught:
        Client.from_file(path, {})

    assert "models.yaml" in str(caught.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path):
    """Also a path that is no file."""
    for path in (tmp_path, tmp_path / "missing.yaml"):
        with pytest.raises(ConfigurationError, match="Cannot read"):
            Client.from_file(path, {})


def test_a_date_in_options_is_sent_as_text(tmp_path):
    """A valid date is no mistake where any JSON is allowed."""
    path = tmp_path / "models.yaml"
    path.write_text(adapter("options: {since: 2024-01-01}"))

    assert repr(Client.from_file(path, {})) == "Client(openai)"
