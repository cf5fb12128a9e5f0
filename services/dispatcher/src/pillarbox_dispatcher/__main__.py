import gc

gc.disable()  # what aiogram builds stays for good: without collections it loads a quarter faster

from pillarbox import process  # noqa: E402
from pillarbox_dispatcher.app import main  # noqa: E402
from pillarbox_dispatcher.settings import DispatcherSettings  # noqa: E402

if __name__ == "__main__":
    gc.enable()
    process.run("dispatcher", DispatcherSettings, main)
