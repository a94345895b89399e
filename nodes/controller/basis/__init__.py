"""What every decision stands on: the view, settings, bounds, names, leaderships, contacts."""
