"""Programs of the repository that are in no package, as modules."""

import importlib.util
import sys


def loaded(path):
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(f"program_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the module of their class
    spec.loader.exec_module(module)
    return module
