"""`OtherModel`: a model to which a middleware may send a request, with settings of its own."""

from __future__ import annotations

from typing import Any, Unpack

from msgspec.structs import replace

from interlingua.spec.check import advice
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from interlingua.spec.settings import ModelSettings


class OtherModel:
    """
    A model, and the settings of the request that are different for it.

        OtherModel("openai:gpt-5.2", max_tokens=2000, reasoning_effort="low")

    A setting of None is not sent to this model. `provider_options` are added to those of the
    request.
    """

    __slots__ = ("model", "settings")

    def __init__(self, model: str, **settings: Unpack[ModelSettings]) -> None:
        name: object = model
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"A model is given by its name, not as {model!r}.")
        known = tuple(ModelSettings.__annotations__)
        for name in settings.keys() - set(known):
            hint = advice(name, known, {})
            raise ConfigurationError(f"OtherModel({model!r}) has no setting {name!r}. {hint}")
        self.model: str = model
        self.settings: dict[str, Any] = dict(settings)

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"OtherModel({self.model!r}{settings})"

    def apply(self, request: Request) -> Request:
        """Return the request for this model."""
        settings = {"provider": None, **self.settings}
        options = settings.get("provider_options")
        if options:
            settings["provider_options"] = {**request.provider_options, **options}
        return replace(request, model=self.model, **settings)

    def is_target_of(self, request: Request) -> bool:
        """Tell whether the request is for this model already, with nothing to change."""
        names = (request.model, f"{request.provider}:{request.model}")
        return not self.settings and self.model in names


def to_model(model: str | OtherModel) -> OtherModel:
    """The model as an `OtherModel`."""
    return model if isinstance(model, OtherModel) else OtherModel(model)
