"""Makes ``report.html``: one self-contained page that explains a verdict, offline and for ever."""
