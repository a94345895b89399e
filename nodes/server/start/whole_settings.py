"""Reads those settings, given as text, that are whole numbers of one part of a node. Pure."""

from collections.abc import Collection, Mapping


def whole_settings(
    settings: Mapping[str, str],
    known: Collection[str],
    kafka_names: Mapping[str, str],
    may_be_zero: Collection[str] = (),
) -> dict[str, int]:
    """Values by our names; settings that are not ``known`` are another part's, and passed over.

    Args:
        settings: by our names or by Kafka's.
        known: names that are read.
        kafka_names: Kafka's names to ours.
        may_be_zero: ours, of which 0 means something.

    Raises:
        ValueError: names a setting that is no whole number, too small, or given twice.
    """
    chosen: dict[str, int] = {}
    for name, text in settings.items():
        if name not in known:
            continue
        field = kafka_names.get(name, name)
        if field in chosen:
            raise ValueError(f"setting {name!r} is given twice, by Kafka's name and by ours")
        if not text.strip().isdecimal():
            raise ValueError(f"setting {name!r} is {text!r}, not a whole number")
        chosen[field] = int(text)
        if not chosen[field] and field not in may_be_zero:
            raise ValueError(f"setting {name!r} is 0; choose 1 or more")
    return chosen
