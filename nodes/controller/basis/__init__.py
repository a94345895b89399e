"""Basis of every decision: the view, settings, bounds, names, leaderships, contacts."""
