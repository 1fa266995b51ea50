"""Python functions -> typed IR: the first stage."""
