"""Objects in answers that are not quite JSON, by every dialect, whole and streamed."""

import logging

import pytest

from interlingua import Session, generate_object, stream_object
from interlingua.simulator import text
from interlingua.spec.errors import NoObjectGeneratedError
from support.requests import every_provider, named
from support.simulated import run, simulated
from support.warning_codes import codes

TEXTS = {
    "a trailing comma": '{"city": "Oslo", "days": 3,}',
    "single quotes": "{'city': 'Oslo', 'days': 3}",
    "line breaks in a string": '{"city": "Oslo\\u0020\\n", "days": 3}'.replace("\\n", "\n"),
    "keys without quotes": '{city: "Oslo", days: 3}',
}
Place = dict[str, str | int]


def asked(provider, answer, ask):
    """What a run gives for a text, where the schema is an instruction or native."""

    async def work(client):
        return await ask(named(provider), {"client": client, "schema": Place})

    with simulated(text(answer)) as peer:
        return run(peer, work)


async def _whole(model, options):
    return await generate_object(model, "Where?", **options)


async def _streamed(model, options):
    stream = stream_object(model, "Where?", **options)
    async for _ in stream:
        pass
    assert stream.object() == stream.result().output
    return stream.result()


async def _session(model, options):
    return await Session(model, client=options["client"]).send_object("Where?", schema=Place)


every_mode = pytest.mark.parametrize("ask", [_whole, _streamed, _session])


@every_provider
@every_mode
@pytest.mark.parametrize("mistake", TEXTS)
def test_a_mistake_with_one_reading_is_read_with_a_warning(provider, ask, mistake, caplog):
    """The object is there; the warning is on the result and in the log, once."""
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        result = asked(provider, TEXTS[mistake], ask)
    assert result.output["days"] == 3
    assert result.output["city"].strip() == "Oslo"
    assert codes(result).count("json_repaired") == 1
    assert codes(result.response).count("json_repaired") == 1
    (warning,) = [each for each in result.warnings if each.code == "json_repaired"]
    assert mistake in warning.message
    assert sum("json_repaired" in record.getMessage() for record in caplog.records) == 1


@every_provider
@every_mode
def test_a_mistake_with_several_readings_is_an_error_with_its_position(provider, ask):
    """It is not guessed."""
    with pytest.raises(NoObjectGeneratedError, match="line 1 column"):
        asked(provider, "{'city': 'L'Aquila'}", ask)


@every_provider
def test_json_has_no_such_warning(provider):
    """Nothing was repaired."""
    result = asked(provider, '{"city": "Oslo", "days": 3}', _whole)
    assert "json_repaired" not in codes(result)
