"""What an ID of a model promises: its class, the reason, its dated candidates, its retirement (PROVIDERS A4)."""
