"""`python -m pillarbox_dispatcher`: settings from the environment alone."""

import gc

from pillarbox import loading

if __name__ == "__main__":
    loading.stop_ends_it()
    gc.disable()  # what aiogram builds stays for good: without collections it loads a quarter faster

    from pillarbox import process
    from pillarbox_dispatcher.app import main
    from pillarbox_dispatcher.settings import DispatcherSettings

    gc.enable()
    gc.set_threshold(50_000)  # 64 updates under way are many objects, and none of them garbage
    process.run("dispatcher", DispatcherSettings, main)
