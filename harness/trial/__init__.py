"""One trial: arrange, act, settle, judge."""
