"""Safe writing of files despite crashes and full disks; lines of text files."""
