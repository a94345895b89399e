"""What the driver of a cluster needs: whose address it tells, and what code it ships."""

import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.cluster import address_towards, is_local, our_code


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2, 3]"])
def test_a_local_spark_is_known_as_such(master: str) -> None:
    assert is_local(master)


@pytest.mark.parametrize("master", ["spark://local:7077", "yarn", "local-cluster[2,1,1024]"])
def test_what_has_executors_of_its_own_is_not_local(master: str) -> None:
    assert not is_local(master)


def test_the_address_is_the_one_on_the_way_to_the_master() -> None:
    assert address_towards("spark://127.0.0.1:7077") == "127.0.0.1"
    assert address_towards("spark://127.0.0.1:7077,127.0.0.1:7078") == "127.0.0.1"


def test_other_kinds_of_cluster_choose_the_address_themselves() -> None:
    assert address_towards("yarn") is None
    assert address_towards("k8s://https://127.0.0.1:6443") is None


def test_a_master_that_cannot_be_reached_is_one_sentence() -> None:
    with pytest.raises(HarnessError, match=r"spark://256\.0\.0\.1:7077") as caught:
        address_towards("spark://256.0.0.1:7077")
    assert "\n" not in str(caught.value)


def test_the_shipped_code_can_be_imported_where_nothing_else_of_ours_is(tmp_path: Path) -> None:
    archive = our_code(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "import splitbrain.checker.linearizability.check as check; "
        "import splitbrain.spark_analysis.run_rows as rows; "
        "print(check.__file__.startswith(sys.argv[1]), rows.__file__.startswith(sys.argv[1]))"
    )
    told = subprocess.run(
        [sys.executable, "-P", "-c", program, str(archive)],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert told.stdout.split() == ["True", "True"]
