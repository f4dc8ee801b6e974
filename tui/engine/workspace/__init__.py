"""The files of the opened folders: which there are, and what of them goes into a message."""
