"""`POST /v1/rerank`, as Jina, Together and most servers have it; also Voyage's and Cohere's."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_shared.embeddings import (
    OWNER,
    read_usage,
    reply_fields,
    served_fields,
)
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.spec.modalities.judgements import RankedDocument, RerankInput, RerankResult
from interlingua.spec.operations import Operation, ServedReply
from interlingua.spec.response import Usage
from interlingua.wire.fields import extra_of, is_number
from interlingua.wire.json_text import loads
from interlingua.wire.resources import serve

_PATH = "/v1/rerank"
_COHERE_PATH = "../../v2/rerank"  # beside `/compatibility/v1`, see the embeddings
_VARIANTS = {  # the path, and the name of `top_n`
    "": (_PATH, "top_n"),
    "cohere": (_COHERE_PATH, "top_n"),
    "jina": (_PATH, "top_n"),
    "voyage": (_PATH, "top_k"),  # https://docs.voyageai.com/reference/reranker-api
}


def rerank_operations(name: str) -> dict[str, Operation]:
    """The operation for a dialect of this name, in all its variants."""
    return {
        f"rerank.{variant}".rstrip("."): _operation(name, *facts)
        for variant, facts in _VARIANTS.items()
    }


def _operation(name: str, path: str, top_n: str) -> Operation:
    def encode(value: RerankInput, _profile: Profile) -> WireCall:
        body: dict[str, Json] = {
            "model": value.model,
            "query": value.query,
            "documents": list(value.documents),
        }
        if value.top_n is not None:
            body[top_n] = value.top_n
        return WireCall(path=path, body=body_with_options(body, value, name))

    return Operation(name="rerank", encode=encode, decode=decode_ranking)


def decode_ranking(_status: int, _headers: Mapping[str, str], body: bytes) -> RerankResult:
    """The ranking in a reply of any of the hosts, the most relevant document first."""
    value = loads(body)
    fields = reply_fields(value)
    rows = fields.array("results")
    rows = fields.array("data") if rows is None else rows  # Voyage
    if rows is None:
        raise DecodeError("The reply has no ranking.")
    ranked = sorted(map(_document, rows), key=lambda document: -document.score)
    meta = fields.left.get("meta")
    # Cohere bills searches, not tokens; the units stay in `raw`.
    units = meta.get("billed_units") if isinstance(meta, dict) else None
    usage = fields.object("usage")
    return RerankResult(
        model=fields.text("model") or "",
        documents=tuple(ranked),
        usage=read_usage(usage) if usage else Usage(raw=units),
        extra={OWNER: fields.left} if fields.left else {},
        raw=value,
    )


def _document(row: Json) -> RankedDocument:
    row = row if isinstance(row, dict) else {}
    index, score = row.get("index"), row.get("relevance_score", row.get("score"))
    if type(index) is not int or not is_number(score):
        raise DecodeError("An entry of the ranking has no index or no score.")
    document = row.get("document")
    text = document.get("text") if isinstance(document, dict) else document
    return RankedDocument(
        index=index, score=float(score), text=text if isinstance(text, str) else None
    )


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> RerankInput:
    fields = served_fields(call)
    documents = fields.array("documents")
    query = fields.text("query")
    if not query or not documents:
        raise InvalidRequestError("'query' and 'documents' are required.", status_code=400)
    given = [each.get("text") if isinstance(each, dict) else each for each in documents]
    texts = tuple(text for text in given if isinstance(text, str))
    if len(texts) < len(given):
        raise InvalidRequestError("Each of 'documents' must be a text.", status_code=400)
    top_k = fields.integer("top_k")
    return RerankInput(
        model=fields.text("model") or "",
        query=query,
        documents=texts,
        top_n=fields.integer("top_n") if top_k is None else top_k,
        provider_options={OWNER: fields.left},
    )


def _encode_rows(result: RerankResult, value: RerankInput) -> list[dict[str, Json]]:
    with_text = value.provider_options.get(OWNER, {}).get("return_documents") is True
    return [
        {"index": each.index, "relevance_score": each.score}
        | ({"document": {"text": each.text or value.documents[each.index]}} if with_text else {})
        for each in result.documents
    ]


def _encode_served(result: RerankResult, value: RerankInput) -> ServedReply:
    """Voyage has the ranking in `data`, other hosts in `results`; a client reads one of them."""
    rows, tokens = _encode_rows(result, value), result.usage.input_tokens
    usage = result.usage.raw or {"prompt_tokens": tokens, "total_tokens": tokens}
    body = {"object": "list", "model": result.model, "results": rows, "data": rows, "usage": usage}
    return ServedReply(body={**body, **extra_of(result, OWNER)})


def _encode_cohere(result: RerankResult, value: RerankInput) -> ServedReply:
    units = result.usage.raw or {"search_units": 1}
    body = {
        "id": result.request_id or "simulated",
        "results": _encode_rows(result, value),
        "meta": {"api_version": {"version": "2"}, "billed_units": units},
    }
    return ServedReply(body={**body, **extra_of(result, OWNER)})


SERVED = (
    serve("rerank", "POST", r".*/v2/rerank", _decode_served, _encode_cohere),
    serve("rerank", "POST", r".*/rerank", _decode_served, _encode_served),
)
