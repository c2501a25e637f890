"""Models and prices of the user's own."""

import json
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import Client, Request
from interlingua.catalog import get_model_info, list_models, update
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.models import providers_of, reset_table, table
from interlingua.providers.catalog.prices import Price, Rates
from interlingua.providers.tariffs import Seller, Tariffs
from interlingua.spec.errors import ConfigurationError

HOUSE = {
    "provider": "house",
    "id": "house-llama",
    "context_window": 8192,
    "supports_tools": True,
    "prices": [{"rates": {"input": 0.5, "output": 1.5}}],
}


@pytest.fixture(autouse=True)
def unchanged():
    """Every test begins with the data file, and leaves nothing behind."""
    reset_table()
    yield
    reset_table()


@pytest.fixture
def merged(tmp_path):
    """Merge these models, and return the file."""

    def merge(*models, name="own.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"models": models}), "utf-8")
        update(path)
        return path

    return merge


def test_a_new_model(merged):
    """Found, listed and routed like any other."""
    merged(HOUSE)

    found = get_model_info("house:house-llama")
    assert (found.display_name, found.supports_tools) == ("house-llama", True)
    assert found.prices == (Price(rates=Rates(input=0.5, output=1.5)),)
    assert list_models("house") == (found,)
    assert providers_of("house-llama") == ("house",)
    assert get_model_info("claude-haiku-4-5").provider == "anthropic"


def test_fields_of_a_known_model(merged):
    """What is given replaces what was there; the rest stays, and so does its place."""
    before = get_model_info("gpt-5.2")
    place = list_models("openai").index(before)
    merged({"provider": "openai", "id": "gpt-5.2", "prices": [{"rates": {"input": 1}}]})

    after = get_model_info("gpt-5.2")
    assert after == msgspec.structs.replace(before, prices=(Price(rates=Rates(input=1)),))
    assert list_models("openai").index(after) == place
    assert get_model_info("gpt-5.2-2025-12-11") == after


def test_yaml_and_aliases_of_providers(tmp_path):
    """YAML by the name of the file; a provider by any of its names."""
    path = tmp_path / "own.yml"
    path.write_text(
        "models:\n"
        "  - {provider: google, id: gemini-x, retires: 2030-01-02}\n"
        "  - provider: deepseek\n    id: deepseek-v4-pro\n"
        '    prices: [{rates: {input: 1}, hours: ["01:00:00", "04:00:00"]}]\n',
        "utf-8",
    )
    update(str(path))

    assert str(get_model_info("gemini:gemini-x").retires) == "2030-01-02"
    assert get_model_info("deepseek-v4-pro").prices[0].hours[1].hour == 4


def test_an_alias_moves_to_the_model_that_claims_it(merged):
    """No id names two models of a provider."""
    assert get_model_info("gpt-5.6").id == "gpt-5.6-sol"
    merged({"provider": "openai", "id": "gpt-5.6"})

    assert get_model_info("gpt-5.6").id == "gpt-5.6"
    assert "gpt-5.6" not in get_model_info("gpt-5.6-sol").aliases


def test_the_version_names_what_was_merged(merged):
    """Costs state it: two tables with different prices have different versions."""
    plain = table().version
    path = merged(HOUSE)
    once = table().version
    update(path)

    assert plain != once == table().version
    assert once.startswith(f"{plain}+")
    merged({**HOUSE, "prices": []})
    assert table().version != once


def test_later_calls_see_it(merged):
    """Warnings of an adapter too, which remembers what it knows of a model."""
    adapter = HttpAdapter("openai", "k")
    client = Client({"openai": adapter})
    request = Request(model="gpt-6.1-sol", messages="hi")

    assert client.explain(request).warnings == ()
    merged({"provider": "openai", "id": "gpt-6.1-sol", "deprecated": True})
    assert [warning.code for warning in client.explain(request).warnings] == ["model_deprecated"]


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "provider": st.sampled_from(["openai", "house"]),
                "id": st.sampled_from(["gpt-5.2", "a", "b"]),
            },
            optional={
                "aliases": st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True),
                "context_window": st.integers(1, 10),
                "is_gated": st.booleans(),
            },
        ),
        max_size=4,
    )
)
@settings(max_examples=30, deadline=None)
def test_twice_is_once(tmp_path_factory, rows):
    """The same file again changes nothing; every id still names one model of a provider."""
    reset_table()
    path = tmp_path_factory.mktemp("own") / "own.json"
    path.write_text(json.dumps({"models": rows}), "utf-8")
    update(path)
    once = table()
    update(path)

    last = {(row["provider"], row["id"]) for row in rows}
    assert {(name, model.id) for name in once.models for model in once.models[name]} >= last
    assert (table().version, table().models) == (once.version, once.models)
    for provider, models in once.models.items():
        named = [name for model in models for name in {model.id, *model.aliases}]
        assert len(named) == len(set(named)), provider


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"own\.json: "),
        ("[]", r"own\.json: 'models' must be a list"),
        ('{"models": {}}', "'models' must be a list"),
        ('{"models": [], "prices": []}', r"There is no key 'prices', only 'models'"),
        ('{"models": [{"id": "m"}]}', r"models\[0\] must have 'provider'"),
        ('{"models": [3]}', r"models\[0\] must have 'id'"),
        ('{"models": [{"provider": "openai", "id": ""}]}', r"models\[0\] must have 'id'"),
        (
            '{"models": [{"provider": "openai", "id": "m", "colour": "red"}]}',
            r"own\.json: models\[0\] \(openai:m\): .*colour",
        ),
        (
            '{"models": [{"provider": "openai", "id": "m", "prices": [{"rates": {"input": ""}}]}]}',
            r"models\[0\] \(openai:m\): .*prices.*input",
        ),
        (
            '{"models": [{"provider": "openai", "id": "m", "prices": [{"rates": {"input": -1}}]}]}',
            r"models\[0\] \(openai:m\): .* >= 0.0 - at `\$\.prices\[0\]\.rates\.input`",
        ),
        (
            json.dumps(
                {"models": [{**HOUSE, "prices": [{"rates": {}, "hours": ["16:30:00Z"] * 2}]}]}
            ),
            r"no timezone component - at `\$\.prices\[0\]\.hours",
        ),
    ],
)
def test_a_mistake_names_the_file_and_the_key(tmp_path, text, message):
    """And nothing is changed."""
    path = tmp_path / "own.json"
    path.write_text(text, "utf-8")
    before = table()
    with pytest.raises(ConfigurationError, match=message):
        update(path)

    assert table() is before


def test_no_file(tmp_path):
    """The error says which one."""
    with pytest.raises(ConfigurationError, match=r"none\.json cannot be read"):
        update(tmp_path / "none.json")


def test_bad_yaml(tmp_path):
    """The error is ours, with the place."""
    path = tmp_path / "own.yaml"
    path.write_text("models: [", "utf-8")
    with pytest.raises(ConfigurationError, match=r"own\.yaml: .*line"):
        update(path)


def test_threads_lose_nothing(tmp_path):
    """Updates at the same time are all there afterwards."""
    paths = []
    for number in range(20):
        path = tmp_path / f"{number}.json"
        path.write_text(
            json.dumps({"models": [{"provider": "house", "id": f"m{number}"}]}), "utf-8"
        )
        paths.append(path)
    threads = [threading.Thread(target=update, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {model.id for model in list_models("house")} == {f"m{number}" for number in range(20)}


def test_a_price_that_was_looked_up_before(merged):
    """A client that has answered without a price has one after the update."""
    seller, tariffs = Seller("house", "house"), Tariffs()
    before = tariffs[seller, "house-llama", "house-llama"]

    merged(HOUSE)

    assert before is None
    assert tariffs[seller, "house-llama", "house-llama"].prices[0].rates.output == 1.5
