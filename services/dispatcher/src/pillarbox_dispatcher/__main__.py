import gc

gc.disable()  # what aiogram builds stays for good: without collections it loads a quarter faster

from pillarbox import process  # noqa: E402
from pillarbox_dispatcher.app import main  # noqa: E402
from pillarbox_dispatcher.settings import DispatcherSettings  # noqa: E402

if __name__ == "__main__":
    gc.enable()
    gc.set_threshold(50_000)  # 64 updates under way are many objects, and none of them garbage
    process.run("dispatcher", DispatcherSettings, main)
