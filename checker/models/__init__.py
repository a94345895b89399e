"""What systems promise, as models: a few lines each, open to users' own."""
