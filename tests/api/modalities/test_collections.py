"""Collections of vectors: what is embedded, stored, found and refused."""

import asyncio
import math
import sqlite3
import stat
from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua import Client, HttpAdapter
from interlingua.api.modalities.collections import Collections, Entry
from interlingua.errors import ConfigurationError, RateLimitError, StoreError
from interlingua.media import EmbedResult, similarity
from interlingua.spec.response import Usage
from interlingua.transport.canned import CannedTransport

MODEL = "openai:text-embedding-3-small"
WORDS = ("sea", "sky", "bread", "bell")


def vector(text, size=4):
    """How often each word is in a text; what is left of a longer vector is 1."""
    counts = [float(text.split().count(word)) for word in WORDS]
    return array("f", [*counts[:size], *[1.0] * (size - len(counts))])


class Words:
    """Answers instead of a model: it counts words, and notes what it was sent."""

    def __init__(self):
        self.calls = []
        self.fails_from = math.inf

    async def perform(self, _operation, value, _call_next):
        if len(self.calls) >= self.fails_from:
            raise RateLimitError("Too many.", provider="openai", status_code=429)
        self.calls.append(value)
        found = tuple(vector(text, value.dimensions or 4) for text in value.inputs)
        usage = Usage(input_tokens=len(found))
        return EmbedResult(embeddings=found, usage=usage, provider="openai", model=value.model)

    @property
    def texts(self):
        return [text for call in self.calls for text in call.inputs]


@pytest.fixture
def words():
    return Words()


@pytest.fixture
def run(words, tmp_path):
    """Runs a function of the collections of a file and of a client."""
    adapter = HttpAdapter("openai", "key", transport=CannedTransport([]))
    client = Client({"openai": adapter}, middleware=[words])

    def use(function, path=tmp_path / "vectors.db"):
        async def main():
            collections = Collections(path)
            try:
                return await function(collections, client)
            finally:
                await collections.close()

        return asyncio.run(main())

    return use


def adding(texts, name="notes", model=MODEL, **options):
    """A function that adds texts by id."""
    entries = [Entry(key, text) for key, text in texts.items()]
    return lambda collections, client: collections.add(
        name, entries, model=model, client=client, **options
    )


TEXTS = {"a": "sea sky", "b": "sky sky", "c": "bread"}


def test_only_what_has_changed_is_embedded_again(run, words):
    """By the text, not by the id; the model need not be named again."""
    first = run(adding(TEXTS, batch=2))
    second = run(adding({**TEXTS, "b": "bell", "d": "sea"}, model=None))

    assert (first.embedded, first.unchanged, first.input_tokens) == (3, 0, 3)
    assert (second.embedded, second.unchanged) == (2, 2)
    assert words.texts == ["sea sky", "sky sky", "bread", "bell", "sea"]
    assert [len(call.inputs) for call in words.calls] == [2, 1, 2]
    assert {call.task for call in words.calls} == {"document"}


def test_a_failure_keeps_the_batches_before_it(run, words):
    """The next run pays for the rest only."""
    words.fails_from = 1
    with pytest.raises(RateLimitError):
        run(adding(TEXTS, batch=1))
    words.fails_from = math.inf
    again = run(adding(TEXTS, batch=1))

    assert (again.embedded, again.unchanged) == (2, 1)


def test_an_id_that_is_there_twice(run):
    """The last text counts."""
    entries = [Entry("a", "sea"), Entry("a", "bread")]
    run(lambda found, client: found.add("notes", entries, model=MODEL, client=client))
    (match,) = run(lambda found, _: found.similar("notes", vector("bread")))

    assert match.score == 1


