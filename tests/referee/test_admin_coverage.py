"""The table of what streams must meet lacks no API and no code of our controllers."""

import ast
from pathlib import Path

import splitbrain.nodes.controller
from splitbrain.nodes.controller.roles.handlers import HANDLERS
from splitbrain.nodes.server.controller.controller_service import SERVED
from splitbrain.nodes.wire.errors import ApiError
from tests.referee.admin_coverage import EXCUSED, MET

_ROOM = Path(splitbrain.nodes.controller.__file__).parent


def test_the_table_has_every_api_that_a_controller_serves() -> None:
    assert set(MET) == set(SERVED)
    assert set(HANDLERS) < set(MET)


def test_the_table_has_every_code_that_the_controllers_code_names() -> None:
    named = {
        ApiError[node.attr]
        for path in _ROOM.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "ApiError"
    }
    met = frozenset[ApiError]().union(*MET.values())
    assert len(named) > 25
    assert named - met == set(EXCUSED)
