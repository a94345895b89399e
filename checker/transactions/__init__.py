"""Judgement of transactional histories of any origin for isolation anomalies."""
