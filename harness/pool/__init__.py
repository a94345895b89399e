"""Child processes of the harness: started, given work, and killed when their time is up."""
