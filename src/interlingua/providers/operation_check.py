"""
What a profile and the catalog decide about an operation.

Its kind of model, and the settings whose limits the catalog knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from interlingua.prepare.video import listed
from interlingua.providers.catalog.models import ModelInfo, find_model
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.profile_check import ANYWAY, FUNCTIONS
from interlingua.spec.contracts import Modality, ModelKind, Profile
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.modalities.images import pixels_of, resolution_of
from interlingua.spec.operations import Operation, OperationInput
from interlingua.spec.request import OnLoss

KIND_OF_OPERATION: Mapping[str, ModelKind] = {
    "embed": "embedding",
    **dict.fromkeys(("generate_image", "edit_image", "stream_image"), "image"),
    **dict.fromkeys(("speak", "stream_speech"), "speech"),
    **dict.fromkeys(("transcribe", "stream_transcription"), "transcription"),
    **dict.fromkeys(("create_video", "remix_video"), "video"),
    "rerank": "rerank",
    "moderate": "moderation",
}
"""The kind of model that an operation needs; other operations need none."""
_SETTINGS = ("dimensions", "speed", "size", "seconds")
"""The settings of operations whose limits the catalog may know."""
_OUTPUTS: Mapping[ModelKind, Modality] = {"image": "image", "speech": "audio"}
"""What a chat model must return to do the work of a model of this kind."""


def check_operation(
    operation: Operation, value: Any, profile: Profile, provider: str, on_loss: OnLoss
) -> None:
    """Raise `UnsupportedError` if the model of a value is of another kind, or has other limits."""
    needed = KIND_OF_OPERATION.get(operation.name)
    if needed is None or not isinstance(value, OperationInput) or not value.model:
        return
    if (value.on_loss or on_loss) == "warn":
        return
    if (
        profile.kind not in (None, needed)
        and not _performs(operation, needed, profile)
        and not _is_kind_of_row(value.model, profile, provider)
    ):
        raise _wrong_model(value.model, needed, profile, provider)
    for setting in _SETTINGS:
        given = getattr(value, setting, None)
        info = None if given is None else find_model(value.model, provider)
        if info is not None:
            _check_setting(value.model, setting, given, info)


def _performs(operation: Operation, needed: ModelKind, profile: Profile) -> bool:
    """Whether a model of another kind can perform an operation, as far as is known."""
    if profile.kind != "chat" or operation.chat_models is None:
        return False
    if operation.chat_models == "all" or profile.output_modalities is None:
        return True
    return _OUTPUTS.get(needed, "text") in profile.output_modalities


def _is_kind_of_row(model: str, profile: Profile, provider: str) -> bool:
    """Whether the kind is that of a row without chat, and says nothing of a model without entry."""
    is_known = find_model(model, provider) is not None
    return not is_known and profile.kind == profile_for(profile.dialect, "", provider).kind


def _wrong_model(
    model: str, needed: ModelKind, profile: Profile, provider: str
) -> UnsupportedError:
    from interlingua.providers.catalog.search import list_models  # only for the message

    kind = profile.kind or "chat"
    others = list_models(provider, kind=needed, available=True)
    other = f", such as {provider}:{others[0].id}" if others else ""
    return UnsupportedError(
        f"{model} is a model of kind {kind!r}, and this needs one of kind {needed!r}{other}. "
        f"With {model}, use {FUNCTIONS[kind]}(...); {ANYWAY}"
    )


def _check_setting(model: str, setting: str, given: Any, info: ModelInfo) -> None:
    """Raise `UnsupportedError` for a setting outside of the limits that the catalog knows."""
    slowest, fastest = info.speeds or (0.0, math.inf)
    most = math.inf if info.max_dimensions is None else info.max_dimensions
    is_allowed, allowed = True, ""
    if setting == "dimensions":
        is_allowed, allowed = given <= most, f"at most {most}"
    elif setting == "speed":
        is_allowed, allowed = slowest <= given <= fastest, f"from {slowest:g} to {fastest:g}"
    elif setting == "size":
        is_allowed, allowed = _has_size(given, info.sizes), listed(info.sizes)
    elif info.seconds:
        is_allowed, allowed = given in info.seconds, listed(info.seconds)
    if not is_allowed:
        shown = f"{given:g}" if isinstance(given, float) else str(given)
        what = f"{model} does not support {setting} {shown}. Allowed: {allowed}."
        raise UnsupportedError(what, setting=setting)


def _has_size(size: str, sizes: tuple[str, ...]) -> bool:
    """Whether a size is one of these: in pixels, or by the name of its resolution."""
    if not sizes or size in sizes:
        return True
    if pixels_of(size) is None:  # a name; where only pixels are known, the dialect converts it
        return all(pixels_of(each) is not None or each == "auto" for each in sizes)
    return resolution_of(size) in sizes
