"""How figures are drawn: the canvas, its colours, and rows, points and lines on it; none of it knows a result."""
