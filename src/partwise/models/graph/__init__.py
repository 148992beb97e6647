"""Labels of the nodes of graphs."""
