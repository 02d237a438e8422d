"""Compiled programs kept on disk."""
