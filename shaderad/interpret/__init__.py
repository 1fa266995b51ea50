"""Runs typed kernels in NumPy, with derivatives from the rules: the oracle of device tests."""

from shaderad.interpret.machine import ReportKind as ReportKind
from shaderad.interpret.machine import RunReport as RunReport
from shaderad.interpret.run import KernelRun as KernelRun
from shaderad.interpret.run import backward_once as backward_once
from shaderad.interpret.run import call_once as call_once
from shaderad.interpret.run import forward_once as forward_once
from shaderad.interpret.run import interpret as interpret
