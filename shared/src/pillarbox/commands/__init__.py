"""Groups of commands: `pillarbox failed …` and `pillarbox pins …`."""
