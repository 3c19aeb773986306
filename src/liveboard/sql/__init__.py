"""SQL over live tables: what may be asked, and the process that answers."""
