"""Seeing where the time of a program goes: device time per kernel, against what a device can do."""
