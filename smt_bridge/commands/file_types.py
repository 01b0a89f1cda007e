"""Types of options that name what a Moses system has: which files are read or written for them.

What a ``moses.ini``, a recipe or a record says is looked at before the command is; where it cannot be read, the command
itself will say so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from nmt_core.base.errors import NmtError
from nmt_core.files import Input, InputBehind, InputFile, NamedInput, OutputFile

_WITHOUT_FILE = ("mbrbleu", "mbrchrf")  # features whose argument is a kind of weights


class ScorerSpec(Input):
    """The type of an argument ``DIR``, ``DIR,DIR`` or ``grpc:HOST:PORT``."""

    def files(self) -> Iterable[str]:
        """The models' own files."""
        from smt_bridge.model_specs import files_of

        return files_of(self)


class FeatureSpec(InputBehind):
    """``kenlm:FILE``, ``mbrbleu:posterior``, ``wordcount``; ``file`` is also the folder of a model."""

    separator = ":"

    @property
    def file(self) -> InputFile | None:
        """The file, None where the feature takes none."""
        return None if self.partition(":")[0] in _WITHOUT_FILE else super().file

    def files(self) -> Iterable[str]:
        """The file, or the models' own files."""
        if self.file is not None:
            yield str(self.file)
            yield from ScorerSpec(self.file).files()


class RecordedInput(InputFile):
    """The type of an argument that names a table or list, perhaps with a record beside it."""

    def files(self) -> Iterable[str]:
        """What it names, and its record; where there is none, another file of that name would be taken for it."""
        from smt_bridge.metadata import metadata_path

        yield from super().files()
        if self != "-":
            yield metadata_path(self)


class RecordedOutput(OutputFile):
    """The type of an argument that names a table or list to write, with a record beside it."""

    def files(self) -> Iterable[str]:
        """Both files; beside standard output, or a device, there is no record."""
        from nmt_core.files import is_written_through
        from smt_bridge.metadata import metadata_path

        yield str(self)
        if self != "-" and not is_written_through(self):
            yield metadata_path(self)


class IniFile(InputFile):
    """The type of an argument that names a ``moses.ini``, or other weights."""

    def files(self) -> Iterable[str]:
        """The file and those that it names: tables, language models, sparse weights."""
        from smt_bridge.moses.ini import read_ini

        yield str(self)
        if _is_file(self):
            with contextlib.suppress(NmtError, OSError):
                for option in read_ini(self).paths:
                    if option.file is not None:
                        yield from InputFile(option.file).files()


class RecipeFile(InputFile):
    """The type of an argument that names a recipe."""

    def files(self) -> Iterable[str]:
        """The file and those that it names: models, what features read, and all of its ``moses.ini``."""
        yield str(self)
        if _is_file(self):
            with contextlib.suppress(NmtError, OSError):
                yield from _files_of_recipe(self)


class NamedRecipe(RecipeFile):
    """The type of an argument ``NAME=RECIPE``."""

    def files(self) -> Iterable[str]:
        """Those of the recipe."""
        return RecipeFile(self.partition("=")[2]).files()


def _files_of_recipe(path: str) -> Iterator[str]:
    from smt_bridge.recipe import read_recipe

    recipe = read_recipe(path)
    yield from IniFile(recipe.moses_ini).files()
    yield from ScorerSpec(recipe.model).files()
    for spec in recipe.features:
        yield from FeatureSpec(spec).files()
    for spec in recipe.exact:
        yield from NamedInput(spec).files()


def _is_file(path: str) -> bool:
    """Whether it can be read twice."""
    return path != "-" and os.path.isfile(path)
