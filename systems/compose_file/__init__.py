"""Services of a compose file as a system under test: its file, its nodes, drivers of clients."""
