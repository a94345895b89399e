"""The page of models and checkers is what the code says."""

from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.names import PROMISES, checker_names
from tests.unit.checker.models_page import PAGE, page


def test_the_page_is_what_the_code_says() -> None:
    remedy = "write it anew: python -m tests.unit.checker.models_page"
    assert PAGE.read_text(encoding="utf-8") == page(), remedy


def test_every_checker_that_is_offered_stands_in_the_page() -> None:
    plain = {name for name in checker_names() if not name.startswith("linearizability:")}
    assert plain == set(PROMISES)
    for name in (*MODELS, *plain):
        assert f"| `{name}` | " in page()


def test_no_cell_of_the_page_is_empty() -> None:
    assert "|  |" not in page()