numbers = st.lists(st.floats(-100, 100, width=32, allow_subnormal=False), min_size=4, max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
        st.text("sea bread", min_size=1).filter(str.strip), min_size=1, max_size=8,
    ),
    numbers,
)  # fmt: skip
def test_the_order_is_that_of_the_cosine(run, tmp_path_factory, texts, query):
    """Of all entries, as `similarity` computes it."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.db"
    run(adding(texts), path)
    found = run(lambda collections, _: collections.similar("notes", query, top_n=5), path)

    expected = sorted((-similarity(query, vector(text)), key) for key, text in texts.items())
    assert [match.score for match in found] == pytest.approx([-each for each, _ in expected][:5])
    assert {match.id: pytest.approx(match.score) for match in found} == {
        match.id: pytest.approx(similarity(query, vector(texts[match.id]))) for match in found
    }


def test_what_to_compare_with(run, words):
    """A text is embedded as a query; an entry is not compared with itself."""
    run(adding({**TEXTS, "bb": "sky"}, stores_texts=True, dimensions=6))
    by_text = run(lambda found, client: found.similar("notes", "bread", top_n=1, client=client))
    by_entry = run(lambda found, _: found.similar_to("notes", "b", top_n=2))
    by_prefix = run(lambda found, _: found.similar("notes", vector("sky", 6), prefix="b"))

    assert [(match.id, match.text) for match in by_text] == [("c", "bread")]
    assert (words.calls[-1].task, words.calls[-1].dimensions) == ("query", 6)
    assert [match.id for match in by_entry] == ["bb", "a"]
    assert [match.id for match in by_prefix] == ["bb", "b"]


def test_texts_are_stored_where_that_is_wanted(run, words):
    """Also later, without embedding them again."""
    run(adding(TEXTS))
    (before,) = run(lambda found, _: found.similar("notes", vector("bread"), top_n=1))
    run(adding(TEXTS, stores_texts=True))
    (after,) = run(lambda found, _: found.similar("notes", vector("bread"), top_n=1))

    assert (before.text, after.text) == (None, "bread")
    assert len(words.texts) == 3


def similar(name, query):
    return lambda found, client: found.similar(name, query, client=client)


@pytest.mark.parametrize(
    ("function", "setting", "complaint"),
    [
        (
            adding(TEXTS, model="openai:text-embedding-3-large"),
            "model",
            "vectors of openai:text-em",
        ),
        (adding(TEXTS, dimensions=8), "dimensions", "vectors of 4 numbers, not 8"),
        (adding(TEXTS, "new", model=None), "model", "no collection 'new' yet"),
        (similar("none", "sea"), "name", "There are notes."),
        (similar("notes", [1.0]), "query", "The vector has 1 numbers"),
        (lambda found, _: found.similar_to("notes", "zz"), "entry", "no entry 'zz'"),
        (lambda found, _: found.delete("none"), "name", "no collection 'none'"),
    ],
)
def test_what_is_refused(run, words, function, setting, complaint):
    """Before anything is sent; the error names what is wrong."""
    run(adding(TEXTS))
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        run(function)

    assert caught.value.setting == setting
    assert len(words.calls) == 1


def test_list_and_delete(run, tmp_path):
    """A deleted collection is gone with its entries; the others stay."""
    run(adding(TEXTS))
    run(adding({"x": "bell"}, "more"))
    listed = run(lambda found, _: found.list())
    count = run(lambda found, _: found.delete("notes"))

    facts = [(each.name, each.model, each.dimensions, each.entries) for each in listed]
    assert facts == [("more", MODEL, 4, 1), ("notes", MODEL, 4, 3)]
    assert count == 3
    assert [each.name for each in run(lambda found, _: found.list())] == ["more"]
    with sqlite3.connect(tmp_path / "vectors.db") as database:
        assert database.execute("SELECT id FROM entries").fetchall() == [("x",)]
    database.close()
    assert stat.S_IMODE((tmp_path / "vectors.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("first", ["sea", "sky"])
@pytest.mark.parametrize("settings", [{"model": f"{MODEL}-2"}, {"dimensions": 3}])
def test_two_that_begin_the_same_collection(run, tmp_path, first, settings):
    """The second one to write has other vectors and is refused, also if the text is the same."""

    async def race(collections, client):
        async def begin():
            other = Collections(tmp_path / "vectors.db")
            await other.add("notes", [Entry("a", first)], model=MODEL, client=client)
            await other.close()

        def entries():
            asyncio.run(begin())  # the second one has looked for the collection already
            yield Entry("a", "sea")

        await collections.add("notes", entries(), **{"model": MODEL, **settings}, client=client)

    with pytest.raises(ConfigurationError, match=r"Use another|Compare only"):
        run(race)
    (info,) = run(lambda found, _: found.list())

    assert (info.model, info.dimensions, info.entries) == (MODEL, 4, 1)


def test_another_kind_of_file(run, tmp_path):
    """It is not changed."""
    path = tmp_path / "other.db"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match=r"other\.db"):
        run(adding(TEXTS), path)

    assert path.read_bytes() == b"no database" * 100
