"""What every package may use: array types, checks of parameters, lazy properties, limits of memory, threads."""
