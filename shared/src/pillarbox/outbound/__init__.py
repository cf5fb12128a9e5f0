"""The outbound queue in Redis: its wire format, its keys and scripts, and the lanes that messages wait in."""
