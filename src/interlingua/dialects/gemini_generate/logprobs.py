"""Probabilities of tokens <-> the `logprobsResult` of a candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.spec.content import Part, Text, TokenLogprob, UncheckedJson
from interlingua.wire.fields import is_number

LOGPROBS = "logprobsResult"
_CHOSEN = "chosenCandidates"
_TOP = "topCandidates"
_EACH = "candidates"


def read_logprobs(candidate: Mapping[str, UncheckedJson]) -> tuple[TokenLogprob, ...]:
    """The tokens of the answer; none of them if one cannot be read."""
    result = candidate.get(LOGPROBS)
    if not isinstance(result, dict):
        return ()
    chosen = _read_tokens(result.get(_CHOSEN))
    top = result.get(_TOP)
    if not isinstance(top, list) or len(top) != len(chosen):
        return chosen
    inner = [each.get(_EACH) if isinstance(each, dict) else None for each in top]
    return tuple(
        replace(token, top=_read_tokens(each)) for token, each in zip(chosen, inner, strict=True)
    )


def with_logprobs(
    candidate: Mapping[str, UncheckedJson], parts: tuple[Part, ...]
) -> tuple[Part, ...]:
    """The parts, with the tokens on the last text."""
    places = [place for place, part in enumerate(parts) if isinstance(part, Text)]
    tokens = read_logprobs(candidate) if places else ()
    if not tokens:
        return parts
    last = places[-1]
    return (*parts[:last], replace(parts[last], logprobs=tokens), *parts[last + 1 :])


def set_logprobs(candidate: dict[str, UncheckedJson], texts: Sequence[Text]) -> None:
    """Give a candidate the tokens of its texts; the vendor's own stay if they are the same."""
    tokens = tuple([token for text in texts for token in text.logprobs])
    if not tokens and not candidate.get(LOGPROBS):
        return
    if read_logprobs(candidate) == tokens or not texts:
        return
    if tokens:
        candidate[LOGPROBS] = _write_result(tokens)
    else:
        del candidate[LOGPROBS]


def _write_result(tokens: Sequence[TokenLogprob]) -> dict[str, UncheckedJson]:
    result: dict[str, UncheckedJson] = {_CHOSEN: [*map(_write, tokens)]}
    if any(token.top for token in tokens):
        result[_TOP] = [{_EACH: [*map(_write, token.top)]} for token in tokens]
    return result


def join_logprobs(known: dict[str, UncheckedJson], result: UncheckedJson) -> None:
    """Add what one frame of a stream has: the tokens of its own text."""
    for name, value in result.items() if isinstance(result, dict) else ():
        if isinstance(value, list):
            earlier = known.get(name)
            known[name] = earlier if isinstance(earlier, list) else []
            known[name] += value
        else:
            known[name] = value


def _read_tokens(items: UncheckedJson) -> tuple[TokenLogprob, ...]:
    tokens = [_read(item) for item in items] if isinstance(items, list) else []
    return tuple([token for token in tokens if token]) if all(tokens) else ()


def _read(item: UncheckedJson) -> TokenLogprob | None:
    match item:
        case {"token": str(token), "logProbability": logprob} if is_number(logprob):
            return TokenLogprob(token=token, logprob=logprob)
    return None


def _write(token: TokenLogprob) -> dict[str, UncheckedJson]:
    return {"token": token.token, "logProbability": token.logprob}
