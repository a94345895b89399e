"""The same jobs in four engines, for ``bench.analytics_peers``.

Spark runs the product's own jobs. The peers' jobs are written for the data of
``bench.analytics_data``, where every acknowledged write has a position and all logs are there, as
shortly as each engine allows; results are equal all the same.
"""
