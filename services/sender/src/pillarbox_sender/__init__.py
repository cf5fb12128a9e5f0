"""The sender: takes messages from the doors, files them into lanes, and sends what is due."""
