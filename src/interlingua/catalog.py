"""
What is known about models and providers, without a call.

Import from here to look up or list models, to read what a model accepts, to define a provider of
your own, or to read a registry file.
"""

from interlingua.client.registry import ModelEntry, Registry
from interlingua.providers.catalog.models import (
    ModelInfo,
    get_latest_model,
    get_model_info,
    list_models,
)
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.provider import Provider
from interlingua.spec.contracts import NEUTRAL_PROFILE, AdapterCapabilities
from interlingua.spec.operations import ServedModel

__all__ = [
    "NEUTRAL_PROFILE",
    "AdapterCapabilities",
    "ModelEntry",
    "ModelInfo",
    "Provider",
    "Registry",
    "ServedModel",
    "get_latest_model",
    "get_model_info",
    "list_models",
    "profile_for",
]
