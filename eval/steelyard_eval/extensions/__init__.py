"""Parts of the workbench that its core works without; see `steelyard_eval.common`."""
