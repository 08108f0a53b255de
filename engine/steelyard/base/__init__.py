"""What every room uses: errors, arrays, files, bounded input, escaped output, JSON values and schemas."""
