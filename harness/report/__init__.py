"""The report of a run: ``report.html``, one self-contained page that explains a verdict."""
