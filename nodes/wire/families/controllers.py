"""Controllers among themselves and for brokers: registration, features, envelopes.

Source: Kafka 4.3's message definitions; KIP-919 (ControllerRegistration), KIP-584 and KIP-778
(UpdateFeatures), KIP-590 (Envelope).
"""

from typing import Annotated

import msgspec

from splitbrain.nodes.wire.declared import (
    IGNORABLE,
    Boolean,
    Bytes,
    Int8,
    Int16,
    Int32,
    NullableBytes,
    NullableString,
    String,
    Uuid,
    since,
    until,
)
from splitbrain.nodes.wire.families.parts import AdvertisedListener, Outcome, SupportedFeature


class ControllerRegistrationRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A controller tells the active one who and where it is."""

    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Boolean
    listeners: tuple[AdvertisedListener, ...]
    features: tuple[SupportedFeature, ...]


class ControllerRegistrationResponse(Outcome, frozen=True, kw_only=True, gc=False):
    """Whether the controller is registered."""


class FeatureToUpdate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The level that a feature shall have."""

    feature: String
    #: 0 removes the feature.
    max_version_level: Int16
    allow_downgrade: Annotated[Boolean, until(0)] = False
    #: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade.
    upgrade_type: Annotated[Int8, since(1)] = 1


class UpdateFeaturesRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Sets levels of features."""

    timeout_ms: Int32 = 60000
    feature_updates: tuple[FeatureToUpdate, ...]
    validate_only: Annotated[Boolean, since(1)] = False


class UpdatedFeature(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Result for one feature."""

    feature: String
    error_code: Int16
    error_message: NullableString


class UpdateFeaturesResponse(Outcome, frozen=True, kw_only=True, gc=False):
    """Result of the update."""

    results: Annotated[tuple[UpdatedFeature, ...], until(1), IGNORABLE] = ()


class EnvelopeRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A client's request as a broker forwards it: header and body as they came."""

    request_data: Bytes
    #: The client's principal, in the form of the broker's principal builder.
    request_principal: NullableBytes
    #: 4 or 16 bytes.
    client_host_address: Bytes


class EnvelopeResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer for the client, header and body; null where the envelope failed."""

    response_data: NullableBytes = None
    error_code: Int16
