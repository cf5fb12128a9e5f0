from pillarbox import process
from pillarbox_dispatcher.app import main
from pillarbox_dispatcher.settings import DispatcherSettings

if __name__ == "__main__":
    process.run("dispatcher", DispatcherSettings, main)
