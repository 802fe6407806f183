"""Agreement statistics: arrays of ratings in, figures out. Pure numpy; nothing here reads a file."""
