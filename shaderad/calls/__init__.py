"""A call of a kernel, graph or array function -> its graph at its operands, run or traced."""
