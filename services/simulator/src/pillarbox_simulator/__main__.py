"""`python -m pillarbox_simulator`."""

import asyncio

from pillarbox import process
from pillarbox.telemetry import bind, get_logger, serve_on
from pillarbox_simulator.app import App
from pillarbox_simulator.reset import ResettingProtocol
from pillarbox_simulator.settings import SimulatorSettings
from pillarbox_simulator.simulator import Simulator


async def main(settings: SimulatorSettings, stop: asyncio.Event) -> None:
    tokens = [token.get_secret_value() for token in settings.bot_tokens]
    simulator = Simulator(stop, tokens, settings.simulator_data, settings.simulator_ledger)
    listener = bind(settings.simulator_host, settings.simulator_port, "SIMULATOR_PORT")
    async with simulator.running():
        app = App(simulator)
        process.freeze()
        get_logger().info("serving", host=settings.simulator_host, port=listener.getsockname()[1])
        await serve_on(listener, app, stop, http=ResettingProtocol)


if __name__ == "__main__":
    process.run("simulator", SimulatorSettings, main)
