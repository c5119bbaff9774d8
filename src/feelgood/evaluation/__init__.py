"""What agents would have earned on a log: learning in blocks, estimators, the table."""
