"""Launches and plans -> commands of a device."""
