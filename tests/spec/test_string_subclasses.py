"""A subclass of `str` is the string it is."""

import msgspec
import pytest
from hypothesis import given

from interlingua import dialects
from interlingua.conformance.strategies import requests
from interlingua.spec.content import Image, Text, ToolCall, ToolResult
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from interlingua.spec.modalities.embeddings import EmbedInput
from interlingua.spec.modalities.speech import SpeakInput
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.request_check import check_input, check_request
from support.odd_strings import Odd, classes_of_strings, odd


@given(requests())
def test_a_checked_request_has_plain_strings_in_every_field(request):
    """In texts, names, ids, settings, schemas, arguments and results."""
    checked = check_request(odd(request))
    assert checked == request
    assert classes_of_strings(checked) <= {str}


@given(requests())
def test_a_request_of_plain_strings_stays_the_same_object(request):
    """Nothing is copied where nothing is to change."""
    assert check_request(request) is request


def test_the_objects_of_the_caller_stay_as_they_are():
    """The plain strings are in a copy."""
    arguments = {"city": Odd("Oslo")}
    call = ToolCall(id=Odd("1"), name="look", arguments=arguments)
    message = Message(role="assistant", content=[Text(Odd("Hm.")), call])
    check_request(Request(messages=[message]))
    assert type(arguments["city"]) is type(message.content[0].text) is type(call.id) is Odd


@pytest.mark.parametrize("part", ["text", "result", "schema", "metadata", "image"])
def test_one_string_of_a_subclass_is_found_wherever_it_is(part):
    """Also where everything else is plain."""
    request = {
        "text": Request(messages=[Message.user(Odd("Hi <b>"))]),
        "result": Request(messages=[Message.tool_result("1", {"a": [{"b": Odd("c")}]})]),
        "schema": Request(
            messages="Hi",
            tools=[ToolDefinition(name="t", parameters={"type": "object", "title": Odd("T")})],
        ),
        "metadata": Request(messages="Hi", metadata={"a": Odd("b")}),
        "image": Request(messages=[Message.user(Image(Odd("https://a.example/b.png")))]),
    }[part]
    checked = check_request(request)
    assert checked == request
    assert classes_of_strings(checked) == {str}


def test_a_message_a_role_and_arguments_may_be_given_as_such_strings():
    """What constructors read as text, they read as text of any class."""
    assert Message(role=Odd("user"), content=Odd("Hi")) == Message.user("Hi")
    assert type(Message(role=Odd("user"), content="Hi").role) is str
    call = ToolCall(id="1", name="look", arguments=Odd('{"a": 1}'))
    assert (call.arguments, call.raw_arguments) == ({"a": 1}, '{"a": 1}')
    for stop in (Odd("END"), [Odd("END")], (Odd("END"),)):
        request = Request(messages=Odd("Hi"), stop_sequences=stop)
        assert request.stop_sequences == ("END",)
        assert classes_of_strings(check_request(request)) == {str}
    assert Request(messages="Hi", tool_choice=Odd("required")).tool_choice.mode == "required"


@given(requests())
def test_documents_have_such_strings_as_text(request):
    """What `to_json` wrote is read as the same value."""
    assert from_json(to_json(odd(request)), Request) == request


@pytest.mark.parametrize("name", dialects.names())
@given(requests())
def test_a_dialect_writes_the_same_body(name, request):
    """Through the check, as every call goes."""
    dialect = dialects.get(name)
    assert dialect.encode_request(check_request(odd(request)), stream=False) == (
        dialect.encode_request(request, stream=False)
    )


def test_the_values_of_operations_have_plain_strings():
    """In lists and mappings too."""
    value = EmbedInput(model=Odd("m"), inputs=(Odd("a"), "b"), provider_options={"p": [Odd("c")]})
    checked = check_input(value)
    assert checked == value
    assert classes_of_strings(checked) == {str}
    plain = SpeakInput(model="m", text="Hello", voice="v")
    assert check_input(plain) is plain


def test_a_result_of_parts_is_found_too():
    """Parts in the result of a tool have texts of their own."""
    result = ToolResult(
        tool_call_id="1", content=(Text(Odd("a")), Image("https://a.example/b.png"))
    )
    checked = check_request(Request(messages=[Message(role="tool", content=[result])]))
    assert classes_of_strings(checked) == {str}
    assert msgspec.json.encode(checked)
