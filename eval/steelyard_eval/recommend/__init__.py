"""Which strategy, and which weights, instead of what is used today? One answer over all families."""
