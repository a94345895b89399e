"""A checker of several modules with one text of them replaced, in modules of its own."""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from splitbrain.checker.verdict import CheckResult

Check = Callable[..., CheckResult]


def mutated(
    package: ModuleType, module: str, old: str, new: str, *, later: Sequence[str] = ()
) -> Check:
    """Return the package's ``check.check`` with a text replaced that stands in a module once.

    ``later`` are modules that are loaded with the first history that needs them.
    """
    prefix = f"{package.__name__}."
    path = Path(next(iter(package.__path__)), f"{module}.py")
    source = path.read_text()
    assert source.count(old) == 1, (module, old)
    kept = {name: found for name, found in sys.modules.items() if name.startswith(prefix)}
    for name in kept:
        del sys.modules[name]
    try:
        spec = importlib.util.spec_from_file_location(f"{prefix}{module}", path)
        assert spec is not None
        mutant = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = mutant
        exec(compile(source.replace(old, new), str(path), "exec"), mutant.__dict__)
        check: Check = importlib.import_module(f"{prefix}check").check
        for name in later:
            importlib.import_module(f"{prefix}{name}")
        mine = {n: found for n, found in sys.modules.items() if n.startswith(prefix)}
    finally:
        _restore(package, kept)

    def judged(*arguments: Any) -> CheckResult:
        _restore(package, mine)
        try:
            return check(*arguments)
        finally:
            _restore(package, kept)

    return judged


def _restore(package: ModuleType, modules: dict[str, Any]) -> None:
    prefix = f"{package.__name__}."
    for name in [name for name in sys.modules if name.startswith(prefix)]:
        del sys.modules[name]
    sys.modules.update(modules)
    for name, module in modules.items():
        setattr(package, name.removeprefix(prefix), module)
