"""Files that a crash, a full disk or another process does not damage."""
