"""The functions behind layers."""
