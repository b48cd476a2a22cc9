"""What a test run said of each test, read from the forms that test programs write."""
