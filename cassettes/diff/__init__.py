"""What differs between two runs, in four layers: decisions, commands, tree, outcome. Pure: values in, values out."""
