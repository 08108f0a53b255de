"""What the engine works without: `steelyard.base.extensions` finds each folder, and each can be left out."""
