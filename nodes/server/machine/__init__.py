"""A node on this machine: loop, disk thread, files, sockets, configuration, command line."""
