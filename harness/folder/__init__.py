"""The files of a run folder that runs write and judgements read, and the folder itself."""
