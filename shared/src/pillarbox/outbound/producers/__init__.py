"""What other programs push besides our own form: the calls of django-aiogram, as JSON and as pickles."""
