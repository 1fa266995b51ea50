"""Runs typed kernels in NumPy, with derivatives from the rules: the oracle beside the devices."""

from shaderad.interpret.once import backward_once as backward_once
from shaderad.interpret.once import call_once as call_once
from shaderad.interpret.once import forward_once as forward_once
from shaderad.interpret.reports import Report as Report
from shaderad.interpret.reports import ReportKind as ReportKind
from shaderad.interpret.run import Run as Run
from shaderad.interpret.run import interpret as interpret
