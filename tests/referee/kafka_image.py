"""The image of Apache Kafka: what referees, and never what ``make run`` needs."""

from typing import Final

from splitbrain.contracts.runtime import ImageSource

IMAGE: Final = ImageSource("splitbrain-kafka", "kafka", has_wheels=True, jars=".")
