"""What everything may use and what uses nothing: errors, fail points."""
