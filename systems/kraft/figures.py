"""A node's own figures, as it tells them to Prometheus.

Counts and sums of a histogram are taken, its buckets are not: a run has a line each second.
"""

import http.client

from prometheus_client.parser import text_string_to_metric_families

from splitbrain.contracts.runtime import Address
from splitbrain.nodes.transport.metrics_listener import PATH

_BUCKET = "_bucket"


def figures(address: Address, timeout_s: float) -> dict[str, float] | None:
    """What the node says at this address; None where it does not answer within the time."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, http.client.HTTPException, UnicodeDecodeError):
        return None
    finally:
        connection.close()
    return read_figures(text) if answer.status == http.client.OK else None


def read_figures(text: str) -> dict[str, float] | None:
    """The samples of a text in Prometheus' format, but for buckets; None where it is none."""
    try:
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if not sample.name.endswith(_BUCKET)
        }
    except ValueError:
        return None
