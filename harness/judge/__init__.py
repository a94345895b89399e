"""Judgement of a run folder or a bare history: evidence in, results out."""
