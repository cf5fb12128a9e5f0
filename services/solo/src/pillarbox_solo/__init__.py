"""All services on one machine, and the launcher of embedded servers."""
