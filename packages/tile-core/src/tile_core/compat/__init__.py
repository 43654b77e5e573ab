"""The doors to third-party libraries whose import needs care."""
