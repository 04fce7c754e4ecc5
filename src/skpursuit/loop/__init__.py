"""The only loop: limits, status, callback, interrupt, checkpoint, and the last look at a result."""
