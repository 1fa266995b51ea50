"""Runs typed kernels in NumPy, with derivatives from the rules: the oracle of device tests."""

from shaderad.interpret.once import backward_once as backward_once
from shaderad.interpret.once import call_once as call_once
from shaderad.interpret.once import forward_once as forward_once
from shaderad.interpret.reports import ReportKind as ReportKind
from shaderad.interpret.reports import RunReport as RunReport
from shaderad.interpret.run import KernelRun as KernelRun
from shaderad.interpret.run import interpret as interpret
