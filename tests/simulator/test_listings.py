"""Embeddings."""

import base64
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.dialects import WireCall
from interlingua.dialects.openai_shared.embeddings import SERVED
from interlingua.errors import InvalidRequestError
from interlingua.simulator.operations import modalities
from interlingua.simulator.operations.modalities import DIMENSIONS


def embed(body):
    served = SERVED[0]
    value = served.decode(WireCall(body=body), {})
    return served.encode(modalities.embed(value), value).body


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4), st.integers(1, 64))
def test_vectors_are_of_length_one_and_equal_for_equal_texts(texts, size):
    """And there is one for each text, in order."""
    body = embed({"model": "e", "input": texts, "dimensions": size})
    vectors = [row["embedding"] for row in body["data"]]

    assert [row["index"] for row in body["data"]] == list(range(len(texts)))
    assert all(len(vector) == size for vector in vectors)
    assert all(math.isclose(math.fsum(v * v for v in vector), 1) for vector in vectors)
    for text, vector in zip(texts, vectors, strict=True):
        assert embed({"input": text, "dimensions": size})["data"][0]["embedding"] == vector


def test_vectors_are_sent_in_base64():
    """As the vendor's client asks for them."""
    plain = embed({"input": "a"})["data"][0]["embedding"]
    text = embed({"input": "a", "encoding_format": "base64"})["data"][0]["embedding"]

    assert struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(text)) == pytest.approx(plain)


def test_tokens_may_be_given_instead_of_text():
    """One list of them, or several."""
    assert len(embed({"input": [1, 2, 3]})["data"]) == 1
    assert len(embed({"input": [[1, 2], [3]]})["data"]) == 2


@pytest.mark.parametrize("body", [None, [], {}, {"input": 3}, {"input": []}])
def test_nothing_to_embed(body):
    """Bad input is a typed error."""
    with pytest.raises(InvalidRequestError):
        embed(body)
