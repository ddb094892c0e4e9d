"""What people see in a browser: pages that open offline, from evidence on disk."""
