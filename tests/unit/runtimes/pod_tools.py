"""The tools of the pods' image are programs, no package: loads one as a module."""

import importlib.util
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parents[3] / "docker" / "pod"


def pod_tool(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"pod_{name}", _FOLDER / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
