"""Reading drawings back."""

import xml.etree.ElementTree as ET

import pytest


@pytest.fixture
def groups():
    """The parts of each method of a drawing, by its index; fails if the drawing is not well-formed."""

    def read(markup):
        return {g.get("data-method"): g for g in ET.fromstring(str(markup)).iter("g") if g.get("data-method")}

    return read
