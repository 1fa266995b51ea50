"""Array graphs -> plans: which dispatches compute a graph, in which order, over which buffers."""
