"""What a run comes to, for people: a page to file, and a table for the terminal."""

from sim.report.errors import ReportError
from sim.report.page import write_report
from sim.report.terminal import terminal_table

__all__ = ["ReportError", "terminal_table", "write_report"]
