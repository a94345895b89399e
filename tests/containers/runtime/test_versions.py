"""Versions that the docker runtime tells; its acts are tested in ``tests/runtimes``."""

import pytest

from splitbrain.runtimes.docker.runtime import DockerRuntime

pytestmark = pytest.mark.containers


def test_versions_name_engine_kernel_and_image_digests(cluster: DockerRuntime) -> None:
    versions = cluster.versions()
    assert versions["engine"]
    assert versions["kernel"]
    digests = [value for name, value in versions.items() if name.startswith("image ")]
    assert digests
    assert all(value.startswith("sha256:") for value in digests)
