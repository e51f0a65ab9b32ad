"""Safe writing of files despite crashes, full disks and other processes."""
