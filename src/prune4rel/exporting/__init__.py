"""From judged labels to what comes next: the set with corrected labels, written in the form somebody else reads."""

from prune4rel.exporting.form import Corrected, export, get, list_exports, open_corrected, register_export

__all__ = ["Corrected", "export", "get", "list_exports", "open_corrected", "register_export"]
