"""What people see: values in, terminal text out. Nothing is read or measured here."""
