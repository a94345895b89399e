"""Images of tests alone, made ahead: ``python -m tests.containers.more_images``.

A test that needs one makes it, too, while all others of its file wait.
"""

from splitbrain.runtimes import registry as runtimes
from tests.containers.spark_cluster.standalone import IMAGE as SPARK


def main() -> None:
    """Find or build them."""
    runtimes.runtime("docker").prepare([SPARK])


if __name__ == "__main__":
    main()
