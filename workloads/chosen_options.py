"""Reads a workload's options as the user wrote them: names and values are text."""

from splitbrain.contracts.errors import UsageError


def chosen(
    workload: str, options: dict[str, str], allowed: dict[str, tuple[str, ...]]
) -> dict[str, str]:
    """Every allowed option with its value, the first allowed value where the user chose none.

    Raises:
        UsageError: an option or a value does not exist.
    """
    for name, value in options.items():
        if name not in allowed:
            raise UsageError(
                f"the workload {workload!r} has no option {name!r}",
                f"Its options are: {', '.join(sorted(allowed)) or 'none'}",
            )
        if value not in allowed[name]:
            raise UsageError(
                f"the option {name!r} of the workload {workload!r} cannot be {value!r}",
                f"Choose one of: {', '.join(allowed[name])}",
            )
    return {name: options.get(name, values[0]) for name, values in allowed.items()}
