"""How a client gets into a cluster: TLS and SASL, by the properties that Kafka's own tools read.

Read are the names of Kafka's Java clients and those of librdkafka, of PEM files and of the
mechanisms PLAIN and SCRAM. Credentials stay in their file: a run folder has its path alone.
"""

import re
import ssl
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UsageError, in_one_line
from splitbrain.contracts.nearest import or_nearest

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CREDENTIAL: Final = r'{}\s*=\s*"((?:[^"\\]|\\.)*)"'
_PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = ("sasl.mechanism", "sasl.mechanisms")
_JAAS: Final = "sasl.jaas.config"
_USER: Final = ("sasl.username", "sasl.user")
_PASSWORD: Final = "sasl.password"  # noqa: S105 - a name
_CA: Final = ("ssl.ca.location", "ssl.truststore.location")
_CERTIFICATE: Final = ("ssl.certificate.location", "ssl.keystore.location")
_KEY: Final = "ssl.key.location"
_KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - a name
_NAMES: Final = "ssl.endpoint.identification.algorithm"
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_KNOWN: Final = frozenset(
    {
        *(_PROTOCOL, *_MECHANISM, _JAAS, *_USER, _PASSWORD, *_CA, *_CERTIFICATE, _KEY),
        *(_KEY_PASSWORD, _NAMES, *_TYPES),
    }
)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Means of a client to be let in; without any everybody is."""

    uses_tls: bool = False
    #: PEM files; None: the machine's own authorities, no certificate.
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None
    #: Whether the certificate must be of the host that is asked.
    checks_host: bool = True
    #: None: nobody asks who the client is.
    mechanism: str | None = None
    user: str = ""
    password: str = ""

    def context(self) -> ssl.SSLContext | None:
        """Return what a connection needs for TLS; None without it."""
        return _context(self) if self.uses_tls else None


#: Into a cluster that lets everybody in.
OPEN: Final = Access()


@cache
def _context(access: Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=access.ca)
    context.check_hostname = access.checks_host
    if access.certificate:
        context.load_cert_chain(access.certificate, access.key, access.key_password)
    return context


def read_access(path: Path) -> tuple[Access, list[str]]:
    """Read a file of properties; returns the names besides that it has, of which nothing is done.

    Raises:
        UsageError: it cannot be read, or names what is not known here.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the file of properties {path} cannot be read: {in_one_line(error)}",
            "Name one such as Kafka's tools take as --command-config",
        ) from error
    given = _properties(text)
    access = _access_of(given, path)
    try:
        access.context()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: TLS cannot be had with its certificates: {in_one_line(error)}",
            "Name PEM files that can be read here",
        ) from error
    return access, sorted(given.keys() - _KNOWN)


def _properties(text: str) -> dict[str, str]:
    joined = re.sub(r"\\\r?\n\s*", "", text)
    found: dict[str, str] = {}
    for line in map(str.strip, joined.splitlines()):
        if line and line[0] not in "#!":
            name, _, value = line.partition("=")
            # As Java reads such files.
            found[name.strip()] = re.sub(r"\\(.)", r"\1", value.strip())
    return found


def _access_of(given: Mapping[str, str], path: Path) -> Access:
    protocol = given.get(_PROTOCOL, _PROTOCOLS[0]).upper()
    _require(protocol, _PROTOCOLS, _PROTOCOL, path)
    mechanism = None
    user = password = ""
    if protocol.startswith("SASL"):
        mechanism = _first(given, _MECHANISM) or ""
        _require(mechanism, _MECHANISMS, _MECHANISM[0], path)
        jaas = given.get(_JAAS, "")
        user = _first(given, _USER) or _of_jaas(jaas, "username")
        password = given.get(_PASSWORD) or _of_jaas(jaas, "password")
        if not user or not password:
            raise UsageError(
                f"{path} has no user and password for {mechanism}",
                f"Give {_USER[0]} and {_PASSWORD}, or {_JAAS} with both",
            )
    for name in _TYPES:
        if given.get(name, "PEM").upper() != "PEM":
            raise UsageError(
                f"{path}: {name} is {given[name]}, and only PEM files can be read here",
                f"Give {_CA[0]}, {_CERTIFICATE[0]} and {_KEY}",
            )
    return Access(
        uses_tls=protocol.endswith("SSL"),
        ca=_first(given, _CA),
        certificate=_first(given, _CERTIFICATE),
        key=given.get(_KEY),
        key_password=given.get(_KEY_PASSWORD),
        checks_host=given.get(_NAMES, "https").lower() == "https",
        mechanism=mechanism,
        user=user,
        password=password,
    )


def _require(value: str, known: tuple[str, ...], name: str, path: Path) -> None:
    if value not in known:
        raise UsageError(
            f"{path}: {name} cannot be {value!r}" if value else f"{path} has no {name}",
            or_nearest(value, known, "values"),
        )


def _first(given: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((given[name] for name in names if given.get(name)), None)


def _of_jaas(text: str, name: str) -> str:
    found = re.search(_CREDENTIAL.format(name), text)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else ""
