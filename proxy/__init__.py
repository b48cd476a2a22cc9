"""The WIRE: carries bytes between the agent and the world; mitmproxy is imported in this room only."""
