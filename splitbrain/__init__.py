"""Everything that is installed, under one name; each room is a link to its folder beside this."""
