"""Tables in, tables with answers out: data frames of tokens, and Parquet and Arrow files."""
