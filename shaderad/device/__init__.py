"""Devices as users hold them, the stages that they keep, their reports and prints."""
