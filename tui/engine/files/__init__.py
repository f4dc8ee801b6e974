"""Files of gemdeck's own: state files, line files, and how they are replaced."""
