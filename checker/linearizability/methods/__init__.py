"""Methods to decide a part: search, zones, positions, reachability."""
