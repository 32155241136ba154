"""The sections of the report: each module makes one of what was measured."""
