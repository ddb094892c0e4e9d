"""What was measured as tables for other programs: typed columns with units in their names, as CSV or Parquet."""
