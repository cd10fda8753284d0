"""Programs of the repository that are in no package, as modules."""

import importlib.util


def loaded(path):
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
