"""What is TRIED: launching agents, the scripted provider, the demo."""
