"""Error codes have Kafka's names and numbers; ``kio``'s come from Kafka's own table."""

from enum import IntEnum

import pytest
from kio.schema import errors as kio_errors

from splitbrain.nodes.quorum.messages import ErrorCode
from splitbrain.nodes.wire.errors import ApiError


@pytest.mark.parametrize("codes", [ErrorCode, ApiError])
def test_error_codes_have_kafkas_names_and_numbers(codes: type[IntEnum]) -> None:
    theirs = {code.name.upper(): int(code) for code in kio_errors.ErrorCode}
    assert {code.name: int(code) for code in codes} == {
        code.name: theirs[code.name] for code in codes
    }
