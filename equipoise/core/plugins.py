"""Methods of other packages: importing what they name under "equipoise.methods" registers them.

[project.entry-points."equipoise.methods"]
poly1 = "equipoise_poly1"
"""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, entry_points
from multiprocessing import parent_process

GROUP = "equipoise.methods"


def installed() -> list[EntryPoint]:
    """What packages of this environment offer, in the order of their names."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def imported(plugin: EntryPoint) -> bool:
    """Import it, which registers its methods. Where that fails, say so and go on: nobody's tool stops for a plugin."""
    try:
        plugin.load()
    except Exception as error:
        package = f" of the package {plugin.dist.name} {plugin.dist.version}" if plugin.dist else ""
        tell(f"the plugin {plugin.name!r}{package} is left out: {type(error).__name__}: {error}")
        return False
    return True


def tell(sentence: str) -> None:
    """Say it once, not in every worker process; unless logging was set up otherwise, as a bare sentence on stderr."""
    if parent_process() is None:
        logging.getLogger("equipoise").warning(sentence)
