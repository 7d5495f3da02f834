"""Every prompt is a file here; this is the strict loader."""
