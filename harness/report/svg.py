"""Elements of the pictures on the pages; what stands in them is escaped. Pure."""

from markupsafe import Markup

_NAMESPACE = "http://www.w3.org/2000/svg"


def element(tag: str, *inside: str, **attributes: str | float | None) -> Markup:
    """Return an element, its fractions with one digit; an attribute that is None is left out.

    Of a name a ``_`` at the end is dropped, any other stands for a hyphen: ``class_="soft"``.
    """
    shown = Markup().join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"),
            f"{value:.1f}" if isinstance(value, float) else value,
        )
        for name, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(tag, shown, Markup().join(inside))


def picture(
    width: float, height: float, label: str, *inside: Markup, class_: str | None = None
) -> Markup:
    """Return the picture as it stands in a page; without a label it is for eyes only."""
    return element(
        "svg",
        *inside,
        xmlns=_NAMESPACE,
        class_=class_,
        width=round(width),
        height=round(height),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img" if label else None,
        aria_label=label or None,
        aria_hidden=None if label else "true",
    )
