"""What chooses the best epoch of a training: a metric is a module here."""
