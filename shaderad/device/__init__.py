"""The public `Device`, the stages that it caches, and its reports and prints."""
