"""How much one request of a user may change."""

from nodes.controller.decisions import Refusal, View
from nodes.wire.errors import ApiError


def check_size(view: View, count: int) -> None:
    """A user's request changes no more than one batch takes.

    Raises:
        Refusal: it would.
    """
    most = view.settings.records_per_batch_max
    if count > most:
        raise Refusal(
            ApiError.POLICY_VIOLATION,
            f"{count} records are too many for one request: at most {most}",
        )
