"""The report: one page for the officer and the auditor, made from `Advice`."""
