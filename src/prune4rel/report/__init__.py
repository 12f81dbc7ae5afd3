"""The report: one self-contained page of what a run found, and its figures for papers."""

from prune4rel.report.atlas import map_kind, map_of
from prune4rel.report.page import render, write_report
from prune4rel.report.paper import write_figures
from prune4rel.report.story import Cell, Story

__all__ = ["Cell", "Story", "map_kind", "map_of", "render", "write_figures", "write_report"]
