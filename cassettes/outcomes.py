"""How a take counts, and how much was held: from what happened to an outcome, a control label and a headline. Pure (DESIGN 6)."""
