"""
What is known about models and providers, without a call.

Import from here to look up or list models, to read what a model accepts, to define a provider of
your own or how a provider is used, or to read a registry file.
"""

from interlingua.client.provider_config import ProviderConfig
from interlingua.client.registry import ModelEntry, Registry
from interlingua.providers.catalog.models import ModelInfo
from interlingua.providers.catalog.prices import LongContext, MediaVariant, Price, Rates
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.catalog.search import (
    cheapest,
    get_latest_model,
    get_model_info,
    list_models,
    mixed_price,
)
from interlingua.providers.catalog.update import update
from interlingua.providers.cost_range import CostRange
from interlingua.providers.keys import ApiKey
from interlingua.providers.provider import Branch, DerivedPlace, Endpoint, Provider, SizeLimits
from interlingua.providers.tariffs import Prices, reprice
from interlingua.spec.behaviour import Behaviour, RetrySettings
from interlingua.spec.contracts import NEUTRAL_PROFILE, AdapterCapabilities
from interlingua.spec.operations import ServedModel
from interlingua.wire.aws_credentials import AwsCredentials

__all__ = [
    "NEUTRAL_PROFILE",
    "AdapterCapabilities",
    "ApiKey",
    "AwsCredentials",
    "Behaviour",
    "Branch",
    "CostRange",
    "DerivedPlace",
    "Endpoint",
    "LongContext",
    "MediaVariant",
    "ModelEntry",
    "ModelInfo",
    "Price",
    "Prices",
    "Provider",
    "ProviderConfig",
    "Rates",
    "Registry",
    "RetrySettings",
    "ServedModel",
    "SizeLimits",
    "cheapest",
    "get_latest_model",
    "get_model_info",
    "list_models",
    "mixed_price",
    "profile_for",
    "reprice",
    "update",
]
